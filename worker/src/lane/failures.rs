//! Which builds of the engine failed in this browser, across visits.
//!
//! A failure belongs to one artifact and one version of the browser: when either changes, it is
//! forgotten, because the fault may be gone.

use format::Digest;
use serde::{Deserialize, Serialize};

/// More failures than there are lanes of two builds; the oldest are forgotten first.
pub const FAILURES_MAX: usize = 16;
/// A file larger than this is not ours.
pub const FAILURES_BYTES_MAX: u64 = 64 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    entries: Vec<Failure>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    artifact: Digest,
    /// As the browser names itself, version included.
    browser: String,
    /// One sentence for people.
    what: String,
}

impl Failures {
    /// What an earlier visit left. A damaged file is an empty one: at worst a lane fails again.
    pub fn parse(bytes: &[u8]) -> Failures {
        let mut failures: Failures = serde_json::from_slice(bytes).unwrap_or_default();
        failures.entries.truncate(FAILURES_MAX);
        failures
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// What went wrong with this build in this browser.
    pub fn of(&self, artifact: Digest, browser: &str) -> Option<&str> {
        let mut entries = self.entries.iter();
        let found = entries.find(|entry| entry.artifact == artifact && entry.browser == browser);
        found.map(|entry| entry.what.as_str())
    }

    pub fn add(&mut self, artifact: Digest, browser: &str, what: String) {
        if self.of(artifact, browser).is_some() {
            return;
        }
        if self.entries.len() == FAILURES_MAX {
            self.entries.remove(0);
        }
        self.entries.push(Failure {
            artifact,
            browser: browser.to_owned(),
            what,
        });
    }

    /// Forgets what speaks of another version of the browser, or of builds that there are no more.
    pub fn keep_current(&mut self, browser: &str, artifacts: &[Digest]) {
        self.entries
            .retain(|entry| entry.browser == browser && artifacts.contains(&entry.artifact));
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Digest = Digest([1; 32]);
    const TWO: Digest = Digest([2; 32]);

    #[test]
    fn a_failure_belongs_to_a_build_and_a_browser() {
        let mut failures = Failures::default();
        failures.add(ONE, "Browser/1", "It stopped.".into());
        failures.add(ONE, "Browser/1", "Once more.".into());
        assert_eq!(failures.of(ONE, "Browser/1"), Some("It stopped."));
        assert_eq!(failures.of(ONE, "Browser/2"), None);
        assert_eq!(failures.of(TWO, "Browser/1"), None);

        let mut read = Failures::parse(&failures.to_bytes());
        assert_eq!(read, failures);
        read.keep_current("Browser/1", &[ONE, TWO]);
        assert_eq!(read, failures);
        let mut updated = read.clone();
        updated.keep_current("Browser/2", &[ONE]);
        assert_eq!(updated, Failures::default());
        read.keep_current("Browser/1", &[TWO]);
        assert_eq!(read, Failures::default());
    }

    #[test]
    fn the_file_has_a_limit_and_may_be_damaged() {
        let mut failures = Failures::default();
        for number in 0..=FAILURES_MAX {
            failures.add(Digest([number as u8; 32]), "Browser/1", String::new());
        }
        assert_eq!(failures.of(Digest([0; 32]), "Browser/1"), None);
        assert!(failures.of(Digest([1; 32]), "Browser/1").is_some());
        assert!((failures.to_bytes().len() as u64) < FAILURES_BYTES_MAX);
        for damaged in [&b""[..], b"[]", b"{\"entries\":[{}]}"] {
            assert_eq!(Failures::parse(damaged), Failures::default());
        }
    }
}

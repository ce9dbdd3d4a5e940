//! The newest failures, for diagnostics.

use std::collections::VecDeque;

use protocol::ErrorReport;

/// Enough to see a chain of failures; small enough to be sent with every diagnosis.
pub const RECORDS_MAX: usize = 32;

/// A ring of reports, oldest first. Reports never hold prompt text, so the ring does not either.
#[derive(Default)]
pub struct Records {
    ring: VecDeque<ErrorReport>,
}

impl Records {
    pub fn push(&mut self, report: ErrorReport) {
        if self.ring.len() == RECORDS_MAX {
            self.ring.pop_front();
        }
        self.ring.push_back(report);
    }

    pub fn to_vec(&self) -> Vec<ErrorReport> {
        self.ring.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Stage, TrResult};

    use super::*;

    #[test]
    fn keeps_the_newest() {
        let mut records = Records::default();
        for number in 0..RECORDS_MAX + 3 {
            records.push(ErrorReport {
                code: TrResult::Source,
                stage: Stage::Import,
                what: number.to_string(),
                remedy: String::new(),
            });
        }
        let kept = records.to_vec();
        assert_eq!(kept.len(), RECORDS_MAX);
        assert_eq!(kept[0].what, "3");
        assert_eq!(kept[RECORDS_MAX - 1].what, (RECORDS_MAX + 2).to_string());
    }
}

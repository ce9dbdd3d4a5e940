//! Words about what is kept, where, and for how long.

use format::Root;
use protocol::{ModelSummary, StorageKind};

use super::{bytes, count};
use crate::state::{Durability, Millis};

pub fn storage(kind: StorageKind) -> &'static str {
    match kind {
        StorageKind::Opfs => "Private file system of this browser: models stay on this device",
        StorageKind::IndexedDb => {
            "Database of this browser, which has no private file system: models stay on this device"
        }
        StorageKind::Memory => {
            "Memory only: this window offers no storage, so models are gone when it closes"
        }
    }
}

/// About keeping what was computed of conversations.
pub fn computed(is_kept: bool, (conversations, of_them): (u32, u64)) -> String {
    let what = "Keeps what the model has computed of each conversation on this device, so that \
                it need not read it again after the page was closed. It takes more room than the \
                words: at most half a gigabyte in all, and the oldest goes first.";
    match (is_kept, conversations) {
        (true, 0) => format!("{what} Nothing is kept yet."),
        (true, 1) => format!("{what} Now: {} of one conversation.", bytes(of_them)),
        (true, _) => {
            let many = count(u64::from(conversations));
            format!("{what} Now: {} of {many} conversations.", bytes(of_them))
        }
        (false, _) => format!("{what} Switched off, it is deleted."),
    }
}

/// What the browser answered when it was asked not to evict. Memory is not evicted.
pub fn kept(kind: Option<StorageKind>, persisted: Option<bool>) -> &'static str {
    match (kind, persisted) {
        (None | Some(StorageKind::Memory), _) => "",
        (_, Some(true)) => "The browser has promised to keep them.",
        (_, Some(false)) => {
            "The browser may remove them when space runs out, or after days without a visit."
        }
        (_, None) => "The browser does not say whether it will keep them.",
    }
}

/// Used and left, as far as the browser says.
pub fn space(durability: &Durability) -> String {
    match (durability.used, durability.quota) {
        (Some(used), Some(quota)) => {
            let left = bytes(quota.saturating_sub(used));
            format!("{} used by this site, about {left} left", bytes(used))
        }
        (Some(used), None) => format!("{} used by this site", bytes(used)),
        _ => "This browser does not say how much space is left".into(),
    }
}

/// Size, completeness and soundness of a stored model.
pub fn condition(model: &ModelSummary) -> String {
    let whole = bytes(model.id.length);
    match (model.partial, model.damaged) {
        (Some(here), _) => format!("{} of {whole} are here and checked", bytes(here)),
        (None, true) => format!("{whole} · damaged"),
        (None, false) => format!(
            "{whole} · every piece checked · up to {} tokens",
            count(u64::from(model.context))
        ),
    }
}

/// Of a file that is not copied.
pub const BORROWED: &str = "Your own file, read where it lies and not copied. It is gone from here \
     when this tab is closed or loaded again; choose the file again then, or keep it.";

pub const CHECKED: &str = "Just read and hashed: every byte is right.";

/// How far a check has come.
pub fn checking(done: u64, total: u64) -> String {
    format!("Reading and hashing it: {} %", super::percent(done, total))
}

/// What can be done about a damaged model.
pub fn damage(can_be_got: bool) -> &'static str {
    match can_be_got {
        true => {
            "Stored bytes have changed since they were checked. Repairing gets only the bad pieces again."
        }
        false => {
            "Stored bytes have changed since they were checked. Import its file again, which mends it, or delete it."
        }
    }
}

/// Coarse on purpose: a person wants to know what is old.
pub fn used(now: Millis, then: Option<Millis>) -> String {
    let Some(then) = then else {
        return "not used yet".into();
    };
    let minutes = now.saturating_sub(then) / 60_000;
    let some = |number: u64, unit: &str| match number {
        1 => format!("last used 1 {unit} ago"),
        many => format!("last used {} {unit}s ago", count(many)),
    };
    match minutes {
        0..=1 => "used just now".into(),
        2..=59 => some(minutes, "minute"),
        60..=1439 => some(minutes / 60, "hour"),
        _ => some(minutes / 1440, "day"),
    }
}

/// What a model is called as a file. Letters that no system forbids stay.
pub fn file_name(name: &str, root: Root) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '-',
    };
    let name: String = name.chars().take(80).map(plain).collect();
    let name = name.trim_matches(['.', '-']);
    let name = name.strip_suffix(".slm").unwrap_or(name);
    match name {
        "" => format!("model-{}.slm", &root.to_string()[..8]),
        name => format!("{name}.slm"),
    }
}

#[cfg(test)]
mod tests {
    use format::Digest;

    use super::*;

    #[test]
    fn a_file_name_is_one_everywhere() {
        let root = Root(Digest([0xab; 32]));
        for (name, expected) in [
            ("SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct.slm"),
            ("a/b\\c:d", "a-b-c-d.slm"),
            ("../../etc", "etc.slm"),
            ("model.slm", "model.slm"),
            ("名", "model-abababab.slm"),
            ("", "model-abababab.slm"),
        ] {
            assert_eq!(file_name(name, root), expected);
        }
    }

    #[test]
    fn what_is_kept_is_told() {
        assert!(computed(false, (0, 0)).ends_with("Switched off, it is deleted."));
        assert!(computed(true, (0, 0)).ends_with("Nothing is kept yet."));
        assert!(computed(true, (1, 3_000_000)).ends_with("Now: 3.0 MB of one conversation."));
        assert!(computed(true, (2, 250_000_000)).ends_with("Now: 250 MB of 2 conversations."));
    }

    #[test]
    fn how_long_ago() {
        let now = 1_764_500_000_000;
        for (minutes, expected) in [
            (0, "used just now"),
            (59, "last used 59 minutes ago"),
            (60, "last used 1 hour ago"),
            (1439, "last used 23 hours ago"),
            (1440, "last used 1 day ago"),
            (1440 * 12, "last used 12 days ago"),
        ] {
            assert_eq!(used(now, Some(now - minutes * 60_000)), expected);
        }
        assert_eq!(used(now, None), "not used yet");
        // A clock that was set back.
        assert_eq!(used(now, Some(now + 5)), "used just now");
    }
}

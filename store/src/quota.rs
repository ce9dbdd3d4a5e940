//! Whether a model will fit, before its first byte is asked for.
//!
//! The browser's figures tell what is used, not what there is: Chromium from 138 on reports a
//! quota of `usage + min(10 GiB, disk)` whatever the disk allows, Safari's figures are rounded,
//! some browsers give none. So only a clear no is a no; everything else is settled by reserving
//! the room, which `Import::start` does.

use format::ModelId;

use crate::library::layer_len;
use crate::{StoreError, have_file_len};

/// Left free for conversations and the browser's own accounts.
pub const MARGIN_BYTES: u64 = 16 * 1024 * 1024;
/// Chromium's made-up free room. At or above it, a no would be no information.
const CHROMIUM_FREE_BYTES: u64 = 10 * 1024 * 1024 * 1024;

/// `navigator.storage.estimate()`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    pub usage: Option<u64>,
    pub quota: Option<u64>,
}

/// What the figures say for an import that may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Enough,
    /// It fits, with less than [`MARGIN_BYTES`] to spare.
    Tight,
    /// There are no figures, or they mean nothing at this size.
    Unknown,
}

/// Bytes that an import adds to the directory. `reserved` is the length of the part file that an
/// earlier start left: a browser counts it as used already.
pub fn import_bytes(id: ModelId, reserved: u64) -> u64 {
    let files = have_file_len(id) + layer_len(id.length);
    id.length.saturating_sub(reserved).saturating_add(files)
}

/// [`StoreError::NoRoom`], with the numbers, if `needed` bytes certainly do not fit.
pub fn preflight(estimate: Estimate, needed: u64) -> Result<Room, StoreError> {
    let (Some(used), Some(quota)) = (estimate.usage, estimate.quota) else {
        return Ok(Room::Unknown);
    };
    let free = quota.saturating_sub(used);
    match free.checked_sub(needed) {
        Some(MARGIN_BYTES..) => return Ok(Room::Enough),
        Some(_) => return Ok(Room::Tight),
        None if free >= CHROMIUM_FREE_BYTES => return Ok(Room::Unknown),
        None => {}
    }
    Err(StoreError::NoRoom { needed, free, used })
}

#[cfg(test)]
mod tests {
    use format::{Digest, Root};

    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    fn check(usage: u64, quota: u64, needed: u64, expected: Result<Room, StoreError>) {
        let estimate = Estimate {
            usage: Some(usage),
            quota: Some(quota),
        };
        assert_eq!(preflight(estimate, needed), expected);
    }

    #[test]
    fn only_a_clear_no_is_a_no() {
        let no = |needed, free, used| Err(StoreError::NoRoom { needed, free, used });
        check(0, GIB, 100 * MIB, Ok(Room::Enough));
        check(900 * MIB, GIB, 100 * MIB, Ok(Room::Enough));
        check(900 * MIB, GIB, 120 * MIB, Ok(Room::Tight));
        check(
            900 * MIB,
            GIB,
            125 * MIB,
            no(125 * MIB, 124 * MIB, 900 * MIB),
        );
        // Over quota already, as after the disk filled up.
        check(2 * GIB, GIB, 1, no(1, 0, 2 * GIB));
        // Chromium's figures for an empty and for a used origin.
        check(0, 10 * GIB, 12 * GIB, Ok(Room::Unknown));
        check(3 * GIB, 13 * GIB, 12 * GIB, Ok(Room::Unknown));
        check(0, u64::MAX, u64::MAX, Ok(Room::Tight));
    }

    #[test]
    fn without_figures_the_disk_decides() {
        let none = Estimate::default();
        assert_eq!(preflight(none, u64::MAX), Ok(Room::Unknown));
    }

    #[test]
    fn a_resumed_import_needs_no_second_room() {
        let id = ModelId {
            root: Root(Digest([0; 32])),
            length: 3 * MIB,
        };
        // Two slots of 4 KiB, three hashes of 32 bytes.
        assert_eq!(import_bytes(id, 0), 3 * MIB + 8192 + 96);
        assert_eq!(import_bytes(id, 3 * MIB), 8192 + 96);
    }
}

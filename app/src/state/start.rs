//! Whether the worker is there.

use protocol::{ErrorReport, LANES, LaneReport, StorageKind};

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Start {
    #[default]
    Waiting,
    Ready {
        lane: LaneReport,
        /// Each faster lane that was refused, with the reason.
        downgrades: Vec<ErrorReport>,
        storage: StorageKind,
    },
    Failed(ErrorReport),
}

impl Start {
    pub fn ready(&self) -> bool {
        matches!(self, Start::Ready { .. })
    }

    /// The engine's threads share a memory of a size that was chosen before any model.
    pub fn shares_memory(&self) -> bool {
        let has_threads = |id| LANES.iter().any(|row| row.id == id && row.has_threads());
        matches!(self, Start::Ready { lane, .. } if has_threads(lane.lane))
    }

    pub fn storage(&self) -> Option<StorageKind> {
        match self {
            Start::Ready { storage, .. } => Some(*storage),
            _ => None,
        }
    }
}

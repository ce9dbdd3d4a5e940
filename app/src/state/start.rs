//! Whether the worker is there.

use protocol::{ErrorReport, LaneReport, StorageKind};

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

    pub fn storage(&self) -> Option<StorageKind> {
        match self {
            Start::Ready { storage, .. } => Some(*storage),
            _ => None,
        }
    }
}

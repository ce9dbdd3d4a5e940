//! The newest failures, for diagnostics.

use std::collections::VecDeque;

use format::ModelId;
use protocol::{ErrorReport, FailureRecord};

use super::lifecycle::State;

/// Enough to see a chain of failures; small enough to be sent with every diagnosis.
pub const RECORDS_MAX: usize = 32;

/// A ring of reports, oldest first. Reports never hold prompt text, so the ring does not either.
#[derive(Default)]
pub struct Records {
    ring: VecDeque<FailureRecord>,
    scene: Scene,
}

/// What is going on when an input comes; whatever fails then is dated by it.
#[derive(Clone, Copy, Default)]
pub struct Scene {
    pub now_ms: u64,
    pub state: State,
    pub model: Option<ModelId>,
    pub reserved_bytes: u64,
    pub committed_bytes: u64,
}

impl Records {
    pub fn set(&mut self, scene: Scene) {
        self.scene = scene;
    }

    pub fn push(&mut self, report: ErrorReport) {
        if self.ring.len() == RECORDS_MAX {
            self.ring.pop_front();
        }
        let scene = self.scene;
        self.ring.push_back(FailureRecord {
            report,
            at_ms: scene.now_ms,
            state: format!("{:?}", scene.state),
            model: scene.model,
            reserved_bytes: scene.reserved_bytes,
            committed_bytes: scene.committed_bytes,
        });
    }

    pub fn to_vec(&self) -> Vec<FailureRecord> {
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
        assert_eq!(kept[0].report.what, "3");
        assert_eq!(
            kept[RECORDS_MAX - 1].report.what,
            (RECORDS_MAX + 2).to_string()
        );
    }
}

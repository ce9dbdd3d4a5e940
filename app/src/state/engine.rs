//! Which model can answer.

use format::ModelId;
use protocol::{ChatAbility, ErrorReport, FitReport, ModelSummary};

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Engine {
    #[default]
    Empty,
    Loading {
        model: ModelId,
        done: u64,
        total: u64,
        /// A person asked for this model, so the chat opens when it is there.
        opens_chat: bool,
    },
    Loaded {
        model: ModelSummary,
        fit: Box<FitReport>,
    },
    Failed {
        model: ModelId,
        error: ErrorReport,
    },
}

impl Engine {
    pub fn loaded(&self) -> Option<(&ModelSummary, &FitReport)> {
        match self {
            Engine::Loaded { model, fit } => Some((model, fit)),
            _ => None,
        }
    }

    pub fn can_chat(&self) -> bool {
        self.loaded()
            .is_some_and(|(model, _)| model.chat == ChatAbility::Yes)
    }

    /// The model that is loaded, being loaded, or could not be.
    pub fn model(&self) -> Option<ModelId> {
        match self {
            Engine::Empty => None,
            Engine::Loading { model, .. } | Engine::Failed { model, .. } => Some(*model),
            Engine::Loaded { model, .. } => Some(model.id),
        }
    }

    pub fn begin(&mut self, model: ModelId, opens_chat: bool) {
        *self = Engine::Loading {
            model,
            done: 0,
            total: 0,
            opens_chat,
        };
    }

    /// Also of a load that another tab asked for.
    pub fn progress(&mut self, id: ModelId, now_done: u64, now_total: u64) {
        match self {
            Engine::Loading {
                model, done, total, ..
            } if *model == id => {
                *done = now_done;
                *total = now_total;
            }
            Engine::Loading { .. } => {}
            _ => {
                *self = Engine::Loading {
                    model: id,
                    done: now_done,
                    total: now_total,
                    opens_chat: false,
                };
            }
        }
    }
}

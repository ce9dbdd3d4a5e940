//! Which tab does the work, and what happens here when that changes.

use protocol::{Command, ForeignImport, TabRole};

use super::{App, Effect, Engine, Millis, Start};
use crate::error::AppError;
use crate::text;

/// A worker that dies is started again by itself, but not for ever: so often within so long.
const RESTARTS_MAX: usize = 3;
const RESTARTS_WITHIN_MS: Millis = 60_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tabs {
    pub role: Option<TabRole>,
    /// The owner's term; 0 before the first.
    epoch: u64,
    /// What another tab is bringing in.
    pub elsewhere: Option<ForeignImport>,
    /// When the worker was started again.
    restarts: Vec<Millis>,
}

impl Tabs {
    /// This tab gets another worker by its own wish: whoever is the owner then, nothing was lost.
    pub fn renew(&mut self) {
        self.lost();
        self.epoch = 0;
    }

    /// This tab's worker is gone, and with it what it knew.
    pub fn lost(&mut self) {
        self.role = None;
        self.elsewhere = None;
    }
}

impl App {
    pub(super) fn role(&mut self, now: Millis, role: TabRole, epoch: u64) -> Vec<Effect> {
        self.tabs.role = Some(role);
        let before = std::mem::replace(&mut self.tabs.epoch, epoch);
        if role == TabRole::Outdated {
            let report = text::report(&AppError::Outdated);
            self.start = Start::Failed(report);
            return self.engine_gone(now);
        }
        if before == epoch || before == 0 {
            return Vec::new();
        }
        // The new owner has no model yet, and says when it is ready.
        self.start = Start::Waiting;
        self.tabs.elsewhere = None;
        self.engine_gone(now)
    }

    /// A page that sleeps would keep files and engine from every other tab, so its worker ends; it
    /// begins anew when the page wakes.
    pub(super) fn fall_asleep(&mut self, now: Millis) -> Vec<Effect> {
        if let Engine::Loading { model, .. } = self.engine {
            // The load does not die of itself, so it is taken up again.
            self.settings.last_model = Some(model);
            self.engine = Engine::Empty;
            self.chosen = false;
        }
        self.imports.lost();
        self.waiting.clear();
        self.tabs.lost();
        let mut effects = self.engine_gone(now);
        if !matches!(self.start, Start::Failed(_)) {
            self.start = Start::Waiting;
        }
        effects.push(Effect::StopWorker);
        effects
    }

    /// Nothing is loaded any more. What was is loaded again by itself, but not a model in whose
    /// load the engine went.
    pub(super) fn engine_gone(&mut self, now: Millis) -> Vec<Effect> {
        match &self.engine {
            Engine::Loading { model, .. } => {
                self.unfinished_load = Some(*model);
                self.chosen = false;
            }
            Engine::Loaded { model, .. } => {
                self.settings.last_model = Some(model.id);
                self.chosen = false;
            }
            Engine::Empty | Engine::Failed { .. } => {}
        }
        self.engine = Engine::Empty;
        self.measures.lost();
        self.bench.lost();
        let leave = self.sharing.lost().then_some(Effect::LeaveAllPeers);
        let ended = self.chat.lost(now).map(Effect::SaveConversation);
        let first = [Effect::MarkLoad(None)].into_iter();
        first.chain(leave).chain(ended).collect()
    }

    /// A worker that lives answers this also when no engine can be had.
    pub(super) fn inspect(&mut self) -> Vec<Effect> {
        match self.tabs.role {
            Some(_) => vec![Effect::Send(Command::Diagnostics)],
            None => self.send(Command::Diagnostics).into_iter().collect(),
        }
    }

    /// Whether the worker may be started again without being asked.
    pub(super) fn may_restart(&mut self, now: Millis) -> bool {
        let restarts = &mut self.tabs.restarts;
        restarts.retain(|then| now.saturating_sub(*then) < RESTARTS_WITHIN_MS);
        let may = restarts.len() < RESTARTS_MAX;
        if may {
            restarts.push(now);
        }
        may
    }
}

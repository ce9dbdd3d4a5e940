//! What the worker reports, and what follows from it.

use protocol::{
    Command, ErrorReport, Event, FitReport, ModelSummary, Offered, Stage, StorageKind, Subject,
    TabRole, TrResult,
};

use super::{Action, App, Effect, End, Engine, Known, Millis, Start, eviction};

impl App {
    pub fn apply(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        if !self.bench.is_running() {
            return self.take(now, event);
        }
        let mut effects = self.take(now, event.clone());
        effects.extend(self.bench_hears(now, &event));
        effects
    }

    fn take(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        match event {
            Event::Ready {
                lane,
                downgrades,
                storage,
            } => {
                // What a browser merely lacks stands on the page About; a fault is told at once.
                let fault = downgrades.iter().find(|report| is_fault(report)).cloned();
                let start = Start::Ready {
                    lane,
                    downgrades,
                    storage,
                };
                return self.ready(now, start, fault);
            }
            Event::Catalogue(offered) => return self.offered(offered),
            Event::Models(models) => {
                let mut effects = self.compare(&models);
                self.library.list(models);
                effects.extend(self.choose());
                effects.extend(self.take_up_unfinished());
                return effects;
            }
            Event::Import(progress) => self.imports.progress(now, progress),
            Event::ImportWaiting { .. } => self.imports.waits(now, event),
            Event::ImportOpened { import, model } => self.imports.opened(import, model),
            Event::Imported { import, model, .. } => {
                let mine = self.imports.finish(import);
                return if mine {
                    self.imported(model)
                } else {
                    Vec::new()
                };
            }
            Event::ImportCancelled { import } => {
                self.imports.stopped(import);
                return self.send(Command::ListModels).into_iter().collect();
            }
            Event::Fit(fit) => self.fit = Some(*fit),
            Event::Loading { model, done, total } => self.engine.progress(model, done, total),
            Event::Role { role, epoch } => return self.role(now, role, epoch),
            Event::Swarm(event) => return self.heard_of_peers(now, event),
            Event::Elsewhere(import) => self.tabs.elsewhere = import,
            Event::Loaded { model, fit } => return self.loaded(now, model, fit),
            // A load that was asked for since then stands.
            Event::Unloaded if self.engine.loaded().is_none() => {}
            Event::Unloaded => self.engine = Engine::Empty,
            Event::Diagnostics(diagnostics) => {
                self.diagnostics = Some(Known::new(*diagnostics, now));
            }
            Event::Failed { subject, error } => return self.failed(now, subject, error),
            Event::FailuresForgotten => return self.act(now, Action::Restart),
            Event::Checking { model, done, total } => self.library.checking(model, done, total),
            Event::Checked { model, is_sound } => self.library.checked(model, is_sound),
            // Its file has gone another way.
            Event::Exported { .. } => {}
            Event::Kept {
                conversations,
                bytes,
            } => self.kept = (conversations, bytes),
            Event::Prefill { .. }
            | Event::Text { .. }
            | Event::Done { .. }
            | Event::Interrupted { .. }
            | Event::Measured { .. } => return self.worked(now, event),
        }
        Vec::new()
    }

    fn ready(&mut self, now: Millis, start: Start, fault: Option<ErrorReport>) -> Vec<Effect> {
        if matches!(self.start, Start::Failed(_)) {
            // What kept the engine from starting is over.
            self.notices.clear();
        }
        self.notices.add_all(fault);
        self.start = start;
        let newest = self.notes.catalogue;
        let first = [Command::ListModels, Command::Catalogue { newest }];
        let waiting = std::mem::take(&mut self.waiting);
        let commands = first.into_iter().chain(waiting);
        let mut effects: Vec<Effect> = commands.map(Effect::Send).collect();
        if self.tabs.role != Some(TabRole::Follower) {
            effects.extend(self.share_again(now));
        }
        effects
    }

    /// News of a request.
    fn worked(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        let save = match event {
            Event::Prefill {
                request,
                done,
                total,
            } => {
                self.chat.prefill(request, done, total);
                self.measures.advance(request, done, total);
                None
            }
            Event::Text { request, text } => self.chat.text(now, request, &text),
            Event::Done {
                request,
                finish,
                figures,
            } => self
                .chat
                .end(now, request, End::Finished { finish, figures }),
            Event::Interrupted { request } => {
                self.measures.failed(request);
                self.chat.end(now, request, End::Interrupted)
            }
            Event::Measured {
                request,
                figures,
                logits_sha256,
                ids,
            } => {
                self.measures.finish(request, figures, logits_sha256, ids);
                None
            }
            _ => None,
        };
        save.map(Effect::SaveConversation).into_iter().collect()
    }

    fn loaded(&mut self, now: Millis, model: ModelSummary, fit: Box<FitReport>) -> Vec<Effect> {
        let opens_chat = matches!(
            self.engine,
            Engine::Loading {
                opens_chat: true,
                ..
            }
        );
        self.settings.last_model = Some(model.id);
        if !model.borrowed {
            self.notes.used(now, &model);
        }
        self.unfinished_load = None;
        self.died = None;
        self.fit = None;
        self.measures.clear();
        self.engine = Engine::Loaded { model, fit };
        let mut effects = vec![
            Effect::MarkLoad(None),
            Effect::SaveSettings,
            Effect::SaveNotes,
        ];
        effects.extend(opens_chat.then_some(Effect::OpenChat));
        effects
    }

    /// A model is here: it is loaded at once, and the first one makes the store worth keeping.
    fn imported(&mut self, model: ModelSummary) -> Vec<Effect> {
        let first = !model.borrowed
            && self
                .library
                .models()
                .iter()
                .all(|known| known.partial.is_some());
        let id = model.id;
        self.short_of_room = false;
        if self.start.storage() != Some(StorageKind::Memory) && !model.borrowed {
            self.notes.note(&model);
        }
        self.library.put(model);
        self.chosen = true;
        let mut effects = vec![Effect::SaveNotes];
        if first {
            effects.push(Effect::AskToPersist);
        }
        effects.extend(self.load(id, true));
        effects
    }

    fn offered(&mut self, offered: Offered) -> Vec<Effect> {
        self.library.offer(offered.models);
        self.notices.add_all(offered.refused);
        match offered.number {
            Some(number) if number > self.notes.catalogue => {
                self.notes.catalogue = number;
                vec![Effect::SaveNotes]
            }
            _ => Vec::new(),
        }
    }

    /// Were models here that are not there any more?
    fn compare(&mut self, models: &[ModelSummary]) -> Vec<Effect> {
        let Some(kind) = self.start.storage() else {
            return Vec::new();
        };
        let before = self.notes.models().to_vec();
        let gone = self.notes.compare(kind, models);
        if !gone.is_empty() {
            self.notices.add(eviction(&gone));
        }
        match self.notes.models() == before {
            true => Vec::new(),
            false => vec![Effect::SaveNotes],
        }
    }

    fn failed(&mut self, now: Millis, subject: Subject, error: ErrorReport) -> Vec<Effect> {
        match subject {
            Subject::Start => self.start = Start::Failed(error.clone()),
            Subject::Catalogue => {
                // Shown where the offer would stand: being offline is not a failure.
                self.library.offer_failed(error);
                return Vec::new();
            }
            Subject::Import(import) => {
                self.imports.stopped(import);
                self.short_of_room |= error.code == TrResult::Storage;
                self.tell_refusal(error);
                return self.send(Command::ListModels).into_iter().collect();
            }
            Subject::Load(model) => {
                self.tell_refusal(error.clone());
                self.engine = Engine::Failed { model, error };
                return vec![Effect::MarkLoad(None)];
            }
            Subject::Request(request) => {
                let was_measured = self.measures.failed(request);
                let ended = self.chat.end(now, request, End::Failed(error.code));
                // That a stop came after the end is no news.
                let is_late = error.code == TrResult::IllegalState;
                if !is_late || was_measured || ended.is_some() {
                    self.notices.add(error);
                }
                return ended.map(Effect::SaveConversation).into_iter().collect();
            }
            Subject::Model(model) => {
                self.library.checked(model, false);
                self.notices.add(error);
                // What was taken off the list in advance may still be there.
                return self.send(Command::ListModels).into_iter().collect();
            }
            // Nothing has changed, and that is told.
            Subject::Asked => {}
            Subject::Store => {
                self.library.list_failed();
                self.notices.add(error);
                return self.choose();
            }
        }
        self.notices.add(error);
        Vec::new()
    }

    /// What does not fit is told once: the ways in which it would say why.
    fn tell_refusal(&mut self, error: ErrorReport) {
        let has_ways = self.fit.as_ref().is_some_and(|fit| fit.over.is_some());
        let is_plan = (error.code, error.stage) == (TrResult::OutOfMemory, Stage::Plan);
        if !(has_ways && is_plan) {
            self.notices.add(error);
        }
    }
}

/// A faster build of the engine is damaged, forged or wrong, not merely too new for the browser.
fn is_fault(downgrade: &ErrorReport) -> bool {
    downgrade.code != TrResult::UnsupportedFeature
}

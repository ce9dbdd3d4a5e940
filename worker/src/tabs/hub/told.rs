//! What the session tells, to whom it concerns, in that page's own numbers.

use std::collections::BTreeSet;

use format::ModelId;
use protocol::{ClientId, Command, Event, ForeignImport, Subject};

use super::{Hub, HubOutput};

impl Hub {
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Prefill { .. }
            | Event::Text { .. }
            | Event::Done { .. }
            | Event::Measured { .. }
            | Event::Failed {
                subject: Subject::Request(_),
                ..
            } => self.of_request(event),
            Event::Import(_)
            | Event::Imported { .. }
            | Event::ImportCancelled { .. }
            | Event::ImportWaiting { .. }
            | Event::ImportOpened { .. }
            | Event::Failed {
                subject: Subject::Import(_),
                ..
            } => self.of_import(event),
            Event::Diagnostics(_) => {
                if let Some(client) = self.diagnoses.pop_front() {
                    self.tell(client, event);
                }
            }
            // One answer for all who asked meanwhile.
            Event::Catalogue(_)
            | Event::Failed {
                subject: Subject::Catalogue,
                ..
            } => {
                for client in std::mem::take(&mut self.offers) {
                    self.tell(client, event.clone());
                }
            }
            Event::Failed {
                subject: Subject::Model(model),
                ..
            } => self.of_model(model, event),
            Event::Failed {
                subject: Subject::Asked,
                ..
            } => {
                let asker = self.unloads.pop_front().unwrap_or(self.me);
                self.tell(asker, event);
            }
            Event::Exported { model } => {
                self.granted(model);
                let asked = self.exports.iter().position(|(_, asked)| *asked == model);
                if let Some(at) = asked {
                    let (client, _) = self.exports.remove(at);
                    self.tell(client, event);
                }
            }
            Event::Fit(ref fit) => self.of_fit(fit.model, &event),
            // Then the owner's page starts its worker again, and with it everybody's engine.
            Event::FailuresForgotten => self.tell(self.me, event),
            Event::Swarm(event) => self.of_swarm(event),
            _ => self.of_all(event),
        }
    }

    pub(super) fn of_all(&mut self, event: Event) {
        match &event {
            Event::Ready { .. }
            | Event::Failed {
                subject: Subject::Start,
                ..
            } => self.view.start = Some(event.clone()),
            Event::Loading { .. } => self.view.engine = Some(event.clone()),
            Event::Loaded { model, .. } => {
                let loaded = model.id;
                self.loads.retain(|(_, model)| *model != loaded);
                self.wanted = None;
                self.view.engine = Some(event.clone());
            }
            Event::Unloaded => {
                self.unloads.pop_front();
                self.view.engine = None;
            }
            Event::Checked { model, .. } => self.granted(*model),
            Event::Models(there) => {
                let there: BTreeSet<ModelId> = there.iter().map(|model| model.id).collect();
                let before = std::mem::replace(&mut self.stored, there);
                // Those that are gone were to be deleted; a model that never was is still to be
                // answered.
                let is_gone = |id: &ModelId| before.contains(id) && !self.stored.contains(id);
                self.wishes.retain(|(_, model)| !is_gone(model));
            }
            Event::Failed {
                subject: Subject::Load(model),
                ..
            } => return self.load_failed(*model, event),
            _ => {}
        }
        self.tell_all(&event);
    }

    /// Either the model could not be loaded, which concerns everybody, or nobody even tried, and
    /// who asked must know what is there instead.
    fn load_failed(&mut self, model: ModelId, event: Event) {
        let was_refused = matches!(&self.view.engine, Some(Event::Loaded { .. }));
        let asker = self.loads.iter().position(|(_, asked)| *asked == model);
        let asker = asker.map(|at| self.loads.remove(at).0);
        if self.wanted == Some(model) {
            self.wanted = None;
            if !was_refused {
                self.view.engine = None;
                return self.tell_all(&event);
            }
        }
        let there = self.view.engine.clone();
        if let Some(client) = asker {
            self.tell(client, event);
            if let Some(there) = there {
                self.tell(client, there);
            }
        }
    }

    /// A verdict concerns who asked for that model, or who imports one.
    fn of_fit(&mut self, model: Option<ModelId>, event: &Event) {
        let loaders = self.loads.iter().filter(|(_, asked)| Some(*asked) == model);
        let loaders = loaders.map(|(client, _)| *client);
        let importers = self.imports.values().map(|import| import.client);
        let concerned: BTreeSet<ClientId> = loaders.chain(importers).collect();
        for client in concerned {
            self.tell(client, event.clone());
        }
    }

    /// What somebody asked of a stored model cannot be done. It concerns nobody else.
    fn of_model(&mut self, model: ModelId, event: Event) {
        let asker = self.wishes.iter().rposition(|(_, asked)| *asked == model);
        if let Some(at) = asker {
            let (client, _) = self.wishes.remove(at);
            self.exports.retain(|asked| *asked != (client, model));
            self.tell(client, event);
        }
    }

    fn granted(&mut self, model: ModelId) {
        if let Some(at) = self.wishes.iter().position(|(_, asked)| *asked == model) {
            self.wishes.remove(at);
        }
    }

    fn of_request(&mut self, mut event: Event) {
        let (number, is_over) = match &mut event {
            Event::Prefill { request, .. } | Event::Text { request, .. } => (request, false),
            Event::Done { request, .. }
            | Event::Measured { request, .. }
            | Event::Failed {
                subject: Subject::Request(request),
                ..
            } => (request, true),
            _ => return,
        };
        let ours = *number;
        let Some((client, theirs)) = self.requests.get(&ours).copied() else {
            return;
        };
        *number = theirs;
        if is_over {
            self.requests.remove(&ours);
        }
        self.tell(client, event);
    }

    fn of_import(&mut self, mut event: Event) {
        let (number, is_over) = match &mut event {
            Event::Import(progress) => (&mut progress.import, false),
            Event::ImportWaiting { import, .. } | Event::ImportOpened { import, .. } => {
                (import, false)
            }
            Event::Imported { import, .. }
            | Event::ImportCancelled { import }
            | Event::Failed {
                subject: Subject::Import(import),
                ..
            } => (import, true),
            _ => return,
        };
        let ours = *number;
        let Some(import) = self.imports.get(&ours) else {
            return;
        };
        let client = import.client;
        let file = import.file;
        *number = import.theirs;
        if let Event::ImportWaiting { .. } | Event::ImportOpened { .. } = event {
            return self.tell(client, event);
        }
        let foreign = match &event {
            Event::Import(progress) => Some(ForeignImport {
                name: import.name.clone(),
                progress: *progress,
            }),
            _ => None,
        };
        let told = Event::Elsewhere(foreign);
        self.view.elsewhere = (!is_over).then(|| (client, told.clone()));
        // Who asked for the same hears of it already.
        let name = &import.name;
        let asks = |other: &ClientId| {
            let mut theirs = self.imports.values().filter(|it| it.client == *other);
            theirs.any(|import| import.name == *name)
        };
        let others = self.everybody().filter(|other| !asks(other));
        let others: Vec<ClientId> = others.collect();
        self.tell(client, event);
        for other in others {
            self.tell(other, told.clone());
        }
        if is_over {
            self.imports.remove(&ours);
            self.out.extend(file.map(HubOutput::LetGo));
            // The others see what is stored now.
            self.session(Command::ListModels);
        }
    }
}

//! What the session tells, to whom it concerns, in that page's own numbers.

use std::collections::BTreeSet;

use format::ModelId;
use protocol::{ClientId, Command, Event, ForeignImport, Subject};

use super::Hub;

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
            Event::Exported { model } => {
                let asked = self.exports.iter().position(|(_, asked)| *asked == model);
                if let Some(at) = asked {
                    let (client, _) = self.exports.remove(at);
                    self.tell(client, event);
                }
            }
            Event::Fit(ref fit) => self.of_fit(fit.model, &event),
            // Then the owner's page starts its worker again, and with it everybody's engine.
            Event::FailuresForgotten => self.tell(self.me, event),
            // Connections are its, too.
            Event::Swarm(_) => self.tell(self.me, event),
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
            Event::Unloaded => self.view.engine = None,
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
        *number = import.theirs;
        let foreign = match &event {
            Event::Import(progress) => Some(ForeignImport {
                name: import.name.clone(),
                progress: *progress,
            }),
            _ => None,
        };
        let told = Event::Elsewhere(foreign);
        self.view.elsewhere = (!is_over).then(|| (client, told.clone()));
        let others: Vec<ClientId> = self.everybody().filter(|other| *other != client).collect();
        self.tell(client, event);
        for other in others {
            self.tell(other, told.clone());
        }
        if is_over {
            self.imports.remove(&ours);
            // The others see what is stored now.
            self.session(Command::ListModels);
        }
    }
}

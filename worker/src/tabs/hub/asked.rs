//! What a client asks for, in the session's numbers.

use format::ModelId;
use protocol::{ClientId, Command, Event, ImportId, ImportSource, RequestId, Stage, Subject};

use super::{Hub, HubOutput, Import};
use crate::tabs::pending::name_of;
use crate::words;

impl Hub {
    pub fn command(&mut self, client: ClientId, command: Command, attached: Option<u32>) {
        if !matches!(command, Command::Import { .. }) {
            // Only imports read files.
            self.out.extend(attached.map(HubOutput::LetGo));
        }
        match command {
            Command::Chat { .. } | Command::Measure { .. } | Command::Time { .. } => {
                self.ask(client, command);
            }
            // Only its own: other numbers are not found. An end that is under way says it all.
            Command::Stop { request } => {
                let mut known = self.requests.iter();
                let found = known.find(|(_, of)| **of == (client, request));
                match found.map(|(ours, _)| *ours) {
                    Some(request) => self.session(Command::Stop { request }),
                    None => self.is_unknown(client, request.0, &command),
                }
            }
            Command::Import { .. } => self.import(client, command, attached),
            Command::CancelImport { import, discard } => match self.import_of(client, import) {
                Some(import) => self.session(Command::CancelImport { import, discard }),
                None => self.is_unknown(client, import.0, &command),
            },
            Command::Load { model, context } => self.load(client, model, context),
            Command::Prefer(wish) => {
                self.prefers = true;
                self.session(Command::Prefer(wish));
            }
            Command::Diagnostics => {
                self.diagnoses.push_back(client);
                self.session(Command::Diagnostics);
            }
            Command::Export { model } => {
                self.exports.push((client, model));
                self.wishes.push((client, model));
                self.session(Command::Export { model });
            }
            Command::DeleteModel { model } | Command::Check { model } => {
                self.wishes.push((client, model));
                self.session(command);
            }
            Command::Catalogue { newest } => {
                self.offers.push_back(client);
                self.session(Command::Catalogue { newest });
            }
            Command::Unload => {
                self.unloads.push_back(client);
                self.session(command);
            }
            Command::ListModels
            | Command::ForgetFailures
            | Command::ForgetKept { .. }
            | Command::TakeOver => self.session(command),
            Command::Swarm(command) => self.swarm(client, command),
        }
    }

    /// A request, if the page does not use its number twice.
    fn ask(&mut self, client: ClientId, mut command: Command) {
        let (Command::Chat { request, .. }
        | Command::Measure { request, .. }
        | Command::Time { request, .. }) = &mut command
        else {
            return;
        };
        if let Some(ours) = self.begin(client, *request) {
            *request = ours;
            self.session(command);
        }
    }

    fn import(&mut self, client: ClientId, mut command: Command, attached: Option<u32>) {
        let Command::Import { import, source } = &mut command else {
            return;
        };
        if self.import_of(client, *import).is_some() {
            self.out.extend(attached.map(HubOutput::LetGo));
            let what = "an import with this number is running";
            return self.refuse(client, &command, what, "wait until it has ended");
        }
        *import = self.begin_import(client, (*import, source), attached);
        self.out.push_back(HubOutput::Session(command, attached));
    }

    fn begin_import(
        &mut self,
        client: ClientId,
        (theirs, source): (ImportId, &ImportSource),
        attached: Option<u32>,
    ) -> ImportId {
        let ours = ImportId(self.number(client, theirs.0));
        let name = name_of(source);
        // Those of this tab's own page are let go when the page hears the end.
        let file = attached.filter(|_| client != self.me);
        let known = Import {
            client,
            theirs,
            name,
            file,
        };
        self.imports.insert(ours, known);
        ours
    }

    /// Every page asks for the model it used last, so most wishes are fulfilled already.
    fn load(&mut self, client: ClientId, wanted: ModelId, context: u32) {
        // Whoever says how has a reason to load it anew.
        let prefers = std::mem::take(&mut self.prefers);
        if let Some(Event::Loaded { model, fit }) = &self.view.engine
            && !prefers
            && self.wanted.is_none()
            && model.id == wanted
            && (context == 0 || context == fit.context)
        {
            let (model, fit) = (model.clone(), fit.clone());
            return self.tell(client, Event::Loaded { model, fit });
        }
        if self.wanted == Some(wanted) {
            return;
        }
        self.loads.push((client, wanted));
        if self.wanted.is_none() {
            self.wanted = Some(wanted);
        }
        let model = wanted;
        self.session(Command::Load { model, context });
        if self.view.engine.is_none() {
            let (done, total) = (0, wanted.length);
            self.of_all(Event::Loading { model, done, total });
        }
    }

    /// A number for the session, unless the page uses one twice.
    fn begin(&mut self, client: ClientId, theirs: RequestId) -> Option<RequestId> {
        if self.requests.values().any(|of| *of == (client, theirs)) {
            let remedy = "wait until it has ended";
            let what = "a request with this number is running";
            let error = words::illegal(Stage::Prompt, what, remedy);
            let subject = Subject::Request(theirs);
            self.tell(client, Event::Failed { subject, error });
            return None;
        }
        let ours = RequestId(self.number(client, theirs.0));
        self.requests.insert(ours, (client, theirs));
        Some(ours)
    }

    fn import_of(&self, client: ClientId, theirs: ImportId) -> Option<ImportId> {
        let mut known = self.imports.iter();
        let found = known.find(|(_, of)| of.client == client && of.theirs == theirs);
        found.map(|(ours, _)| *ours)
    }
}

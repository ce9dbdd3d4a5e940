//! The owner's side: one session, many pages.
//!
//! Pages number their requests and imports from one, each for itself. The session sees the numbers
//! of the owner's own page as they are, because that page may write them into the engine's stop
//! word, and those of other pages above [`FOREIGN`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::ModelId;
use protocol::{ClientId, Command, Event, ForeignImport, ImportId, RequestId, Stage, Subject};

use super::pending::name_of;
use crate::words;

/// Tabs that one owner serves. A person who has more open will close some.
pub const CLIENTS_MAX: usize = 64;
/// Numbers of other pages begin here; a page does not count so far.
const FOREIGN: u32 = 1 << 31;

/// What the hub wants done, in order.
#[derive(Debug, PartialEq)]
pub enum HubOutput {
    Session(Command, Option<u32>),
    Client(ClientId, Event),
}

pub struct Hub {
    me: ClientId,
    clients: BTreeSet<ClientId>,
    /// By the session's number.
    requests: BTreeMap<RequestId, (ClientId, RequestId)>,
    imports: BTreeMap<ImportId, Import>,
    last: u32,
    /// Who asked for what is answered without a number.
    diagnoses: VecDeque<ClientId>,
    offers: VecDeque<ClientId>,
    exports: Vec<(ClientId, ModelId)>,
    /// Who asked for which model and was not answered.
    loads: Vec<(ClientId, ModelId)>,
    /// The load that the session was last given.
    wanted: Option<ModelId>,
    view: View,
    out: VecDeque<HubOutput>,
}

struct Import {
    client: ClientId,
    theirs: ImportId,
    name: String,
}

/// What a tab that comes later must be told.
#[derive(Default)]
struct View {
    /// [`Event::Ready`], or the failure to start.
    start: Option<Event>,
    /// [`Event::Loading`] or [`Event::Loaded`].
    engine: Option<Event>,
    elsewhere: Option<(ClientId, Event)>,
}

impl Hub {
    pub fn new(me: ClientId) -> Hub {
        Hub {
            me,
            clients: BTreeSet::new(),
            requests: BTreeMap::new(),
            imports: BTreeMap::new(),
            last: FOREIGN,
            diagnoses: VecDeque::new(),
            offers: VecDeque::new(),
            exports: Vec::new(),
            loads: Vec::new(),
            wanted: None,
            view: View::default(),
            out: VecDeque::new(),
        }
    }

    pub fn poll(&mut self) -> Option<HubOutput> {
        self.out.pop_front()
    }

    /// Nobody waits for an answer. Imports can be taken up again, so they do not count.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn serves(&self, client: ClientId) -> bool {
        client == self.me || self.clients.contains(&client)
    }

    /// False if there are too many already.
    pub fn join(&mut self, client: ClientId) -> bool {
        if self.clients.len() >= CLIENTS_MAX && !self.clients.contains(&client) {
            return false;
        }
        if self.clients.contains(&client) {
            // It begins anew, and what it had under way has ended for it.
            self.leave(client);
        }
        self.clients.insert(client);
        let view = &self.view;
        let elsewhere = view.elsewhere.as_ref().map(|(_, event)| event);
        let told = [view.start.as_ref(), view.engine.as_ref(), elsewhere];
        let told = told.into_iter().flatten().cloned();
        self.out
            .extend(told.map(|event| HubOutput::Client(client, event)));
        true
    }

    /// The client's tab or worker is gone. What it asked for ends; verified pieces stay.
    pub fn leave(&mut self, client: ClientId) {
        self.clients.remove(&client);
        self.diagnoses.retain(|asker| *asker != client);
        self.offers.retain(|asker| *asker != client);
        self.loads.retain(|(asker, _)| *asker != client);
        self.exports.retain(|(asker, _)| *asker != client);
        let requests = self.requests.iter();
        let requests: Vec<RequestId> = requests
            .filter(|(_, (of, _))| *of == client)
            .map(|(ours, _)| *ours)
            .collect();
        for request in requests {
            self.session(Command::Stop { request });
        }
        let imports = self.imports.iter();
        let imports: Vec<ImportId> = imports
            .filter(|(_, import)| import.client == client)
            .map(|(ours, _)| *ours)
            .collect();
        for import in imports {
            let discard = false;
            self.session(Command::CancelImport { import, discard });
        }
    }

    pub fn command(&mut self, client: ClientId, command: Command, attached: Option<u32>) {
        match command {
            Command::Chat {
                request,
                messages,
                sampling,
            } => {
                if let Some(request) = self.begin(client, request) {
                    self.session(Command::Chat {
                        request,
                        messages,
                        sampling,
                    });
                }
            }
            Command::Measure { request, measure } => {
                if let Some(request) = self.begin(client, request) {
                    self.session(Command::Measure { request, measure });
                }
            }
            Command::Time { request, measure } => {
                if let Some(request) = self.begin(client, request) {
                    self.session(Command::Time { request, measure });
                }
            }
            // Only its own: other numbers are not found. An end that is under way says it all.
            Command::Stop { request } => {
                let mut known = self.requests.iter();
                let found = known.find(|(_, of)| **of == (client, request));
                if let Some(request) = found.map(|(ours, _)| *ours) {
                    self.session(Command::Stop { request });
                }
            }
            Command::Import { import, source } => {
                let ours = ImportId(self.number(client, import.0));
                let known = Import {
                    client,
                    theirs: import,
                    name: name_of(&source),
                };
                self.imports.insert(ours, known);
                let command = Command::Import {
                    import: ours,
                    source,
                };
                self.out.push_back(HubOutput::Session(command, attached));
            }
            Command::CancelImport { import, discard } => {
                if let Some(import) = self.import_of(client, import) {
                    self.session(Command::CancelImport { import, discard });
                }
            }
            Command::Load { model, context } => self.load(client, model, context),
            Command::Diagnostics => {
                self.diagnoses.push_back(client);
                self.session(Command::Diagnostics);
            }
            Command::Export { model } => {
                self.exports.push((client, model));
                self.session(Command::Export { model });
            }
            Command::Catalogue => {
                self.offers.push_back(client);
                self.session(Command::Catalogue);
            }
            other => self.out.push_back(HubOutput::Session(other, attached)),
        }
    }

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
            // Then the owner's page starts its worker again, and with it everybody's engine.
            Event::FailuresForgotten => self.tell(self.me, event),
            _ => self.of_all(event),
        }
    }

    fn of_all(&mut self, event: Event) {
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

    /// Every page asks for the model it used last, so most wishes are fulfilled already.
    fn load(&mut self, client: ClientId, wanted: ModelId, context: u32) {
        if let Some(Event::Loaded { model, fit }) = &self.view.engine
            && self.wanted.is_none()
            && model.id == wanted
            && (context == 0 || context == fit.context)
        {
            let (model, fit) = (model.clone(), *fit);
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

    fn number(&mut self, client: ClientId, theirs: u32) -> u32 {
        if client == self.me {
            return theirs;
        }
        self.last = self.last.checked_add(1).unwrap_or(FOREIGN);
        self.last
    }

    fn import_of(&self, client: ClientId, theirs: ImportId) -> Option<ImportId> {
        let mut known = self.imports.iter();
        let found = known.find(|(_, of)| of.client == client && of.theirs == theirs);
        found.map(|(ours, _)| *ours)
    }

    fn everybody(&self) -> impl Iterator<Item = ClientId> {
        std::iter::once(self.me).chain(self.clients.iter().copied())
    }

    fn tell_all(&mut self, event: &Event) {
        let everybody: Vec<ClientId> = self.everybody().collect();
        for client in everybody {
            self.tell(client, event.clone());
        }
    }

    fn tell(&mut self, client: ClientId, event: Event) {
        if self.serves(client) {
            self.out.push_back(HubOutput::Client(client, event));
        }
    }

    fn session(&mut self, command: Command) {
        self.out.push_back(HubOutput::Session(command, None));
    }
}

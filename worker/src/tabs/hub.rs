//! The owner's side: one session, many pages.
//!
//! Pages number their requests and imports from one, each for itself. The session sees the numbers
//! of the owner's own page as they are, because that page may write them into the engine's stop
//! word, and those of other pages above [`FOREIGN`].

mod asked;
mod sharing;
mod told;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::ModelId;
use protocol::{ClientId, Command, Event, ImportId, RequestId, Stage};

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
    /// The file with this number is of no more use here.
    LetGo(u32),
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
    /// Who asked for something about which stored model and was not answered.
    wishes: Vec<(ClientId, ModelId)>,
    /// The newest list of models.
    stored: BTreeSet<ModelId>,
    /// Who asked for the model to be put away.
    unloads: VecDeque<ClientId>,
    /// The highest number that each page has used.
    begun: BTreeMap<ClientId, u32>,
    /// Who asked for which model and was not answered.
    loads: Vec<(ClientId, ModelId)>,
    /// The load that the session was last given.
    wanted: Option<ModelId>,
    /// Who shares what.
    shares: Vec<(ClientId, ModelId)>,
    /// Whose exchange of codes the owner's page has not answered, in order.
    meetings: Vec<(ClientId, ModelId)>,
    /// A page has said how its next load is to be.
    prefers: bool,
    view: View,
    out: VecDeque<HubOutput>,
}

struct Import {
    client: ClientId,
    theirs: ImportId,
    name: String,
    /// The number of another tab's file, which is held here as long as it is read.
    file: Option<u32>,
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
            wishes: Vec::new(),
            stored: BTreeSet::new(),
            unloads: VecDeque::new(),
            begun: BTreeMap::new(),
            loads: Vec::new(),
            wanted: None,
            shares: Vec::new(),
            meetings: Vec::new(),
            prefers: false,
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
        self.wishes.retain(|(asker, _)| *asker != client);
        self.unloads.retain(|asker| *asker != client);
        self.begun.remove(&client);
        self.share_no_more(client);
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

    /// Files of other tabs that imports still read.
    pub fn files(&self) -> impl Iterator<Item = u32> {
        self.imports.values().filter_map(|import| import.file)
    }

    fn number(&mut self, client: ClientId, theirs: u32) -> u32 {
        let begun = self.begun.entry(client).or_default();
        *begun = theirs.max(*begun);
        if client == self.me {
            return theirs;
        }
        self.last = self.last.checked_add(1).unwrap_or(FOREIGN);
        self.last
    }

    /// Nothing of this number is under way. One whose end was told just before needs no more words.
    fn is_unknown(&mut self, client: ClientId, theirs: u32, command: &Command) {
        let begun = self.begun.get(&client).copied().unwrap_or(0);
        if theirs > begun {
            let what = "nothing with this number was asked for";
            self.refuse(client, command, what, "go on as before");
        }
    }

    fn refuse(&mut self, client: ClientId, command: &Command, what: &str, remedy: &str) {
        let subject = command.subject();
        let error = words::illegal(Stage::Start, what, remedy);
        self.tell(client, Event::Failed { subject, error });
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

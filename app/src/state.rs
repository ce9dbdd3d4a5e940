//! Everything the page knows, as plain data.
//!
//! `App::act` takes what a person or the browser does, `App::apply` what the worker reports; both
//! answer with effects for the shell to carry out in order. Reading order: `start`, `library`,
//! `imports` (with `pace`), `sharing`, `engine`, `tabs`, `chat`, `settings`, `measures`, `bench`,
//! `notes`, `notices`, then the two entrances, `action` (with `talk`) and `event`.

mod action;
mod bench;
mod chat;
mod engine;
mod event;
mod imports;
mod library;
mod measures;
mod notes;
mod notices;
mod pace;
mod settings;
mod sharing;
mod start;
mod tabs;
mod talk;

pub use action::Action;
pub use bench::Bench;
pub use chat::{
    Chat, Conversation, ConversationId, End, Live, Reconciled, TITLE_CHARS_MAX, Turn, TurnEnd,
    reconcile, title_of,
};
pub use engine::Engine;
pub use imports::{Import, ImportState, Imports, Origin};
pub use library::{Library, Offers, entry_id};
pub use measures::{BITS, MEASURE_PROMPT, Measures, Outcome, Probe, SPEED};
pub use notes::{Note, Notes, eviction};
pub use notices::{Notice, NoticeId, Notices};
pub use pace::Pace;
pub use settings::{FieldError, MAX_NEW_MAX, Settings};
pub use sharing::{Exchange, RoomView, ShareWish, Sharing, read_pasted};
pub use start::Start;
pub use tabs::Tabs;

use format::ModelId;
use protocol::{Command, Diagnostics, Fit, RequestId};

/// Milliseconds of wall-clock time since 1970.
pub type Millis = u64;

/// What the shell must do, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send(Command),
    SaveConversation(ConversationId),
    RemoveConversation(ConversationId),
    SaveSettings,
    /// Keep what is noted of models, outside the storage that holds them.
    SaveNotes,
    /// Keep a mark, safe against a crash of the page, that this model is being loaded.
    MarkLoad(Option<ModelId>),
    AskToPersist,
    OpenChat,
    StartWorker,
    /// Ends it, wherever it is.
    StopWorker,
    /// End every connection that is about this model.
    LeavePeers(ModelId),
    LeaveAllPeers,
}

/// The one word that sums up the page; tests and styles read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Starting,
    Empty,
    Importing,
    Loading,
    Ready,
    Generating,
    Failed,
}

/// What the browser says about keeping things on this device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// `None` while unknown or where the browser cannot say.
    pub persisted: Option<bool>,
    pub used: Option<u64>,
    pub quota: Option<u64>,
}

/// What the worker said of itself, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub diagnostics: Diagnostics,
    pub at: Millis,
}

impl Known {
    pub fn new(diagnostics: Diagnostics, at: Millis) -> Known {
        Known { diagnostics, at }
    }
}

impl std::ops::Deref for Known {
    type Target = Diagnostics;

    fn deref(&self) -> &Diagnostics {
        &self.diagnostics
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct App {
    pub start: Start,
    pub library: Library,
    pub imports: Imports,
    pub sharing: Sharing,
    pub engine: Engine,
    pub chat: Chat,
    pub settings: Settings,
    pub measures: Measures,
    pub bench: Bench,
    pub notes: Notes,
    pub notices: Notices,
    pub tabs: Tabs,
    pub diagnostics: Option<Known>,
    pub durability: Durability,
    /// How many conversations have their computed part kept, and its bytes.
    pub kept: (u32, u64),
    /// An import did not fit: what could be deleted is shown.
    pub short_of_room: bool,
    /// What was kept from earlier visits has been read.
    restored: bool,
    /// The choice of a model at the start has been made, once.
    chosen: bool,
    /// The model whose load the page did not survive last time.
    unfinished_load: Option<ModelId>,
    /// As above, and a person has been told.
    pub died: Option<ModelId>,
    /// Whether the newest model that was looked at fits, and what helps.
    pub fit: Option<Fit>,
    next_request: u32,
    /// Commands given before the worker was ready.
    waiting: Vec<Command>,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Empty => "empty",
            Phase::Importing => "importing",
            Phase::Loading => "loading",
            Phase::Ready => "ready",
            Phase::Generating => "generating",
            Phase::Failed => "failed",
        }
    }
}

impl App {
    pub fn phase(&self) -> Phase {
        let at_work = self.is_at_work();
        match (&self.start, &self.engine) {
            (Start::Failed(_), _) => Phase::Failed,
            (Start::Waiting, _) => Phase::Starting,
            _ if !self.library.listed() || !self.restored => Phase::Starting,
            _ if self.imports.running() => Phase::Importing,
            (_, Engine::Loading { .. }) => Phase::Loading,
            _ if at_work => Phase::Generating,
            (_, Engine::Loaded { .. }) => Phase::Ready,
            (_, Engine::Failed { .. }) => Phase::Failed,
            (_, Engine::Empty) => Phase::Empty,
        }
    }

    /// A message can be sent now.
    pub fn can_send(&self) -> bool {
        self.engine.can_chat() && self.start.ready() && !self.is_at_work()
    }

    /// The engine is busy with an answer or a measurement.
    pub fn is_at_work(&self) -> bool {
        self.chat.live().is_some() || self.measures.running().is_some() || self.bench.is_running()
    }

    /// Nothing was ever said and no model is here: the page must say what it is.
    pub fn first_visit(&self) -> bool {
        let no_model = self
            .library
            .models()
            .iter()
            .all(|model| model.partial.is_some());
        self.chat.conversations().is_empty() && no_model && self.engine.model().is_none()
    }

    fn request(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request)
    }

    /// The effect that gets a command to the worker, now or as soon as there is one.
    fn send(&mut self, command: Command) -> Option<Effect> {
        if self.start.ready() {
            return Some(Effect::Send(command));
        }
        self.waiting.push(command);
        None
    }

    fn load(&mut self, model: ModelId, opens_chat: bool) -> Vec<Effect> {
        self.died = None;
        self.unfinished_load = None;
        self.fit = None;
        self.engine.begin(model, opens_chat);
        let mut effects = vec![Effect::MarkLoad(Some(model))];
        effects.extend(self.send(Command::Load { model, context: 0 }));
        effects
    }

    /// Once, when both the library and the settings are known: load what was used last.
    fn choose(&mut self) -> Vec<Effect> {
        if self.chosen || !self.restored || !self.library.listed() {
            return Vec::new();
        }
        self.chosen = true;
        if !matches!(self.engine, Engine::Empty) {
            return Vec::new();
        }
        let Some(model) = self.library.choose(self.settings.last_model) else {
            return Vec::new();
        };
        if self.unfinished_load == Some(model) {
            self.died = Some(model);
            return vec![Effect::MarkLoad(None)];
        }
        self.load(model, false)
    }
}

#[cfg(test)]
mod tests;

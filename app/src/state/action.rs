//! What a person does, and what the browser says, and what follows from it.

use format::ModelId;
use protocol::{CatalogueEntry, Command, InvitedModel, NamedFile, Wish};

use super::{
    App, Conversation, ConversationId, Durability, Effect, Engine, Millis, NoticeId, Origin, Probe,
    Settings, ShareWish, Start, entry_id,
};
use crate::error::AppError;
use crate::text;

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// What earlier visits left has been read, as far as it could be.
    Restored {
        conversations: Vec<Conversation>,
        settings: Option<Settings>,
        unfinished_load: Option<ModelId>,
    },
    Durable(Durability),
    LinkLost(AppError),
    /// Another tab has saved this.
    Shared(Conversation),
    /// Another tab has deleted this.
    Unshared(ConversationId),
    /// What was saved under the first name is kept under the second, beside another tab's.
    Parted(ConversationId, ConversationId, Box<Conversation>),
    /// The browser stops this page for a while, or for good.
    Asleep,
    /// It goes on.
    Awake,
    Trouble(AppError),

    ImportFile {
        name: String,
        length: u64,
    },
    /// Uses a file where it lies.
    BorrowFile {
        name: String,
        length: u64,
    },
    ImportFiles {
        name: String,
        files: Vec<NamedFile>,
    },
    ImportAddress(String),
    Get(CatalogueEntry),
    CancelImport,
    ContinueImport,
    DiscardImport,
    CloseImport,
    Load(ModelId),
    Unload,
    Delete(ModelId),
    /// Reads a stored model and looks whether every byte is right.
    Check(ModelId),
    /// Saves a model as a file.
    Export(ModelId),
    /// Asks the browser not to evict what is stored.
    AskToPersist,

    /// Gives a model to other browsers, or changes how.
    Share {
        model: ModelId,
        wish: ShareWish,
        seed: u64,
    },
    Unshare(ModelId),
    /// Takes a model from other browsers: a link, and perhaps a code behind it.
    Receive {
        pasted: String,
        gives: bool,
        seed: u64,
    },
    /// Goes on with what a reload interrupted.
    ReceiveAgain(InvitedModel),
    /// An earlier visit began this and did not end it.
    Unfinished(InvitedModel),
    /// A link came with the page's address.
    Invited(String),
    MakeOffer(ModelId),
    TakeAnswer(ModelId, String),
    TrackerSaid {
        model: ModelId,
        counts: Option<(u32, u32)>,
        refused: Option<String>,
    },

    /// `seed` is used when the settings fix none.
    Send {
        text: String,
        seed: u64,
    },
    /// Gives the last answer again.
    Again {
        seed: u64,
    },
    /// Goes on with the last answer, which was cut off.
    GoOn {
        seed: u64,
    },
    Stop,
    NewConversation,
    Open(ConversationId),
    Forget(ConversationId),
    Configure(Settings),

    Measure(Probe),
    Bench,
    StopBench,
    Inspect,
    /// Builds of the engine that failed here before are to be tried again.
    RetryEngines,
    /// The tab that does the work does not answer: this one is to do it.
    TakeOver,
    /// The model that does not fit as it is is to be taken so.
    TakeAs(Wish),
    IgnoreFit,
    Dismiss(NoticeId),
    Restart,
}

impl App {
    pub fn act(&mut self, now: Millis, action: Action) -> Vec<Effect> {
        match action {
            Action::Restored {
                conversations,
                settings,
                unfinished_load,
            } => {
                self.chat.restore(conversations);
                self.settings = settings.unwrap_or_default();
                self.unfinished_load = unfinished_load;
                self.restored = true;
                self.choose()
            }
            Action::Durable(durability) => {
                self.durability = durability;
                Vec::new()
            }
            Action::LinkLost(error) => self.link_lost(now, &error),
            Action::Shared(_) | Action::Unshared(_) | Action::Parted(..) => {
                self.share(action);
                Vec::new()
            }
            Action::Asleep => self.fall_asleep(now),
            Action::Awake => match self.start {
                Start::Waiting => vec![Effect::StartWorker],
                _ => Vec::new(),
            },
            Action::Trouble(error) => {
                self.notices.add(text::report(&error));
                Vec::new()
            }
            Action::Dismiss(id) => {
                self.notices.dismiss(id);
                Vec::new()
            }
            Action::Restart => {
                self.start = Start::Waiting;
                self.engine = Engine::Empty;
                self.notices.clear();
                self.chosen = false;
                vec![Effect::StartWorker]
            }
            Action::Configure(settings) => {
                let was_kept = std::mem::replace(&mut self.settings, settings).keep;
                let mut effects = vec![Effect::SaveSettings];
                if was_kept && !self.settings.keep {
                    effects.extend(self.send(Command::ForgetKept { conversation: None }));
                }
                effects
            }
            Action::Inspect => self.inspect(),
            Action::RetryEngines => self.send(Command::ForgetFailures).into_iter().collect(),
            // It cannot wait until the worker is ready: it is what makes it so.
            Action::TakeOver => vec![Effect::Send(Command::TakeOver)],
            Action::Measure(probe) => self.measure(probe),
            Action::Bench => self.begin_bench(now),
            Action::StopBench => self.stop_bench(),
            Action::Send { .. }
            | Action::Again { .. }
            | Action::GoOn { .. }
            | Action::Stop
            | Action::NewConversation
            | Action::Open(_)
            | Action::Forget(_) => self.act_in_chat(now, action),
            _ => self.act_on_models(action),
        }
    }

    /// What another tab has done to a conversation.
    fn share(&mut self, action: Action) {
        match action {
            Action::Shared(theirs) => self.chat.adopt(theirs),
            Action::Unshared(id) => self.chat.gone(id),
            Action::Parted(old, new, theirs) => self.chat.parted(old, new, *theirs),
            _ => {}
        }
    }

    fn act_on_models(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::ImportFile { name, length } => self.import(name, Origin::File { length }),
            Action::BorrowFile { name, length } => self.import(name, Origin::Borrowed { length }),
            Action::ImportFiles { name, files } => self.import(name, Origin::Files(files)),
            Action::ImportAddress(url) => {
                self.import(text::address_name(&url), Origin::Address { url })
            }
            Action::Get(entry) => self.import(entry.name.clone(), Origin::Catalogue(entry)),
            Action::CancelImport => {
                let cancel = self.imports.cancel();
                cancel
                    .and_then(|command| self.send(command))
                    .into_iter()
                    .collect()
            }
            Action::ContinueImport => {
                let resume = self.imports.resume();
                resume
                    .and_then(|command| self.send(command))
                    .into_iter()
                    .collect()
            }
            Action::DiscardImport => match self.imports.close() {
                Some(model) => self.delete(model),
                None => Vec::new(),
            },
            Action::CloseImport => {
                self.imports.close();
                Vec::new()
            }
            Action::Load(model) if self.library.complete(model) => self.load(model, true),
            Action::Unload => self.send(Command::Unload).into_iter().collect(),
            Action::Delete(model) => self.delete(model),
            Action::Check(model) => {
                self.library.checking(model, 0, model.length);
                let check = Command::Check { model };
                self.send(check).into_iter().collect()
            }
            Action::Export(model) => {
                let export = Command::Export { model };
                self.send(export).into_iter().collect()
            }
            Action::AskToPersist => vec![Effect::AskToPersist],
            Action::TakeAs(wish) => self.take_as(wish),
            Action::IgnoreFit => {
                self.fit = None;
                Vec::new()
            }
            _ => self.act_on_sharing(action),
        }
    }

    pub(super) fn import(&mut self, name: String, origin: Origin) -> Vec<Effect> {
        // What is here already is not fetched again.
        if let Origin::Catalogue(entry) = &origin
            && self.library.complete(entry_id(entry))
        {
            return self.load(entry_id(entry), true);
        }
        if let Origin::Invite(invited) = &origin
            && self.library.complete(invited.id)
        {
            return self.load(invited.id, true);
        }
        match self.imports.begin(name, origin) {
            Ok(command) => self.send(command).into_iter().collect(),
            Err(error) => {
                self.notices.add(text::report(&error));
                Vec::new()
            }
        }
    }

    /// Loads a stored model so, or goes on with its import; a file has to be dropped once more.
    fn take_as(&mut self, wish: Wish) -> Vec<Effect> {
        let Some(fit) = self.fit.take() else {
            return Vec::new();
        };
        let mut effects: Vec<Effect> = self.send(Command::Prefer(wish)).into_iter().collect();
        match fit.model.filter(|model| self.library.complete(*model)) {
            Some(model) => effects.extend(self.load(model, true)),
            None => match self.imports.resume() {
                Some(import) => effects.extend(self.send(import)),
                None => self.notices.add(text::drop_again()),
            },
        }
        effects
    }

    fn delete(&mut self, model: ModelId) -> Vec<Effect> {
        let in_use = self.engine.model() == Some(model);
        self.library.remove(model);
        let was_noted = self.notes.forget(model);
        let unload = in_use.then_some(Command::Unload);
        if in_use {
            self.engine = Engine::Empty;
        }
        let commands = unload.into_iter().chain([Command::DeleteModel { model }]);
        let commands = commands.filter_map(|command| self.send(command));
        commands
            .chain(was_noted.then_some(Effect::SaveNotes))
            .collect()
    }

    fn measure(&mut self, probe: Probe) -> Vec<Effect> {
        let Some((model, _)) = self.engine.loaded() else {
            return Vec::new();
        };
        if self.is_at_work() {
            return Vec::new();
        }
        let name = model.name.clone();
        let request = self.request();
        self.measures.begin(request, probe, name);
        self.send(probe.command(request)).into_iter().collect()
    }

    fn link_lost(&mut self, now: Millis, error: &AppError) -> Vec<Effect> {
        let report = text::report(error);
        self.imports.lost();
        self.waiting.clear();
        self.tabs.lost();
        let mut effects = self.engine_gone(now);
        self.notices.add(report.clone());
        if *error == AppError::WorkerDied && self.may_restart(now) {
            self.start = Start::Waiting;
            effects.push(Effect::StartWorker);
        } else {
            self.start = Start::Failed(report);
        }
        effects
    }
}

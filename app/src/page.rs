//! The page itself: the state in a signal, and the hands that carry out its effects.

mod lending;
mod life;
mod peers;

use format::ModelId;
use leptos::mount::mount_to;
use leptos::prelude::*;
use leptos::task::spawn_local;
use protocol::{Command, Event, ImportSource, NamedFile};
use wasm_bindgen::prelude::*;
use web_sys::File;

use crate::error::AppError;
use crate::link::{Link, Word};
use crate::other_tabs::OtherTabs;
use crate::saved::{self, Saved, Written};
use crate::share::Rooms;
use crate::state::{Action, App, ConversationId, Effect, Millis};
use crate::{export, intake, record, text, views};
pub use life::tell_boot;
use life::worker_address;

/// The worker that came is of another build: `boot.js` loads the page again, once.
const OTHER_BUILD: &str = "shell-other-build";

/// Where a person is. The address after `#` says it, so Back works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    Chat,
    Models,
    About,
}

/// A handle that every view holds.
#[derive(Clone, Copy)]
pub struct Page {
    pub app: RwSignal<App>,
    pub screen: RwSignal<Screen>,
    /// A file is being dragged over the window.
    pub dragging: RwSignal<bool>,
    /// A message that has not been sent; it outlives a look at another screen.
    pub draft: RwSignal<String>,
    hands: StoredValue<Hands, LocalStorage>,
}

#[derive(Default)]
struct Hands {
    link: Option<Link>,
    /// The files whose import has not been sent yet.
    files: Vec<File>,
    saved: Option<Saved>,
    rooms: Rooms,
    others: Option<OtherTabs>,
}

/// Called once, by the module's own start.
#[wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
    let Some(place) = document().get_element_by_id("app") else {
        return;
    };
    place.set_text_content(None);
    mount_to(place.unchecked_into(), || {
        let page = Page::new();
        provide_context(page);
        page.open();
        views::Root()
    })
    .forget();
}

impl Screen {
    pub fn address(self) -> &'static str {
        match self {
            Screen::Chat => "#/",
            Screen::Models => "#/models",
            Screen::About => "#/about",
        }
    }

    fn from_address() -> Screen {
        match window().location().hash().unwrap_or_default().as_str() {
            "#/models" => Screen::Models,
            invite if invite.starts_with("#slm1=") => Screen::Models,
            "#/about" => Screen::About,
            _ => Screen::Chat,
        }
    }
}

impl Page {
    fn new() -> Page {
        Page {
            app: RwSignal::new(App::default()),
            screen: RwSignal::new(Screen::from_address()),
            dragging: RwSignal::new(false),
            draft: RwSignal::new(String::new()),
            hands: StoredValue::new_local(Hands::default()),
        }
    }

    /// The page of the view that asks.
    pub fn here() -> Page {
        expect_context()
    }

    /// A part of the state that wakes its readers only when it changes.
    pub fn part<T>(self, part: impl Fn(&App) -> T + Send + Sync + 'static) -> Memo<T>
    where
        T: PartialEq + Send + Sync + 'static,
    {
        Memo::new(move |_| self.app.with(&part))
    }

    pub fn act(self, action: Action) {
        let effects = self
            .app
            .try_update(|app| app.act(now(), action))
            .unwrap_or_default();
        self.carry_out(effects);
    }

    /// Gives the worker files from outside; `folder` is the name of theirs, if they have one.
    pub fn import(self, folder: &str, files: Vec<File>) {
        let named = |file: &File| NamedFile {
            name: file.name(),
            length: file.size() as u64,
        };
        let list: Vec<NamedFile> = files.iter().map(named).collect();
        let action = match list.as_slice() {
            [] => return,
            [file] if folder.is_empty() => Action::ImportFile {
                name: file.name.clone(),
                length: file.length,
            },
            [first, ..] => Action::ImportFiles {
                name: match folder {
                    "" => first.name.clone(),
                    folder => folder.to_owned(),
                },
                files: list,
            },
        };
        if !self.app.with_untracked(|app| app.imports.running()) {
            self.hands.update_value(|hands| hands.files = files);
        }
        self.act(action);
    }

    pub fn go(self, screen: Screen) {
        if window().location().set_hash(screen.address()).is_ok() {
            self.screen.set(screen);
        }
    }

    /// Looks again at what the browser says of our storage.
    pub fn look_at_storage(self) {
        spawn_local(async move { self.act(Action::Durable(saved::durability().await)) });
    }

    fn open(self) {
        leptos::prelude::Effect::new(move |_| {
            let phase = self.app.with(App::phase).name();
            if let Some(root) = document().document_element()
                && root.get_attribute("data-state").as_deref() != Some(phase)
            {
                // Setting a plain attribute on the root cannot fail.
                root.set_attribute("data-state", phase).unwrap_or_default();
            }
        });
        leptos::prelude::Effect::new(move |_| {
            let role = self.app.with(|app| app.tabs.role).map(text::role_name);
            if let Some(root) = document().document_element() {
                let role = role.unwrap_or_default();
                root.set_attribute("data-role", role).unwrap_or_default();
            }
        });
        std::mem::forget(window_event_listener_untyped("hashchange", move |_| {
            self.screen.set(Screen::from_address());
            self.read_address();
        }));
        self.read_address();
        self.sleep_and_wake();
        let others = OtherTabs::listen(move |id| self.look_again(id));
        self.hands.update_value(|hands| hands.others = Some(others));
        self.app
            .update_untracked(|app| app.notes.refresh(saved::noted()));
        intake::listen(self);
        self.start_worker();
        spawn_local(self.restore());
        self.look_at_storage();
    }

    async fn restore(self) {
        let unfinished_load = saved::load_mark();
        let mut kept = saved::Kept::default();
        match Saved::open().await {
            Ok(saved) => {
                kept = saved.read().await;
                self.hands.update_value(|hands| hands.saved = Some(saved));
            }
            Err(error) => kept.troubles.push(error),
        }
        for trouble in kept.troubles {
            self.act(Action::Trouble(trouble));
        }
        let (conversations, settings) = (kept.conversations, kept.settings);
        self.act(Action::Restored {
            conversations,
            settings,
            unfinished_load,
        });
        self.take_up();
    }

    /// What an exported model is called outside.
    fn file_name(self, model: ModelId) -> String {
        let name = self.app.with_untracked(|app| {
            let known = app.library.find(model);
            known.map(|model| model.name.clone()).unwrap_or_default()
        });
        text::file_name(&name, model.root)
    }

    fn start_worker(self) {
        self.hands.update_value(|hands| hands.link = None);
        match Link::open(&worker_address(), move |word| self.hear(word)) {
            Ok(link) => self.hands.update_value(|hands| hands.link = Some(link)),
            Err(error) => self.act(Action::LinkLost(error)),
        }
    }

    fn hear(self, word: Word) {
        let ready = self.app.with_untracked(|app| app.start.ready());
        let lost = match word {
            Word::Event(event) => {
                if matches!(*event, Event::Models(_)) {
                    // Another tab may have deleted or added something since.
                    let noted = saved::noted();
                    self.app.update_untracked(|app| app.notes.refresh(noted));
                }
                saved::note_heard(&event);
                self.hear_of_peers(&event);
                let apply = |app: &mut App| app.apply(now(), *event);
                let effects = self.app.try_update(apply).unwrap_or_default();
                return self.carry_out(effects);
            }
            Word::File(event, file) => {
                if let Event::Exported { model } = *event {
                    export::hand_over(self, self.file_name(model), file);
                }
                return;
            }
            Word::ToPeer(link, bytes) => return self.rooms().send(link, &bytes),
            Word::Unreadable => AppError::MessageUnreadable,
            Word::Broken if ready => AppError::WorkerDied,
            Word::Broken => AppError::WorkerRefused,
            Word::OtherBuild => {
                tell_boot(OTHER_BUILD);
                AppError::OtherBuild
            }
        };
        self.lose(lost);
    }

    /// What is left of the worker is ended, so that it cannot speak into a new start.
    fn lose(self, error: AppError) {
        let link = self.hands.try_update_value(|hands| hands.link.take());
        // Not from within the port's own callback.
        spawn_local(async move { drop(link) });
        self.act(Action::LinkLost(error));
    }

    fn carry_out(self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(command) => self.send(&command),
                Effect::SaveConversation(id) => self.save_conversation(id),
                Effect::RemoveConversation(id) => {
                    self.keep(move |saved| async move { saved.remove_conversation(id).await });
                    self.tell_others(id);
                }
                Effect::SaveSettings => {
                    let json = self
                        .app
                        .with_untracked(|app| record::settings_to_json(&app.settings));
                    self.keep(move |saved| async move { saved.put_settings(&json?).await });
                }
                Effect::MarkLoad(model) => saved::mark_load(model),
                Effect::SaveNotes => {
                    let notes = self
                        .app
                        .with_untracked(|app| record::notes_to_json(&app.notes));
                    saved::note(notes.ok());
                }
                Effect::AskToPersist => spawn_local(async move {
                    self.act(Action::Durable(saved::ask_to_persist().await));
                }),
                Effect::OpenChat => self.go(Screen::Chat),
                Effect::StartWorker => self.start_worker(),
                Effect::StopWorker => self.hands.update_value(|hands| hands.link = None),
                effect => self.meet(effect),
            }
        }
    }

    fn save_conversation(self, id: ConversationId) {
        let ours = self.app.with_untracked(|app| app.chat.find(id).cloned());
        let Some(ours) = ours else { return };
        self.keep(move |saved| async move {
            match saved.put_conversation(ours).await? {
                Written::Ours => {}
                Written::Theirs(theirs) => self.act(Action::Shared(theirs)),
                Written::Apart(new, theirs) => {
                    self.act(Action::Parted(id, new, Box::new(theirs)));
                    self.tell_others(new);
                }
            }
            self.tell_others(id);
            Ok(())
        });
    }

    fn tell_others(self, id: ConversationId) {
        self.hands.with_value(|hands| {
            if let Some(others) = &hands.others {
                others.tell(id);
            }
        });
    }

    /// Another tab has saved or deleted a conversation.
    fn look_again(self, id: ConversationId) {
        let Some(saved) = self.hands.with_value(|hands| hands.saved.clone()) else {
            return;
        };
        spawn_local(async move {
            self.act(match saved.conversation(id).await {
                Some(theirs) => Action::Shared(theirs),
                None => Action::Unshared(id),
            });
        });
    }

    pub(crate) fn send(self, command: &Command) {
        saved::note_sent(command);
        let with_files = matches!(
            command,
            Command::Import {
                source: ImportSource::File { .. }
                    | ImportSource::Files { .. }
                    | ImportSource::Borrowed { .. },
                ..
            }
        );
        let sent = self.hands.try_update_value(|hands| {
            let files = match with_files {
                true => std::mem::take(&mut hands.files),
                false => Vec::new(),
            };
            match &hands.link {
                Some(link) => link.send(command, &files),
                None => Err(AppError::WorkerDied),
            }
        });
        if let Some(Err(error)) = sent {
            self.lose(error);
        }
    }

    /// Writes to the database in the background; a refusal is shown.
    fn keep<F>(self, write: impl FnOnce(Saved) -> F + 'static)
    where
        F: Future<Output = Result<(), AppError>> + 'static,
    {
        // Without a database the person has been told once, at the start.
        let Some(saved) = self.hands.with_value(|hands| hands.saved.clone()) else {
            return;
        };
        spawn_local(async move {
            if let Err(error) = write(saved).await {
                self.act(Action::Trouble(error));
            }
        });
    }
}

pub fn now() -> Millis {
    js_sys::Date::now() as Millis
}

/// Short enough to be typed again.
pub fn fresh_seed() -> u64 {
    (js_sys::Math::random() * f64::from(u32::MAX)) as u64
}

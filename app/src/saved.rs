//! What outlives the page: conversations and settings in IndexedDB, one JSON text each.
//!
//! A transaction is made as soon as its task first runs, tasks run in the order in which they
//! were spawned, and the database keeps that order, so the last write of a conversation wins.

use std::rc::Rc;

use format::ModelId;
use rexie::{ObjectStore, Rexie, TransactionMode, TransactionResult};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::StorageManager;

use crate::error::AppError;
use crate::record::{self, Stamp};
use crate::state::{
    Conversation, ConversationId, Durability, Notes, Reconciled, Settings, reconcile,
};
use protocol::{Command, Event, ImportSource, InvitedModel, Subject};

const DATABASE: &str = "tinyrustlm";
const CONVERSATIONS: &str = "conversations";
const SETTINGS: &str = "settings";
const SETTINGS_KEY: &str = "settings";
/// In storage that outlives a crash of the browser and that every tab sees; it is written at once.
const LOADING_KEY: &str = "tinyrustlm.loading";
/// In the tab's own storage.
const IMPORT_KEY: &str = "tinyrustlm.import";
const INVITE_KEY: &str = "tinyrustlm.invite";

/// In the site's small storage, which other tabs share.
const NOTES_KEY: &str = "tinyrustlm.models";

#[derive(Clone)]
pub struct Saved(Rc<Rexie>);

/// All that could be read, and what could not.
#[derive(Default)]
pub struct Kept {
    pub conversations: Vec<Conversation>,
    pub settings: Option<Settings>,
    pub troubles: Vec<AppError>,
}

impl Saved {
    pub async fn open() -> Result<Saved, AppError> {
        let database = Rexie::builder(DATABASE)
            .version(1)
            .add_object_store(ObjectStore::new(CONVERSATIONS))
            .add_object_store(ObjectStore::new(SETTINGS))
            .build()
            .await
            .map_err(|_| AppError::SavedUnavailable)?;
        Ok(Saved(Rc::new(database)))
    }

    pub async fn read(&self) -> Kept {
        let mut kept = Kept::default();
        match self.all(CONVERSATIONS).await {
            Ok(texts) => {
                for text in texts {
                    match record::conversation_from_json(&text) {
                        Ok(conversation) => kept.conversations.push(conversation),
                        Err(error) => kept.troubles.push(error),
                    }
                }
            }
            Err(error) => kept.troubles.push(error),
        }
        match self.all(SETTINGS).await.as_deref() {
            Ok([]) => {}
            Ok([text, ..]) => match record::settings_from_json(text) {
                Ok(settings) => kept.settings = Some(settings),
                Err(error) => kept.troubles.push(error),
            },
            Err(error) => kept.troubles.push(error.clone()),
        }
        kept
    }

    /// Writes what this tab has, without losing what another has written since; one transaction
    /// reads and writes.
    pub async fn put_conversation(&self, ours: Conversation) -> Result<Written, AppError> {
        let me = tab_number();
        let work = async {
            let stores = [CONVERSATIONS];
            let transaction = self.0.transaction(&stores, TransactionMode::ReadWrite)?;
            let store = transaction.store(CONVERSATIONS)?;
            let key = JsValue::from_str(&ours.id.0.to_string());
            let kept = store.get(key).await?.and_then(|value| value.as_string());
            let (text, written) = settle_with(ours, kept.as_deref(), me);
            if let Some((id, text)) = text {
                let key = JsValue::from_str(&id.0.to_string());
                store.put(&JsValue::from_str(&text), Some(&key)).await?;
            }
            Ok((transaction.done().await, written))
        };
        match work.await {
            Ok((outcome, written)) => outcome_of(outcome).map(|()| written),
            Err(error) => outcome_of(Err(error)).map(|()| Written::Ours),
        }
    }

    /// What is kept of a conversation now.
    pub async fn conversation(&self, id: ConversationId) -> Option<Conversation> {
        let work = async {
            let transaction = self
                .0
                .transaction(&[CONVERSATIONS], TransactionMode::ReadOnly)?;
            let key = JsValue::from_str(&id.0.to_string());
            transaction.store(CONVERSATIONS)?.get(key).await
        };
        let kept: rexie::Result<Option<JsValue>> = work.await;
        let text = kept.ok()??.as_string()?;
        record::conversation_from_json(&text).ok()
    }

    pub async fn put_settings(&self, json: &str) -> Result<(), AppError> {
        self.put(SETTINGS, SETTINGS_KEY, json).await
    }

    pub async fn remove_conversation(&self, id: ConversationId) -> Result<(), AppError> {
        let work = async {
            let transaction = self
                .0
                .transaction(&[CONVERSATIONS], TransactionMode::ReadWrite)?;
            let key = JsValue::from_str(&id.0.to_string());
            transaction.store(CONVERSATIONS)?.delete(key).await?;
            transaction.done().await
        };
        outcome_of(work.await)
    }

    async fn put(&self, store: &str, key: &str, json: &str) -> Result<(), AppError> {
        let work = async {
            let transaction = self.0.transaction(&[store], TransactionMode::ReadWrite)?;
            let (key, value) = (JsValue::from_str(key), JsValue::from_str(json));
            transaction.store(store)?.put(&value, Some(&key)).await?;
            transaction.done().await
        };
        outcome_of(work.await)
    }

    async fn all(&self, store: &str) -> Result<Vec<String>, AppError> {
        let work = async {
            let transaction = self.0.transaction(&[store], TransactionMode::ReadOnly)?;
            transaction.store(store)?.get_all(None, None).await
        };
        let values = work.await.map_err(|_: rexie::Error| AppError::SavedRead)?;
        // What is not text fails as a damaged record where it is parsed.
        Ok(values
            .iter()
            .map(|value| value.as_string().unwrap_or_default())
            .collect())
    }
}

/// What became of a conversation that was saved.
pub enum Written {
    Ours,
    /// Another tab has all of it and more.
    Theirs(Conversation),
    /// Another tab went on otherwise: ours has this name from now on.
    Apart(ConversationId, Conversation),
}

/// The record to write, if any, and under which name.
fn settle_with(
    mut ours: Conversation,
    kept: Option<&str>,
    me: u64,
) -> (Option<(ConversationId, String)>, Written) {
    let stamp = kept.map(record::stamp_of).unwrap_or_default();
    let theirs = kept.and_then(|text| record::conversation_from_json(text).ok());
    let mine = Stamp {
        revision: stamp.revision + 1,
        writer: me,
    };
    let is_based_on_it = stamp.writer == me || stamp.revision == ours.revision;
    let mut written = Written::Ours;
    if let Some(theirs) = theirs.filter(|_| !is_based_on_it) {
        match reconcile(&ours, &theirs) {
            Reconciled::Ours => {}
            Reconciled::Theirs => return (None, Written::Theirs(theirs)),
            Reconciled::Both => {
                // Identified by a time, as every conversation is.
                ours.id = ConversationId(js_sys::Date::now() as u64);
                written = Written::Apart(ours.id, theirs);
            }
        }
    }
    let text = record::conversation_to_json(&ours, mine).ok();
    (text.map(|text| (ours.id, text)), written)
}

/// Tells this tab's writes from those of others.
fn tab_number() -> u64 {
    thread_local! {
        static NUMBER: u64 = 1 + (js_sys::Math::random() * 9e15) as u64;
    }
    NUMBER.with(|number| *number)
}

/// A full disk aborts the transaction after its requests have succeeded.
fn outcome_of(outcome: rexie::Result<TransactionResult>) -> Result<(), AppError> {
    match outcome {
        Ok(result) if result.is_committed() => Ok(()),
        _ => Err(AppError::SavedWrite),
    }
}

/// The model whose load a page did not survive, this one's last time or another tab's.
pub fn load_mark() -> Option<ModelId> {
    let kept = site_storage()?.get_item(LOADING_KEY).ok().flatten()?;
    let (_, json) = kept.split_once(' ')?;
    record::model_from_json(json).ok()
}

/// Best effort: a browser that keeps nothing cannot break a crash loop.
pub fn mark_load(model: Option<ModelId>) {
    let Some(storage) = site_storage() else {
        return;
    };
    let marked = match model.and_then(|model| record::model_to_json(model).ok()) {
        Some(json) => storage.set_item(LOADING_KEY, &format!("{} {json}", this_page())),
        None => storage.remove_item(LOADING_KEY),
    };
    marked.unwrap_or_default();
}

/// What is being fetched is remembered in this tab, so that a reload goes on with it.
pub fn note_sent(command: &Command) {
    if let Command::Import { source, .. } = command {
        let can_go_on = matches!(
            source,
            ImportSource::Catalogue(_) | ImportSource::Address { .. } | ImportSource::Invite(_)
        );
        mark_import(can_go_on.then_some(source));
        if matches!(source, ImportSource::Invite(_)) {
            remember_invite(Some(source));
        }
    }
}

/// What has ended is forgotten.
pub fn note_heard(event: &Event) {
    let ends = matches!(
        event,
        Event::Imported { .. }
            | Event::ImportCancelled { .. }
            | Event::Failed {
                subject: Subject::Import(_),
                ..
            }
    );
    if ends {
        mark_import(None);
    }
    // A failure may pass; what was given up by a person does not go on by itself.
    if matches!(
        event,
        Event::Imported { .. } | Event::ImportCancelled { .. }
    ) {
        remember_invite(None);
    }
}

fn mark_import(source: Option<&ImportSource>) {
    let Some(storage) = tab_storage() else { return };
    let marked = match source.and_then(|source| record::import_to_json(source).ok()) {
        Some(json) => storage.set_item(IMPORT_KEY, &json),
        None => storage.remove_item(IMPORT_KEY),
    };
    marked.unwrap_or_default();
}

/// Outlives the tab, because peers come and go.
fn remember_invite(source: Option<&ImportSource>) {
    let Some(storage) = site_storage() else {
        return;
    };
    let kept = match source.and_then(|source| record::import_to_json(source).ok()) {
        Some(json) => storage.set_item(INVITE_KEY, &json),
        None => storage.remove_item(INVITE_KEY),
    };
    kept.unwrap_or_default();
}

/// What an earlier visit began to take from peers and did not end.
pub fn unfinished_invite() -> Option<InvitedModel> {
    let json = site_storage()?.get_item(INVITE_KEY).ok().flatten()?;
    match record::import_from_json(&json) {
        Ok(ImportSource::Invite(invited)) => Some(invited),
        _ => None,
    }
}

/// What this tab was fetching when it was left. Takes the mark away: an import that ends the page
/// is not begun again and again.
pub fn take_import_mark() -> Option<ImportSource> {
    let json = tab_storage()?.get_item(IMPORT_KEY).ok().flatten()?;
    mark_import(None);
    record::import_from_json(&json).ok()
}

/// What is noted of models; it lies apart from them and outlives their eviction in some browsers.
pub fn noted() -> Option<Notes> {
    let json = site_storage()?.get_item(NOTES_KEY).ok().flatten()?;
    record::notes_from_json(&json).ok()
}

/// Best effort: without notes nothing is missed.
pub fn note(json: Option<String>) {
    if let (Some(storage), Some(json)) = (site_storage(), json) {
        storage.set_item(NOTES_KEY, &json).unwrap_or_default();
    }
}

/// The tab's own: it outlives a reload and is not seen by other tabs.
fn tab_storage() -> Option<web_sys::Storage> {
    web_sys::window()?.session_storage().ok().flatten()
}

fn site_storage() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok().flatten()
}

/// This page leaves in good order, so no load dies with it.
pub fn leave() {
    let mark = site_storage().and_then(|storage| storage.get_item(LOADING_KEY).ok().flatten());
    if mark.is_some_and(|mark| mark.split(' ').next() == Some(this_page().as_str())) {
        mark_load(None);
    }
}

/// Tells pages apart: two do not open at the same microsecond.
fn this_page() -> String {
    let performance = web_sys::window().and_then(|window| window.performance());
    performance.map_or_else(String::new, |it| it.time_origin().to_string())
}

/// What the browser says of this origin's storage; each answer may be missing.
pub async fn durability() -> Durability {
    let mut durability = Durability::default();
    let Some(storage) = storage_manager() else {
        return durability;
    };
    if let Some(answer) = settle(storage.persisted()).await {
        durability.persisted = answer.as_bool();
    }
    if let Some(estimate) = settle(storage.estimate()).await {
        let number = |name: &str| {
            let value = js_sys::Reflect::get(&estimate, &JsValue::from_str(name)).ok()?;
            value.as_f64().map(|value| value as u64)
        };
        durability.used = number("usage");
        durability.quota = number("quota");
    }
    durability
}

/// Asks the browser not to evict what is stored here, then reports anew.
pub async fn ask_to_persist() -> Durability {
    if let Some(storage) = storage_manager() {
        settle(storage.persist()).await;
    }
    durability().await
}

/// Some browsers have no storage manager, or one without these functions.
fn storage_manager() -> Option<StorageManager> {
    let navigator = web_sys::window()?.navigator();
    let storage = js_sys::Reflect::get(&navigator, &JsValue::from_str("storage")).ok()?;
    let whole = ["estimate", "persist", "persisted"].iter().all(|name| {
        js_sys::Reflect::get(&storage, &JsValue::from_str(name))
            .is_ok_and(|function| function.is_function())
    });
    whole.then(|| storage.unchecked_into())
}

async fn settle(promise: Result<js_sys::Promise, JsValue>) -> Option<JsValue> {
    JsFuture::from(promise.ok()?).await.ok()
}

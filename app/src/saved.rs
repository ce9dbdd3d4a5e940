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
use crate::record;
use crate::state::{Conversation, ConversationId, Durability, Notes, Settings};

const DATABASE: &str = "tinyrustlm";
const CONVERSATIONS: &str = "conversations";
const SETTINGS: &str = "settings";
const SETTINGS_KEY: &str = "settings";
/// In the tab's own storage: it outlives a crash of the tab and is not seen by other tabs.
const LOADING_KEY: &str = "tinyrustlm.loading";

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

    pub async fn put_conversation(&self, id: ConversationId, json: &str) -> Result<(), AppError> {
        self.put(CONVERSATIONS, &id.0.to_string(), json).await
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
        written(work.await)
    }

    async fn put(&self, store: &str, key: &str, json: &str) -> Result<(), AppError> {
        let work = async {
            let transaction = self.0.transaction(&[store], TransactionMode::ReadWrite)?;
            let (key, value) = (JsValue::from_str(key), JsValue::from_str(json));
            transaction.store(store)?.put(&value, Some(&key)).await?;
            transaction.done().await
        };
        written(work.await)
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

/// A full disk aborts the transaction after its requests have succeeded.
fn written(outcome: rexie::Result<TransactionResult>) -> Result<(), AppError> {
    match outcome {
        Ok(result) if result.is_committed() => Ok(()),
        _ => Err(AppError::SavedWrite),
    }
}

/// The model whose load this tab did not survive. Takes the mark away.
pub fn take_load_mark() -> Option<ModelId> {
    let storage = tab_storage()?;
    let json = storage.get_item(LOADING_KEY).ok().flatten()?;
    mark_load(None);
    record::model_from_json(&json).ok()
}

/// Best effort: a browser that keeps nothing for the tab cannot break a crash loop.
pub fn mark_load(model: Option<ModelId>) {
    let Some(storage) = tab_storage() else { return };
    let marked = match model.and_then(|model| record::model_to_json(model).ok()) {
        Some(json) => storage.set_item(LOADING_KEY, &json),
        None => storage.remove_item(LOADING_KEY),
    };
    marked.unwrap_or_default();
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

fn site_storage() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok().flatten()
}

fn tab_storage() -> Option<web_sys::Storage> {
    web_sys::window()?.session_storage().ok().flatten()
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

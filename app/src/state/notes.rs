//! What is noted of stored models in another place than the models: when each was last used, and
//! that it was here. A model that is noted and is not there was removed by the browser.

use format::ModelId;
use protocol::{ErrorReport, ModelSummary, Stage, StorageKind, TrResult};

use super::Millis;
use crate::text;

/// More than a device holds; older notes go.
const NOTES_MAX: usize = 256;

/// One model that is or was here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub id: ModelId,
    pub name: String,
    /// `None` until it was loaded once.
    pub used: Option<Millis>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    models: Vec<Note>,
    /// Where the noted models are; another storage knows nothing of them.
    storage: Option<StorageKind>,
    /// The greatest number of a published catalogue that was believed.
    pub catalogue: u64,
}

impl Notes {
    pub fn new(models: Vec<Note>, storage: Option<StorageKind>, catalogue: u64) -> Notes {
        Notes {
            models,
            storage,
            catalogue,
        }
    }

    pub fn models(&self) -> &[Note] {
        &self.models
    }

    pub fn storage(&self) -> Option<StorageKind> {
        self.storage
    }

    /// What another tab has noted since; nothing if nobody noted anything.
    pub fn refresh(&mut self, noted: Option<Notes>) {
        if let Some(noted) = noted {
            *self = noted;
        }
    }

    /// Compares the notes with what the storage holds, and notes that from here on. Gives the
    /// models that the browser has removed.
    pub fn compare(&mut self, kind: StorageKind, models: &[ModelSummary]) -> Vec<Note> {
        if kind == StorageKind::Memory {
            // Nothing of this window was here before, and nothing will be.
            return Vec::new();
        }
        let is_here = |note: &Note| models.iter().any(|model| model.id == note.id);
        let mut gone = Vec::new();
        if self.storage == Some(kind) {
            gone = self
                .models
                .iter()
                .filter(|note| !is_here(note))
                .cloned()
                .collect();
        }
        self.storage = Some(kind);
        self.models.retain(is_here);
        let is_kept = |model: &&ModelSummary| model.partial.is_none() && !model.borrowed;
        for model in models.iter().filter(is_kept) {
            self.note(model);
        }
        gone
    }

    /// A model is here.
    pub fn note(&mut self, model: &ModelSummary) {
        if self.models.iter().any(|note| note.id == model.id) {
            return;
        }
        if self.models.len() == NOTES_MAX {
            self.models.remove(0);
        }
        self.models.push(Note {
            id: model.id,
            name: model.name.clone(),
            used: None,
        });
    }

    pub fn used(&mut self, now: Millis, model: &ModelSummary) {
        self.note(model);
        if let Some(note) = self.models.iter_mut().find(|note| note.id == model.id) {
            note.used = Some(now);
        }
    }

    /// A person deletes the model; `false` if nothing was noted of it.
    pub fn forget(&mut self, id: ModelId) -> bool {
        let before = self.models.len();
        self.models.retain(|note| note.id != id);
        self.models.len() < before
    }

    pub fn last_used(&self, id: ModelId) -> Option<Millis> {
        self.models.iter().find(|note| note.id == id)?.used
    }

    /// In the order in which they are missed least: never used first, then longest unused.
    pub fn by_use(&self, models: &[ModelSummary]) -> Vec<ModelSummary> {
        let stored = models.iter().filter(|model| !model.borrowed);
        let mut models: Vec<ModelSummary> = stored.cloned().collect();
        models.sort_by_key(|model| self.last_used(model.id));
        models
    }
}

/// What a person is told of models that the browser has removed.
pub fn eviction(gone: &[Note]) -> ErrorReport {
    let names: Vec<String> = gone
        .iter()
        .map(|note| format!("{} ({})", note.name, text::bytes(note.id.length)))
        .collect();
    let what = match names.as_slice() {
        [one] => format!("The browser has removed a model that was stored here: {one}."),
        many => format!(
            "The browser has removed {} models that were stored here: {}.",
            many.len(),
            many.join(", ")
        ),
    };
    ErrorReport {
        code: TrResult::Storage,
        stage: Stage::Store,
        what,
        remedy: "Get them again. On the page Models the browser can be asked to keep them, and \
                 models can be saved as files."
            .into(),
    }
}

//! The models on this device, and those that the server offers.

use format::ModelId;
use protocol::{CatalogueEntry, ChatAbility, ErrorReport, ModelSummary};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Library {
    models: Vec<ModelSummary>,
    listed: bool,
    offers: Offers,
    /// A model that is being read and hashed: bytes done and all of them.
    check: Option<(ModelId, u64, u64)>,
    /// Those that were found sound in this visit.
    sound: Vec<ModelId>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Offers {
    #[default]
    Asked,
    Here(Vec<CatalogueEntry>),
    /// Offline, or a server without models: normal once a model is here.
    Unavailable(ErrorReport),
}

pub fn entry_id(entry: &CatalogueEntry) -> ModelId {
    ModelId {
        root: entry.root,
        length: entry.length,
    }
}

impl Library {
    pub fn models(&self) -> &[ModelSummary] {
        &self.models
    }

    /// The store has said what it holds.
    pub fn listed(&self) -> bool {
        self.listed
    }

    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    pub fn find(&self, id: ModelId) -> Option<&ModelSummary> {
        self.models.iter().find(|model| model.id == id)
    }

    /// The offer that is this model, from which an unfinished import can go on.
    pub fn entry(&self, id: ModelId) -> Option<&CatalogueEntry> {
        match &self.offers {
            Offers::Here(entries) => entries.iter().find(|entry| entry_id(entry) == id),
            _ => None,
        }
    }

    /// What to offer first: the server's first model that is not complete here.
    pub fn first_offer(&self) -> Option<&CatalogueEntry> {
        match &self.offers {
            Offers::Here(entries) => entries.iter().find(|entry| !self.complete(entry_id(entry))),
            _ => None,
        }
    }

    pub fn complete(&self, id: ModelId) -> bool {
        self.find(id)
            .is_some_and(|model| model.partial.is_none() && !model.damaged)
    }

    /// The model to load by itself: the last used, else the only one that can chat.
    pub fn choose(&self, last: Option<ModelId>) -> Option<ModelId> {
        if let Some(id) = last.filter(|id| self.complete(*id)) {
            return Some(id);
        }
        let mut able = self
            .models
            .iter()
            .filter(|model| self.complete(model.id) && model.chat == ChatAbility::Yes);
        match (able.next(), able.next()) {
            (Some(only), None) => Some(only.id),
            _ => None,
        }
    }

    pub fn list(&mut self, models: Vec<ModelSummary>) {
        self.models = models;
        self.listed = true;
    }

    /// The store could not be read; the page goes on with what it knows.
    pub fn list_failed(&mut self) {
        self.listed = true;
    }

    /// Of the check that is going on: which model, bytes done, all of them.
    pub fn check(&self) -> Option<(ModelId, u64, u64)> {
        self.check
    }

    /// A check of this visit found every byte right.
    pub fn was_checked(&self, id: ModelId) -> bool {
        self.sound.contains(&id)
    }

    pub fn checking(&mut self, id: ModelId, done: u64, total: u64) {
        self.sound.retain(|sound| *sound != id);
        self.check = Some((id, done, total));
    }

    pub fn checked(&mut self, id: ModelId, is_sound: bool) {
        self.check.take_if(|(checked, ..)| *checked == id);
        self.sound.retain(|sound| *sound != id);
        self.sound.extend(is_sound.then_some(id));
    }

    pub fn put(&mut self, model: ModelSummary) {
        match self.models.iter_mut().find(|known| known.id == model.id) {
            Some(known) => *known = model,
            None => self.models.push(model),
        }
    }

    pub fn remove(&mut self, id: ModelId) {
        self.models.retain(|model| model.id != id);
    }

    pub fn offer(&mut self, entries: Vec<CatalogueEntry>) {
        self.offers = Offers::Here(entries);
    }

    pub fn offer_failed(&mut self, error: ErrorReport) {
        self.offers = Offers::Unavailable(error);
    }
}

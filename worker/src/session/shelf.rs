//! What is stored, as the page sees it: one summary a model, complete or not.
//!
//! The directory is the truth; this is what was read from it at the start, and what the worker
//! did to it since.

use std::collections::BTreeMap;

use format::{Header, Kind, ModelId, PieceLayer, Root};
use protocol::{ChatAbility, ModelSummary};
use store::{Library, Partial, Stored, names};

use crate::source::Source;

/// What is still to be looked at before the shelf is complete.
#[derive(Debug)]
pub enum Look {
    Stored(Stored),
    Partial(Partial),
    /// A file of an address, by its key.
    Raw(Root),
    /// A file that nothing needs.
    Stray(String),
}

#[derive(Default)]
pub struct Shelf {
    models: BTreeMap<Root, ModelSummary>,
    /// Files that are used where they lie.
    lent: BTreeMap<Root, Lent>,
}

/// A person's own file, every byte of which was hashed once.
#[derive(Clone)]
pub struct Lent {
    pub source: Source,
    pub layer: PieceLayer,
}

impl Shelf {
    /// Everything that a listing asks to be looked at.
    pub fn looks(library: Library) -> Vec<Look> {
        let stored = library.complete.into_iter().map(Look::Stored);
        let partial = library.partial.into_iter().map(Look::Partial);
        let raws = library.raws.into_iter().map(Look::Raw);
        let strays = library.strays.into_iter().map(Look::Stray);
        stored.chain(partial).chain(raws).chain(strays).collect()
    }

    pub fn get(&self, root: Root) -> Option<&ModelSummary> {
        self.models.get(&root)
    }

    /// A complete model of exactly this identity that nobody found damaged.
    pub fn complete(&self, id: ModelId) -> Option<&ModelSummary> {
        let summary = self.models.get(&id.root)?;
        // A file that is only lent may be copied all the same.
        let whole = summary.id == id && summary.partial.is_none() && !summary.borrowed;
        (whole && !summary.damaged).then_some(summary)
    }

    pub fn put(&mut self, summary: ModelSummary) {
        self.models.insert(summary.id.root, summary);
    }

    pub fn take(&mut self, root: Root) {
        self.models.remove(&root);
        self.lent.remove(&root);
    }

    /// A file is here to be used, and not to be kept.
    pub fn lend(&mut self, summary: ModelSummary, lent: Lent) {
        self.lent.insert(summary.id.root, lent);
        self.put(summary);
    }

    /// The file of a model that is not stored.
    pub fn lent(&self, root: Root) -> Option<&Lent> {
        let is_lent = self.models.get(&root).is_some_and(|it| it.borrowed);
        self.lent.get(&root).filter(|_| is_lent)
    }

    pub fn mark_damaged(&mut self, root: Root) {
        self.mark(root, true);
    }

    /// All of the model's bytes have just been verified.
    pub fn mark_sound(&mut self, root: Root) {
        self.mark(root, false);
    }

    fn mark(&mut self, root: Root, damaged: bool) {
        if let Some(summary) = self.models.get_mut(&root) {
            summary.damaged = damaged;
        }
    }

    /// By name, then by root, so that the order never jumps.
    pub fn list(&self) -> Vec<ModelSummary> {
        let mut list: Vec<_> = self.models.values().cloned().collect();
        list.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        list
    }

    /// Bytes of complete models and verified bytes of unfinished ones.
    pub fn stored_bytes(&self) -> u64 {
        let bytes = |summary: &ModelSummary| summary.partial.unwrap_or(summary.id.length);
        let stored = self.models.values().filter(|summary| !summary.borrowed);
        stored.map(bytes).sum()
    }
}

/// What the page is told of a model.
pub fn summary(id: ModelId, header: &Header, partial: Option<u64>) -> ModelSummary {
    let manifest = &header.manifest;
    let chat = match (&manifest.tokenizer, &manifest.chat_template) {
        (None, _) => ChatAbility::NoTokenizer,
        (_, None) => ChatAbility::NoTemplate,
        _ if manifest.kind == Kind::Model => ChatAbility::Yes,
        _ => ChatAbility::NoTokenizer,
    };
    ModelSummary {
        id,
        name: manifest.name.clone(),
        licence: manifest.licence.clone(),
        source: manifest.source.description.clone(),
        context: manifest.architecture.context,
        chat,
        partial,
        damaged: false,
        borrowed: false,
    }
}

/// What the page is told of files that no header can be read from.
pub fn nameless(id: ModelId, partial: Option<u64>) -> ModelSummary {
    let what = match partial {
        Some(_) => "Unfinished import",
        None => "Unreadable model",
    };
    let root = id.root.to_string();
    ModelSummary {
        id,
        name: format!("{what} {}", &root[..8]),
        licence: None,
        source: String::new(),
        context: 0,
        chat: ChatAbility::NoTokenizer,
        partial,
        damaged: false,
        borrowed: false,
    }
}

/// A file of an address that has not come whole. `key` stands for a root that nobody knows yet.
pub fn nameless_of(key: Root, length: u64, name: &str, bytes: u64) -> ModelSummary {
    let id = ModelId { root: key, length };
    ModelSummary {
        name: name.into(),
        ..nameless(id, Some(bytes))
    }
}

/// Every file that a model can have.
pub fn files_of(root: Root) -> [String; 6] {
    // The names that make the model exist go first, so that a removal that is interrupted leaves
    // only strays.
    [
        names::done(root),
        names::part(root),
        names::have(root),
        names::pieces(root),
        names::raw(root),
        names::got(root),
    ]
}

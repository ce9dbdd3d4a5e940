//! A directory whose calls answer later, as those of browsers do.

use crate::conformance::{self, Action, Failure, STEPS, Slots};
use crate::{Disk, Entry, StoreError};

/// The calls of `Catalog`, for one thread with an event loop.
#[allow(async_fn_in_trait, reason = "nothing is sent to another thread")]
pub trait LaterCatalog {
    type Disk: Disk;

    async fn list(&self) -> Result<Vec<Entry>, StoreError>;

    async fn open(&self, name: &str) -> Result<Self::Disk, StoreError>;

    async fn create(&self, name: &str) -> Result<Self::Disk, StoreError>;

    async fn rename(&self, from: &str, to: &str) -> Result<(), StoreError>;

    async fn remove(&self, name: &str) -> Result<(), StoreError>;

    /// Returns when what is on its way to the medium has left room for more.
    async fn room(&self) {}
}

/// The suite that every backend passes, in a directory of its own that must be empty.
pub async fn conform<C: LaterCatalog>(directory: &C) -> Result<(), Box<Failure>> {
    let mut slots = Slots::default();
    for (step, (action, _)) in STEPS.iter().enumerate() {
        let found = match *action {
            Action::Create { slot, name } => slots.fill(slot, directory.create(name).await),
            Action::Open { slot, name } => slots.fill(slot, directory.open(name).await),
            Action::Rename { from, to } => conformance::done(directory.rename(from, to).await),
            Action::Remove { name } => conformance::done(directory.remove(name).await),
            Action::List => conformance::files(directory.list().await),
            Action::File { slot, call } => slots.call(slot, call),
        };
        conformance::check(step, found)?;
    }
    Ok(())
}

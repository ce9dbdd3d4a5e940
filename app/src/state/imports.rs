//! The model that is being brought in. One at a time; what was verified outlives a stop.

use format::{ModelId, Root};
use protocol::{
    CatalogueEntry, Command, Event, ImportId, ImportProgress, ImportSource, InvitedModel,
    ModelSummary, NamedFile,
};

use super::{Millis, Pace, entry_id};
use crate::error::AppError;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imports {
    last: u32,
    current: Option<Import>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    pub id: ImportId,
    pub name: String,
    pub origin: Origin,
    pub state: ImportState,
    /// `None` until the worker has looked at the source.
    pub progress: Option<ImportProgress>,
    pub pace: Pace,
    /// What its header says; `None` until that is here.
    pub model: Option<ModelSummary>,
    /// Why nothing comes for now, and when it is tried again.
    pub lull: Option<(String, Millis)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    File {
        length: u64,
    },
    /// Used where it lies, and not kept.
    Borrowed {
        length: u64,
    },
    Catalogue(CatalogueEntry),
    Files(Vec<NamedFile>),
    Address {
        url: String,
    },
    Invite(InvitedModel),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportState {
    Running,
    /// Asked to stop; the worker has not said so yet.
    Stopping,
    /// Stopped or failed, and can go on from what was verified.
    Stopped,
}

impl Import {
    /// Bytes that are verified and kept.
    pub fn kept(&self) -> u64 {
        self.progress.map_or(0, |progress| progress.bytes)
    }

    fn command(&self) -> Command {
        let source = match &self.origin {
            Origin::File { length } => ImportSource::File {
                name: self.name.clone(),
                length: *length,
            },
            Origin::Borrowed { length } => ImportSource::Borrowed {
                name: self.name.clone(),
                length: *length,
            },
            Origin::Catalogue(entry) => ImportSource::Catalogue(entry.clone()),
            Origin::Files(files) => ImportSource::Files {
                name: self.name.clone(),
                files: files.clone(),
            },
            Origin::Address { url } => ImportSource::Address { url: url.clone() },
            Origin::Invite(invited) => ImportSource::Invite(invited.clone()),
        };
        Command::Import {
            import: self.id,
            source,
        }
    }
}

impl Imports {
    pub fn current(&self) -> Option<&Import> {
        self.current.as_ref()
    }

    pub fn running(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|import| import.state != ImportState::Stopped)
    }

    pub fn begin(&mut self, name: String, origin: Origin) -> Result<Command, AppError> {
        if self.running() {
            return Err(AppError::ImportBusy);
        }
        self.last += 1;
        let import = Import {
            id: ImportId(self.last),
            name,
            origin,
            state: ImportState::Running,
            progress: None,
            pace: Pace::default(),
            model: None,
            lull: None,
        };
        let command = import.command();
        self.current = Some(import);
        Ok(command)
    }

    pub fn progress(&mut self, now: Millis, progress: ImportProgress) {
        let Some(import) = self.mine(progress.import) else {
            return;
        };
        if import
            .progress
            .is_some_and(|before| before.phase != progress.phase)
        {
            import.pace = Pace::default();
        }
        import.pace.note(now, progress.bytes);
        import.progress = Some(progress);
    }

    /// The header is here.
    pub fn opened(&mut self, id: ImportId, model: ModelSummary) {
        if let Some(import) = self.mine(id) {
            import.model = Some(model);
        }
    }

    /// Nothing comes for so many seconds, or it goes on.
    pub fn waits(&mut self, now: Millis, event: Event) {
        if let Event::ImportWaiting {
            import,
            why,
            seconds,
        } = event
            && let Some(import) = self.mine(import)
        {
            import.lull = why.map(|why| (why, now + seconds * 1000));
            // The speed before says nothing about the time after.
            import.pace = Pace::default();
        }
    }

    /// True if it was the current one.
    pub fn finish(&mut self, id: ImportId) -> bool {
        let mine = self.mine(id).is_some();
        if mine {
            self.current = None;
        }
        mine
    }

    /// A fetch that stopped or failed can go on. A file has to be dropped again, so it is let go.
    pub fn stopped(&mut self, id: ImportId) {
        let Some(import) = self.mine(id) else { return };
        match import.origin {
            Origin::Catalogue(_) | Origin::Address { .. } | Origin::Invite(_) => {
                import.state = ImportState::Stopped;
            }
            _ => self.current = None,
        }
    }

    /// Nothing of a stopped file import can be taken up again, so nothing of it is kept.
    pub fn cancel(&mut self) -> Option<Command> {
        let import = self.current.as_mut()?;
        if import.state != ImportState::Running {
            return None;
        }
        import.state = ImportState::Stopping;
        let discard = !matches!(import.origin, Origin::Catalogue(_) | Origin::Address { .. });
        Some(Command::CancelImport {
            import: import.id,
            discard,
        })
    }

    /// Goes on with a stopped fetch, under a new number.
    pub fn resume(&mut self) -> Option<Command> {
        let import = self
            .current
            .take_if(|import| import.state == ImportState::Stopped)?;
        self.begin(import.name, import.origin).ok()
    }

    /// Puts a stopped fetch out of sight; the model whose pieces are to be thrown away.
    pub fn close(&mut self) -> Option<ModelId> {
        let import = self
            .current
            .take_if(|import| import.state == ImportState::Stopped)?;
        match import.origin {
            Origin::Catalogue(entry) => Some(entry_id(&entry)),
            Origin::Invite(invited) => Some(invited.id),
            Origin::File { .. } | Origin::Borrowed { .. } | Origin::Files(_) => None,
            // What came of it is kept under the digest of its address.
            Origin::Address { url } => Some(ModelId {
                root: Root(format::sha256(url.as_bytes())),
                length: import.progress.map_or(0, |progress| progress.bytes_total),
            }),
        }
    }

    /// The worker is gone, and with it what was running.
    pub fn lost(&mut self) {
        if let Some(id) = self.current.as_ref().map(|import| import.id) {
            self.stopped(id);
        }
    }

    fn mine(&mut self, id: ImportId) -> Option<&mut Import> {
        self.current.as_mut().filter(|import| import.id == id)
    }
}

//! How models arrive: one import at a time, the others wait their turn.
//!
//! ```text
//! catalogue  Layer -> [Part] -> Head -> Room .. Files -> [Recheck] -> Receive -> Close
//! .slm file  Sniff  ---------> Head -> Hash -> Room .. Files -> [Recheck] -> Receive -> Close
//! .gguf file Sniff -> Convert (buffered until the header is known, then to a file) -> Close
//! ```
//!
//! Nothing is written before the header is sound and the model fits. What a later start can use
//! stays when an import ends early; everything else is removed.

mod check;
mod close;
mod convert_in;
mod head;
mod job;
mod local;
mod opening;
mod receive;

use std::collections::VecDeque;

use format::Root;
use protocol::{Event, ImportId, ImportSource, Stage as Place, Subject};
use store::{Disk, StoreError};

use super::{FileAnswer, Session, Station};
use crate::engine::Engine;
use crate::source::{Source, SourceFault};
use crate::words;
use job::{After, Bench, Happening, Job, Origin, Stage};

pub(super) use opening::keep_layer;
pub use receive::{RUN_BYTES_MAX, RUNS_MAX};

/// Imports that run or wait. Nobody drops more at a time.
pub const IMPORTS_MAX: usize = 8;
/// How often a passing fault of a source is answered by asking once more.
const TRIES_MAX: u32 = 3;

pub struct Imports<D> {
    active: Option<Job<D>>,
    waiting: VecDeque<Job<D>>,
    /// Number of the next conversion's file.
    incoming: u64,
}

impl<D> Default for Imports<D> {
    fn default() -> Imports<D> {
        Imports {
            active: None,
            waiting: VecDeque::new(),
            incoming: 0,
        }
    }
}

impl<D> Imports<D> {
    /// An import owns files of this root.
    pub fn concern(&self, root: Root) -> bool {
        self.active
            .as_ref()
            .is_some_and(|job| job.root == Some(root))
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn on_import(
        &mut self,
        import: ImportId,
        source: ImportSource,
        attached: Option<u32>,
    ) {
        let origin = match (source, attached) {
            (ImportSource::Catalogue(entry), _) => Origin::Catalogue(entry),
            (ImportSource::File { name, length }, Some(number)) => {
                let source = Source::File(number);
                Origin::File {
                    source,
                    name,
                    length,
                }
            }
            (ImportSource::File { .. }, None) => {
                let error = SourceFault::NotAttached.report();
                return self.desk.fail(Subject::Import(import), error);
            }
        };
        let job = Job::new(import, origin);
        let queue = &self.imports;
        let known = |job: &Job<D>| job.import == import;
        let refused = if queue.active.as_ref().is_some_and(known) || queue.waiting.iter().any(known)
        {
            Some("an import with this number is running")
        } else if queue.waiting.len() + 1 >= IMPORTS_MAX {
            Some("too many imports are waiting")
        } else {
            None
        };
        if let Some(what) = refused {
            job.sources
                .iter()
                .for_each(|source| self.desk.cancel_source(*source));
            let error = words::illegal(Place::Import, what, "wait until another import has ended");
            return self.desk.fail(Subject::Import(import), error);
        }
        self.imports.waiting.push_back(job);
        self.next_import();
    }

    pub(super) fn next_import(&mut self) {
        if self.imports.active.is_none()
            && let Some(job) = self.imports.waiting.pop_front()
        {
            self.imports.active = Some(job);
            self.advance_import(Happening::Begin);
        }
    }

    pub(super) fn cancel_import(&mut self, import: ImportId, discard: bool) {
        let after = if discard { After::Discard } else { After::Keep };
        if let Some(at) = self
            .imports
            .waiting
            .iter()
            .position(|job| job.import == import)
        {
            if let Some(job) = self.imports.waiting.remove(at) {
                self.drop_sources(&job);
            }
            return self.desk.event(Event::ImportCancelled { import });
        }
        match self.imports.active.take_if(|job| job.import == import) {
            Some(job) if matches!(job.stage, Stage::Closing(_)) => {
                // Nothing is left to be stopped; its last event is on its way.
                self.imports.active = Some(job);
            }
            Some(mut job) if job.waits_for_files => {
                job.cancelled = Some(after);
                self.imports.active = Some(job);
            }
            Some(job) => self.stop_import(job, after),
            None => {
                let remedy = "its end was told before";
                let error = words::illegal(Place::Import, "no such import is running", remedy);
                self.desk.fail(Subject::Import(import), error);
            }
        }
    }

    pub(super) fn on_import_wake(&mut self) {
        self.advance_import(Happening::Wake);
    }

    pub(super) fn on_import_answer(
        &mut self,
        import: ImportId,
        answer: Result<FileAnswer<D>, StoreError>,
    ) {
        match self.imports.active.take_if(|job| job.import == import) {
            Some(mut job) => {
                job.waits_for_files = false;
                match job.cancelled {
                    // An opened file is closed by dropping it here.
                    Some(after) => self.stop_import(job, after),
                    None => {
                        self.imports.active = Some(job);
                        self.advance_import(Happening::File(answer));
                    }
                }
            }
            None => drop(answer),
        }
    }

    pub(super) fn on_import_bytes(
        &mut self,
        source: Source,
        at: u64,
        bytes: Result<Vec<u8>, SourceFault>,
    ) {
        let asked = |job: &mut Job<D>| job.sources.contains(&source) && job.cancelled.is_none();
        let Some(mut job) = self.imports.active.take_if(asked) else {
            return;
        };
        match bytes {
            Ok(bytes) => {
                self.imports.active = Some(job);
                self.advance_import(Happening::Bytes { source, at, bytes });
            }
            Err(fault) if fault.is_passing() && job.tries < TRIES_MAX => {
                job.tries += 1;
                job.ask_again(source, at, &mut self.desk);
                self.imports.active = Some(job);
            }
            Err(fault) => self.end_import(job, fault.into()),
        }
    }

    /// Gives the active import something that happened.
    fn advance_import(&mut self, happening: Happening<D>) {
        let Some(mut job) = self.imports.active.take() else {
            return;
        };
        let engine = match &mut self.station {
            Station::Ready(start) => Some(&mut start.engine),
            _ => None,
        };
        let mut bench = Bench {
            desk: &mut self.desk,
            shelf: &mut self.shelf,
            engine,
            incoming: &mut self.imports.incoming,
        };
        let stage = std::mem::replace(&mut job.stage, Stage::Waiting);
        match job.advance(stage, happening, &mut bench) {
            Ok(Some(stage)) => {
                job.stage = stage;
                self.imports.active = Some(job);
            }
            Ok(None) => {
                self.drop_sources(&job);
                self.next_import();
            }
            Err(end) => self.end_import(job, end),
        }
    }

    fn drop_sources(&mut self, job: &Job<D>) {
        for source in &job.sources {
            self.desk.cancel_source(*source);
        }
    }
}

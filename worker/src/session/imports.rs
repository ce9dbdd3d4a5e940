//! How models arrive: one import at a time, the others wait their turn.
//!
//! ```text
//! catalogue  Layer -> [Part] -> Head -> Room .. Files -> [Recheck] -> Receive -> Close
//! .slm file  Sniff  ---------> Head -> Hash -> Room .. Files -> [Recheck] -> Receive -> Close
//! .gguf file Sniff -> Convert (buffered until the header is known, then to a file) -> Close
//! files      Convert ..
//! peers      as catalogue; the pieces come in any order (`swarms`)
//! address    Files -> Probe -> as a file of that kind, but what comes is kept (`gather`)
//! ```
//!
//! Nothing is written before the header is sound and the model fits. What a later start can use
//! stays when an import ends early; everything else is removed.

mod check;
mod close;
mod convert_in;
mod gather;
mod head;
mod job;
mod local;
mod opening;
mod receive;
mod remote;

use std::collections::VecDeque;

use format::{PieceIndex, Root};
use protocol::{Event, ImportId, ImportSource, Stage as Place, Subject};
use store::{Disk, StoreError, TransferFault, Waiting};

use super::{FileAnswer, Session, Station};
use crate::engine::Engine;
use crate::source::{Source, SourceFault};
use crate::words;
use job::{After, Bench, Happening, Job, Origin, Stage};

pub(super) use opening::keep_layer;
pub use receive::WANTED_MAX;
pub(super) use remote::file_name;

/// Imports that run or wait. Nobody drops more at a time.
pub const IMPORTS_MAX: usize = 8;
/// How many pieces may come wrong before nobody believes in the source.
const STRIKES_MAX: u32 = 3;

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
        let of_address = |job: &Job<D>| job.remotes.iter().any(|remote| remote.key == root);
        self.active
            .as_ref()
            .is_some_and(|job| job.root == Some(root) || of_address(job))
    }
}

impl<D: Disk> Imports<D> {
    /// A piece that has arrived already, for somebody else who wants it.
    pub fn read(&self, source: Source, piece: PieceIndex) -> Option<Vec<u8>> {
        let job = self.active.as_ref()?;
        match &job.stage {
            Stage::Receive(receive) if receive.source == source => receive.import.read(piece).ok(),
            _ => None,
        }
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn on_import(
        &mut self,
        import: ImportId,
        source: ImportSource,
        attached: Option<u32>,
    ) {
        let origin = match origin(source, attached) {
            Ok(origin) => origin,
            Err(fault) => return self.desk.fail(Subject::Import(import), fault.report()),
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
        match self.imports.active.as_mut().map(Job::ready) {
            Some(Ok(Some(bytes))) => self.advance_import(bytes),
            Some(Err(error)) => self.end_active(error.into()),
            _ => self.advance_import(Happening::Wake),
        }
    }

    fn end_active(&mut self, end: job::End) {
        if let Some(job) = self.imports.active.take() {
            self.end_import(job, end);
        }
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
        let asked = |job: &&mut Job<D>| job.sources.contains(&source) && job.cancelled.is_none();
        let Some(job) = self.imports.active.as_mut().filter(asked) else {
            return;
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(SourceFault::Transfer(TransferFault::Changed)) if job.may_restart() => {
                return self.restart();
            }
            Err(fault) => {
                let end = job.named(source, &fault);
                return self.end_active(end);
            }
        };
        let mut remotes = job.remotes.iter_mut();
        let Some(remote) = remotes.find(|remote| remote.source == source) else {
            return self.advance_import(Happening::Bytes { source, at, bytes });
        };
        if let Err(error) = remote.arrive(at, bytes, &mut self.desk) {
            return self.end_active(error.into());
        }
        match job.ready() {
            Ok(Some(bytes)) => self.advance_import(bytes),
            Ok(None) => self.advance_import(Happening::Arrived),
            Err(error) => self.end_active(error.into()),
        }
    }

    /// The file on the server is another one now: what came of the old one is of no use.
    fn restart(&mut self) {
        let Some(mut job) = self.imports.active.take() else {
            return;
        };
        self.drop_sources(&job);
        job.sources.clear();
        let fault = SourceFault::Transfer(TransferFault::Changed);
        self.desk.records.push(fault.report());
        // Nothing is written of a conversion before its whole source is here.
        job.stage = Stage::Waiting;
        job.begin_anew();
        job.meter = Default::default();
        self.imports.active = Some(job);
        self.advance_import(Happening::Begin);
    }

    /// Nothing comes from a source for now, or bytes come again.
    pub(super) fn on_lull(&mut self, source: Source, waiting: Option<Waiting>) {
        let asked = |job: &&mut Job<D>| job.sources.contains(&source);
        if let Some(job) = self.imports.active.as_mut().filter(asked) {
            let now_ms = self.desk.now_ms;
            let import = job.import;
            self.desk.event(Event::ImportWaiting {
                import,
                why: waiting.map(|waiting| words::waiting(waiting.cause).into()),
                seconds: waiting.map_or(0, |waiting| {
                    waiting.until_ms.saturating_sub(now_ms).div_ceil(1000)
                }),
            });
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
            wish: self.wish,
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

/// What a command's source stands for. Attached files have numbers in a row.
fn origin(source: ImportSource, attached: Option<u32>) -> Result<Origin, SourceFault> {
    Ok(match (source, attached) {
        (ImportSource::Catalogue(entry), _) => Origin::Catalogue(entry),
        (ImportSource::Address { url }, _) => Origin::Address { url },
        (ImportSource::Invite(invited), _) => Origin::Peers(invited),
        (ImportSource::File { name, length }, Some(number)) => {
            let source = Source::File(number);
            Origin::File {
                source,
                name,
                length,
            }
        }
        (ImportSource::Files { name, files }, Some(first)) => {
            let numbers = (first..).map(Source::File);
            let files = numbers.zip(files);
            let files = files.map(|(source, file)| (source, file.name, file.length));
            let files = files.collect();
            Origin::Files { name, files }
        }
        (_, None) => return Err(SourceFault::NotAttached),
    })
}

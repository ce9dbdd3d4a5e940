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

mod close;
mod convert_in;
mod head;
mod opening;
mod receive;

use std::collections::VecDeque;

use format::{Header, Root};
use protocol::{
    CatalogueEntry, ErrorReport, Event, ImportId, ImportPhase, ImportProgress, ImportSource,
    ModelSummary, Stage as Place, Subject,
};
use store::{Disk, StoreError};

use super::desk::{Desk, Owner};
use super::meter::Meter;
use super::shelf::Shelf;
use super::{FileAnswer, Session, Station};
use crate::engine::Engine;
use crate::source::{Source, SourceFault};
use crate::words;

use close::Closing;
use convert_in::Convert;
use head::{Hash, Head, Part};
use opening::Opening;
use receive::{Receive, Recheck};

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

/// One import from its command to its last event.
struct Job<D> {
    import: ImportId,
    origin: Origin,
    /// Everything that bytes were asked of.
    sources: Vec<Source>,
    meter: Meter,
    /// What was answered by asking again.
    tries: u32,
    /// Files of this root are the import's.
    root: Option<Root>,
    /// A file operation is under way.
    waits_for_files: bool,
    /// Cancelled meanwhile; whether everything is to be discarded.
    cancelled: Option<After>,
    stage: Stage<D>,
}

#[derive(Clone)]
enum Origin {
    File {
        source: Source,
        name: String,
        length: u64,
    },
    Catalogue(CatalogueEntry),
}

/// What becomes of verified pieces when an import is cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    Discard,
}

enum Stage<D> {
    Waiting,
    /// The piece layer is on its way.
    Layer(Source),
    /// An unfinished part is being opened, to read the header from it.
    Part(Box<Part>),
    /// The first bytes of a file, which tell what it is.
    Sniff,
    Head(Box<Head<D>>),
    Hash(Box<Hash>),
    Opening(Box<Opening<D>>),
    Recheck(Box<Recheck<D>>),
    Receive(Box<Receive<D>>),
    Convert(Box<Convert<D>>),
    Closing(Box<Closing>),
}

/// What can happen to an import.
enum Happening<D> {
    Begin,
    Bytes {
        source: Source,
        at: u64,
        bytes: Vec<u8>,
    },
    File(Result<FileAnswer<D>, StoreError>),
    Wake,
}

/// The parts of the session that an import may use.
struct Bench<'s, E> {
    desk: &'s mut Desk,
    shelf: &'s mut Shelf,
    /// `None` while a trapped engine is being replaced.
    engine: Option<&'s mut E>,
    /// Number for a conversion's file.
    incoming: &'s mut u64,
}

/// Why an import goes on to its end.
enum End {
    /// The same model is here.
    AlreadyHere(ModelSummary),
    Refused(ErrorReport),
}

impl From<ErrorReport> for End {
    fn from(error: ErrorReport) -> End {
        End::Refused(error)
    }
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> End {
        End::Refused(words::store_error(&error, Place::Store))
    }
}

impl From<SourceFault> for End {
    fn from(fault: SourceFault) -> End {
        End::Refused(fault.report())
    }
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

impl<D> Job<D> {
    fn new(import: ImportId, origin: Origin) -> Job<D> {
        let root = match &origin {
            Origin::Catalogue(entry) => Some(entry.root),
            Origin::File { .. } => None,
        };
        let sources = match &origin {
            Origin::File { source, .. } => vec![*source],
            Origin::Catalogue(_) => Vec::new(),
        };
        Job {
            import,
            origin,
            sources,
            meter: Meter::default(),
            tries: 0,
            root,
            waits_for_files: false,
            cancelled: None,
            stage: Stage::Waiting,
        }
    }

    fn owner(&self) -> Owner {
        Owner::Import(self.import)
    }

    /// The file's name as the page told it, for errors; a catalogue's entry has its own.
    fn name(&self) -> &str {
        match &self.origin {
            Origin::File { name, .. } => name,
            Origin::Catalogue(entry) => &entry.name,
        }
    }

    fn tell(&mut self, desk: &mut Desk, phase: ImportPhase, bytes: [u64; 2], pieces: [u32; 2]) {
        if self.meter.is_due(desk.now_ms, bytes[0], bytes[1]) {
            desk.event(Event::Import(ImportProgress {
                import: self.import,
                phase,
                bytes: bytes[0],
                bytes_total: bytes[1],
                pieces: pieces[0],
                pieces_total: pieces[1],
            }));
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

impl<D: Disk> Job<D> {
    /// The next stage, or `None` when the last event is out.
    fn advance<E: Engine<File = D>>(
        &mut self,
        stage: Stage<D>,
        happening: Happening<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Option<Stage<D>>, End> {
        let next = match (stage, happening) {
            (Stage::Waiting, Happening::Begin) => self.begin(bench)?,
            (Stage::Layer(layer), Happening::Bytes { source, bytes, .. }) if layer == source => {
                self.on_layer(&bytes, bench)?
            }
            (Stage::Part(part), Happening::File(answer)) => self.on_part(*part, answer, bench)?,
            (Stage::Sniff, Happening::Bytes { bytes, .. }) => self.on_sniff(bytes, bench)?,
            (Stage::Head(head), Happening::Bytes { at, bytes, .. }) => {
                self.on_head(head, at, &bytes, bench)?
            }
            (Stage::Hash(hash), Happening::Bytes { at, bytes, .. }) => {
                self.on_hash(hash, at, &bytes, bench)?
            }
            (Stage::Opening(opening), Happening::File(answer)) => {
                self.on_opening(opening, answer, bench)?
            }
            (Stage::Recheck(recheck), Happening::Wake) => self.on_recheck(recheck, bench)?,
            (Stage::Receive(receive), Happening::Bytes { at, bytes, .. }) => {
                self.on_receive(receive, at, &bytes, bench)?
            }
            (Stage::Convert(convert), happening) => self.on_convert(convert, happening, bench)?,
            (Stage::Closing(closing), Happening::File(answer)) => {
                return Ok(self.on_closing(closing, answer, bench).map(Stage::Closing));
            }
            // Late bytes, and wakes that other parts asked for.
            (stage, _) => stage,
        };
        Ok(Some(next))
    }

    fn begin<E: Engine<File = D>>(&mut self, bench: &mut Bench<'_, E>) -> Result<Stage<D>, End> {
        match self.origin.clone() {
            Origin::Catalogue(entry) => self.ask_for_layer(&entry, bench),
            Origin::File { source, length, .. } => self.ask_for_first_bytes(source, length, bench),
        }
    }

    /// Asks once more for what did not come.
    fn ask_again(&self, source: Source, at: u64, desk: &mut Desk) {
        match (&self.stage, &self.origin) {
            (Stage::Layer(_), Origin::Catalogue(entry)) => {
                desk.need_whole(source, head::layer_len(entry.length));
            }
            (Stage::Head(head), _) => desk.need(source, at, head.next_len()),
            (Stage::Receive(receive), _) => {
                if let Some(len) = receive.asked_at(at) {
                    desk.need(source, at, len);
                }
            }
            // Local files have no passing faults.
            _ => {}
        }
    }
}

/// The model's header with the bytes it was read from.
struct Sound {
    header: Header,
    /// The file's bytes from the first one on, in whole pieces where a piece layer was known.
    bytes: Vec<u8>,
}

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
mod places;
mod pour;
mod receive;
mod remote;

use std::collections::VecDeque;

use format::{PieceIndex, Root, VerifiedPiece};
use protocol::{Event, ImportId, ImportSource, Stage as Place, Subject};
use store::{Disk, RawFile, StoreError, TransferFault, WaitCause, Waiting};

use super::{FileAnswer, Session, Station};
use crate::engine::Engine;
use crate::source::{Source, SourceFault};
use crate::words;
use job::{After, Bench, End, Happening, Job, Origin, Stage};

pub(super) use opening::keep_layer;
pub use receive::WANTED_MAX;
pub(super) use remote::file_name;

/// Imports that run or wait. Nobody drops more at a time.
pub const IMPORTS_MAX: usize = 8;
/// Who may ask for the same import: every tab, and a page more than once.
const ASKERS_MAX: usize = 256;
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
    /// The files of the active import can still be reached.
    pub fn are_well(&self) -> bool {
        let Some(job) = &self.active else { return true };
        let stage = match &job.stage {
            Stage::Receive(receive) => receive.is_well(),
            Stage::Recheck(recheck) => recheck.receive.is_well(),
            _ => true,
        };
        let mut raws = job.remotes.iter().filter_map(|remote| remote.raw.as_ref());
        stage && raws.all(RawFile::is_well)
    }

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
        if let Origin::Catalogue(entry) = &origin {
            // A repair gives the file another name.
            self.give_up_check(entry.root);
        }
        let queue = &mut self.imports;
        let known = |job: &Job<D>| job.import == import || job.askers.contains(&import);
        let is_known = queue.active.as_ref().is_some_and(known) || queue.waiting.iter().any(known);
        let mut jobs = queue.active.iter_mut().chain(&mut queue.waiting);
        let same = jobs.find(|job| job.is_for(&origin) && job.askers.len() < ASKERS_MAX);
        if let Some(job) = same.filter(|_| !is_known) {
            // One fetch for everybody who names the same.
            return job.askers.push(import);
        }
        let job = Job::new(import, origin);
        let queue = &self.imports;
        let refused = if is_known {
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

    /// Whatever comes may be what is being deleted: it begins when that is gone.
    pub(super) fn next_import(&mut self) {
        if self.imports.active.is_none()
            && !self.removals.are_under_way()
            && let Some(job) = self.imports.waiting.pop_front()
        {
            self.imports.active = Some(job);
            self.advance_import(Happening::Begin);
        }
    }

    pub(super) fn cancel_import(&mut self, import: ImportId, discard: bool) {
        let after = if discard { After::Discard } else { After::Keep };
        let queue = &mut self.imports;
        let mut jobs = queue.active.iter_mut().chain(&mut queue.waiting);
        if let Some(job) = jobs.find(|job| job.askers.len() > 1 && job.askers.contains(&import)) {
            // The others still want it.
            job.askers.retain(|asker| *asker != import);
            return self.desk.event(Event::ImportCancelled { import });
        }
        let is_its = |job: &Job<D>| job.askers.contains(&import);
        if let Some(at) = self.imports.waiting.iter().position(is_its) {
            if let Some(job) = self.imports.waiting.remove(at) {
                self.drop_sources(&job);
            }
            return self.desk.event(Event::ImportCancelled { import });
        }
        match self.imports.active.take_if(|job| is_its(job)) {
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
            Some(Err(error)) => self.end_or_go_on(error.into()),
            _ => self.advance_import(Happening::Wake),
        }
    }

    /// The active import ends, or goes on with another source.
    fn end_or_go_on(&mut self, end: End) {
        match (self.imports.active.take(), end) {
            (Some(mut job), End::BadSource(error)) if job.places.has_another() => {
                self.desk.records.push(job.places.named(error.clone()));
                job.places.give_up(&error);
                self.change_place(job);
            }
            (Some(job), end) => self.end_import(job, end),
            (None, _) => {}
        }
    }

    fn change_place(&mut self, mut job: Job<D>) {
        self.drop_sources(&job);
        job.sources.clear();
        // Whatever it waited for, it does not wait for that source any more.
        self.tell_lull(&job, None);
        self.imports.active = Some(job);
        self.advance_import(Happening::NewPlace);
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
                return self.end_or_go_on(end);
            }
        };
        let mut remotes = job.remotes.iter_mut();
        let Some(remote) = remotes.find(|remote| remote.source == source) else {
            return self.advance_import(Happening::Bytes { source, at, bytes });
        };
        if let Err(error) = remote.arrive(at, bytes, &mut self.desk) {
            return self.end_or_go_on(error.into());
        }
        match job.ready() {
            Ok(Some(bytes)) => self.advance_import(bytes),
            Ok(None) => self.advance_import(Happening::Arrived),
            Err(error) => self.end_or_go_on(error.into()),
        }
    }

    /// A piece of peers: who still looks at the beginning of the file takes it as bytes.
    pub(super) fn on_import_piece(&mut self, source: Source, whole: VerifiedPiece) {
        let active = self.imports.active.as_ref();
        let active = active.filter(|job| job.sources.contains(&source) && job.cancelled.is_none());
        if let Some(Stage::Receive(_)) = active.map(|job| &job.stage) {
            return self.advance_import(Happening::Whole(whole));
        }
        let (at, _) = whole.id().piece_range(whole.piece());
        self.on_import_bytes(source, at, Ok(whole.into_bytes()));
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
        let asked = |job: &mut Job<D>| job.sources.contains(&source) && job.cancelled.is_none();
        let Some(mut job) = self.imports.active.take_if(asked) else {
            return;
        };
        let is_servers = |waiting: Waiting| waiting.cause != WaitCause::Offline;
        if waiting.is_some_and(is_servers) && job.places.pass_over() {
            return self.change_place(job);
        }
        self.tell_lull(&job, waiting);
        self.imports.active = Some(job);
    }

    fn tell_lull(&mut self, job: &Job<D>, waiting: Option<Waiting>) {
        let now_ms = self.desk.now_ms;
        for import in job.askers.iter().copied() {
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
            removals: &self.removals,
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
            Err(end) => {
                self.imports.active = Some(job);
                self.end_or_go_on(end);
            }
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
        (ImportSource::File { name, length }, Some(number)) => Origin::File {
            source: Source::File(number),
            name,
            length,
            is_lent: false,
        },
        (ImportSource::Borrowed { name, length }, Some(number)) => Origin::File {
            source: Source::File(number),
            name,
            length,
            is_lent: true,
        },
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

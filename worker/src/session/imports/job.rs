//! One import: where it stands, and which stage takes what happens.

use format::{Header, ModelId, Root, VerifiedPiece};
use protocol::{
    CatalogueEntry, ErrorReport, Event, ImportId, ImportPhase, ImportProgress, InvitedModel,
    ModelSummary, Stage as Place, Wish,
};
use store::{Disk, StoreError};

use super::close::Closing;
use super::convert_in::Convert;
use super::gather::{Adopt, Files};
use super::head::{Head, Part};
use super::local::Hash;
use super::opening::Opening;
use super::places::Places;
use super::receive::{Receive, Recheck};
use super::remote::{Remote, file_name};
use crate::engine::Engine;
use crate::session::FileAnswer;
use crate::session::desk::{Desk, Owner};
use crate::session::meter::Meter;
use crate::session::scanning::Removals;
use crate::session::shelf::{Shelf, summary};
use crate::source::{Source, SourceFault};
use crate::words;

/// One import from its command to its last event.
pub struct Job<D> {
    /// Its own number: that of the first who asked.
    pub import: ImportId,
    /// Everybody who asked for the same and is told the same.
    pub askers: Vec<ImportId>,
    pub origin: Origin,
    pub places: Places,
    /// Everything that bytes were asked of.
    pub sources: Vec<Source>,
    pub meter: Meter,
    /// Files of servers that nobody vouches for.
    pub remotes: Vec<Remote<D>>,
    /// Bytes that will be written besides them.
    pub output_bytes: u64,
    /// How often a file changed under way and was begun anew.
    pub restarts: u32,
    /// Files of this root are the import's.
    pub root: Option<Root>,
    /// A file operation is under way.
    pub waits_for_files: bool,
    /// Cancelled meanwhile; whether everything is to be discarded.
    pub cancelled: Option<After>,
    pub stage: Stage<D>,
}

#[derive(Clone)]
pub enum Origin {
    File {
        source: Source,
        name: String,
        length: u64,
        /// It is used where it lies, and not copied.
        is_lent: bool,
    },
    Catalogue(CatalogueEntry),
    /// Parts of one model or the files of a folder, with name and length.
    Files {
        name: String,
        files: Vec<(Source, String, u64)>,
    },
    Address {
        url: String,
    },
    Peers(InvitedModel),
}

/// What becomes of verified pieces when an import is cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum After {
    Keep,
    Discard,
}

pub enum Stage<D> {
    Waiting,
    /// The piece layer is on its way.
    Layer(Source),
    /// An unfinished part is being opened, to read the header from it.
    Part(Box<Part>),
    /// Files of an address are being opened.
    Files(Box<Files<D>>),
    /// The beginnings of files from an address.
    Probe,
    /// A `.slm` file from an address gets its name.
    Adopt(Box<Adopt>),
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
pub enum Happening<D> {
    Begin,
    Bytes {
        source: Source,
        at: u64,
        bytes: Vec<u8>,
    },
    /// A piece of peers, for whoever need not hash it.
    Whole(VerifiedPiece),
    File(Result<FileAnswer<D>, StoreError>),
    /// A piece of an address came, for which nobody waits just now.
    Arrived,
    /// From now on bytes come from another source.
    NewPlace,
    Wake,
}

/// The parts of the session that an import may use.
pub struct Bench<'s, E> {
    pub desk: &'s mut Desk,
    pub shelf: &'s mut Shelf,
    pub removals: &'s Removals,
    /// `None` while a trapped engine is being replaced.
    pub engine: Option<&'s mut E>,
    /// How the page wants the model, if not as usual.
    pub wish: Option<Wish>,
    /// Number for a conversion's file.
    pub incoming: &'s mut u64,
}

impl<E> Bench<'_, E> {
    /// Refuses a model whose files are being removed, for an import that began before and has
    /// learned only now which model it holds.
    pub fn check_stays(&self, root: Root) -> Result<(), End> {
        if self.removals.concern(root) {
            let (what, remedy) = ("the model is being deleted", "import it again");
            return Err(words::illegal(Place::Import, what, remedy).into());
        }
        Ok(())
    }
}

/// Why an import goes on to its end.
pub enum End {
    /// The same model is here.
    AlreadyHere(Box<ModelSummary>),
    Refused(ErrorReport),
    /// The source gave nothing, or something else than it should; another one may be better.
    BadSource(ErrorReport),
    /// The storage refused.
    Storage(StoreError),
}

impl From<ErrorReport> for End {
    fn from(error: ErrorReport) -> End {
        End::Refused(error)
    }
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> End {
        End::Storage(error)
    }
}

impl From<SourceFault> for End {
    fn from(fault: SourceFault) -> End {
        End::BadSource(fault.report())
    }
}

impl<D> Job<D> {
    pub fn new(import: ImportId, origin: Origin) -> Job<D> {
        let root = match &origin {
            Origin::Catalogue(entry) => Some(entry.root),
            Origin::Peers(invited) => Some(invited.id.root),
            Origin::File { .. } | Origin::Files { .. } | Origin::Address { .. } => None,
        };
        let sources = match &origin {
            Origin::File { source, .. } => vec![*source],
            Origin::Files { files, .. } => files.iter().map(|(source, _, _)| *source).collect(),
            Origin::Catalogue(_) | Origin::Address { .. } | Origin::Peers(_) => Vec::new(),
        };
        Job {
            import,
            askers: vec![import],
            places: Places::of(&origin),
            origin,
            sources,
            meter: Meter::default(),
            remotes: Vec::new(),
            output_bytes: 0,
            restarts: 0,
            root,
            waits_for_files: false,
            cancelled: None,
            stage: Stage::Waiting,
        }
    }

    pub fn owner(&self) -> Owner {
        Owner::Import(self.import)
    }

    /// The file's name as the page told it, for errors; a catalogue's entry has its own.
    pub fn name(&self) -> &str {
        match &self.origin {
            Origin::File { name, .. } | Origin::Files { name, .. } => name,
            Origin::Address { url } => file_name(url),
            Origin::Catalogue(entry) => &entry.name,
            Origin::Peers(invited) => &invited.name,
        }
    }

    pub fn tell(&mut self, desk: &mut Desk, phase: ImportPhase, bytes: [u64; 2], pieces: [u32; 2]) {
        if self.meter.is_due(desk.now_ms, bytes[0], bytes[1]) {
            for import in self.askers.iter().copied() {
                desk.event(Event::Import(ImportProgress {
                    import,
                    phase,
                    bytes: bytes[0],
                    bytes_total: bytes[1],
                    pieces: pieces[0],
                    pieces_total: pieces[1],
                }));
            }
        }
    }

    /// Somebody else who asks for this gets it from the same fetch.
    pub fn is_for(&self, origin: &Origin) -> bool {
        let is_same = match (&self.origin, origin) {
            (Origin::Catalogue(one), Origin::Catalogue(two)) => {
                (one.root, one.length) == (two.root, two.length)
            }
            (Origin::Address { url: one }, Origin::Address { url: two }) => one == two,
            _ => false,
        };
        is_same && self.cancelled.is_none() && !matches!(self.stage, Stage::Closing(_))
    }
}

impl<D: Disk> Job<D> {
    /// The next stage, or `None` when the last event is out.
    pub fn advance<E: Engine<File = D>>(
        &mut self,
        stage: Stage<D>,
        happening: Happening<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Option<Stage<D>>, End> {
        if matches!(happening, Happening::Arrived) && !matches!(stage, Stage::Probe) {
            self.tell_fetched(bench);
            return Ok(Some(stage));
        }
        let next = match (stage, happening) {
            (Stage::Waiting, Happening::Begin) => self.begin(bench)?,
            (stage, Happening::NewPlace) => self.at_new_place(stage, bench)?,
            (Stage::Layer(layer), Happening::Bytes { source, bytes, .. }) if layer == source => {
                self.on_layer(source, &bytes, bench)?
            }
            (Stage::Part(part), Happening::File(answer)) => self.on_part(*part, answer, bench)?,
            (Stage::Files(files), Happening::File(answer)) => {
                self.on_files(files, answer, bench)?
            }
            (Stage::Probe, _) => self.go_on_probing(bench)?,
            (Stage::Adopt(adopt), Happening::File(answer)) => {
                self.on_adopt(*adopt, answer, bench)?
            }
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
            (Stage::Receive(receive), Happening::Whole(whole)) => {
                self.on_receive_whole(receive, &whole, bench)?
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

    pub fn begin<E: Engine<File = D>>(
        &mut self,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        match self.origin.clone() {
            Origin::Catalogue(_) => self.ask_for_layer(bench),
            Origin::Peers(invited) => self.ask_peers_for_layer(invited, bench),
            Origin::File { source, length, .. } => self.ask_for_first_bytes(source, length, bench),
            Origin::Files { .. } => self.begin_files(bench),
            Origin::Address { url } => self.begin_address(&url, bench),
        }
    }
}

/// The model's header with the bytes it was read from.
pub struct Sound {
    pub header: Header,
    /// The file's bytes from the first one on, in whole pieces where a piece layer was known.
    pub bytes: Vec<u8>,
}

impl Sound {
    /// What the page is told while the import runs.
    pub fn summary(&self, id: ModelId, done: u64) -> ModelSummary {
        summary(id, &self.header, Some(done))
    }
}

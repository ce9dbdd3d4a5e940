//! One conversation of a page with its models, without any input or output of its own.
//!
//! `handle` one input, then `poll` until nothing comes; time is an argument. The shell does what is
//! asked and hands the results back, in any order. Long work is cut into pieces: after each the
//! session asks to be woken, so that a command is seen in between.
//!
//! Reading order: `desk` (what all parts share), `shelf` and `scanning` (what is stored),
//! `imports` (how models arrive), `offers` (which there are to be had), `swarms` and `sharing`
//! (from peers and to them), `lifecycle` and `loading` (the one model in the engine), `requests`
//! (what is asked of it), `keeping` (what it computed, in the store), `checking` (only read).

mod checking;
mod commands;
mod desk;
mod imports;
mod keeping;
mod lifecycle;
mod loading;
mod meter;
mod offers;
mod records;
mod requests;
mod scanning;
mod sharing;
mod shelf;
mod swarms;
mod transfers;

use std::collections::VecDeque;

use format::{ModelId, PieceIndex};
use protocol::{
    CapabilityReceipt, Command, ErrorReport, Event, LaneReport, StorageKind, Subject, Wish,
};
use store::{Disk, Entry, Estimate, News, StoreError};

use crate::PublicKey;
use crate::engine::Engine;
use crate::source::{Source, SourceFault};
use checking::Check;
use desk::{Desk, Owner};
use imports::Imports;
use keeping::Keeping;
use loading::Seat;
use offers::Offers;
use records::Scene;
use requests::Requests;
use scanning::Scan;
use sharing::Shares;
use shelf::Shelf;
use transfers::Arrival;

pub use imports::{IMPORTS_MAX, WANTED_MAX};
pub use keeping::KEPT_BYTES_MAX;
pub use records::RECORDS_MAX;
pub use requests::REQUESTS_MAX;

/// Commands kept while the worker starts. A page sends a handful; more is a fault.
pub const COMMANDS_MAX: usize = 16;

/// Number of a file operation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// Number of a request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub u32);

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Where an earlier request was led to; `None` is the source's own address.
    pub url: Option<String>,
    /// First and last byte.
    pub range: Option<(u64, u64)>,
    pub if_range: Option<String>,
}

/// Directory operations; in a browser they answer later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOp {
    List,
    /// The browser's figures of used and free storage.
    Estimate,
    Open(String),
    /// A person's own file, to be read only.
    Lend(Source),
    Create(String),
    Rename {
        from: String,
        to: String,
    },
    Remove(String),
}

/// What a [`FileOp`] gives.
pub enum FileAnswer<D> {
    Listed(Vec<Entry>),
    Estimate(Estimate),
    /// Of `Open`, `Lend` and `Create`.
    Opened(D),
    /// Of `Rename` and `Remove`.
    Done,
}

/// A started engine and what it runs on.
pub struct Start<E> {
    pub engine: E,
    pub lane: LaneReport,
    /// Every faster lane that was refused.
    pub downgrades: Vec<ErrorReport>,
    pub storage: StorageKind,
    /// Whose catalogue is believed; without one, nobody's.
    pub publisher: Option<PublicKey>,
    /// What was observed and chosen; what ran is added when it is asked for.
    pub receipt: Box<CapabilityReceipt>,
}

pub enum Input<D, E> {
    /// The worker can work; also after [`Output::EngineLost`].
    Started(Start<E>),
    /// No engine can be had.
    NotStarted {
        error: ErrorReport,
        downgrades: Vec<ErrorReport>,
    },
    Command {
        command: Command,
        /// Number of the file that came with it.
        attached: Option<u32>,
    },
    /// Exactly the bytes that were asked for at `at`.
    Bytes {
        source: Source,
        at: u64,
        bytes: Vec<u8>,
    },
    SourceFailed {
        source: Source,
        at: u64,
        fault: SourceFault,
    },
    Files {
        ticket: Ticket,
        answer: Result<FileAnswer<D>, StoreError>,
    },
    /// What came of a request.
    Fetched {
        fetch: FetchId,
        news: News,
    },
    /// The browser says that there is a network, or none.
    Network {
        is_online: bool,
    },
    Time,
    Wake,
    /// A peer's message, as the page has it.
    PeerSaid {
        link: u32,
        bytes: Vec<u8>,
    },
    /// A piece of an [`Output::ReadStored`]; `None` if it cannot be read.
    StoredRead {
        model: ModelId,
        piece: PieceIndex,
        bytes: Option<Vec<u8>>,
    },
}

#[derive(Debug, PartialEq)]
pub enum Output {
    Event(Event),
    /// From now on this source stands for this address, relative to the catalogue.
    Address {
        source: Source,
        url: String,
    },
    /// Send a request and give what comes of it as [`Input::Fetched`], the body portion by portion
    /// and only when asked for more.
    Fetch {
        fetch: FetchId,
        source: Source,
        ask: Ask,
    },
    /// Read the next portion of this request's body.
    FetchMore(FetchId),
    AbortFetch(FetchId),
    /// Give [`Input::Time`] at this time.
    WakeAt(u64),
    NeedBytes {
        source: Source,
        at: u64,
        len: u32,
    },
    /// Everything that the source has, if it is at most so many bytes.
    NeedWhole {
        source: Source,
        most: u32,
    },
    /// Nothing more is wanted of this source; what is under way may be given up.
    CancelSource(Source),
    Files {
        ticket: Ticket,
        op: FileOp,
    },
    /// Give [`Input::Wake`] soon, after whatever else is waiting.
    Wake,
    /// Give the page this model's file, with [`Event::Exported`].
    HandOut(ModelId),
    /// The engine trapped: make another one.
    EngineLost,
    /// The next start tries every lane again.
    ForgetFailures,
    /// Pass this to a peer over the page's connection.
    PeerSend {
        link: u32,
        bytes: Vec<u8>,
    },
    /// Read a piece of a whole stored model, whoever else has it open.
    ReadStored {
        model: ModelId,
        piece: PieceIndex,
    },
    /// No more of it will be read.
    ReleaseStored(ModelId),
}

pub struct Session<D: Disk, E: Engine<File = D>> {
    desk: Desk,
    station: Station<E>,
    /// Commands that came before the session could take them.
    early: VecDeque<(Command, Option<u32>)>,
    shelf: Shelf,
    scan: Scan,
    imports: Imports<D>,
    seat: Seat<D>,
    requests: Requests,
    keeping: Keeping<D>,
    offers: Offers,
    shares: Shares,
    /// Files to be removed, one after another.
    removals: scanning::Removals,
    /// How the next model is to be taken.
    wish: Option<Wish>,
    check: Option<Check<D>>,
}

enum Station<E> {
    Starting,
    Ready(Start<E>),
    /// It trapped; another one is being made.
    Lost(LaneReport, StorageKind),
    /// There will be none.
    Failed(ErrorReport),
}

impl<D: Disk, E: Engine<File = D>> Default for Session<D, E> {
    fn default() -> Self {
        Session::new()
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    /// A session that waits for [`Input::Started`].
    pub fn new() -> Session<D, E> {
        Session {
            desk: Desk::default(),
            station: Station::Starting,
            early: VecDeque::new(),
            shelf: Shelf::default(),
            scan: Scan::default(),
            imports: Imports::default(),
            seat: Seat::default(),
            requests: Requests::default(),
            keeping: Keeping::default(),
            offers: Offers::default(),
            shares: Shares::default(),
            removals: scanning::Removals::default(),
            wish: None,
            check: None,
        }
    }

    /// Takes one input. `now_ms` is milliseconds of a clock that never goes back.
    pub fn handle(&mut self, now_ms: u64, input: Input<D, E>) {
        self.desk.now_ms = now_ms;
        self.set_scene();
        match input {
            Input::Started(start) => self.on_started(start),
            Input::NotStarted { error, downgrades } => self.on_not_started(error, downgrades),
            Input::Command { command, attached } => self.on_command(command, attached),
            Input::Bytes { source, at, bytes } => self.on_bytes(source, at, Ok(bytes)),
            Input::SourceFailed { source, at, fault } => self.on_bytes(source, at, Err(fault)),
            Input::Files { ticket, answer } => self.on_files(ticket, answer),
            Input::Fetched { fetch, news } => self.desk.fetched(fetch, news),
            Input::Network { is_online } => self.desk.network(is_online),
            Input::Time => self.desk.time(),
            Input::Wake => self.on_wake(),
            Input::PeerSaid { link, bytes } => self.desk.peer_said(link, &bytes),
            Input::StoredRead {
                model,
                piece,
                bytes,
            } => self.desk.stored_read(model, piece, bytes),
        }
        while let Some(arrival) = self.desk.arrived() {
            match arrival {
                Arrival::Bytes { source, at, bytes } => self.on_bytes(source, at, bytes),
                Arrival::Whole(source, whole) => self.on_import_piece(source, whole),
                Arrival::Lull(source, waiting) => self.on_lull(source, waiting),
                Arrival::Read(source, piece) => self.read_arrived(source, piece),
            }
        }
    }

    /// What a failure from now on is recorded with.
    fn set_scene(&mut self) {
        let committed_bytes = match &mut self.station {
            Station::Ready(start) => start.engine.memory_bytes(),
            _ => 0,
        };
        self.desk.records.set(Scene {
            now_ms: self.desk.now_ms,
            state: self.seat.state,
            model: self.seat.wanted(),
            reserved_bytes: self.seat.fit().map_or(0, |fit| fit.total),
            committed_bytes,
        });
    }

    /// The next thing to do; drain until `None` after every input.
    pub fn poll(&mut self) -> Option<Output> {
        self.desk.poll()
    }

    fn on_started(&mut self, start: Start<E>) {
        let first = matches!(self.station, Station::Starting);
        for error in &start.downgrades {
            self.desk.records.push(error.clone());
        }
        self.desk.event(Event::Ready {
            lane: start.lane.clone(),
            downgrades: start.downgrades.clone(),
            storage: start.storage,
        });
        self.station = Station::Ready(start);
        if first {
            self.start_scan();
        } else {
            self.seat.revive();
            self.desk.wake();
        }
    }

    fn on_not_started(&mut self, error: ErrorReport, downgrades: Vec<ErrorReport>) {
        for downgrade in downgrades {
            self.desk.records.push(downgrade);
        }
        self.desk.fail(Subject::Start, error.clone());
        self.station = Station::Failed(error);
        for (command, attached) in std::mem::take(&mut self.early) {
            self.on_command(command, attached);
        }
    }

    fn on_bytes(&mut self, source: Source, at: u64, bytes: Result<Vec<u8>, SourceFault>) {
        if self.offers.concern(source) {
            self.on_offers(source, bytes);
        } else if self.desk.serves_swarm(source) {
            self.desk.server_said(source, at, bytes);
        } else {
            self.on_import_bytes(source, at, bytes);
        }
    }

    fn on_files(&mut self, ticket: Ticket, answer: Result<FileAnswer<D>, StoreError>) {
        let Some((owner, op)) = self.desk.answered(ticket, &answer) else {
            return;
        };
        match owner {
            Owner::Shelf => self.on_scan_answer(op, answer),
            Owner::Delete => self.on_removed(&op, answer),
            Owner::Load => self.on_load_answer(answer),
            Owner::Kept => self.on_kept_answer(&op, answer),
            Owner::Check(id) => self.on_check_answer(id, answer),
            Owner::Import(import) => self.on_import_answer(import, answer),
            Owner::Share(model) => self.on_share_answer(model, answer),
        }
    }

    /// One unit of everything that is under way.
    fn on_wake(&mut self) {
        self.desk.woken();
        self.on_import_wake();
        self.on_load_wake();
        self.on_check_wake();
        self.on_request_wake();
    }
}

//! A world around one session: a directory in memory, attached files, a scripted server, and a
//! clock that moves with every input.

#![allow(dead_code)]

mod calls;
pub mod models;
pub mod peers;
mod server;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::{ModelId, PIECE_BYTES};
use protocol::{
    Command, ErrorReport, Event, ImportId, ImportSource, LaneId, LaneReport, ModelSummary,
    NamedFile, RequestId, StorageKind, Subject,
};
use store::{Catalog, Disk, Estimate, MemoryCatalog, MemoryDisk};
use worker::session::FetchId;
use worker::{
    FileAnswer, FileOp, Input, NativeEngine, Output, PublicKey, Session, Source, SourceFault, Start,
};

/// More than the interval of progress events, so that none is held back.
pub const TICK_MS: u64 = 120;

/// Public half of the key of RFC 8032, section 7.1, test 2.
pub const PUBLISHER: [u8; 32] = [
    0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a, 0xa7, 0x4d, 0x1b, 0x7e, 0xbc,
    0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4, 0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c,
];

pub type Engine = NativeEngine<MemoryDisk>;

pub struct World {
    pub session: Session<MemoryDisk, Engine>,
    pub directory: MemoryCatalog,
    pub now_ms: u64,
    pub events: Vec<Event>,
    /// Addresses of the server and what lies there.
    pub server: BTreeMap<String, Vec<u8>>,
    /// Answers these addresses with a fault instead.
    pub faults: BTreeMap<String, SourceFault>,
    /// These addresses answer with the whole file, in chunks and without its length.
    pub endless: BTreeSet<String>,
    /// Every range that the server was asked for: address, first byte, length.
    pub asked: Vec<(String, u64, u32)>,
    pub estimate: Estimate,
    /// Models whose files were to be given to the page.
    pub handed_out: Vec<ModelId>,
    files: BTreeMap<u32, Vec<u8>>,
    named: BTreeMap<Source, String>,
    /// Bodies that are being read, and how far.
    bodies: BTreeMap<FetchId, (Vec<u8>, usize)>,
    /// The session wants to be told this time.
    wake_ms: Option<u64>,
    waiting: VecDeque<Output>,
    /// Messages to peers: connection and bytes.
    pub said: VecDeque<(u32, Vec<u8>)>,
    attached: u32,
    imports: u32,
    requests: u32,
}

impl World {
    /// A started session on a new directory.
    pub fn new() -> World {
        World::on(MemoryCatalog::default())
    }

    /// A started session on a directory that an earlier one left.
    pub fn on(directory: MemoryCatalog) -> World {
        let mut world = World::not_started(directory);
        world.start(Engine::default());
        world
    }

    pub fn not_started(directory: MemoryCatalog) -> World {
        World {
            session: Session::new(),
            directory,
            now_ms: 1_000,
            events: Vec::new(),
            server: BTreeMap::new(),
            faults: BTreeMap::new(),
            endless: BTreeSet::new(),
            asked: Vec::new(),
            estimate: Estimate::default(),
            handed_out: Vec::new(),
            files: BTreeMap::new(),
            named: BTreeMap::new(),
            bodies: BTreeMap::new(),
            wake_ms: None,
            waiting: VecDeque::new(),
            said: VecDeque::new(),
            attached: 0,
            imports: 0,
            requests: 0,
        }
    }

    pub fn start(&mut self, engine: Engine) {
        self.begin_start(engine);
        self.run();
    }

    /// The engine is there; the directory has not been read.
    pub fn begin_start(&mut self, engine: Engine) {
        self.give(Input::Started(Start {
            engine,
            lane: LaneReport {
                lane: LaneId::Native,
                sha256: None,
                self_tests: 0,
                cross_origin_isolated: false,
            },
            downgrades: Vec::new(),
            storage: StorageKind::Memory,
            publisher: Some(PublicKey(PUBLISHER)),
            receipt: Box::default(),
        }));
    }

    /// One input; what it asks for waits until a `turn`.
    pub fn give(&mut self, input: Input<MemoryDisk, Engine>) {
        self.now_ms += TICK_MS;
        self.session.handle(self.now_ms, input);
        while let Some(output) = self.session.poll() {
            match output {
                Output::Event(event) => self.events.push(event),
                output => self.waiting.push_back(output),
            }
        }
    }

    pub fn command(&mut self, command: Command) {
        let attached = None;
        self.give(Input::Command { command, attached });
    }

    /// Does the next thing that the session asked for; `false` if there is none.
    pub fn turn(&mut self) -> bool {
        let Some(output) = self.waiting.pop_front() else {
            let Some(wake) = self.wake_ms.take() else {
                return false;
            };
            self.now_ms = self.now_ms.max(wake);
            self.give(Input::Time);
            return true;
        };
        match output {
            Output::Event(_)
            | Output::EngineLost
            | Output::ForgetFailures
            | Output::ReleaseStored(_) => {}
            Output::PeerSend { link, bytes } => self.said.push_back((link, bytes)),
            Output::ReadStored { model, piece } => self.read_stored(model, piece),
            Output::HandOut(model) => self.handed_out.push(model),
            Output::Address { source, url } => {
                self.named.insert(source, url);
            }
            Output::Fetch { fetch, source, ask } => self.fetch(fetch, source, ask.range),
            Output::FetchMore(fetch) => self.more(fetch),
            Output::AbortFetch(fetch) => drop(self.bodies.remove(&fetch)),
            Output::WakeAt(at) => self.wake_ms = Some(self.wake_ms.map_or(at, |old| old.min(at))),
            Output::CancelSource(Source::File(number)) => {
                self.files.remove(&number);
            }
            Output::CancelSource(source) => {
                self.named.remove(&source);
            }
            Output::NeedBytes { source, at, len } => self.need(source, at, Some(len)),
            Output::NeedWhole { source, .. } => self.need(source, 0, None),
            Output::Files { ticket, op } => {
                let answer = self.run_op(op);
                self.give(Input::Files { ticket, answer });
            }
            Output::Wake => self.give(Input::Wake),
        }
        true
    }

    /// Does a little of what was asked, without waiting for a time.
    pub fn step(&mut self) -> bool {
        let does = self.waiting.len().min(4);
        for _ in 0..does {
            self.turn();
        }
        does > 0
    }

    /// Runs until nothing is asked for any more.
    pub fn run(&mut self) {
        while self.turn() {}
    }

    /// Runs until an event of interest is out; panics if it never comes.
    pub fn run_until(&mut self, wanted: impl Fn(&Event) -> bool) {
        let from = self.events.len();
        while !self.events[from..].iter().any(&wanted) {
            assert!(self.turn(), "it never came; {:?}", self.events.last());
        }
    }

    fn need(&mut self, source: Source, at: u64, len: Option<u32>) {
        let url = self.named.get(&source).cloned();
        let body = match (source, &url) {
            (Source::File(number), _) => self.files.get(&number),
            (_, Some(url)) => {
                self.asked.push((url.clone(), at, len.unwrap_or_default()));
                self.server.get(url)
            }
            (_, None) => None,
        };
        let fault = url.and_then(|url| self.faults.get(&url)).cloned();
        let input = match (body, fault) {
            (_, Some(fault)) => Input::SourceFailed { source, at, fault },
            (None, _) => {
                let fault = SourceFault::Status(404);
                Input::SourceFailed { source, at, fault }
            }
            (Some(body), None) => {
                let end = len.map_or(body.len(), |len| at as usize + len as usize);
                match body.get(at as usize..end) {
                    Some(bytes) => Input::Bytes {
                        source,
                        at,
                        bytes: bytes.to_vec(),
                    },
                    None => {
                        let (expected, found) = (end as u64, body.len() as u64);
                        let fault = SourceFault::Short { expected, found };
                        Input::SourceFailed { source, at, fault }
                    }
                }
            }
        };
        self.give(input);
    }

    fn run_op(&self, op: FileOp) -> Result<FileAnswer<MemoryDisk>, store::StoreError> {
        let directory = &self.directory;
        match op {
            FileOp::List => directory.list().map(FileAnswer::Listed),
            FileOp::Estimate => Ok(FileAnswer::Estimate(self.estimate)),
            FileOp::Open(name) => directory.open(&name).map(FileAnswer::Opened),
            FileOp::Lend(source) => {
                let file = match source {
                    Source::File(number) => self.files.get(&number),
                    _ => None,
                };
                let lent = MemoryCatalog::default();
                let mut disk = lent.create("lent")?;
                let name = "lent".into();
                let file = file.ok_or(store::StoreError::NotFound { name })?;
                disk.write_at(0, file)?;
                Ok(FileAnswer::Opened(disk))
            }
            FileOp::Create(name) => directory.create(&name).map(FileAnswer::Opened),
            FileOp::Rename { from, to } => directory.rename(&from, &to).map(|()| FileAnswer::Done),
            FileOp::Remove(name) => directory.remove(&name).map(|()| FileAnswer::Done),
        }
    }

    /// Drops a file and runs the import to its end.
    pub fn import_file(&mut self, name: &str, bytes: Vec<u8>) -> Event {
        let import = self.drop_file(name, bytes);
        self.run();
        self.last_of(import)
    }

    /// Drops several files on the page; does not run.
    pub fn drop_files(&mut self, name: &str, files: Vec<(&str, Vec<u8>)>) -> ImportId {
        self.imports += 1;
        let import = ImportId(self.imports);
        let first = self.attached + 1;
        let mut named = Vec::new();
        for (name, bytes) in files {
            self.attached += 1;
            named.push(NamedFile {
                name: name.into(),
                length: bytes.len() as u64,
            });
            self.files.insert(self.attached, bytes);
        }
        let (name, files) = (name.into(), named);
        let source = ImportSource::Files { name, files };
        self.give(Input::Command {
            command: Command::Import { import, source },
            attached: Some(first),
        });
        import
    }

    /// Names an address; does not run.
    pub fn ask_address(&mut self, url: &str) -> ImportId {
        self.imports += 1;
        let import = ImportId(self.imports);
        let source = ImportSource::Address { url: url.into() };
        self.command(Command::Import { import, source });
        import
    }

    /// Asks for a model of the server; does not run.
    pub fn ask_server(&mut self, model: &models::Stored) -> ImportId {
        self.imports += 1;
        let import = ImportId(self.imports);
        let source = ImportSource::Catalogue(model.entry());
        self.command(Command::Import { import, source });
        import
    }

    /// Puts a model on the server, with its piece layer.
    pub fn serve(&mut self, model: &models::Stored) {
        self.server.insert(model.url.clone(), model.file.clone());
        let layer = model.layer.to_bytes();
        self.server.insert(model.pieces_url(), layer);
    }

    /// The event that ended an import.
    pub fn last_of(&self, wanted: ImportId) -> Event {
        let ends = |event: &&Event| match event {
            Event::Imported { import, .. } | Event::ImportCancelled { import } => *import == wanted,
            Event::Failed { subject, .. } => *subject == Subject::Import(wanted),
            _ => false,
        };
        let mut ends = self.events.iter().filter(ends);
        let end = ends.next_back();
        end.expect("the import has ended").clone()
    }

    pub fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// Names in the directory.
    pub fn names(&self) -> BTreeSet<String> {
        let entries = self.directory.list().expect("memory can be listed");
        entries.into_iter().map(|entry| entry.name).collect()
    }

    /// How often each piece of an address was asked for.
    pub fn pieces_asked(&self, url: &str) -> BTreeMap<u64, u32> {
        let mut pieces = BTreeMap::new();
        let of_url = self.asked.iter().filter(|(asked, _, _)| asked == url);
        for (_, at, len) in of_url {
            let first = at / u64::from(PIECE_BYTES);
            let count = u64::from(len.div_ceil(PIECE_BYTES));
            for piece in first..first + count {
                *pieces.entry(piece).or_insert(0) += 1;
            }
        }
        pieces
    }
}

/// The model of an import that went well, and whether it was here before.
pub fn imported(event: Event) -> (ModelSummary, bool) {
    match event {
        Event::Imported {
            model,
            already_here,
            ..
        } => (model, already_here),
        other => panic!("not imported: {other:?}"),
    }
}

/// The words of an import that was refused.
pub fn refused(event: Event) -> ErrorReport {
    match event {
        Event::Failed { error, .. } => error,
        other => panic!("not refused: {other:?}"),
    }
}

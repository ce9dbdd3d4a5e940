//! An origin with several tabs: locks, channels, files and pages as browsers have them, and a
//! session that answers with known words, so that every delivery can be checked.

pub mod page;
pub mod session;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocol::{Call, ClientId, Edition, Event, ToClient, ToOwner};
use worker::tabs::{Tab, TabInput, TabOutput};

use page::SimPage;
use session::SimSession;

/// xorshift64*, by Marsaglia and Vigna: a seed gives one run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % most.max(1)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What one sender has under way to one receiver on one channel; its order is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Pipe {
    Common(usize, usize),
    /// From a client to whoever hears this epoch.
    Owner(usize, u64),
    Client(usize, usize),
    /// From the browser's locks.
    Lock(usize),
}

#[derive(Debug)]
enum Parcel {
    Call(Call),
    Asked(ToOwner, Option<u32>),
    Told(ToClient),
    Granted,
    Deposed,
    Gone(ClientId),
    Checked,
}

pub struct SimTab {
    pub client: ClientId,
    pub tab: Tab,
    pub page: SimPage,
    pub session: Option<SimSession>,
    /// Wants files that another worker still has open.
    waits_for_files: bool,
    pub alive: bool,
    pub frozen: bool,
    listens: u64,
    watched: Vec<ClientId>,
    /// Files that its worker holds: those of its own page, and those that others have sent.
    pub files: BTreeSet<u32>,
    last_file: u32,
    /// How often it looked whether it still owns.
    pub checks: u32,
}

pub struct Origin {
    pub dice: Dice,
    pub tabs: Vec<SimTab>,
    pipes: BTreeMap<Pipe, VecDeque<Parcel>>,
    lock_holder: Option<usize>,
    lock_queue: VecDeque<usize>,
    files_holder: Option<usize>,
    now_ms: u64,
    pub takeovers: u32,
}

impl Origin {
    pub fn new(seed: u64) -> Origin {
        Origin {
            dice: Dice::new(seed),
            tabs: Vec::new(),
            pipes: BTreeMap::new(),
            lock_holder: None,
            lock_queue: VecDeque::new(),
            files_holder: None,
            now_ms: 1_000,
            takeovers: 0,
        }
    }

    pub fn open(&mut self, build: &str) -> usize {
        let at = self.tabs.len();
        self.now_ms += 1;
        let client = ClientId(100 + at as u64);
        let edition = Edition {
            build: build.into(),
            opened_ms: self.now_ms,
        };
        self.tabs.push(SimTab {
            client,
            tab: Tab::new(client, edition),
            page: SimPage::new(at),
            session: None,
            waits_for_files: false,
            alive: true,
            frozen: false,
            listens: 0,
            watched: Vec::new(),
            files: BTreeSet::new(),
            last_file: 0,
            checks: 0,
        });
        self.drain(at);
        at
    }

    /// The worker ends at once, wherever it is; the browser frees what it held.
    pub fn kill(&mut self, at: usize) {
        let tab = &mut self.tabs[at];
        tab.alive = false;
        tab.session = None;
        let client = tab.client;
        self.lock_queue.retain(|waiting| *waiting != at);
        if self.files_holder == Some(at) {
            self.files_holder = None;
        }
        if self.lock_holder == Some(at) {
            self.release();
        }
        for watcher in 0..self.tabs.len() {
            if self.tabs[watcher].alive && self.tabs[watcher].watched.contains(&client) {
                self.send(Pipe::Lock(watcher), Parcel::Gone(client));
            }
        }
    }

    pub fn living(&self) -> Vec<usize> {
        let tabs = self.tabs.iter().enumerate();
        let living = tabs.filter(|(_, tab)| tab.alive);
        living.map(|(at, _)| at).collect()
    }

    /// One thing happens; false if there is nothing left to happen.
    pub fn step(&mut self) -> bool {
        let mut choices: Vec<Option<Pipe>> = Vec::new();
        for (pipe, parcels) in &self.pipes {
            if !parcels.is_empty() && self.can_receive(*pipe) {
                choices.push(Some(*pipe));
            }
        }
        let works = |tab: &SimTab| {
            let session = tab.session.as_ref();
            let may = tab.alive && !tab.frozen && !tab.tab.is_in_doubt();
            may && session.is_some_and(SimSession::has_work)
        };
        let workers: Vec<usize> = (0..self.tabs.len())
            .filter(|at| works(&self.tabs[*at]))
            .collect();
        if !workers.is_empty() {
            choices.push(None);
        }
        self.open_files();
        if choices.is_empty() {
            return false;
        }
        match choices[self.dice.below(choices.len())] {
            Some(pipe) => self.deliver(pipe),
            None => {
                let at = workers[self.dice.below(workers.len())];
                let now_ms = self.now_ms;
                self.give(at, TabInput::Work { now_ms });
                if self.tabs[at].tab.is_in_doubt() {
                    return true;
                }
                let events = self.tabs[at].session.as_mut().map(SimSession::step);
                for event in events.unwrap_or_default() {
                    self.give(at, TabInput::Session(event));
                }
            }
        }
        true
    }

    /// Everybody sleeps, and nobody is told: the lid is closed.
    pub fn sleep(&mut self, seconds: u64) {
        self.now_ms += 1_000 * seconds;
    }

    /// The page of a tab gives its worker a file.
    pub fn attach(&mut self, at: usize) -> u32 {
        let tab = &mut self.tabs[at];
        tab.last_file += 1;
        tab.files.insert(tab.last_file);
        tab.last_file
    }

    pub fn give(&mut self, at: usize, input: TabInput) {
        self.tabs[at].tab.handle(input);
        self.drain(at);
    }

    pub fn tick_all(&mut self) {
        self.now_ms += 1_000;
        for at in 0..self.tabs.len() {
            if self.tabs[at].alive && !self.tabs[at].frozen {
                let now_ms = self.now_ms;
                self.give(at, TabInput::Tick { now_ms });
            }
        }
    }

    /// Until nothing happens any more, with the seconds that pass meanwhile.
    pub fn settle(&mut self) {
        // Longer than an owner may be silent.
        for _ in 0..16 {
            let mut steps = 0;
            while self.step() {
                steps += 1;
                assert!(steps < 200_000, "the tabs talk for ever");
            }
            self.tick_all();
        }
    }

    fn can_receive(&self, pipe: Pipe) -> bool {
        let hears = |at: usize| self.tabs[at].alive && !self.tabs[at].frozen;
        match pipe {
            Pipe::Common(_, to) | Pipe::Client(_, to) | Pipe::Lock(to) => hears(to),
            Pipe::Owner(_, epoch) => self.listener(epoch).is_none_or(hears),
        }
    }

    fn listener(&self, epoch: u64) -> Option<usize> {
        let mut tabs = self.tabs.iter();
        tabs.position(|tab| tab.alive && tab.listens == epoch)
    }

    fn deliver(&mut self, pipe: Pipe) {
        let Some(parcel) = self.pipes.get_mut(&pipe).and_then(VecDeque::pop_front) else {
            return;
        };
        let to = match pipe {
            Pipe::Common(_, to) | Pipe::Client(_, to) | Pipe::Lock(to) => Some(to),
            Pipe::Owner(_, epoch) => self.listener(epoch),
        };
        let Some(to) = to else { return };
        let now_ms = self.now_ms;
        let input = match parcel {
            Parcel::Call(call) => TabInput::Call(call),
            Parcel::Asked(asked, attached) => {
                // The receiver's worker has a handle of its own then.
                let attached = attached.map(|_| self.attach(to));
                TabInput::Asked { asked, attached }
            }
            Parcel::Told(told) => TabInput::Told(told),
            Parcel::Granted => TabInput::Granted { now_ms },
            Parcel::Deposed => TabInput::Deposed,
            Parcel::Gone(client) => TabInput::Gone(client),
            Parcel::Checked => {
                let has_lock = self.lock_holder == Some(to);
                let is_well = has_lock && self.files_holder.is_none_or(|at| at == to);
                TabInput::Checked { is_well }
            }
        };
        self.give(to, input);
    }

    fn drain(&mut self, at: usize) {
        while let Some(output) = self.tabs[at].tab.poll() {
            self.perform(at, output);
        }
    }

    fn perform(&mut self, at: usize, output: TabOutput) {
        match output {
            TabOutput::Page(event) => self.tabs[at].page.hear(event),
            TabOutput::Call(call) => {
                for to in (0..self.tabs.len()).filter(|to| *to != at) {
                    self.send(Pipe::Common(at, to), Parcel::Call(call.clone()));
                }
            }
            TabOutput::Listen(epoch) => self.tabs[at].listens = epoch.0,
            TabOutput::Ask { asked, attached } => {
                let pipe = Pipe::Owner(at, asked.epoch.0);
                self.send(pipe, Parcel::Asked(asked, attached));
            }
            TabOutput::Tell { client, told } => {
                let found = self.tabs.iter().position(|tab| tab.client == client);
                let to = found.expect("a client that there is");
                self.send(Pipe::Client(at, to), Parcel::Told(told));
            }
            TabOutput::Watch(client) => {
                let dead = self
                    .tabs
                    .iter()
                    .any(|tab| tab.client == client && !tab.alive);
                self.tabs[at].watched.push(client);
                if dead {
                    self.send(Pipe::Lock(at), Parcel::Gone(client));
                }
            }
            TabOutput::Work => {
                self.takeovers += 1;
                self.tabs[at].waits_for_files = true;
            }
            TabOutput::Session { command, .. } => {
                assert!(!self.tabs[at].tab.is_in_doubt(), "work in doubt");
                let session = &mut self.tabs[at].session;
                session.get_or_insert_with(SimSession::new).command(command);
            }
            TabOutput::LetGo(file) => drop(self.tabs[at].files.remove(&file)),
            TabOutput::Check => {
                self.tabs[at].checks += 1;
                self.send(Pipe::Lock(at), Parcel::Checked);
            }
            TabOutput::Stop => self.stop(at),
            TabOutput::Seek if self.lock_holder.is_none() => {
                self.lock_holder = Some(at);
                self.send(Pipe::Lock(at), Parcel::Granted);
            }
            TabOutput::Seek => self.lock_queue.push_back(at),
            TabOutput::Steal => {
                if let Some(holder) = self.lock_holder.filter(|holder| *holder != at) {
                    self.send(Pipe::Lock(holder), Parcel::Deposed);
                }
                self.lock_holder = Some(at);
                self.send(Pipe::Lock(at), Parcel::Granted);
            }
        }
    }

    fn stop(&mut self, at: usize) {
        self.tabs[at].session = None;
        self.tabs[at].waits_for_files = false;
        self.tabs[at].watched.clear();
        if self.files_holder == Some(at) {
            self.files_holder = None;
        }
        if self.lock_holder == Some(at) {
            self.release();
        }
    }

    fn release(&mut self) {
        self.lock_holder = self.lock_queue.pop_front();
        if let Some(next) = self.lock_holder {
            self.send(Pipe::Lock(next), Parcel::Granted);
        }
    }

    /// A file handle is exclusive: an owner starts only when no other has one.
    fn open_files(&mut self) {
        for at in 0..self.tabs.len() {
            let tab = &mut self.tabs[at];
            if tab.alive && !tab.frozen && tab.waits_for_files && self.files_holder.is_none() {
                self.files_holder = Some(at);
                tab.waits_for_files = false;
                tab.session.get_or_insert_with(SimSession::new).start();
            }
        }
    }

    fn send(&mut self, pipe: Pipe, parcel: Parcel) {
        self.pipes.entry(pipe).or_default().push_back(parcel);
    }
}

/// The words that the session gives for a prompt.
pub fn answer_to(prompt: &str) -> Vec<String> {
    let count = 1 + prompt.len() % 7;
    (0..count).map(|at| format!("{prompt}/{at} ")).collect()
}

pub fn ready() -> Event {
    Event::Ready {
        lane: protocol::LaneReport {
            lane: protocol::LaneId::Native,
            sha256: None,
            self_tests: 0,
            cross_origin_isolated: false,
        },
        downgrades: Vec::new(),
        storage: protocol::StorageKind::Memory,
    }
}

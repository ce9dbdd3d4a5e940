//! What is known of one connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::PieceIndex;

use super::budget::Bucket;
use super::serve::Serving;
use crate::PieceSet;
use crate::door::{LinkId, PeerKey, PeerStatus};

/// Leaves asked of a peer at first, and at most: 256 KiB and one piece.
pub const WINDOW_MIN: u32 = 16;
pub const WINDOW_MAX: u32 = 64;

/// A leaf of a piece.
pub type LeafAt = (PieceIndex, u8);

/// A leaf that was asked and not yet answered.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub at_ms: u64,
    /// Nobody waits for it any more; its answer is due all the same.
    pub is_given_up: bool,
}

pub struct Peer {
    pub key: PeerKey,
    /// Known with its hello.
    pub nonce: Option<u64>,
    pub opened_ms: u64,
    pub heard_ms: u64,
    pub is_pinged: bool,
    pub has: PieceSet,
    pub noise: u32,
    pub noise_ms: u64,

    /// What it owes.
    pub asked: BTreeMap<LeafAt, Asked>,
    pub hashes_asked: BTreeSet<PieceIndex>,
    pub window: u32,
    /// Since when nothing came of what it owes.
    pub waited_from_ms: u64,
    /// When it last gave a leaf.
    pub given_ms: u64,
    pub latency_ms: u64,
    pub strikes: u32,
    pace: Pace,

    /// What it is owed, in order.
    pub queue: VecDeque<Serving>,
    /// Bytes in the connection's own queue.
    pub unsent: u64,
    pub budget: Bucket,
    pub down: u64,
    pub up: u64,
}

/// Leaves of one window, and how fast they came.
#[derive(Default)]
struct Pace {
    since_ms: u64,
    leaves: u32,
    /// Leaves a second of the window before.
    before: u64,
}

impl Peer {
    pub fn new(key: PeerKey, now_ms: u64, pieces: u32) -> Peer {
        Peer {
            key,
            nonce: None,
            opened_ms: now_ms,
            heard_ms: now_ms,
            is_pinged: false,
            has: PieceSet::empty(pieces),
            noise: 0,
            noise_ms: now_ms,
            asked: BTreeMap::new(),
            hashes_asked: BTreeSet::new(),
            window: WINDOW_MIN,
            waited_from_ms: now_ms,
            given_ms: now_ms,
            latency_ms: 0,
            strikes: 0,
            pace: Pace::default(),
            queue: VecDeque::new(),
            unsent: 0,
            budget: Bucket::default(),
            down: 0,
            up: 0,
        }
    }

    /// It said hello.
    pub fn is_ready(&self) -> bool {
        self.nonce.is_some()
    }

    /// Leaves that somebody still waits for.
    pub fn outstanding(&self) -> u32 {
        let open = self.asked.values().filter(|asked| !asked.is_given_up);
        open.count() as u32
    }

    /// It still owes this leaf, whoever waits for it.
    pub fn owes(&self, piece: PieceIndex, leaf: u8) -> bool {
        self.asked.contains_key(&(piece, leaf))
    }

    /// Nothing is owed, so waiting begins with the next request.
    pub fn owes_nothing(&self) -> bool {
        self.asked.is_empty() && self.hashes_asked.is_empty()
    }

    /// A good leaf came that was asked at this time.
    pub fn gave_leaf(&mut self, now_ms: u64, asked_ms: u64) {
        let latency = now_ms.saturating_sub(asked_ms);
        self.latency_ms = match self.latency_ms {
            0 => latency,
            before => (7 * before + latency) / 8,
        };
        self.waited_from_ms = now_ms;
        self.given_ms = now_ms;
        self.strikes = 0;
        self.pace.leaves += 1;
        if self.pace.leaves >= self.window {
            self.widen(now_ms);
        }
    }

    /// More may be under way for as long as more comes of it.
    fn widen(&mut self, now_ms: u64) {
        let took_ms = now_ms.saturating_sub(self.pace.since_ms).max(1);
        let rate = u64::from(self.pace.leaves) * 1000 / took_ms;
        // A little slower is within what two equal windows differ.
        if rate * 10 >= self.pace.before * 9 {
            self.window = (self.window + WINDOW_MIN).min(WINDOW_MAX);
        }
        self.pace = Pace {
            since_ms: now_ms,
            leaves: 0,
            before: rate,
        };
    }

    pub fn status(&self, link: LinkId) -> PeerStatus {
        PeerStatus {
            link,
            is_server: false,
            pieces: self.has.count(),
            down: self.down,
            up: self.up,
        }
    }
}

/// A server that has the whole file.
#[derive(Default)]
pub struct Server {
    pub claimed: BTreeSet<PieceIndex>,
    pub strikes: u32,
    pub down: u64,
}

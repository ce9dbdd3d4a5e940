//! Everyone who has or wants one model, as one of them sees it.
//!
//! `handle` one input, then `poll` until nothing comes; time is an argument, and chance comes from
//! a seed. Bytes are pulled, never pushed: who asks bounds what comes. Every leaf is verified on
//! arrival against hashes that were themselves verified, so a lie has one author, who is left and
//! remembered, and nothing else is lost.
//!
//! Reading order: `peer` (what is known of one connection), `hear` (its messages), `arriving` (a
//! piece that comes leaf by leaf), `layer` (the hashes of all pieces), `choice` (what to ask next),
//! `pull` (asking, and what comes of it), `late` (what does not come), `serve` and `budget` (what
//! others ask).
//!
//! Invariants: a piece leaves as [`Output::Store`] only when all its leaves were verified; a leaf
//! is asked of a second peer only when the first gave it up, was late or went away, or among the
//! last [`ENDGAME_PIECES`]; memory is bounded by the constants below.

mod arriving;
mod budget;
mod choice;
mod hear;
mod late;
mod layer;
mod peer;
mod pull;
mod serve;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::{ModelId, PieceIndex, PieceLayer};

use crate::door::{
    Input, LinkId, Output, PeerKey, PeerStatus, Sharing, Status, UploadLimits, Want,
};
use crate::wire::{Message, Run};
use crate::{Fault, P2pError, PieceSet};
use arriving::Arriving;
use budget::Bucket;
use choice::Chance;
use layer::LayerPull;
use peer::{Peer, Server};
use serve::Shelf;

/// Connections to peers: each costs a browser threads and sockets.
pub const PEERS_MAX: usize = 8;
/// Verified bytes that wait to be stored; above it nothing more is asked for.
pub const STORE_QUEUE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Pieces that arrive at a time; one MiB of memory each.
pub const ARRIVING_MAX: usize = 2 * PEERS_MAX;
/// So many pieces before the end, leaves are asked of several peers at once.
pub const ENDGAME_PIECES: u32 = 16;
/// Longest model: its piece hashes take 2 MiB.
pub const MODEL_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// Peers that are remembered for a lie.
const BANNED_MAX: usize = 256;
/// How often the swarm looks at the time while anybody is there.
const TICK_MS: u64 = 500;

pub struct Swarm {
    id: ModelId,
    now_ms: u64,
    want: Want,
    sharing: Sharing,
    layer: Option<PieceLayer>,
    layer_pull: LayerPull,
    /// Stored and readable.
    have: PieceSet,
    /// Stored, or kept by somebody: not wanted any more.
    done: PieceSet,
    /// Given out to be stored, with their bytes.
    storing: BTreeMap<PieceIndex, u64>,
    arriving: BTreeMap<PieceIndex, Arriving>,
    peers: BTreeMap<LinkId, Peer>,
    servers: BTreeMap<LinkId, Server>,
    shelf: Shelf,
    budget: Bucket,
    limits: UploadLimits,
    banned: VecDeque<PeerKey>,
    chance: Chance,
    nonce: u64,
    is_finished: bool,
    wake_ms: Option<u64>,
    down: u64,
    up: u64,
    out: VecDeque<Output>,
}

impl Swarm {
    /// `seed` is drawn at random by the shell; two swarms that meet must not have the same.
    pub fn new(id: ModelId, seed: u64) -> Result<Swarm, P2pError> {
        if id.length == 0 || id.length > MODEL_BYTES_MAX {
            return Err(P2pError::BadLength);
        }
        let pieces = id.pieces();
        let mut chance = Chance::new(seed);
        Ok(Swarm {
            id,
            now_ms: 0,
            want: Want::Nothing,
            sharing: Sharing::Off,
            // The only piece's hash is the root itself.
            layer: PieceLayer::parse(id, &id.root.0.0).ok(),
            layer_pull: LayerPull::default(),
            have: PieceSet::empty(pieces),
            done: PieceSet::empty(pieces),
            storing: BTreeMap::new(),
            arriving: BTreeMap::new(),
            peers: BTreeMap::new(),
            servers: BTreeMap::new(),
            shelf: Shelf::default(),
            budget: Bucket::default(),
            limits: UploadLimits::default(),
            banned: VecDeque::new(),
            nonce: chance.draw(),
            chance,
            is_finished: false,
            wake_ms: None,
            down: 0,
            up: 0,
            out: VecDeque::new(),
        })
    }

    pub fn handle(&mut self, now_ms: u64, input: Input<'_>) {
        self.now_ms = self.now_ms.max(now_ms);
        if self.wake_ms.is_some_and(|wake| wake <= self.now_ms) {
            self.wake_ms = None;
        }
        match input {
            Input::Opened { link, key } => self.on_opened(link, key),
            Input::OpenedServer { link } => drop(self.servers.insert(link, Server::default())),
            Input::Message { link, bytes } => self.on_bytes(link, bytes),
            Input::Drained { link, bytes } => {
                if let Some(peer) = self.peers.get_mut(&link) {
                    peer.unsent = peer.unsent.saturating_sub(u64::from(bytes));
                }
            }
            Input::Closed { link } => self.forget(link),
            Input::Fetched { link, piece, bytes } => self.on_fetched(link, piece, bytes),
            Input::Layer(layer) => self.learn_layer(layer),
            Input::Kept { piece } => self.on_kept(piece),
            Input::Stored { piece } => self.on_stored(piece),
            Input::Lost { piece } => self.on_lost(piece),
            Input::Read { piece, bytes } => self.on_read(piece, bytes),
            Input::Want(want) => {
                self.want = want;
                self.is_finished = false;
            }
            Input::Share(sharing) => self.share(sharing),
            Input::Limit(limits) => self.limits = limits,
            Input::Time => {}
            Input::Stop => return self.stop(),
        }
        self.give_up_late();
        self.pull();
        self.serve();
        self.conclude();
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    pub fn id(&self) -> ModelId {
        self.id
    }

    pub fn layer(&self) -> Option<&PieceLayer> {
        self.layer.as_ref()
    }

    /// Whether this peer lied before; a shell need not connect to it.
    pub fn is_banned(&self, key: PeerKey) -> bool {
        self.banned.contains(&key)
    }

    /// Whether one more peer would be taken.
    pub fn has_room(&self) -> bool {
        self.peers.len() < PEERS_MAX
    }

    /// Bytes of pieces in memory here: those that arrive and those that are given out.
    pub fn held_bytes(&self) -> u64 {
        let arriving: u64 = self.arriving.values().map(Arriving::held).sum();
        arriving + self.shelf.held() + self.storing.values().sum::<u64>()
    }

    /// Peers and servers of [`Swarm::status`].
    pub fn links(&self) -> usize {
        self.peers.len() + self.servers.len()
    }

    pub fn status(&self) -> Status {
        let peers = self.peers.iter().map(|(link, peer)| peer.status(*link));
        let servers = self.servers.iter().map(|(link, server)| PeerStatus {
            link: *link,
            is_server: true,
            pieces: self.id.pieces(),
            down: server.down,
            up: 0,
        });
        Status {
            pieces: self.done.count(),
            down: self.down,
            up: self.up,
            peers: peers.chain(servers).collect(),
        }
    }

    fn on_kept(&mut self, piece: PieceIndex) {
        self.storing.remove(&piece);
        self.done.insert(piece);
    }

    fn on_stored(&mut self, piece: PieceIndex) {
        self.on_kept(piece);
        if let Some(arriving) = self.arriving.remove(&piece) {
            self.call_off(piece, &arriving, None);
        }
        if self.have.insert(piece) && self.sharing == Sharing::On {
            self.tell_all(&Message::Have(piece));
        }
    }

    fn on_lost(&mut self, piece: PieceIndex) {
        self.storing.remove(&piece);
        self.done.remove(piece);
        self.is_finished = false;
        self.withdraw(piece);
    }

    fn send(&mut self, link: LinkId, message: &Message<'_>) {
        if let Some(peer) = self.peers.get_mut(&link) {
            let bytes = message.encode();
            peer.unsent += bytes.len() as u64;
            self.out.push_back(Output::Send { link, bytes });
        }
    }

    fn tell_all(&mut self, message: &Message<'_>) {
        for link in self.ready_links() {
            self.send(link, message);
        }
    }

    fn tell_pieces(&mut self, link: LinkId) {
        let bits = self.have.as_bytes().to_vec();
        self.send(link, &Message::Bitfield(&bits));
    }

    fn ready_links(&self) -> Vec<LinkId> {
        let ready = self.peers.iter().filter(|(_, peer)| peer.is_ready());
        ready.map(|(link, _)| *link).collect()
    }

    /// Closes a connection, and remembers whose lie it was.
    fn leave(&mut self, link: LinkId, fault: Fault) {
        let key = self.peers.get(&link).map(|peer| peer.key);
        if let Some(key) = key.filter(|key| fault.is_a_lie() && *key != PeerKey::default()) {
            if self.banned.len() == BANNED_MAX {
                self.banned.pop_front();
            }
            self.banned.push_back(key);
        }
        self.forget(link);
        self.out.push_back(Output::Close { link, fault });
    }

    /// What this connection owed is wanted of others.
    fn forget(&mut self, link: LinkId) {
        self.servers.remove(&link);
        if let Some(peer) = self.peers.remove(&link) {
            self.release(link, peer.asked.keys().copied().collect());
            self.layer_pull.forget(link);
        }
    }

    fn stop(&mut self) {
        let links: BTreeSet<LinkId> = self
            .peers
            .keys()
            .chain(self.servers.keys())
            .copied()
            .collect();
        self.out.clear();
        for link in links {
            self.leave(link, Fault::Stopped);
        }
        self.want = Want::Nothing;
        self.sharing = Sharing::Off;
        self.arriving.clear();
        self.shelf = Shelf::default();
    }

    /// After everything: is it all here, and when to look again.
    fn conclude(&mut self) {
        let is_met = match self.want {
            Want::Nothing => false,
            Want::Layer => self.layer.is_some(),
            Want::First(count) => (0..count).all(|piece| self.done.contains(PieceIndex(piece))),
            Want::All => self.done.is_full(),
        };
        if is_met && !self.is_finished {
            self.is_finished = true;
            self.out.push_back(Output::Finished);
            let links = self.ready_links().into_iter();
            let idle: Vec<LinkId> = links
                .filter(|link| self.check_use(*link).is_err())
                .collect();
            for link in idle {
                self.leave(link, Fault::NothingToDo);
            }
        }
        if self.wake_ms.is_none() && !self.peers.is_empty() {
            let wake = self.now_ms + self.serve_again_in().unwrap_or(TICK_MS).clamp(1, TICK_MS);
            self.wake_ms = Some(wake);
            self.out.push_back(Output::WakeAt(wake));
        }
    }
}

/// One leaf as a run.
fn single(piece: PieceIndex, leaf: u8) -> Option<Run> {
    Run::new(piece, leaf, 1)
}

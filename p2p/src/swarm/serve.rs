//! What others ask: in order for each, in turns for all, and no faster than it leaves.

use std::collections::{BTreeMap, BTreeSet};

use format::{Digest, LEAF_BYTES, LEAVES_PER_PIECE, PieceIndex, leaf_hashes, piece_hash_of_leaves};

use super::arriving::{leaf_count, leaf_len};
use super::peer::Peer;
use super::{Swarm, single};
use crate::door::{LinkId, Output, Sharing};
use crate::wire::{LAYER_HASHES_MAX, LEAVES_PER_MESSAGE, Message, Reject, Run};
use crate::{Fault, PieceSet};

/// Bytes that may wait in a connection's own queue: several answers to the news that half of it has
/// left, which goes through a page and a worker, and still a small part of a second on a slow line.
pub const UNSENT_BYTES_MAX: u64 = 512 * 1024;
/// Leaves that a peer may have asked for; four times what ours ask.
const QUEUED_MAX: usize = 256;
/// Whole pieces in memory to be given out.
const SHELF_PIECES: usize = 8;
const READS_MAX: usize = 4;
const LEAF: usize = LEAF_BYTES as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    Leaf(PieceIndex, u8),
    Hashes(PieceIndex),
    Layer(u32),
}

impl Serving {
    fn piece(self) -> Option<PieceIndex> {
        match self {
            Serving::Leaf(piece, _) | Serving::Hashes(piece) => Some(piece),
            Serving::Layer(_) => None,
        }
    }
}

/// Pieces that were read lately: many leaves are asked of one, and its hashes before.
#[derive(Default)]
pub struct Shelf {
    pieces: BTreeMap<PieceIndex, Shelved>,
    reading: BTreeSet<PieceIndex>,
    uses: u64,
}

struct Shelved {
    bytes: Vec<u8>,
    /// Of its leaves.
    hashes: Vec<Digest>,
    used: u64,
}

impl Shelf {
    pub fn held(&self) -> u64 {
        let bytes = self.pieces.values().map(|piece| piece.bytes.len());
        bytes.sum::<usize>() as u64
    }

    fn put(&mut self, piece: PieceIndex, bytes: Vec<u8>, hashes: Vec<Digest>) {
        if self.pieces.len() >= SHELF_PIECES {
            let oldest = self.pieces.iter().min_by_key(|(_, shelved)| shelved.used);
            if let Some(oldest) = oldest.map(|(piece, _)| *piece) {
                self.pieces.remove(&oldest);
            }
        }
        self.uses += 1;
        let used = self.uses;
        self.pieces.insert(
            piece,
            Shelved {
                bytes,
                hashes,
                used,
            },
        );
    }

    fn get(&mut self, piece: PieceIndex) -> Option<&mut Shelved> {
        self.uses += 1;
        let shelved = self.pieces.get_mut(&piece)?;
        shelved.used = self.uses;
        Some(shelved)
    }
}

impl Swarm {
    pub(super) fn share(&mut self, sharing: Sharing) {
        if self.sharing == sharing {
            return;
        }
        self.sharing = sharing;
        let pieces = match sharing {
            Sharing::On => self.have.clone(),
            Sharing::Off => PieceSet::empty(self.id.pieces()),
        };
        self.tell_all(&Message::Bitfield(pieces.as_bytes()));
        if sharing == Sharing::Off {
            self.shelf = Shelf::default();
            self.reject_queued(|_| true, Reject::NotSharing);
        }
    }

    pub(super) fn on_request(&mut self, link: LinkId, run: Run) -> Result<(), Fault> {
        let piece = run.piece();
        let (_, len) = self.id.piece_range(piece);
        if run.first() + run.count() > leaf_count(len) {
            return Err(Fault::NoSuchPiece { piece });
        }
        if let Some(reason) = self.refusal(piece) {
            self.send(link, &Message::Reject(run, reason));
            return self.noise(link);
        }
        let leaves = run.leaves().map(|leaf| Serving::Leaf(piece, leaf));
        self.enqueue(link, leaves)
    }

    pub(super) fn on_ask_hashes(&mut self, link: LinkId, piece: PieceIndex) -> Result<(), Fault> {
        let run = single(piece, 0).filter(|_| piece.0 < self.id.pieces());
        let run = run.ok_or(Fault::NoSuchPiece { piece })?;
        if let Some(reason) = self.refusal(piece) {
            self.send(link, &Message::Reject(run, reason));
            return self.noise(link);
        }
        self.enqueue(link, [Serving::Hashes(piece)])?;
        // Its leaves are asked for next; it is read while what was asked before is sent.
        if self.shelf.reading.is_empty() {
            self.read(piece);
        }
        Ok(())
    }

    pub(super) fn queue_layer(&mut self, link: LinkId, first: u32) -> Result<(), Fault> {
        self.enqueue(link, [Serving::Layer(first)])
    }

    fn refusal(&self, piece: PieceIndex) -> Option<Reject> {
        match (self.sharing, self.have.contains(piece)) {
            (Sharing::Off, _) => Some(Reject::NotSharing),
            (Sharing::On, false) => Some(Reject::NotHere),
            (Sharing::On, true) => None,
        }
    }

    /// Twice the same is a flood, too: the first answer has not even been sent.
    fn enqueue(
        &mut self,
        link: LinkId,
        servings: impl IntoIterator<Item = Serving>,
    ) -> Result<(), Fault> {
        let Some(peer) = self.peers.get_mut(&link) else {
            return Ok(());
        };
        for serving in servings {
            if peer.queue.len() >= QUEUED_MAX || peer.queue.contains(&serving) {
                return Err(Fault::Flood);
            }
            peer.queue.push_back(serving);
        }
        Ok(())
    }

    pub(super) fn on_cancel(&mut self, link: LinkId, run: Run) -> Result<(), Fault> {
        let mut is_late = false;
        for leaf in run.leaves() {
            let serving = Serving::Leaf(run.piece(), leaf);
            let peer = self.peers.get_mut(&link);
            let queued = peer.and_then(|peer| {
                let at = peer.queue.iter().position(|known| *known == serving)?;
                peer.queue.remove(at)
            });
            match (queued, single(run.piece(), leaf)) {
                (Some(_), Some(run)) => {
                    self.send(link, &Message::Reject(run, Reject::Cancelled));
                }
                _ => is_late = true,
            }
        }
        // Its answer had left already; that happens, though not for ever.
        match is_late {
            true => self.noise(link),
            false => Ok(()),
        }
    }

    pub(super) fn on_read(&mut self, piece: PieceIndex, bytes: Option<Vec<u8>>) {
        let was_asked = self.shelf.reading.remove(&piece);
        if !was_asked && bytes.is_some() {
            return;
        }
        match bytes.and_then(|bytes| self.checked(piece, bytes)) {
            Some((bytes, hashes)) => self.shelf.put(piece, bytes, hashes),
            None => self.withdraw(piece),
        }
    }

    /// With the hashes of its leaves, if the bytes are still the model's: whoever gave what rotted
    /// on a disk would be taken for a liar.
    fn checked(&self, piece: PieceIndex, bytes: Vec<u8>) -> Option<(Vec<u8>, Vec<Digest>)> {
        let want = self.layer.as_ref()?.hashes().get(piece.0 as usize)?;
        let (_, len) = self.id.piece_range(piece);
        if bytes.len() as u32 != len {
            return None;
        }
        let hashes = leaf_hashes(&bytes);
        let is_right = piece_hash_of_leaves(&hashes, self.id.length) == *want;
        is_right.then_some((bytes, hashes))
    }

    /// The piece is not here any more.
    pub(super) fn withdraw(&mut self, piece: PieceIndex) {
        if self.have.remove(piece) {
            self.shelf.pieces.remove(&piece);
            self.reject_queued(|serving| serving.piece() == Some(piece), Reject::NotHere);
        }
    }

    fn reject_queued(&mut self, which: impl Fn(Serving) -> bool, reason: Reject) {
        for link in self.ready_links() {
            let Some(peer) = self.peers.get_mut(&link) else {
                continue;
            };
            let queue = std::mem::take(&mut peer.queue);
            let (gone, kept) = queue.into_iter().partition(|serving| which(*serving));
            peer.queue = kept;
            for serving in gone {
                let run = match serving {
                    Serving::Leaf(piece, leaf) => single(piece, leaf),
                    Serving::Hashes(piece) => single(piece, 0),
                    Serving::Layer(_) => None,
                };
                if let Some(run) = run {
                    self.send(link, &Message::Reject(run, reason));
                }
            }
        }
    }

    /// One message for each in turn, for as long as any can be sent.
    pub(super) fn serve(&mut self) {
        if let Some(rate) = self.limits.total {
            self.budget.fill(self.now_ms, rate);
        }
        let mut links: Vec<LinkId> = self.peers.keys().copied().collect();
        if !links.is_empty() {
            let turn = self.chance.below(links.len() as u64) as usize;
            links.rotate_left(turn);
        }
        while !links.is_empty() {
            links.retain(|link| self.serve_one(*link));
        }
    }

    /// Whether a message was sent.
    fn serve_one(&mut self, link: LinkId) -> bool {
        let limits = self.limits;
        let is_spent = limits.total.is_some() && self.budget.is_empty();
        let Some(peer) = self.peers.get_mut(&link) else {
            return false;
        };
        if let Some(rate) = limits.each {
            peer.budget.fill(self.now_ms, rate);
        }
        let is_spent = is_spent || limits.each.is_some() && peer.budget.is_empty();
        let Some(&serving) = peer.queue.front().filter(|_| !is_spent && may_send(peer)) else {
            return false;
        };
        let message = match serving {
            Serving::Layer(first) => self.layer_message(first),
            Serving::Hashes(piece) => self.hashes_message(piece),
            Serving::Leaf(piece, leaf) => self.leaves_message(link, piece, leaf),
        };
        let Some((bytes, servings)) = message else {
            return false;
        };
        let Some(peer) = self.peers.get_mut(&link) else {
            return false;
        };
        peer.queue.drain(..servings);
        peer.unsent += bytes.len() as u64;
        if matches!(serving, Serving::Leaf(..)) {
            let sent = bytes.len() as u64 - 6;
            peer.up += sent;
            self.up += sent;
        }
        if limits.each.is_some() {
            peer.budget.spend(bytes.len());
        }
        if limits.total.is_some() {
            self.budget.spend(bytes.len());
        }
        self.out.push_back(Output::Send { link, bytes });
        true
    }

    fn layer_message(&self, first: u32) -> Option<(Vec<u8>, usize)> {
        let hashes = self.layer.as_ref()?.hashes().get(first as usize..)?;
        let hashes = hashes.iter().take(LAYER_HASHES_MAX);
        let hashes: Vec<[u8; 32]> = hashes.map(|hash| hash.0).collect();
        let hashes = &hashes;
        Some((Message::Layer { first, hashes }.encode(), 1))
    }

    fn hashes_message(&mut self, piece: PieceIndex) -> Option<(Vec<u8>, usize)> {
        self.read(piece);
        let shelved = self.shelf.get(piece)?;
        let hashes: Vec<[u8; 32]> = shelved.hashes.iter().map(|hash| hash.0).collect();
        let hashes = &hashes;
        Some((Message::Hashes { piece, hashes }.encode(), 1))
    }

    /// As many neighbouring leaves as stand in the queue and fit one message.
    fn leaves_message(
        &mut self,
        link: LinkId,
        piece: PieceIndex,
        first: u8,
    ) -> Option<(Vec<u8>, usize)> {
        self.read(piece);
        let queue = &self.peers.get(&link)?.queue;
        let expected = (first..LEAVES_PER_PIECE as u8).map(|leaf| Serving::Leaf(piece, leaf));
        let same = queue.iter().zip(expected).take(LEAVES_PER_MESSAGE);
        let count = same
            .take_while(|(queued, expected)| *queued == expected)
            .count();
        let last = first + count as u8 - 1;
        let end = usize::from(last) * LEAF + leaf_len(self.id, piece, last) as usize;
        let shelved = self.shelf.get(piece)?;
        let bytes = shelved.bytes.get(usize::from(first) * LEAF..end)?;
        Some((
            Message::Leaves {
                piece,
                first,
                bytes,
            }
            .encode(),
            count,
        ))
    }

    /// Sees to it that the piece is in memory, now or later.
    fn read(&mut self, piece: PieceIndex) {
        let shelf = &mut self.shelf;
        let is_known = shelf.pieces.contains_key(&piece) || shelf.reading.contains(&piece);
        if !is_known && shelf.reading.len() < READS_MAX {
            shelf.reading.insert(piece);
            self.out.push_back(Output::Read { piece });
        }
    }

    /// When a limit lets something out again.
    pub(super) fn serve_again_in(&self) -> Option<u64> {
        let waiting = self
            .peers
            .values()
            .filter(|peer| !peer.queue.is_empty() && may_send(peer));
        let total = self.limits.total;
        let total = total
            .filter(|_| self.budget.is_empty())
            .map(|rate| self.budget.wait_ms(rate));
        let each = self.limits.each;
        let wait = |peer: &Peer| {
            let each = each.filter(|_| peer.budget.is_empty());
            let each = each.map(|rate| peer.budget.wait_ms(rate));
            each.max(total)
        };
        waiting.filter_map(wait).min()
    }
}

/// A message longer than what may wait goes out when nothing waits.
fn may_send(peer: &Peer) -> bool {
    let longest = (LEAVES_PER_MESSAGE * LEAF + 6) as u64;
    peer.unsent == 0 || peer.unsent + longest <= UNSENT_BYTES_MAX
}

//! Asking, and what comes of it.

use format::{PieceIndex, VerifiedPiece};

use super::arriving::{Arriving, leaf_len};
use super::choice::Next;
use super::peer::{Asked, LeafAt, Peer};
use super::{ARRIVING_MAX, STORE_QUEUE_BYTES_MAX, Swarm, single};
use crate::Fault;
use crate::door::{LinkId, Output, Want};
use crate::wire::{Message, Reject, Run};

/// Pieces asked of one server at a time, as many as its requests can bring.
const CLAIMED_MAX: usize = 4;
const STRIKES_MAX: u32 = 3;
/// The part of a window that is free before more is asked for.
const ASKED_AT_ONCE: u32 = 4;

impl Swarm {
    pub(super) fn pull(&mut self) {
        self.pull_layer();
        if self.layer.is_none() || matches!(self.want, Want::Nothing | Want::Layer) {
            return;
        }
        let mut links = self.ready_links();
        if !links.is_empty() {
            let turn = self.chance.below(links.len() as u64) as usize;
            links.rotate_left(turn);
        }
        for link in links {
            self.pull_from(link);
        }
        let servers: Vec<LinkId> = self.servers.keys().copied().collect();
        for link in servers {
            self.fetch_from(link);
        }
    }

    /// Too much waits to be stored.
    fn is_clogged(&self) -> bool {
        self.storing.values().sum::<u64>() >= STORE_QUEUE_BYTES_MAX
    }

    fn pull_from(&mut self, link: LinkId) {
        // Asked for one by one, each answer would cost a request of its own.
        let has_room = |peer: &Peer| {
            let room = peer.window.saturating_sub(peer.outstanding());
            room >= peer.window / ASKED_AT_ONCE
        };
        if !self.peers.get(&link).is_some_and(has_room) {
            return;
        }
        while !self.is_clogged() {
            let Some(peer) = self.peers.get(&link) else {
                return;
            };
            let room = peer.window.saturating_sub(peer.outstanding());
            // Answers of what was given up are still due, and the peer's memory is not endless.
            if room == 0 || peer.asked.len() >= 2 * super::peer::WINDOW_MAX as usize {
                return;
            }
            match self.next_of(link, room) {
                Some(Next::Open(piece)) => self.open_piece(link, piece),
                Some(Next::Ask(run)) => self.ask(link, run),
                None => return,
            }
        }
    }

    fn open_piece(&mut self, link: LinkId, piece: PieceIndex) {
        let (_, len) = self.id.piece_range(piece);
        self.arriving.insert(piece, Arriving::new(link, len));
        let now_ms = self.now_ms;
        if let Some(peer) = self.peers.get_mut(&link) {
            if peer.owes_nothing() {
                peer.waited_from_ms = now_ms;
            }
            peer.hashes_asked.insert(piece);
        }
        self.send(link, &Message::AskHashes(piece));
    }

    fn ask(&mut self, link: LinkId, run: Run) {
        let now_ms = self.now_ms;
        let known = (
            self.peers.get_mut(&link),
            self.arriving.get_mut(&run.piece()),
        );
        let (Some(peer), Some(arriving)) = known else {
            return;
        };
        if peer.owes_nothing() {
            peer.waited_from_ms = now_ms;
        }
        for leaf in run.leaves() {
            arriving.ask(leaf, link);
            let asked = Asked {
                at_ms: now_ms,
                is_given_up: false,
            };
            peer.asked.insert((run.piece(), leaf), asked);
        }
        self.send(link, &Message::Request(run));
    }

    pub(super) fn on_hashes(
        &mut self,
        link: LinkId,
        piece: PieceIndex,
        hashes: &[[u8; 32]],
    ) -> Result<(), Fault> {
        let peer = self
            .peers
            .get_mut(&link)
            .filter(|peer| peer.hashes_asked.contains(&piece));
        let peer = peer.ok_or(Fault::Unasked { piece })?;
        peer.hashes_asked.remove(&piece);
        peer.waited_from_ms = self.now_ms;
        // They were given up, and now are here all the same: the leaves that were asked with them
        // come next, and could not be told from lies without them.
        if self.is_open(piece, false) && self.arriving.len() < ARRIVING_MAX {
            let (_, len) = self.id.piece_range(piece);
            self.arriving.insert(piece, Arriving::new(link, len));
        }
        let arriving = self
            .arriving
            .get_mut(&piece)
            .filter(|it| !it.knows_hashes());
        let (Some(arriving), Some(layer)) = (arriving, &self.layer) else {
            return Ok(());
        };
        match arriving.learn_hashes(layer, piece, hashes) {
            true => Ok(()),
            false => Err(Fault::BadHashes { piece }),
        }
    }

    pub(super) fn on_leaves(
        &mut self,
        link: LinkId,
        piece: PieceIndex,
        first: u8,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        for (leaf, bytes) in (first..).zip(bytes.chunks(format::LEAF_BYTES as usize)) {
            self.on_leaf(link, (piece, leaf), bytes)?;
        }
        if self.arriving.get(&piece).is_some_and(Arriving::is_whole)
            && let Some(whole) = self.arriving.remove(&piece).and_then(Arriving::finish)
        {
            self.store(whole);
        }
        Ok(())
    }

    fn on_leaf(&mut self, link: LinkId, at: LeafAt, bytes: &[u8]) -> Result<(), Fault> {
        let (piece, leaf) = at;
        let now_ms = self.now_ms;
        let peer = self.peers.get_mut(&link).ok_or(Fault::Unasked { piece })?;
        let asked = peer.asked.remove(&at).ok_or(Fault::Unasked { piece })?;
        if bytes.len() as u32 != leaf_len(self.id, piece, leaf) {
            return Err(Fault::BadLeaf { piece, leaf });
        }
        let Some(arriving) = self.arriving.get_mut(&piece).filter(|it| !it.has(leaf)) else {
            // Another was faster.
            peer.gave_leaf(now_ms, asked.at_ms);
            return Ok(());
        };
        arriving.unask(leaf, link);
        match arriving.put(leaf, bytes) {
            Some(true) => {}
            Some(false) => return Err(Fault::BadLeaf { piece, leaf }),
            // The piece was begun anew with another peer; this one owed leaves of before.
            None if asked.is_given_up || arriving.opener != link => return Ok(()),
            None => return Err(Fault::Unasked { piece }),
        }
        peer.gave_leaf(now_ms, asked.at_ms);
        peer.down += bytes.len() as u64;
        self.down += bytes.len() as u64;
        for other in arriving.others(leaf) {
            self.cancel(other, at);
        }
        Ok(())
    }

    /// Nobody waits for this leaf of this peer any more.
    pub(super) fn cancel(&mut self, link: LinkId, at: LeafAt) {
        if let Some(peer) = self.peers.get_mut(&link)
            && let Some(asked) = peer.asked.get_mut(&at)
            && !asked.is_given_up
            && let Some(run) = single(at.0, at.1)
        {
            asked.is_given_up = true;
            self.send(link, &Message::Cancel(run));
        }
    }

    /// A piece came another way.
    pub(super) fn call_off(&mut self, piece: PieceIndex, arriving: &Arriving, but: Option<LinkId>) {
        let owed: Vec<(LinkId, u8)> = arriving.owed().collect();
        for (link, leaf) in owed.into_iter().filter(|(link, _)| Some(*link) != but) {
            self.cancel(link, (piece, leaf));
        }
    }

    pub(super) fn on_reject(
        &mut self,
        link: LinkId,
        run: Run,
        reason: Reject,
    ) -> Result<(), Fault> {
        let piece = run.piece();
        let peer = self.peers.get_mut(&link).ok_or(Fault::Unasked { piece })?;
        peer.waited_from_ms = self.now_ms;
        match reason {
            Reject::NotHere => drop(peer.has.remove(piece)),
            Reject::NotSharing => peer.has = crate::PieceSet::empty(self.id.pieces()),
            Reject::Cancelled => {}
        }
        // Hashes are asked before leaves and so refused before them. Only leaves are cancelled.
        let may_be_hashes = run.first() == 0 && run.count() == 1 && reason != Reject::Cancelled;
        if may_be_hashes && peer.hashes_asked.remove(&piece) {
            self.begin_anew(link, piece);
            return self.noise(link);
        }
        let mut given_up = Vec::new();
        for leaf in run.leaves() {
            let asked = peer
                .asked
                .remove(&(piece, leaf))
                .ok_or(Fault::Unasked { piece })?;
            if reason == Reject::Cancelled && !asked.is_given_up {
                return Err(Fault::Unasked { piece });
            }
            given_up.push((piece, leaf));
        }
        self.release(link, given_up);
        match reason {
            Reject::Cancelled => Ok(()),
            _ => self.noise(link),
        }
    }

    /// These leaves are wanted of others.
    pub(super) fn release(&mut self, link: LinkId, leaves: Vec<LeafAt>) {
        for (piece, leaf) in leaves {
            if let Some(arriving) = self.arriving.get_mut(&piece) {
                arriving.unask(leaf, link);
            }
        }
        // Without hashes nobody else may go on with what this peer began.
        if !self.peers.contains_key(&link) {
            self.arriving
                .retain(|_, it| it.knows_hashes() || it.opener != link);
        }
    }

    /// The hashes of a piece do not come from this peer.
    pub(super) fn begin_anew(&mut self, link: LinkId, piece: PieceIndex) {
        let is_stuck = |it: &&mut Arriving| !it.knows_hashes() && it.opener == link;
        if self.arriving.get_mut(&piece).filter(is_stuck).is_some()
            && let Some(arriving) = self.arriving.remove(&piece)
        {
            self.call_off(piece, &arriving, None);
        }
    }

    pub(super) fn store(&mut self, whole: VerifiedPiece) {
        self.storing
            .insert(whole.piece(), whole.bytes().len() as u64);
        self.out.push_back(Output::Store(whole));
    }

    fn fetch_from(&mut self, link: LinkId) {
        while !self.is_clogged()
            && self
                .servers
                .get(&link)
                .is_some_and(|it| it.claimed.len() < CLAIMED_MAX)
            && let Some(piece) = self.choose_piece(None)
        {
            if let Some(server) = self.servers.get_mut(&link) {
                server.claimed.insert(piece);
                self.out.push_back(Output::Fetch { link, piece });
            }
        }
    }

    pub(super) fn on_fetched(&mut self, link: LinkId, piece: PieceIndex, bytes: Option<Vec<u8>>) {
        let Some(server) = self.servers.get_mut(&link) else {
            return;
        };
        if !server.claimed.remove(&piece) {
            return;
        }
        let Some(bytes) = bytes else {
            server.strikes += 1;
            if server.strikes >= STRIKES_MAX {
                self.leave(link, Fault::Silent);
            }
            return;
        };
        let layer = self.layer.as_ref();
        let whole = layer.and_then(|layer| VerifiedPiece::check(layer, piece, bytes));
        let Some(whole) = whole else {
            return self.leave(link, Fault::BadPiece { piece });
        };
        let len = whole.bytes().len() as u64;
        server.strikes = 0;
        server.down += len;
        self.down += len;
        if self.done.contains(piece) || self.storing.contains_key(&piece) {
            return;
        }
        if let Some(arriving) = self.arriving.remove(&piece) {
            self.call_off(piece, &arriving, None);
        }
        self.store(whole);
    }
}

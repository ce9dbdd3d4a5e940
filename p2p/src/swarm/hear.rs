//! What a peer says.

use format::PieceIndex;

use super::Swarm;
use super::peer::Peer;
use crate::door::{LinkId, Output, PeerKey, Sharing};
use crate::wire::{Hello, Message};
use crate::{Fault, PieceSet};

/// Messages to no use that one peer may send at once.
const NOISE_MAX: u32 = 1000;

impl Swarm {
    pub(super) fn on_opened(&mut self, link: LinkId, key: PeerKey) {
        let fault = if self.is_banned(key) {
            Fault::Banned
        } else if !self.has_room() {
            Fault::Full
        } else {
            let peer = Peer::new(key, self.now_ms, self.id.pieces());
            self.peers.insert(link, peer);
            let hello = Hello::new(self.id, self.nonce);
            return self.send(link, &Message::Hello(hello));
        };
        self.out.push_back(Output::Close { link, fault });
    }

    pub(super) fn on_bytes(&mut self, link: LinkId, bytes: &[u8]) {
        let now_ms = self.now_ms;
        let Some(peer) = self.peers.get_mut(&link) else {
            return;
        };
        peer.heard_ms = now_ms;
        peer.is_pinged = false;
        let heard = Message::decode(bytes);
        let result = heard.and_then(|message| self.on_message(link, bytes[0], message));
        if let Err(fault) = result {
            self.leave(link, fault);
        }
    }

    fn on_message(&mut self, link: LinkId, kind: u8, message: Message<'_>) -> Result<(), Fault> {
        let is_ready = self.peers.get(&link).is_some_and(Peer::is_ready);
        match (message, is_ready) {
            (Message::Hello(hello), false) => self.on_hello(link, hello),
            (_, false) | (Message::Hello(_), true) => Err(Fault::OutOfOrder { kind }),
            (Message::Bitfield(bits), _) => self.on_bitfield(link, bits),
            (Message::Have(piece), _) => self.on_have(link, piece),
            (Message::Request(run), _) => self.on_request(link, run),
            (Message::Cancel(run), _) => self.on_cancel(link, run),
            (Message::AskHashes(piece), _) => self.on_ask_hashes(link, piece),
            (Message::AskLayer { first }, _) => self.on_ask_layer(link, first),
            (
                Message::Leaves {
                    piece,
                    first,
                    bytes,
                },
                _,
            ) => self.on_leaves(link, piece, first, bytes),
            (Message::Hashes { piece, hashes }, _) => self.on_hashes(link, piece, hashes),
            (Message::Reject(run, reason), _) => self.on_reject(link, run, reason),
            (Message::Layer { first, hashes }, _) => self.on_layer(link, first, hashes),
            (Message::Ping(number), _) => {
                self.noise(link)?;
                self.send(link, &Message::Pong(number));
                Ok(())
            }
            (Message::Pong(_), _) => self.noise(link),
        }
    }

    fn on_hello(&mut self, link: LinkId, hello: Hello) -> Result<(), Fault> {
        let ours = Hello::new(self.id, hello.nonce);
        if (hello.version, hello.piece_len) != (ours.version, ours.piece_len) {
            let version = hello.version;
            return Err(Fault::OtherVersion { version });
        }
        if hello.id != self.id {
            return Err(Fault::OtherModel);
        }
        let mut known = self.peers.values().filter_map(|peer| peer.nonce);
        if hello.nonce == self.nonce || known.any(|nonce| nonce == hello.nonce) {
            return Err(Fault::Twice);
        }
        if let Some(peer) = self.peers.get_mut(&link) {
            peer.nonce = Some(hello.nonce);
        }
        if self.sharing == Sharing::On && !self.have.is_empty() {
            self.tell_pieces(link);
        }
        Ok(())
    }

    fn on_bitfield(&mut self, link: LinkId, bits: &[u8]) -> Result<(), Fault> {
        self.noise(link)?;
        let has = PieceSet::from_bytes(self.id.pieces(), bits);
        let has = has.ok_or(Fault::OutOfOrder { kind: 1 })?;
        if let Some(peer) = self.peers.get_mut(&link) {
            peer.has = has;
        }
        self.check_use(link)
    }

    fn on_have(&mut self, link: LinkId, piece: PieceIndex) -> Result<(), Fault> {
        if piece.0 >= self.id.pieces() {
            return Err(Fault::NoSuchPiece { piece });
        }
        let peer = self.peers.get_mut(&link);
        if peer.is_some_and(|peer| peer.has.insert(piece)) {
            return self.check_use(link);
        }
        self.noise(link)
    }

    /// Two who both have everything need not hold a connection.
    pub(super) fn check_use(&self, link: LinkId) -> Result<(), Fault> {
        let is_full = |peer: &Peer| peer.has.is_full();
        match self.have.is_full() && self.peers.get(&link).is_some_and(is_full) {
            true => Err(Fault::NothingToDo),
            false => Ok(()),
        }
    }

    /// Counts a message that nobody needed. One a second is forgotten again.
    pub(super) fn noise(&mut self, link: LinkId) -> Result<(), Fault> {
        let now_ms = self.now_ms;
        let Some(peer) = self.peers.get_mut(&link) else {
            return Ok(());
        };
        let quiet_s = now_ms.saturating_sub(peer.noise_ms) / 1000;
        peer.noise = peer
            .noise
            .saturating_sub(quiet_s.min(u64::from(NOISE_MAX)) as u32)
            + 1;
        peer.noise_ms = now_ms;
        match peer.noise > NOISE_MAX {
            true => Err(Fault::Flood),
            false => Ok(()),
        }
    }
}

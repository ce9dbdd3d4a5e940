//! The hashes of all pieces, from one peer at a time, so that a wrong one has one author.

use format::{PieceIndex, PieceLayer};

use super::Swarm;
use crate::Fault;
use crate::door::{LinkId, Output, Sharing, Want};
use crate::wire::Message;

#[derive(Default)]
pub struct LayerPull {
    /// Who was asked.
    pub from: Option<LinkId>,
    bytes: Vec<u8>,
    /// Peers that were asked before and did not answer in time are asked last.
    slow: Vec<LinkId>,
}

impl LayerPull {
    pub fn forget(&mut self, link: LinkId) {
        self.slow.retain(|known| *known != link);
        if self.from == Some(link) {
            self.from = None;
            self.bytes = Vec::new();
        }
    }

    pub fn is_slow(&mut self, link: LinkId) {
        self.forget(link);
        self.slow.push(link);
    }
}

impl Swarm {
    pub(super) fn pull_layer(&mut self) {
        if self.layer.is_some() || self.want == Want::Nothing || self.layer_pull.from.is_some() {
            return;
        }
        let asked_last = |link: &LinkId| self.layer_pull.slow.contains(link);
        let has_some = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.is_ready() && !peer.has.is_empty());
        let links = has_some.map(|(link, _)| *link);
        let Some(link) = links.min_by_key(asked_last) else {
            return;
        };
        self.layer_pull.from = Some(link);
        self.ask_layer(link, 0);
    }

    fn ask_layer(&mut self, link: LinkId, first: u32) {
        if let Some(peer) = self.peers.get_mut(&link) {
            peer.waited_from_ms = self.now_ms;
        }
        self.send(link, &Message::AskLayer { first });
    }

    pub(super) fn on_layer(
        &mut self,
        link: LinkId,
        first: u32,
        hashes: &[[u8; 32]],
    ) -> Result<(), Fault> {
        let pull = &mut self.layer_pull;
        if pull.from != Some(link) {
            // Late, because another was asked meanwhile: of no use, and no lie.
            return match pull.slow.contains(&link) || self.layer.is_some() {
                true => self.noise(link),
                false => Err(Fault::Unasked {
                    piece: PieceIndex(first),
                }),
            };
        }
        let known = pull.bytes.len() / 32;
        if first as usize != known || known + hashes.len() > self.id.pieces() as usize {
            return Err(Fault::BadLayer);
        }
        pull.bytes.extend_from_slice(hashes.as_flattened());
        let known = (known + hashes.len()) as u32;
        if known < self.id.pieces() {
            self.ask_layer(link, known);
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.layer_pull).bytes;
        let layer = PieceLayer::parse(self.id, &bytes).map_err(|_| Fault::BadLayer)?;
        self.learn_layer(layer);
        Ok(())
    }

    pub(super) fn learn_layer(&mut self, layer: PieceLayer) {
        if self.layer.is_none() && layer.id == self.id {
            self.layer_pull = LayerPull::default();
            self.out.push_back(Output::Layer(layer.clone()));
            self.layer = Some(layer);
        }
    }

    pub(super) fn on_ask_layer(&mut self, link: LinkId, first: u32) -> Result<(), Fault> {
        if first >= self.id.pieces() {
            return Err(Fault::NoSuchPiece {
                piece: PieceIndex(first),
            });
        }
        match &self.layer {
            Some(_) if self.sharing == Sharing::On => self.queue_layer(link, first),
            _ => self.noise(link),
        }
    }
}

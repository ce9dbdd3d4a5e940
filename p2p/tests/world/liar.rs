//! Nodes that lie: sound swarms whose words are changed on the way out.

use p2p::{MESSAGE_BYTES_MAX, Message, Run};

use super::{Event, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    BadLeaf,
    BadHashes,
    BadLayer,
    WrongLength,
    WrongRoot,
    Oversize,
    Flood,
    NeverAnswers,
    /// Every message is cut into single bytes.
    Bytewise,
    /// Sends what nobody asked for.
    Unasked,
    /// Has everything, it says, and refuses everything.
    Refuses,
    /// Sends leaves of another length.
    ShortLeaf,
}

pub const LIES: [Lie; 12] = [
    Lie::BadLeaf,
    Lie::BadHashes,
    Lie::BadLayer,
    Lie::WrongLength,
    Lie::WrongRoot,
    Lie::Oversize,
    Lie::Flood,
    Lie::NeverAnswers,
    Lie::Bytewise,
    Lie::Unasked,
    Lie::Refuses,
    Lie::ShortLeaf,
];

impl World {
    /// What really goes out, and which of it is a lie.
    pub fn told(&mut self, node: usize, mut bytes: Vec<u8>) -> Vec<(Vec<u8>, bool)> {
        let Some(lie) = self.nodes[node].lie else {
            return vec![(bytes, false)];
        };
        let message = Message::decode(&bytes).unwrap();
        let last = bytes.len() - 1;
        match (lie, message) {
            (Lie::BadLeaf, Message::Leaves { .. })
            | (Lie::BadHashes, Message::Hashes { .. })
            | (Lie::BadLayer, Message::Layer { .. }) => bytes[last] ^= 0x40,
            (Lie::ShortLeaf, Message::Leaves { .. }) if bytes.len() > 7 => drop(bytes.pop()),
            (Lie::WrongLength, Message::Hello(mut hello)) => {
                hello.id.length += 1;
                bytes = Message::Hello(hello).encode();
            }
            (Lie::WrongRoot, Message::Hello(mut hello)) => {
                hello.id.root.0.0[31] ^= 1;
                bytes = Message::Hello(hello).encode();
            }
            (Lie::Oversize, Message::Leaves { .. }) => bytes.resize(MESSAGE_BYTES_MAX + 1, 0),
            (Lie::NeverAnswers, Message::Hello(_) | Message::Bitfield(_)) => {
                return vec![(bytes, false)];
            }
            (Lie::NeverAnswers, _) => return Vec::new(),
            (Lie::Bytewise, _) => {
                return bytes.into_iter().map(|byte| (vec![byte], true)).collect();
            }
            (Lie::Unasked, Message::Leaves { .. }) => {
                return vec![(bytes.clone(), false), (bytes, true)];
            }
            (
                Lie::Refuses,
                Message::Leaves {
                    piece,
                    first,
                    bytes: leaves,
                },
            ) => {
                let count = leaves.len().div_ceil(format::LEAF_BYTES as usize) as u8;
                let run = Run::new(piece, first, count).unwrap();
                let refusal = Message::Reject(run, p2p::Reject::NotHere).encode();
                return vec![(refusal, false)];
            }
            _ => return vec![(bytes, false)],
        }
        vec![(bytes, true)]
    }

    /// Asks for everything at once, over and over.
    pub fn flood(&mut self, node: usize) {
        let known = self
            .links
            .iter()
            .filter(|(link, _)| self.is_open(**link, node));
        let links: Vec<_> = known.map(|(link, _)| *link).collect();
        let pieces = self.model.id.pieces();
        for link in links {
            for turn in 0..600 {
                let piece = format::PieceIndex(turn % pieces);
                let (_, len) = self.model.id.piece_range(piece);
                let count = len.div_ceil(format::LEAF_BYTES) as u8;
                let run = Run::new(piece, 0, count).unwrap();
                let bytes = Message::Request(run).encode();
                self.transmit(node, link, bytes, false);
            }
        }
        self.after(2_000, Event::Flood { node });
    }
}

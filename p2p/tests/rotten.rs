//! A piece that is not any more what it was when it was stored: it is not given, so that nobody
//! takes the giver for a liar, and all others are.

#![allow(clippy::unwrap_used)]

use format::{Hasher, PIECE_BYTES, PieceIndex, PieceLayer};
use p2p::{Hello, Input, LinkId, Message, Output, PeerKey, PieceSet, Reject, Run, Sharing, Swarm};

const ROTTEN: PieceIndex = PieceIndex(0);
const SOUND: PieceIndex = PieceIndex(1);

struct Giver {
    swarm: Swarm,
    content: Vec<u8>,
    layer: PieceLayer,
}

impl Giver {
    /// Of two pieces.
    fn new() -> Giver {
        let content: Vec<u8> = (0..2 * PIECE_BYTES).map(|at| (at % 251) as u8).collect();
        let mut hasher = Hasher::default();
        hasher.update(&content);
        let layer = hasher.finish();
        let mut giver = Giver {
            swarm: Swarm::new(layer.id, 7).unwrap(),
            content,
            layer: layer.clone(),
        };
        giver.give(Input::Layer(layer));
        for piece in [ROTTEN, SOUND] {
            giver.give(Input::Stored { piece });
        }
        giver.give(Input::Share(Sharing::On));
        giver
    }

    /// What is sent then; pieces are read as they lie on the disk, one of them with a wrong bit.
    fn give(&mut self, input: Input<'_>) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        self.swarm.handle(0, input);
        while let Some(output) = self.swarm.poll() {
            match output {
                Output::Send { bytes, .. } => sent.push(bytes),
                Output::Read { piece } => {
                    let (at, len) = self.layer.id.piece_range(piece);
                    let mut bytes = self.content[at as usize..][..len as usize].to_vec();
                    bytes[777_777] ^= u8::from(piece == ROTTEN);
                    let bytes = Some(bytes);
                    self.swarm.handle(0, Input::Read { piece, bytes });
                }
                Output::Close { fault, .. } => panic!("{fault}"),
                _ => {}
            }
        }
        sent
    }

    fn hear(&mut self, link: LinkId, message: &Message<'_>) -> Vec<Vec<u8>> {
        let bytes = &message.encode();
        self.give(Input::Message { link, bytes })
    }

    /// Somebody comes who has nothing; what this giver says to have.
    fn meet(&mut self, link: LinkId) -> PieceSet {
        let key = PeerKey([link.0 as u8; 20]);
        let mut said = self.give(Input::Opened { link, key });
        let hello = Hello::new(self.layer.id, u64::from(link.0));
        said.extend(self.hear(link, &Message::Hello(hello)));
        let nothing = PieceSet::empty(2);
        said.extend(self.hear(link, &Message::Bitfield(nothing.as_bytes())));
        let mut had = said
            .iter()
            .filter_map(|bytes| match Message::decode(bytes) {
                Ok(Message::Bitfield(bytes)) => PieceSet::from_bytes(2, bytes),
                _ => None,
            });
        had.next().unwrap()
    }
}

#[test]
fn a_rotten_piece_is_withdrawn_and_the_others_are_given() {
    let mut giver = Giver::new();
    let link = LinkId(1);
    assert_eq!(giver.meet(link), PieceSet::full(2));
    let answers = giver.hear(link, &Message::AskHashes(ROTTEN));
    let refused = Message::Reject(Run::new(ROTTEN, 0, 1).unwrap(), Reject::NotHere).encode();
    assert_eq!(answers, [refused]);

    let answers = giver.hear(link, &Message::AskHashes(SOUND));
    let hashes = format::leaf_hashes(&giver.content[PIECE_BYTES as usize..]);
    let hashes: Vec<[u8; 32]> = hashes.iter().map(|hash| hash.0).collect();
    let (piece, hashes) = (SOUND, hashes.as_slice());
    assert_eq!(answers, [Message::Hashes { piece, hashes }.encode()]);
    let leaf = Run::new(SOUND, 5, 1).unwrap();
    let answers = giver.hear(link, &Message::Request(leaf));
    let at = PIECE_BYTES as usize + 5 * format::LEAF_BYTES as usize;
    let bytes = &giver.content[at..][..format::LEAF_BYTES as usize];
    let first = 5;
    let leaves = Message::Leaves {
        piece,
        first,
        bytes,
    };
    assert_eq!(answers, [leaves.encode()]);

    // Whoever comes later is not promised it.
    let promised = giver.meet(LinkId(2));
    assert!(!promised.contains(ROTTEN) && promised.contains(SOUND));
}

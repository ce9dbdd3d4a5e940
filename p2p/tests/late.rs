//! A peer that answers, but late: what it was given up for counts when it comes after all.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use format::{Hasher, LEAF_BYTES, ModelId, PIECE_BYTES, PieceIndex, PieceLayer, leaf_hashes};
use p2p::{
    Hello, Input, LEAVES_PER_MESSAGE, LinkId, Message, Output, PeerKey, PieceSet, Run, Swarm, Want,
};

const LINK: LinkId = LinkId(1);
const LEAF: usize = LEAF_BYTES as usize;
/// Longer than the swarm waits for a peer that it does not know yet.
const LATE_MS: u64 = 4_000;

struct Talk {
    content: Vec<u8>,
    layer: PieceLayer,
    swarm: Swarm,
    now_ms: u64,
    /// Questions about pieces that wait for their answer, in order.
    questions: Vec<Vec<u8>>,
    stored: Vec<PieceIndex>,
    hashes_asked: BTreeMap<PieceIndex, u32>,
    leaves_asked: BTreeMap<(PieceIndex, u8), u32>,
}

impl Talk {
    /// Two pieces are wanted, and the only peer has both.
    fn new() -> Talk {
        let content: Vec<u8> = (0..2 * PIECE_BYTES)
            .map(|at| (at / LEAF_BYTES) as u8)
            .collect();
        let mut hasher = Hasher::default();
        hasher.update(&content);
        let layer = hasher.finish();
        let mut talk = Talk {
            content,
            swarm: Swarm::new(layer.id, 7).unwrap(),
            layer: layer.clone(),
            now_ms: 0,
            questions: Vec::new(),
            stored: Vec::new(),
            hashes_asked: BTreeMap::new(),
            leaves_asked: BTreeMap::new(),
        };
        talk.give(Input::Layer(layer));
        talk.give(Input::Want(Want::All));
        let key = PeerKey([9; 20]);
        talk.give(Input::Opened { link: LINK, key });
        talk.say(&Message::Hello(Hello::new(talk.id(), 1)));
        talk.say(&Message::Bitfield(PieceSet::full(2).as_bytes()));
        talk
    }

    fn id(&self) -> ModelId {
        self.layer.id
    }

    fn say(&mut self, message: &Message<'_>) {
        let bytes = &message.encode();
        self.give(Input::Message { link: LINK, bytes });
    }

    fn give(&mut self, input: Input<'_>) {
        self.swarm.handle(self.now_ms, input);
        while let Some(output) = self.swarm.poll() {
            match output {
                Output::Send { bytes, .. } => self.note(bytes),
                Output::Store(whole) => {
                    let (piece, bytes) = (whole.piece(), whole.into_bytes());
                    assert_eq!(bytes, self.piece(piece));
                    self.stored.push(piece);
                    self.swarm.handle(self.now_ms, Input::Stored { piece });
                }
                Output::Close { fault, .. } => assert_eq!(fault, p2p::Fault::NothingToDo),
                _ => {}
            }
        }
    }

    fn note(&mut self, bytes: Vec<u8>) {
        match Message::decode(&bytes).unwrap() {
            Message::AskHashes(piece) => *self.hashes_asked.entry(piece).or_default() += 1,
            Message::Request(run) => {
                for leaf in run.leaves() {
                    let asked = self.leaves_asked.entry((run.piece(), leaf));
                    *asked.or_default() += 1;
                }
            }
            _ => return,
        }
        self.questions.push(bytes);
    }

    fn piece(&self, piece: PieceIndex) -> &[u8] {
        let (at, len) = self.id().piece_range(piece);
        &self.content[at as usize..][..len as usize]
    }

    fn answer(&mut self, question: &[u8]) {
        match Message::decode(question).unwrap() {
            Message::AskHashes(piece) => {
                let hashes: Vec<[u8; 32]> = leaf_hashes(self.piece(piece))
                    .iter()
                    .map(|hash| hash.0)
                    .collect();
                let hashes = &hashes;
                self.say(&Message::Hashes { piece, hashes });
            }
            Message::Request(run) => self.give_leaves(run),
            _ => {}
        }
    }

    fn give_leaves(&mut self, run: Run) {
        let piece = run.piece();
        let leaves: Vec<u8> = run.leaves().collect();
        for leaves in leaves.chunks(LEAVES_PER_MESSAGE) {
            let first = leaves[0];
            let bytes = &self.piece(piece)[usize::from(first) * LEAF..][..leaves.len() * LEAF];
            let bytes = &bytes.to_vec();
            self.say(&Message::Leaves {
                piece,
                first,
                bytes,
            });
        }
    }
}

#[test]
fn what_a_late_peer_brings_is_not_asked_for_again() {
    let mut talk = Talk::new();
    let late = std::mem::take(&mut talk.questions);
    assert!(!late.is_empty());
    talk.now_ms = LATE_MS;
    talk.give(Input::Time);
    // It was given up: something else is asked of it, as a trial.
    assert!(!talk.questions.is_empty());
    for question in late {
        talk.answer(&question);
    }
    while !talk.questions.is_empty() {
        let question = talk.questions.remove(0);
        talk.answer(&question);
    }
    talk.stored.sort_unstable();
    assert_eq!(talk.stored, [PieceIndex(0), PieceIndex(1)]);
    assert_eq!(talk.hashes_asked.values().max(), Some(&1));
    assert_eq!(talk.leaves_asked.values().max(), Some(&1));
    assert_eq!(talk.leaves_asked.len(), 128);
}

//! A peer whose hashes were made by libtorrent 2.1.1 (`p2p/vectors/make.py`): its piece layer and
//! the hashes of its leaves are believed, and with them its leaves; any other bit is not.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::Path;

use format::{Digest, LEAF_BYTES, ModelId, PIECE_BYTES, PieceIndex, Root};
use p2p::{
    Fault, Hello, Input, LEAVES_PER_MESSAGE, LinkId, Message, Output, PeerKey, PieceSet, Swarm,
    Want,
};

const LINK: LinkId = LinkId(1);
const LEAF: usize = LEAF_BYTES as usize;

struct Vectors {
    content: Vec<u8>,
    id: ModelId,
    leaves: Vec<[u8; 32]>,
    pieces: Vec<[u8; 32]>,
}

fn read(name: &str) -> Vec<[u8; 32]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    let (hashes, rest) = bytes.as_chunks::<32>();
    assert!(rest.is_empty());
    hashes.to_vec()
}

/// The upper byte of each state of a 32-bit xorshift, as in `make.py`.
fn vectors(length: usize) -> Vectors {
    let mut state = 0x9e37_79b9_u32;
    let step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    let root = read(&format!("{length}.root"))[0];
    Vectors {
        content: std::iter::repeat_with(step).take(length).collect(),
        id: ModelId {
            root: Root(Digest(root)),
            length: length as u64,
        },
        leaves: read(&format!("{length}.leaves")),
        pieces: read(&format!("{length}.pieces")),
    }
}

/// A swarm that wants everything, and what it asks of one peer, which says it has everything.
struct Talk<'v> {
    vectors: &'v Vectors,
    swarm: Swarm,
    questions: VecDeque<Vec<u8>>,
    stored: u32,
}

impl Talk<'_> {
    fn say(&mut self, message: &Message<'_>) -> Result<(), Fault> {
        let bytes = &message.encode();
        self.swarm.handle(0, Input::Message { link: LINK, bytes });
        while let Some(output) = self.swarm.poll() {
            match output {
                Output::Send { bytes, .. } => self.questions.push_back(bytes),
                Output::Close { fault, .. } => return Err(fault),
                Output::Store(whole) => {
                    let (piece, bytes) = (whole.piece(), whole.into_bytes());
                    let (at, len) = self.vectors.id.piece_range(piece);
                    assert_eq!(bytes, self.vectors.content[at as usize..][..len as usize]);
                    self.stored += 1;
                    self.swarm.handle(0, Input::Stored { piece });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn answer(&mut self, question: &[u8]) -> Result<(), Fault> {
        let vectors = self.vectors;
        let per_piece = (PIECE_BYTES / LEAF_BYTES) as usize;
        match Message::decode(question)? {
            Message::AskLayer { first } => {
                let hashes = &vectors.pieces[first as usize..];
                self.say(&Message::Layer { first, hashes })
            }
            Message::AskHashes(piece) => {
                let at = piece.0 as usize * per_piece;
                let hashes = vectors.leaves[at..].chunks(per_piece).next().unwrap();
                self.say(&Message::Hashes { piece, hashes })
            }
            Message::Request(run) => {
                let leaves: Vec<u8> = run.leaves().collect();
                let piece = run.piece();
                leaves.chunks(LEAVES_PER_MESSAGE).try_for_each(|leaves| {
                    let first = leaves[0];
                    let at = piece.0 as usize * PIECE_BYTES as usize + usize::from(first) * LEAF;
                    let len = (leaves.len() * LEAF).min(vectors.content.len() - at);
                    let bytes = &vectors.content[at..at + len];
                    self.say(&Message::Leaves {
                        piece,
                        first,
                        bytes,
                    })
                })
            }
            _ => Ok(()),
        }
    }
}

fn fetch(vectors: &Vectors) -> Result<u32, Fault> {
    let mut swarm = Swarm::new(vectors.id, 7).unwrap();
    swarm.handle(0, Input::Want(Want::All));
    let key = PeerKey([9; 20]);
    swarm.handle(0, Input::Opened { link: LINK, key });
    let mut talk = Talk {
        vectors,
        swarm,
        questions: VecDeque::new(),
        stored: 0,
    };
    let all = PieceSet::full(vectors.id.pieces());
    talk.say(&Message::Hello(Hello::new(vectors.id, 1)))?;
    talk.say(&Message::Bitfield(all.as_bytes()))?;
    while let Some(question) = talk.questions.pop_front() {
        match talk.answer(&question) {
            // All is here, which is no fault of the peer.
            Err(Fault::NothingToDo) => break,
            other => other?,
        }
    }
    Ok(talk.stored)
}

#[test]
fn hashes_of_another_implementation_are_believed() {
    for length in [49_152, 1_048_577, 3_198_983] {
        let vectors = vectors(length);
        assert_eq!(fetch(&vectors), Ok(vectors.id.pieces()), "{length}");
    }
}

#[test]
fn a_changed_bit_anywhere_names_the_peer() {
    let mut with_wrong_layer = vectors(3_198_983);
    with_wrong_layer.pieces[3][31] ^= 1;
    assert_eq!(fetch(&with_wrong_layer), Err(Fault::BadLayer));

    let mut with_wrong_hashes = vectors(1_048_577);
    with_wrong_hashes.leaves[64][0] ^= 0x80;
    let piece = PieceIndex(1);
    assert_eq!(fetch(&with_wrong_hashes), Err(Fault::BadHashes { piece }));

    let mut with_wrong_leaf = vectors(49_152);
    with_wrong_leaf.content[2 * LEAF] ^= 1;
    let (piece, leaf) = (PieceIndex(0), 2);
    assert_eq!(fetch(&with_wrong_leaf), Err(Fault::BadLeaf { piece, leaf }));
}

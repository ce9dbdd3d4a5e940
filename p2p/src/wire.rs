//! The bytes that two peers exchange, one message of a data channel each.
//!
//! A message is a byte that names its kind, and its fields without gaps; integers are little
//! endian. Every message has a least and a greatest length, and none is longer than
//! [`MESSAGE_BYTES_MAX`]. What does not follow this to the byte is no message: its sender is told
//! nothing and left.
//!
//! | kind | message | fields |
//! |---|---|---|
//! | 0 | hello | version u8, root 32 bytes, length u64, piece length u32, nonce u64 |
//! | 1 | bitfield | one bit a piece, the first in the highest bit of the first byte |
//! | 2 | have | piece u32 |
//! | 3 | request | piece u32, first leaf u8, count u8 |
//! | 4 | leaves | piece u32, first leaf u8, bytes of one to three leaves |
//! | 5 | cancel | as request |
//! | 6 | reject | as request, then reason u8 |
//! | 7 | ask hashes | piece u32 |
//! | 8 | hashes | piece u32, one to 64 leaf hashes of 32 bytes |
//! | 9 | ask layer | first piece u32 |
//! | 10 | layer | first piece u32, one to 1536 piece hashes of 32 bytes |
//! | 11 | ping | number u32 |
//! | 12 | pong | number u32 |

use format::{Digest, LEAF_BYTES, LEAVES_PER_PIECE, ModelId, PIECE_BYTES, PieceIndex, Root};

use crate::Fault;

pub const WIRE_VERSION: u8 = 1;
/// Longest message: what every engine and the native stack carry.
pub const MESSAGE_BYTES_MAX: usize = 65_536;
/// Leaves in one message; with its head it stays below [`MESSAGE_BYTES_MAX`].
pub const LEAVES_PER_MESSAGE: usize = 3;
/// Piece hashes in one message: 48 KiB.
pub const LAYER_HASHES_MAX: usize = 1536;

const LEAF: usize = LEAF_BYTES as usize;
const _: () = assert!(6 + LEAVES_PER_MESSAGE * LEAF < MESSAGE_BYTES_MAX);
const _: () = assert!(5 + LAYER_HASHES_MAX * 32 < MESSAGE_BYTES_MAX);

/// Neighbouring leaves of one piece; at least one, and none beyond the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    piece: PieceIndex,
    leaf: u8,
    count: u8,
}

/// The first message in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub version: u8,
    pub id: ModelId,
    /// In bytes.
    pub piece_len: u32,
    /// Drawn at random; who hears its own talks to itself.
    pub nonce: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// The piece is not here, or no longer.
    NotHere,
    /// Nothing is shared by this page, or no longer.
    NotSharing,
    /// A cancel came in time.
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Hello(Hello),
    /// Which pieces the sender shares; replaces what it said before.
    Bitfield(&'a [u8]),
    Have(PieceIndex),
    /// Each of its leaves is answered once, by leaves or by a reject.
    Request(Run),
    Leaves {
        piece: PieceIndex,
        first: u8,
        bytes: &'a [u8],
    },
    Cancel(Run),
    Reject(Run, Reject),
    /// Answered by hashes, or by a reject of the piece's first leaf; in any case before what was
    /// asked later.
    AskHashes(PieceIndex),
    Hashes {
        piece: PieceIndex,
        hashes: &'a [[u8; 32]],
    },
    AskLayer {
        first: u32,
    },
    Layer {
        first: u32,
        hashes: &'a [[u8; 32]],
    },
    Ping(u32),
    Pong(u32),
}

impl Run {
    pub fn new(piece: PieceIndex, leaf: u8, count: u8) -> Option<Run> {
        let end = u32::from(leaf) + u32::from(count);
        (count > 0 && end <= LEAVES_PER_PIECE).then_some(Run { piece, leaf, count })
    }

    pub fn piece(self) -> PieceIndex {
        self.piece
    }

    pub fn first(self) -> u8 {
        self.leaf
    }

    pub fn count(self) -> u8 {
        self.count
    }

    pub fn leaves(self) -> impl Iterator<Item = u8> + use<> {
        self.leaf..self.leaf + self.count
    }
}

impl Hello {
    pub fn new(id: ModelId, nonce: u64) -> Hello {
        Hello {
            version: WIRE_VERSION,
            id,
            piece_len: PIECE_BYTES,
            nonce,
        }
    }
}

impl<'a> Message<'a> {
    /// Reads one whole message.
    pub fn decode(bytes: &'a [u8]) -> Result<Message<'a>, Fault> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            let bytes = bytes.len();
            return Err(Fault::Oversize { bytes });
        }
        let kind = bytes.first().copied().unwrap_or(u8::MAX);
        let fields = bytes.get(1..).unwrap_or_default();
        fields_of(kind, fields).ok_or(Fault::Malformed {
            kind,
            bytes: bytes.len(),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 + self.fields_len());
        match self {
            Message::Hello(hello) => {
                out.extend([0, hello.version]);
                out.extend(hello.id.root.0.0);
                out.extend(hello.id.length.to_le_bytes());
                out.extend(hello.piece_len.to_le_bytes());
                out.extend(hello.nonce.to_le_bytes());
            }
            Message::Bitfield(bits) => {
                out.push(1);
                out.extend_from_slice(bits);
            }
            Message::Have(piece) => number(&mut out, 2, piece.0),
            Message::Request(run) => run_fields(&mut out, 3, *run),
            Message::Leaves {
                piece,
                first,
                bytes,
            } => {
                number(&mut out, 4, piece.0);
                out.push(*first);
                out.extend_from_slice(bytes);
            }
            Message::Cancel(run) => run_fields(&mut out, 5, *run),
            Message::Reject(run, reason) => {
                run_fields(&mut out, 6, *run);
                out.push(match reason {
                    Reject::NotHere => 0,
                    Reject::NotSharing => 1,
                    Reject::Cancelled => 2,
                });
            }
            Message::AskHashes(piece) => number(&mut out, 7, piece.0),
            Message::Hashes { piece, hashes } => {
                number(&mut out, 8, piece.0);
                out.extend(hashes.as_flattened());
            }
            Message::AskLayer { first } => number(&mut out, 9, *first),
            Message::Layer { first, hashes } => {
                number(&mut out, 10, *first);
                out.extend(hashes.as_flattened());
            }
            Message::Ping(count) => number(&mut out, 11, *count),
            Message::Pong(count) => number(&mut out, 12, *count),
        }
        out
    }

    fn fields_len(&self) -> usize {
        match self {
            Message::Hello(_) => HELLO_FIELDS,
            Message::Bitfield(bits) => bits.len(),
            Message::Leaves { bytes, .. } => 5 + bytes.len(),
            Message::Hashes { hashes, .. } | Message::Layer { hashes, .. } => 4 + 32 * hashes.len(),
            _ => 7,
        }
    }
}

const HELLO_FIELDS: usize = 1 + 32 + 8 + 4 + 8;

fn number(out: &mut Vec<u8>, kind: u8, number: u32) {
    out.push(kind);
    out.extend(number.to_le_bytes());
}

fn run_fields(out: &mut Vec<u8>, kind: u8, run: Run) {
    number(out, kind, run.piece.0);
    out.extend([run.leaf, run.count]);
}

/// `None` unless the fields are those of this kind, without a byte too many.
fn fields_of(kind: u8, fields: &[u8]) -> Option<Message<'_>> {
    Some(match kind {
        0 => Message::Hello(hello(fields)?),
        1 if !fields.is_empty() => Message::Bitfield(fields),
        2 => Message::Have(PieceIndex(whole_number(fields)?)),
        3 => Message::Request(run(fields)?),
        4 => {
            let (piece, rest) = split_number(fields)?;
            let (&first, bytes) = rest.split_first()?;
            let count = bytes.len().div_ceil(LEAF);
            if count > LEAVES_PER_MESSAGE {
                return None;
            }
            let piece = PieceIndex(piece);
            Run::new(piece, first, count as u8)?;
            Message::Leaves {
                piece,
                first,
                bytes,
            }
        }
        5 => Message::Cancel(run(fields)?),
        6 => {
            let (reason, run_fields) = fields.split_last()?;
            let reason = match reason {
                0 => Reject::NotHere,
                1 => Reject::NotSharing,
                2 => Reject::Cancelled,
                _ => return None,
            };
            Message::Reject(run(run_fields)?, reason)
        }
        7 => Message::AskHashes(PieceIndex(whole_number(fields)?)),
        8 => {
            let (piece, hashes) = hashes(fields, LEAVES_PER_PIECE as usize)?;
            let piece = PieceIndex(piece);
            Message::Hashes { piece, hashes }
        }
        9 => Message::AskLayer {
            first: whole_number(fields)?,
        },
        10 => {
            let (first, hashes) = hashes(fields, LAYER_HASHES_MAX)?;
            Message::Layer { first, hashes }
        }
        11 => Message::Ping(whole_number(fields)?),
        12 => Message::Pong(whole_number(fields)?),
        _ => return None,
    })
}

fn hello(fields: &[u8]) -> Option<Hello> {
    let fields: &[u8; HELLO_FIELDS] = fields.try_into().ok()?;
    let (version, rest) = fields.split_first()?;
    let (root, rest) = rest.split_first_chunk::<32>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (piece_len, nonce) = rest.split_first_chunk::<4>()?;
    Some(Hello {
        version: *version,
        id: ModelId {
            root: Root(Digest(*root)),
            length: u64::from_le_bytes(*length),
        },
        piece_len: u32::from_le_bytes(*piece_len),
        nonce: u64::from_le_bytes(nonce.try_into().ok()?),
    })
}

fn split_number(fields: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = fields.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

fn whole_number(fields: &[u8]) -> Option<u32> {
    match split_number(fields)? {
        (number, []) => Some(number),
        _ => None,
    }
}

fn run(fields: &[u8]) -> Option<Run> {
    match split_number(fields)? {
        (piece, [leaf, count]) => Run::new(PieceIndex(piece), *leaf, *count),
        _ => None,
    }
}

fn hashes(fields: &[u8], most: usize) -> Option<(u32, &[[u8; 32]])> {
    let (number, rest) = split_number(fields)?;
    match rest.as_chunks::<32>() {
        (hashes, []) if (1..=most).contains(&hashes.len()) => Some((number, hashes)),
        _ => None,
    }
}

//! The SHA-256 Merkle tree of a file as BitTorrent v2 defines it (BEP 52).
//!
//! Leaves are the SHA-256 of 16 KiB each, the last one of what is left. The tree over them is
//! binary and balanced; leaves beyond the end of the file are 32 zero bytes. A file of at most one
//! piece has the smallest such tree; in a longer one every piece has all 64 leaves.
//! BEP 52 gives an empty file no root; here it is 32 zero bytes, a missing leaf.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use crate::leaves::leaf_hashes;
use crate::{Digest, FormatError, LEAF_BYTES, LEAVES_PER_PIECE, ModelId, PIECE_BYTES, Root};

/// Hash of each 1 MiB piece, in order; checked against a root when made from outside bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceLayer {
    pub id: ModelId,
    hashes: Vec<Digest>,
}

/// Computes a file's identity from its bytes in order, in any portions.
#[derive(Clone, Default)]
pub struct Hasher {
    leaf: Sha256,
    /// Bytes in the open leaf; below [`LEAF_BYTES`].
    leaf_len: u32,
    /// Whole leaves of the open piece; below [`LEAVES_PER_PIECE`].
    leaves: Vec<Digest>,
    pieces: Vec<Digest>,
    length: u64,
}

pub fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// Hash of one leaf of at most 16 KiB.
pub fn leaf_hash(bytes: &[u8]) -> Digest {
    sha256(bytes)
}

/// Root of one piece's subtree. For a file of at most one piece this is the file's root, so the
/// tree is as small as the file; otherwise every piece has 64 leaves, missing ones zero.
pub fn piece_hash(bytes: &[u8], file_len: u64) -> Digest {
    piece_hash_of_leaves(&leaf_hashes(bytes), file_len)
}

/// As [`piece_hash`], from the hashes of the piece's leaves.
pub fn piece_hash_of_leaves(leaves: &[Digest], file_len: u64) -> Digest {
    let width = match file_len <= u64::from(PIECE_BYTES) {
        true => leaves.len().next_power_of_two(),
        false => LEAVES_PER_PIECE as usize,
    };
    fold(leaves.to_vec(), width, Digest::default())
}

/// Root of a balanced tree of at least `width` (a power of two) nodes; missing ones are `filler`.
fn fold(mut row: Vec<Digest>, width: usize, mut filler: Digest) -> Digest {
    let mut width = width.max(row.len().next_power_of_two());
    while width > 1 {
        // Only the node at the end of the row can lack its right half: the rest of the row is
        // filler throughout, and one hash stands for all of it.
        row = row
            .chunks(2)
            .map(|pair| parent(&pair[0], pair.get(1).unwrap_or(&filler)))
            .collect();
        filler = parent(&filler, &filler);
        width /= 2;
    }
    row.first().copied().unwrap_or(filler)
}

fn parent(left: &Digest, right: &Digest) -> Digest {
    let mut hash = Sha256::new();
    hash.update(left.0);
    hash.update(right.0);
    Digest(hash.finalize().into())
}

/// Hash of a piece that lies wholly beyond the end of the file.
fn empty_piece() -> Digest {
    fold(Vec::new(), LEAVES_PER_PIECE as usize, Digest::default())
}

fn root_of(pieces: &[Digest]) -> Root {
    match pieces {
        [] => Root::default(),
        _ => Root(fold(pieces.to_vec(), 1, empty_piece())),
    }
}

impl PieceLayer {
    /// Takes the concatenated hashes (32 bytes a piece, a `.slm.pieces` file), checked against
    /// the root.
    pub fn parse(id: ModelId, bytes: &[u8]) -> Result<PieceLayer, FormatError> {
        let found = bytes.len() as u64;
        let expected = id
            .length
            .div_ceil(u64::from(PIECE_BYTES))
            .saturating_mul(32);
        if found != expected {
            return Err(FormatError::PieceLayerLength { expected, found });
        }
        let (hashes, _) = bytes.as_chunks::<32>();
        let hashes: Vec<Digest> = hashes.iter().map(|hash| Digest(*hash)).collect();
        match root_of(&hashes) == id.root {
            true => Ok(PieceLayer { id, hashes }),
            false => Err(FormatError::PieceLayerRoot),
        }
    }

    pub fn hashes(&self) -> &[Digest] {
        &self.hashes
    }

    /// The bytes of a `.slm.pieces` file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.hashes.iter().flat_map(|hash| hash.0).collect()
    }
}

impl Hasher {
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            // A piece is closed only when more follows: the only piece of a file has its own rule.
            if self.leaves.len() == LEAVES_PER_PIECE as usize {
                self.close_piece();
            }
            let room = (LEAF_BYTES - self.leaf_len) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.leaf.update(now);
            self.leaf_len += now.len() as u32;
            bytes = later;
            if self.leaf_len == LEAF_BYTES {
                self.close_leaf();
            }
        }
    }

    pub fn finish(mut self) -> PieceLayer {
        if self.leaf_len > 0 {
            self.close_leaf();
        }
        if !self.leaves.is_empty() {
            self.close_piece();
        }
        let id = ModelId {
            root: root_of(&self.pieces),
            length: self.length,
        };
        PieceLayer {
            id,
            hashes: self.pieces,
        }
    }

    fn close_leaf(&mut self) {
        self.leaves
            .push(Digest(core::mem::take(&mut self.leaf).finalize().into()));
        self.leaf_len = 0;
    }

    fn close_piece(&mut self) {
        self.pieces
            .push(piece_hash_of_leaves(&self.leaves, self.length));
        self.leaves.clear();
    }
}

//! Pieces whose bytes were hashed when they came, so that nobody hashes them again on the way to
//! the disk. Such a value is made only here, from bytes that gave the model's hashes.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::{
    Digest, LEAF_BYTES, LEAVES_PER_PIECE, ModelId, PieceIndex, PieceLayer, leaf_hash, piece_hash,
    piece_hash_of_leaves,
};

/// One piece of a model, with the bytes that it must have.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifiedPiece {
    id: ModelId,
    piece: PieceIndex,
    bytes: Vec<u8>,
}

impl VerifiedPiece {
    /// `None` if these are not the piece's bytes.
    pub fn check(layer: &PieceLayer, piece: PieceIndex, bytes: Vec<u8>) -> Option<VerifiedPiece> {
        let id = layer.id;
        let want = layer.hashes().get(piece.0 as usize)?;
        let (_, len) = id.piece_range(piece);
        let is_right = bytes.len() == len as usize && piece_hash(&bytes, id.length) == *want;
        is_right.then_some(VerifiedPiece { id, piece, bytes })
    }

    /// The model that it is a piece of.
    pub fn id(&self) -> ModelId {
        self.id
    }

    pub fn piece(&self) -> PieceIndex {
        self.piece
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Without the bytes, which are a MiB.
impl fmt::Debug for VerifiedPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "piece {} of {}", self.piece.0, self.id.root)
    }
}

/// A piece that comes leaf by leaf, each verified before it counts.
pub struct PieceByLeaves {
    id: ModelId,
    piece: PieceIndex,
    /// Of its leaves; together they give the piece's hash.
    hashes: Vec<Digest>,
    bytes: Vec<u8>,
    is_here: [bool; LEAVES_PER_PIECE as usize],
    missing: usize,
}

impl PieceByLeaves {
    /// `None` if the hashes of the leaves do not give the hash of the piece.
    pub fn new(
        layer: &PieceLayer,
        piece: PieceIndex,
        hashes: Vec<Digest>,
    ) -> Option<PieceByLeaves> {
        let id = layer.id;
        let want = layer.hashes().get(piece.0 as usize)?;
        let (_, len) = id.piece_range(piece);
        let missing = len.div_ceil(LEAF_BYTES) as usize;
        let is_right = hashes.len() == missing && piece_hash_of_leaves(&hashes, id.length) == *want;
        is_right.then(|| PieceByLeaves {
            id,
            piece,
            hashes,
            bytes: vec![0; len as usize],
            is_here: [false; LEAVES_PER_PIECE as usize],
            missing,
        })
    }

    /// Keeps a leaf; `false` if it is wrong or there is no such leaf.
    pub fn put(&mut self, leaf: u8, bytes: &[u8]) -> bool {
        let index = usize::from(leaf);
        let at = index * LEAF_BYTES as usize;
        let end = self.bytes.len().min(at + LEAF_BYTES as usize);
        let place = self.bytes.get_mut(at..end);
        let (Some(want), Some(place)) = (self.hashes.get(index), place) else {
            return false;
        };
        if place.len() != bytes.len() || leaf_hash(bytes) != *want {
            return false;
        }
        place.copy_from_slice(bytes);
        if !self.is_here[index] {
            self.is_here[index] = true;
            self.missing -= 1;
        }
        true
    }

    pub fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// `None` while a leaf is missing.
    pub fn finish(self) -> Option<VerifiedPiece> {
        let PieceByLeaves {
            id, piece, bytes, ..
        } = self;
        (self.missing == 0).then_some(VerifiedPiece { id, piece, bytes })
    }
}

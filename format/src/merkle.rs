//! The SHA-256 Merkle tree of a file as BitTorrent v2 defines it (BEP 52).

use alloc::vec::Vec;

use crate::{Digest, FormatError, ModelId};

/// Hash of each 1 MiB piece, in order; checked against a root when made from outside bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceLayer {
    pub id: ModelId,
    hashes: Vec<Digest>,
}

/// Computes a file's identity from its bytes in order, in any portions.
#[derive(Clone, Default)]
pub struct Hasher {
    _todo: (),
}

pub fn sha256(bytes: &[u8]) -> Digest {
    let _ = bytes;
    todo!()
}

/// Hash of one leaf of at most 16 KiB.
pub fn leaf_hash(bytes: &[u8]) -> Digest {
    sha256(bytes)
}

/// Root of one piece's subtree. For a file of at most one piece this is the file's root, so the
/// tree is as small as the file; otherwise every piece has 64 leaves, missing ones zero.
pub fn piece_hash(bytes: &[u8], file_len: u64) -> Digest {
    let _ = (bytes, file_len);
    todo!()
}

impl PieceLayer {
    /// Takes the concatenated hashes (32 bytes a piece, a `.slm.pieces` file), checked against
    /// the root.
    pub fn parse(id: ModelId, bytes: &[u8]) -> Result<PieceLayer, FormatError> {
        let _ = (id, bytes);
        todo!()
    }

    pub fn hashes(&self) -> &[Digest] {
        &self.hashes
    }

    /// The bytes of a `.slm.pieces` file.
    pub fn to_bytes(&self) -> Vec<u8> {
        todo!()
    }
}

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        let _ = bytes;
        todo!()
    }

    pub fn finish(self) -> PieceLayer {
        todo!()
    }
}

//! Files of every awkward length.

use std::sync::OnceLock;

use format::{Hasher, LEAF_BYTES, ModelId, PIECE_BYTES, PieceIndex, PieceLayer};

pub struct Model {
    pub id: ModelId,
    pub layer: PieceLayer,
    bytes: Vec<u8>,
}

impl Model {
    pub fn piece(&self, piece: PieceIndex) -> &[u8] {
        let (at, len) = self.id.piece_range(piece);
        &self.bytes[at as usize..][..len as usize]
    }

    pub fn leaf(&self, piece: PieceIndex, leaf: u8) -> &[u8] {
        let leaves = self.piece(piece).chunks(LEAF_BYTES as usize);
        leaves.into_iter().nth(leaf.into()).unwrap_or_default()
    }
}

pub fn models() -> &'static [Model] {
    static MODELS: OnceLock<Vec<Model>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let (piece, leaf) = (PIECE_BYTES as usize, LEAF_BYTES as usize);
        let lengths = [
            1,
            leaf - 1,
            piece,
            piece + 1,
            3 * piece + leaf + 7,
            5 * piece,
            8 * piece + 3 * leaf,
            22 * piece + leaf + 1,
        ];
        lengths.into_iter().map(model).collect()
    })
}

/// No two leaves are alike.
pub fn model(len: usize) -> Model {
    let mut state = len as u32 | 0x8000_0000;
    let step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()
    };
    let words = std::iter::repeat_with(step).take(len.div_ceil(4));
    let mut bytes: Vec<u8> = words.flatten().collect();
    bytes.truncate(len);
    let mut hasher = Hasher::default();
    hasher.update(&bytes);
    let layer = hasher.finish();
    Model {
        id: layer.id,
        layer,
        bytes,
    }
}

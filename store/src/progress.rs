//! How far an import has come.

use format::{ModelId, PIECE_BYTES, PieceIndex};

use crate::Bitfield;

/// How much of a model is verified and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub bytes: u64,
    pub bytes_total: u64,
    pub pieces: u32,
    pub pieces_total: u32,
}

impl Progress {
    pub(crate) fn of(id: ModelId, have: &Bitfield) -> Progress {
        let whole = u64::from(PIECE_BYTES);
        let last = PieceIndex(id.pieces().saturating_sub(1));
        let missing_tail = match have.contains(last) {
            true => whole - u64::from(id.piece_range(last).1),
            false => 0,
        };
        Progress {
            bytes: u64::from(have.count()) * whole - missing_tail,
            bytes_total: id.length,
            pieces: have.count(),
            pieces_total: id.pieces(),
        }
    }
}

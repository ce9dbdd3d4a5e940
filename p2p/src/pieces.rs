//! A set of pieces, as it also stands in a bitfield message.

use format::PieceIndex;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceSet {
    /// The first piece in the highest bit of the first byte; spare bits are zero.
    bits: Vec<u8>,
    len: u32,
    count: u32,
}

impl PieceSet {
    pub fn empty(len: u32) -> PieceSet {
        PieceSet {
            bits: vec![0; len.div_ceil(8) as usize],
            len,
            count: 0,
        }
    }

    pub fn full(len: u32) -> PieceSet {
        let mut set = PieceSet::empty(len);
        for piece in (0..len).map(PieceIndex) {
            set.insert(piece);
        }
        set
    }

    /// `None` unless it has the right length and no spare bit is set.
    pub fn from_bytes(len: u32, bits: &[u8]) -> Option<PieceSet> {
        let spare = (8 - len % 8) % 8;
        let clean = bits
            .last()
            .is_none_or(|last| last.trailing_zeros() >= spare);
        let count = bits.iter().map(|byte| byte.count_ones()).sum();
        let bits = bits.to_vec();
        (bits.len() as u32 == len.div_ceil(8) && clean).then_some(PieceSet { bits, len, count })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bits
    }

    pub fn contains(&self, piece: PieceIndex) -> bool {
        piece.0 < self.len && self.bits[piece.0 as usize / 8] & bit(piece) != 0
    }

    /// Whether it was not there before. A piece that the model does not have is never there.
    pub fn insert(&mut self, piece: PieceIndex) -> bool {
        let is_new = piece.0 < self.len && !self.contains(piece);
        if is_new {
            self.bits[piece.0 as usize / 8] |= bit(piece);
            self.count += 1;
        }
        is_new
    }

    pub fn remove(&mut self, piece: PieceIndex) -> bool {
        let was_here = self.contains(piece);
        if was_here {
            self.bits[piece.0 as usize / 8] &= !bit(piece);
            self.count -= 1;
        }
        was_here
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Pieces of the model.
    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    pub fn iter(&self) -> impl Iterator<Item = PieceIndex> {
        (0..self.len)
            .map(PieceIndex)
            .filter(|piece| self.contains(*piece))
    }
}

fn bit(piece: PieceIndex) -> u8 {
    0x80 >> (piece.0 % 8)
}

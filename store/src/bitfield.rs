//! A set of pieces, one bit each.

use format::PieceIndex;

/// Which of a model's pieces. Bit order in the byte form is BitTorrent's: piece 0 is the highest
/// bit of the first byte (BEP 3, `bitfield`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bitfield {
    bytes: Vec<u8>,
    pieces: u32,
    count: u32,
}

impl Bitfield {
    pub fn empty(pieces: u32) -> Bitfield {
        Bitfield {
            bytes: vec![0; pieces.div_ceil(8) as usize],
            pieces,
            count: 0,
        }
    }

    /// `None` if the length is wrong or a bit past the last piece is set.
    pub fn from_bytes(pieces: u32, bytes: &[u8]) -> Option<Bitfield> {
        if bytes.len() != pieces.div_ceil(8) as usize {
            return None;
        }
        let used = pieces % 8;
        let spare = if used == 0 { 0 } else { 0xff >> used };
        if bytes.last().is_some_and(|last| last & spare != 0) {
            return None;
        }
        Some(Bitfield {
            bytes: bytes.to_vec(),
            pieces,
            count: bytes.iter().map(|byte| byte.count_ones()).sum(),
        })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many pieces there could be.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn is_full(&self) -> bool {
        self.count == self.pieces
    }

    /// `false` for a piece that the model does not have.
    pub fn contains(&self, piece: PieceIndex) -> bool {
        piece.0 < self.pieces && self.bytes[piece.0 as usize / 8] & mask(piece) != 0
    }

    /// A piece that the model does not have is ignored.
    pub fn insert(&mut self, piece: PieceIndex) {
        if piece.0 < self.pieces && !self.contains(piece) {
            self.bytes[piece.0 as usize / 8] |= mask(piece);
            self.count += 1;
        }
    }

    pub fn remove(&mut self, piece: PieceIndex) {
        if self.contains(piece) {
            self.bytes[piece.0 as usize / 8] &= !mask(piece);
            self.count -= 1;
        }
    }

    /// The pieces that are here, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PieceIndex> + '_ {
        (0..self.pieces)
            .map(PieceIndex)
            .filter(|&piece| self.contains(piece))
    }
}

fn mask(piece: PieceIndex) -> u8 {
    0x80 >> (piece.0 % 8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bit_order_is_that_of_bep_3() {
        let mut set = Bitfield::empty(11);
        for piece in [0, 9, 10] {
            set.insert(PieceIndex(piece));
        }
        assert_eq!(set.as_bytes(), [0b1000_0000, 0b0110_0000]);
    }

    #[test]
    fn spare_bits_and_wrong_lengths_are_refused() {
        assert_eq!(Bitfield::from_bytes(11, &[0, 0b0001_0000]), None);
        assert_eq!(Bitfield::from_bytes(11, &[0]), None);
        assert_eq!(Bitfield::from_bytes(11, &[0, 0, 0]), None);
        assert!(Bitfield::from_bytes(8, &[0xff]).is_some_and(|set| set.is_full()));
        assert!(Bitfield::from_bytes(0, &[]).is_some_and(|set| set.is_full()));
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(
            pieces in 0u32..70,
            steps in prop::collection::vec((any::<bool>(), 0u32..80), 0..120),
        ) {
            let mut set = Bitfield::empty(pieces);
            let mut model = BTreeSet::new();
            for (add, piece) in steps {
                if add {
                    set.insert(PieceIndex(piece));
                    if piece < pieces {
                        model.insert(PieceIndex(piece));
                    }
                } else {
                    set.remove(PieceIndex(piece));
                    model.remove(&PieceIndex(piece));
                }
            }
            prop_assert_eq!(set.count() as usize, model.len());
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert_eq!(Bitfield::from_bytes(pieces, set.as_bytes()), Some(set));
        }
    }
}

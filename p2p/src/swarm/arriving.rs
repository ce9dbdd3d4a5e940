//! A piece that comes leaf by leaf, each verified before it counts.

use format::{Digest, LEAF_BYTES, ModelId, PieceByLeaves, PieceIndex, PieceLayer, VerifiedPiece};

use crate::LinkId;

pub struct Arriving {
    /// Who was asked for the hashes; until they are here nobody else is asked for leaves.
    pub opener: LinkId,
    /// Set when the hashes of its leaves are known.
    content: Option<PieceByLeaves>,
    len: u32,
    leaves: Vec<Leaf>,
}

#[derive(Clone, Default)]
struct Leaf {
    is_here: bool,
    /// Who owes it to somebody who still waits.
    asked: Vec<LinkId>,
}

impl Arriving {
    pub fn new(opener: LinkId, len: u32) -> Arriving {
        let count = leaf_count(len);
        Arriving {
            opener,
            content: None,
            len,
            leaves: vec![Leaf::default(); usize::from(count)],
        }
    }

    pub fn held(&self) -> u64 {
        self.len.into()
    }

    pub fn knows_hashes(&self) -> bool {
        self.content.is_some()
    }

    /// Leaves may be asked of this peer.
    pub fn takes(&self, link: LinkId) -> bool {
        self.content.is_some() || self.opener == link
    }

    /// `false` if they do not give the hash of the piece.
    pub fn learn_hashes(
        &mut self,
        layer: &PieceLayer,
        piece: PieceIndex,
        hashes: &[[u8; 32]],
    ) -> bool {
        let hashes: Vec<Digest> = hashes.iter().map(|hash| Digest(*hash)).collect();
        self.content = PieceByLeaves::new(layer, piece, hashes);
        self.content.is_some()
    }

    /// Keeps a leaf if it is right. `None`: nobody can tell yet.
    pub fn put(&mut self, leaf: u8, bytes: &[u8]) -> Option<bool> {
        let is_right = self.content.as_mut()?.put(leaf, bytes);
        self.leaves[usize::from(leaf)].is_here |= is_right;
        Some(is_right)
    }

    pub fn has(&self, leaf: u8) -> bool {
        self.leaves[usize::from(leaf)].is_here
    }

    pub fn is_whole(&self) -> bool {
        self.content.as_ref().is_some_and(PieceByLeaves::is_whole)
    }

    /// `None` while a leaf is missing.
    pub fn finish(self) -> Option<VerifiedPiece> {
        self.content?.finish()
    }

    pub fn ask(&mut self, leaf: u8, link: LinkId) {
        self.leaves[usize::from(leaf)].asked.push(link);
    }

    /// This peer is not waited for any more.
    pub fn unask(&mut self, leaf: u8, link: LinkId) {
        self.leaves[usize::from(leaf)]
            .asked
            .retain(|known| *known != link);
    }

    /// Who else was asked for this leaf; nobody is from now on.
    pub fn others(&mut self, leaf: u8) -> Vec<LinkId> {
        std::mem::take(&mut self.leaves[usize::from(leaf)].asked)
    }

    /// Everybody who owes leaves, with them.
    pub fn owed(&self) -> impl Iterator<Item = (LinkId, u8)> {
        let leaves = (0..).zip(&self.leaves);
        leaves.flat_map(|(index, leaf)| leaf.asked.iter().map(move |link| (*link, index)))
    }

    pub fn is_idle(&self) -> bool {
        self.leaves.iter().all(|leaf| leaf.asked.is_empty())
    }

    /// The first neighbouring leaves, at most so many, that nobody was asked for and that the peer
    /// to be asked does not owe from before.
    pub fn unasked(&self, most: u32, owes: impl Fn(u8) -> bool) -> Option<(u8, u8)> {
        self.run(most, |index, leaf| {
            !leaf.is_here && leaf.asked.is_empty() && !owes(index)
        })
    }

    /// The same, whoever else was asked.
    pub fn missing(&self, most: u32, owes: impl Fn(u8) -> bool) -> Option<(u8, u8)> {
        self.run(most, |index, leaf| !leaf.is_here && !owes(index))
    }

    fn run(&self, most: u32, fits: impl Fn(u8, &Leaf) -> bool) -> Option<(u8, u8)> {
        let mut leaves = (0..)
            .zip(&self.leaves)
            .skip_while(|(index, leaf)| !fits(*index, leaf));
        let first = leaves.clone().next()?.0;
        let count = leaves
            .by_ref()
            .take(most as usize)
            .take_while(|(index, leaf)| fits(*index, leaf));
        Some((first, count.count() as u8))
    }
}

/// Leaves of a piece of so many bytes.
pub fn leaf_count(piece_len: u32) -> u8 {
    piece_len.div_ceil(LEAF_BYTES) as u8
}

/// Bytes of a leaf; 0 beyond the end of the file.
pub fn leaf_len(id: ModelId, piece: PieceIndex, leaf: u8) -> u32 {
    let (_, len) = id.piece_range(piece);
    len.saturating_sub(u32::from(leaf) * LEAF_BYTES)
        .min(LEAF_BYTES)
}

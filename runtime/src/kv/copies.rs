//! Pages that leave the engine and come back: the same bytes, and so the same answers.
//!
//! A copy of a page is every layer's keys and then its values: first of the layers that see
//! everything, then of those that see a window, unless the window has left the page. Who keeps
//! copies answers for their truth; the engine only checks that they fit.

use protocol::TrResult;

use super::store::cell_bytes;
use super::{Cache, Layer};
use crate::kernels::KV_BLOCK;

impl Cache {
    /// Leading tokens of `ids` that are known.
    pub fn known(&self, ids: &[u32]) -> usize {
        self.tree.known(ids)
    }

    /// Bytes of the copy of a page, with the layers that see a window.
    pub fn copy_bytes(&self) -> usize {
        self.bytes_of(false) + self.bytes_of(true)
    }

    fn bytes_of(&self, is_sliding: bool) -> usize {
        let layers = self.layers.iter();
        let count = layers
            .filter(|layer| layer.is_sliding == is_sliding)
            .count();
        2 * count * self.page_bytes()
    }

    /// Bytes of a page in one layer, keys or values.
    fn page_bytes(&self) -> usize {
        self.shape.page_len(self.format) * cell_bytes(self.format)
    }

    /// Writes the page of block `block` of `ids` to the beginning of `out`; gives its length.
    ///
    /// `InvalidArgument` if `ids` has no such block, `IllegalState` if it is not known to its end,
    /// `Bounds` if `out` is shorter than [`Cache::copy_bytes`].
    pub fn copy_out(&self, ids: &[u32], block: usize, out: &mut [u8]) -> Result<usize, TrResult> {
        let wanted = tokens(ids, block)?;
        let known = self.tree.page(ids, block).filter(|known| known.1 == wanted);
        let (page, _) = known.ok_or(TrResult::IllegalState)?;
        let rings = self.rings.as_ref();
        let ring = rings.and_then(|rings| rings.page(page, wanted));
        if out.len() < self.copy_bytes() {
            return Err(TrResult::Bounds);
        }
        let mut pages = out.chunks_exact_mut(self.page_bytes());
        let mut len = 0;
        for (is_sliding, page) in [(false, Some(page)), (true, ring)] {
            let Some(page) = page else { continue };
            let of_kind = |layer: &&Layer| layer.is_sliding == is_sliding;
            for layer in self.layers.iter().filter(of_kind) {
                for (store, out) in [&layer.keys, &layer.values].into_iter().zip(&mut pages) {
                    store.page_out(page as usize, out);
                }
            }
            len += self.bytes_of(is_sliding);
        }
        Ok(len)
    }

    /// Makes block `block` of `ids` known, from its copy. Every block before it must be known.
    ///
    /// `InvalidArgument` if `ids` has no such block or `bytes` is no such page, `IllegalState` if
    /// a block before it is missing.
    pub fn copy_in(&mut self, ids: &[u32], block: usize, bytes: &[u8]) -> Result<(), TrResult> {
        let wanted = tokens(ids, block)?;
        let (before, whole) = (self.bytes_of(false), self.copy_bytes());
        if bytes.len() != before && bytes.len() != whole {
            return Err(TrResult::InvalidArgument);
        }
        let start = block * KV_BLOCK;
        let ids = &ids[..start + wanted];
        if self.tree.known(&ids[..start]) < start {
            return Err(TrResult::IllegalState);
        }
        self.enter(ids, ids.len());
        let reached = self.reach_blocks(ids.len());
        if reached.is_ok() {
            self.put(false, self.tree.path()[block], &bytes[..before]);
            self.tree.commit(ids);
            if bytes.len() == whole {
                self.put_ring(block, wanted, &bytes[before..]);
            }
        }
        self.leave();
        reached
    }

    fn put_ring(&mut self, block: usize, len: usize, bytes: &[u8]) {
        let start = block * KV_BLOCK;
        let path = self.tree.path();
        let Some(rings) = &mut self.rings else {
            return;
        };
        if rings.reach(path, start..start + len) {
            let page = rings.path()[block];
            rings.fill(page, len);
            self.put(true, page, bytes);
        }
    }

    fn put(&mut self, is_sliding: bool, page: u32, bytes: &[u8]) {
        let mut pages = bytes.chunks_exact(self.page_bytes());
        let of_kind = |layer: &&mut Layer| layer.is_sliding == is_sliding;
        for layer in self.layers.iter_mut().filter(of_kind) {
            for (store, bytes) in [&mut layer.keys, &mut layer.values]
                .into_iter()
                .zip(&mut pages)
            {
                store.page_in(page as usize, bytes);
            }
        }
    }
}

/// How many tokens of `ids` are in that block.
fn tokens(ids: &[u32], block: usize) -> Result<usize, TrResult> {
    let start = block.saturating_mul(KV_BLOCK);
    match ids.len().saturating_sub(start).min(KV_BLOCK) {
        0 => Err(TrResult::InvalidArgument),
        count => Ok(count),
    }
}

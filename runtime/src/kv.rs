//! The key/value cache: layer by layer, each layer in pages of 32 positions.
//!
//! A page holds a block of 32 positions of every key/value head, head after head, in the layout
//! that the attention kernel reads. Room for the whole context is reserved when the model is
//! opened; a page is first written when it is first needed, so memory that a short conversation
//! does not need is never touched.
//!
//! Which tokens stand on which pages is the tree's knowledge: what one request has computed, later
//! ones find again, also after others. Reading order: `store` (one layer's pages), `tree`, `rings`
//! (layers that see a window), `copies` (pages that leave the engine and come back).
//!
//! A position is valid when `generate` has committed it.

mod copies;
mod rings;
mod store;
mod tree;

use alloc::vec::Vec;

use format::{Architecture, Mixer};
use protocol::{Stage, TrResult};

use crate::RuntimeError;
use crate::error::reserve_memory;
use crate::kernels::{KV_BLOCK, KvHead};
use crate::plan::KvFormat;
use rings::{Rings, ring_pages};
use store::{Order, Shape, Store};
use tree::Tree;

pub struct Cache {
    layers: Vec<Layer>,
    shape: Shape,
    format: KvFormat,
    tree: Tree,
    /// If a layer sees only a window.
    rings: Option<Rings>,
}

struct Layer {
    keys: Store,
    values: Store,
    is_sliding: bool,
}

/// Pages that a cache has.
struct Pages {
    /// Of the tree, and of each layer that sees everything.
    blocks: u64,
    /// Of each layer that sees a window.
    ring: u64,
    /// The widest window.
    window: Option<u32>,
}

impl Pages {
    fn of(architecture: &Architecture, context: u32, tile: u32) -> Pages {
        let blocks = u64::from(context).div_ceil(KV_BLOCK as u64);
        let windows = architecture
            .layers
            .iter()
            .filter_map(|layer| layer.mixer.window());
        let window = windows.max();
        Pages {
            blocks,
            ring: window.map_or(0, |window| ring_pages(window, tile, blocks)),
            window,
        }
    }

    fn of_layer(&self, mixer: Mixer) -> u64 {
        match mixer.window() {
            None => self.blocks,
            Some(_) => self.ring,
        }
    }
}

/// Bytes of the cache for `context` positions that are computed `tile` at a time, or `None` if that
/// does not fit 64 bits.
pub fn cache_bytes(
    architecture: &Architecture,
    format: KvFormat,
    context: u32,
    tile: u32,
) -> Option<u64> {
    let pages = Pages::of(architecture, context, tile);
    let head = format
        .head_bytes(architecture.head_dim)
        .checked_mul(KV_BLOCK as u64)?;
    let page = head.checked_mul(2 * u64::from(architecture.kv_heads))?;
    let layers = architecture.layers.iter();
    let count = layers.map(|layer| pages.of_layer(layer.mixer)).sum::<u64>();
    let rings = match pages.window {
        None => 0,
        Some(_) => Rings::bytes(pages.ring, pages.blocks)?,
    };
    let tables = Tree::bytes(pages.blocks)?.checked_add(rings)?;
    page.checked_mul(count)?.checked_add(tables)
}

impl Cache {
    /// Reserves exactly [`cache_bytes`], besides one small record a layer.
    pub fn new(
        architecture: &Architecture,
        format: KvFormat,
        context: u32,
        tile: u32,
    ) -> Result<Cache, RuntimeError> {
        let shape = Shape {
            heads: architecture.kv_heads as usize,
            head_dim: architecture.head_dim as usize,
        };
        let pages = Pages::of(architecture, context, tile);
        let mut layers = reserve_memory(architecture.layers.len(), Stage::Allocate)?;
        for (index, layer) in architecture.layers.iter().enumerate() {
            let len = pages.of_layer(layer.mixer) as usize * shape.page_len(format);
            let store = || Store::reserve(format, len).map_err(|error| error.item(index));
            layers.push(Layer {
                keys: store()?,
                values: store()?,
                is_sliding: layer.mixer.window().is_some(),
            });
        }
        let rings = |window| Rings::new(window, pages.ring as usize, pages.blocks as usize);
        Ok(Cache {
            layers,
            shape,
            format,
            tree: Tree::new(pages.blocks as usize)?,
            rings: pages.window.map(rings).transpose()?,
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let layers = self.layers.iter();
        let stores = layers.flat_map(|layer| [&layer.keys, &layer.values]);
        let rings = self.rings.as_ref().map_or(0, Rings::taken);
        stores.map(Store::taken).sum::<u64>() + self.tree.taken() + rings
    }

    /// Begins a sequence that starts with `ids`; gives how many of them, at most `most`, need not
    /// be computed again.
    pub fn enter(&mut self, ids: &[u32], most: usize) -> usize {
        let found = self.tree.enter(ids);
        let (mut known, mut ring_copy) = (found.known.min(most), None);
        if let Some(rings) = &mut self.rings {
            let path = self.tree.path();
            ring_copy = found
                .copy
                .and_then(|(from, to)| rings.branch(path, [from, to], found.known));
            known = rings.enter(path, known);
        }
        for (is_sliding, copy) in [(false, found.copy), (true, ring_copy)] {
            if let Some((from, to)) = copy {
                self.copy(is_sliding, from, to);
            }
        }
        known
    }

    fn copy(&mut self, is_sliding: bool, from: u32, to: u32) {
        let page_len = self.shape.page_len(self.format);
        let of_kind = |layer: &&mut Layer| layer.is_sliding == is_sliding;
        for layer in self.layers.iter_mut().filter(of_kind) {
            for store in [&mut layer.keys, &mut layer.values] {
                store.copy_page(page_len, from as usize, to as usize);
            }
        }
    }

    /// Makes room for the positions `start..end`.
    pub fn reach(&mut self, start: usize, end: usize) -> Result<(), TrResult> {
        self.reach_blocks(end)?;
        let path = self.tree.path();
        let rings = self.rings.as_mut();
        match rings.is_none_or(|rings| rings.reach(path, start..end)) {
            true => Ok(()),
            false => Err(TrResult::InternalInvariant),
        }
    }

    /// The same in the tree alone. The context is checked before anything begins, so a refusal is
    /// a fault of the engine.
    fn reach_blocks(&mut self, end: usize) -> Result<(), TrResult> {
        let before = self.tree.path().len();
        if !self.tree.reach(end) {
            return Err(TrResult::InternalInvariant);
        }
        if let Some(rings) = &mut self.rings {
            let taken = &self.tree.path()[before..];
            taken.iter().for_each(|page| rings.release(*page));
        }
        Ok(())
    }

    /// The positions of `ids` are valid from now on, also for later requests.
    pub fn commit(&mut self, ids: &[u32]) {
        self.tree.commit(ids);
        if let Some(rings) = &mut self.rings {
            rings.commit(ids.len());
        }
    }

    /// Ends the sequence; what was committed stays known.
    pub fn leave(&mut self) {
        self.tree.leave();
    }

    /// Forgets all sequences.
    pub fn clear(&mut self) {
        self.tree.clear();
        if let Some(rings) = &mut self.rings {
            rings.clear();
        }
    }

    /// Writes one position's `key` and `value`, each `[kv_heads][head_dim]`.
    pub fn write(&mut self, layer: usize, position: usize, key: &[f32], value: &[f32]) {
        let (block, slot) = (position / KV_BLOCK, position % KV_BLOCK);
        let page = self.pages(layer)[block] as usize;
        let len = (page + 1) * self.shape.page_len(self.format);
        let layer = &mut self.layers[layer];
        for (store, order, x) in [
            (&mut layer.keys, Order::Keys, key),
            (&mut layer.values, Order::Values, value),
        ] {
            store.grow_to(len);
            store.write(self.shape, order, page, slot, x);
        }
    }

    /// What attention reads of one key/value head.
    pub fn head(&self, layer: usize, head: usize) -> KvHead<'_> {
        let first = head * self.shape.head_len(self.format);
        let pages = self.pages(layer);
        let layer = &self.layers[layer];
        KvHead {
            keys: layer.keys.cells(first),
            values: layer.values.cells(first),
            pages,
            stride: self.shape.page_len(self.format),
            head_dim: self.shape.head_dim,
        }
    }

    /// Where the blocks of the sequence lie in a layer.
    fn pages(&self, layer: usize) -> &[u32] {
        match &self.rings {
            Some(rings) if self.layers[layer].is_sliding => rings.path(),
            _ => self.tree.path(),
        }
    }
}

//! The key/value cache: layer by layer, each layer in blocks of 32 positions.
//!
//! Within a layer, block `b` holds positions `32b..32b+32` of every key/value head, head after
//! head, in the layout that the attention kernel reads: keys `[kv_heads][head_dim][32]`, values
//! `[kv_heads][32][head_dim]`. Room for the whole context is reserved when the model is opened;
//! a block is first written when its first position arrives, so memory that a short conversation
//! does not need is never touched.
//!
//! The cache does not know which positions are valid: `generate` publishes that.

use alloc::vec::Vec;

use format::Architecture;
use protocol::{Stage, TrResult};

use crate::RuntimeError;
use crate::error::reserve_memory;
use crate::kernels::{Cells, KV_BLOCK, KvHead, f16_from_f32};
use crate::plan::KvFormat;

pub struct Cache {
    layers: Vec<Layer>,
    kv_heads: usize,
    head_dim: usize,
}

struct Layer {
    keys: Store,
    values: Store,
}

enum Store {
    F32(Vec<f32>),
    /// Bits of 16-bit floats, and whether none of all that were ever written was infinite or NaN.
    F16(Vec<u16>, bool),
}

/// Bytes of the cache for `context` positions, or `None` if that does not fit 64 bits.
pub fn cache_bytes(architecture: &Architecture, format: KvFormat, context: u32) -> Option<u64> {
    let blocks = u64::from(context).div_ceil(KV_BLOCK as u64);
    let position = format.head_bytes(architecture.head_dim) * u64::from(architecture.kv_heads);
    blocks
        .checked_mul(KV_BLOCK as u64)?
        .checked_mul(2 * position)?
        .checked_mul(architecture.layers.len() as u64)
}

impl Cache {
    /// Reserves exactly [`cache_bytes`], besides one small record a layer.
    pub fn new(
        architecture: &Architecture,
        format: KvFormat,
        context: u32,
    ) -> Result<Cache, RuntimeError> {
        let kv_heads = architecture.kv_heads as usize;
        let head_dim = architecture.head_dim as usize;
        let len = (context as usize).div_ceil(KV_BLOCK) * KV_BLOCK * kv_heads * head_dim;
        let mut layers = reserve_memory(architecture.layers.len(), Stage::Allocate)?;
        for layer in 0..architecture.layers.len() {
            let store = || Store::reserve(format, len).map_err(|error| error.item(layer));
            layers.push(Layer {
                keys: store()?,
                values: store()?,
            });
        }
        Ok(Cache {
            layers,
            kv_heads,
            head_dim,
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let stores = self
            .layers
            .iter()
            .flat_map(|layer| [&layer.keys, &layer.values]);
        stores.map(Store::taken).sum()
    }

    /// Writes one position's `key` and `value`, each `[kv_heads][head_dim]`.
    pub fn write(&mut self, layer: usize, position: usize, key: &[f32], value: &[f32]) {
        let head_dim = self.head_dim;
        let head_len = head_dim * KV_BLOCK;
        let block_len = self.kv_heads * head_len;
        let (block, slot) = (position / KV_BLOCK, position % KV_BLOCK);
        let layer = &mut self.layers[layer];
        layer.keys.grow_to((block + 1) * block_len);
        layer.values.grow_to((block + 1) * block_len);
        let heads = key.chunks_exact(head_dim).zip(value.chunks_exact(head_dim));
        for (head, (key, value)) in heads.enumerate() {
            let first = block * block_len + head * head_len;
            layer.keys.put(first + slot, KV_BLOCK, key);
            layer.values.put(first + slot * head_dim, 1, value);
        }
    }

    /// What attention reads of one key/value head: every block begun so far.
    pub fn head(&self, layer: usize, head: usize) -> KvHead<'_> {
        let head_len = self.head_dim * KV_BLOCK;
        let layer = &self.layers[layer];
        KvHead {
            keys: layer.keys.cells(head * head_len),
            values: layer.values.cells(head * head_len),
            stride: self.kv_heads * head_len,
            head_dim: self.head_dim,
        }
    }
}

impl Store {
    fn reserve(format: KvFormat, len: usize) -> Result<Store, RuntimeError> {
        Ok(match format {
            KvFormat::F32 => Store::F32(reserve_memory(len, Stage::Allocate)?),
            KvFormat::F16 => Store::F16(reserve_memory(len, Stage::Allocate)?, true),
            KvFormat::Int8 => {
                let code = TrResult::UnsupportedFeature;
                return Err(RuntimeError::new(code, Stage::Allocate));
            }
        })
    }

    fn taken(&self) -> u64 {
        let bytes = match self {
            Store::F32(cells) => cells.capacity() * size_of::<f32>(),
            Store::F16(cells, _) => cells.capacity() * size_of::<u16>(),
        };
        bytes as u64
    }

    /// Begins blocks up to `len` elements, all within the reserved memory.
    fn grow_to(&mut self, len: usize) {
        match self {
            Store::F32(cells) if cells.len() < len => cells.resize(len, 0.0),
            Store::F16(cells, _) if cells.len() < len => cells.resize(len, 0),
            _ => {}
        }
    }

    /// Element `i` of `values` goes to `first + i * step`.
    fn put(&mut self, first: usize, step: usize, values: &[f32]) {
        match self {
            Store::F32(cells) => {
                for (cell, value) in cells[first..].iter_mut().step_by(step).zip(values) {
                    *cell = *value;
                }
            }
            Store::F16(cells, finite) => {
                let mut halves = [0; 32];
                let mut cells = cells[first..].iter_mut().step_by(step);
                for values in values.chunks(halves.len()) {
                    for (half, value) in halves.iter_mut().zip(values) {
                        *half = f16_from_f32(*value);
                        *finite &= *half & 0x7c00 != 0x7c00;
                    }
                    // The halves lead: a zip takes one more from whichever side leads.
                    for (half, cell) in halves[..values.len()].iter().zip(cells.by_ref()) {
                        *cell = *half;
                    }
                }
            }
        }
    }

    fn cells(&self, first: usize) -> Cells<'_> {
        match self {
            Store::F32(cells) => Cells::F32(&cells[first..]),
            Store::F16(cells, true) => Cells::FiniteF16(&cells[first..]),
            Store::F16(cells, false) => Cells::F16(&cells[first..]),
        }
    }
}

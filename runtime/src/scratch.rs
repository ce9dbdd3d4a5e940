//! Every buffer of a forward pass, taken once when the model is opened.
//!
//! One list of lengths serves both the memory plan and the allocation, so that they cannot differ.

use alloc::vec::Vec;

use format::Architecture;
use protocol::{Stage, TrResult};

use crate::RuntimeError;
use crate::error::take_memory;
use crate::kernels::{Attention, Quantized};

/// Query heads that share a conversion of the cache: their scores still fit a first-level cache
/// for some hundred positions, and they make whole tiles of four.
const QUERIES_TOGETHER: usize = 12;

/// Lengths of all buffers, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    tile: usize,
    /// Positions whose residual streams and angles are kept together.
    group: usize,
    hidden: usize,
    queries: usize,
    keys: usize,
    ffn: usize,
    pairs: usize,
    /// What attention takes for one worker.
    attention: usize,
    workers: usize,
}

/// Rows belong to the positions of a tile, of `x`, `cos` and `sin` to those of a group; a row's
/// width stands beside its buffer.
pub struct Scratch {
    /// Residual stream: hidden.
    pub x: Vec<f32>,
    /// Normalized residual: hidden.
    pub normed: Vec<f32>,
    /// Queries: heads * head_dim.
    pub q: Vec<f32>,
    /// Keys and values: kv_heads * head_dim.
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    /// Attention output: heads * head_dim.
    pub mixed: Vec<f32>,
    /// What a mixer or an FFN adds to the residual: hidden.
    pub delta: Vec<f32>,
    /// FFN: ffn.
    pub gate: Vec<f32>,
    pub up: Vec<f32>,
    pub activated: Vec<f32>,
    /// Rotary angles: dim / 2.
    pub cos: Vec<f32>,
    pub sin: Vec<f32>,
    /// One row a worker: queries and output of the heads that go together, and what the kernel
    /// needs for them.
    pub attention: Vec<f32>,
    /// Codes of what enters a quantized matrix product: of `normed` or `mixed`, and of `activated`.
    pub codes: Quantized,
    pub wide_codes: Quantized,
}

impl Lengths {
    /// Buffers for tiles of `tile` positions, `group` of them in a group, within `context`, shared
    /// by `workers`. Every product fits 64 bits, because each is bounded by a tensor or the cache.
    pub fn new(
        architecture: &Architecture,
        tile: u32,
        group: u32,
        context: u32,
        workers: usize,
    ) -> Lengths {
        let head_dim = architecture.head_dim as usize;
        let shared = (architecture.heads / architecture.kv_heads.max(1)) as usize;
        let together = shared * Lengths::positions_together(shared).min(tile as usize);
        Lengths {
            tile: tile as usize,
            group: group as usize,
            hidden: architecture.hidden as usize,
            queries: architecture.heads as usize * head_dim,
            keys: architecture.kv_heads as usize * head_dim,
            ffn: architecture.ffn as usize,
            pairs: architecture.rope.dim as usize / 2,
            attention: 2 * together * head_dim
                + Attention::scratch_len(together, 0..context as usize, head_dim),
            workers,
        }
    }

    /// Neighbouring positions whose queries of one key/value head, `group` each, attend together.
    pub fn positions_together(group: usize) -> usize {
        (QUERIES_TOGETHER / group.max(1)).max(1)
    }

    /// Bytes that [`Scratch::new`] takes, or `None` if they do not fit 64 bits.
    pub fn bytes(&self) -> Option<u64> {
        let row = 2 * self.hidden as u64
            + 2 * self.queries as u64
            + 2 * self.keys as u64
            + 3 * self.ffn as u64;
        let kept = self.hidden as u64 + 2 * self.pairs as u64;
        let attention = (self.workers as u64).checked_mul(self.attention as u64)?;
        let floats = (self.tile as u64)
            .checked_mul(row)?
            .checked_add((self.group as u64).checked_mul(kept)?)?
            .checked_add(attention)?;
        floats
            .checked_mul(4)?
            .checked_add(Quantized::bytes(self.tile, self.hidden.max(self.queries)))?
            .checked_add(Quantized::bytes(self.tile, self.ffn))
    }
}

impl Scratch {
    pub fn new(lengths: &Lengths) -> Result<Scratch, RuntimeError> {
        let rows = |width: usize| take_memory::<f32>(lengths.tile * width, Stage::Allocate);
        let kept = |width: usize| take_memory::<f32>(lengths.group * width, Stage::Allocate);
        let codes = |width: usize| {
            Quantized::new(lengths.tile, width)
                .map_err(|code: TrResult| RuntimeError::new(code, Stage::Allocate))
        };
        Ok(Scratch {
            x: kept(lengths.hidden)?,
            normed: rows(lengths.hidden)?,
            q: rows(lengths.queries)?,
            k: rows(lengths.keys)?,
            v: rows(lengths.keys)?,
            mixed: rows(lengths.queries)?,
            delta: rows(lengths.hidden)?,
            gate: rows(lengths.ffn)?,
            up: rows(lengths.ffn)?,
            activated: rows(lengths.ffn)?,
            cos: kept(lengths.pairs)?,
            sin: kept(lengths.pairs)?,
            attention: take_memory(lengths.workers * lengths.attention, Stage::Allocate)?,
            codes: codes(lengths.hidden.max(lengths.queries))?,
            wide_codes: codes(lengths.ffn)?,
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let floats = [
            &self.x,
            &self.normed,
            &self.q,
            &self.k,
            &self.v,
            &self.mixed,
            &self.delta,
            &self.gate,
            &self.up,
            &self.activated,
            &self.cos,
            &self.sin,
            &self.attention,
        ];
        let floats = floats.iter().map(|floats| floats.capacity()).sum::<usize>();
        (floats * 4) as u64 + self.codes.taken() + self.wide_codes.taken()
    }
}

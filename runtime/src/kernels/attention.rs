//! Attention over a cache in blocks of 32 positions.

use core::ops::Range;

/// Positions in a block of the key/value cache.
pub const KV_BLOCK: usize = 32;

/// Elements of the cache.
#[derive(Clone, Copy)]
pub enum Cells<'a> {
    F32(&'a [f32]),
    /// Bits of 16-bit floats.
    F16(&'a [u16]),
}

/// The cache of one key/value head.
///
/// Position `p` is in block `p / 32` at slot `p % 32`. Block `b` begins at element `b * stride` of
/// `keys` and of `values`. A block of keys is `[head_dim][32]`: element `d` of slot `s` at
/// `d * 32 + s`. A block of values is `[32][head_dim]`: element `d` of slot `s` at
/// `s * head_dim + d`. The slots of the last block that hold no position may hold anything.
#[derive(Clone, Copy)]
pub struct KvHead<'a> {
    pub keys: Cells<'a>,
    pub values: Cells<'a>,
    /// Elements between the beginnings of two blocks; `32 * head_dim` if nothing lies between.
    pub stride: usize,
    pub head_dim: usize,
}

/// One position's query heads that read the same key/value head.
#[derive(Clone)]
pub struct Attention<'a> {
    /// `[count][head_dim]`, `count >= 1`.
    pub queries: &'a [f32],
    pub kv: KvHead<'a>,
    /// Positions that the query sees.
    pub span: Range<usize>,
    pub scale: f32,
    /// `cap * tanh(score / cap)`; 0 is off.
    pub softcap: f32,
}

impl Attention<'_> {
    /// Elements of `scores` that `count` query heads over `span` need at most.
    pub fn scores_len(count: usize, span: Range<usize>) -> usize {
        count * (span.end.next_multiple_of(KV_BLOCK) - span.start / KV_BLOCK * KV_BLOCK)
    }
}

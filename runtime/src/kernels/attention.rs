//! Attention over a cache in blocks of 32 positions, which may lie on any pages.
//!
//! Of an int8 cache a key is `code * scale` and so is a value. The scale is common to all elements
//! of a head at a position, so it is multiplied once: a score is `(sum of q * code) * factor *
//! scale`, and an exponential becomes `e * scale` before it weighs the codes. The sum `z` is taken
//! before.

use core::ops::Range;

use protocol::TrResult;

use super::half::f16_to_f32;
use super::vectors::{divide, exponentials, soft_cap};

/// Positions in a block of the key/value cache.
pub const KV_BLOCK: usize = 32;

/// Elements of the cache.
#[derive(Clone, Copy)]
pub enum Cells<'a> {
    F32(&'a [f32]),
    /// Bits of 16-bit floats.
    F16(&'a [u16]),
    /// Bits of 16-bit floats, none of them infinite or NaN.
    FiniteF16(&'a [u16]),
    /// Codes, and behind those of each block the f32 scales of its slots, little endian.
    Int8(&'a [i8]),
}

/// Bytes of a scale.
const SCALE: usize = size_of::<f32>();

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Cells::F32(cells) => cells.len(),
            Cells::F16(cells) | Cells::FiniteF16(cells) => cells.len(),
            Cells::Int8(cells) => cells.len(),
        }
    }

    /// Cells of one block of one head, scales included.
    fn block_len(&self, head_dim: usize) -> usize {
        let elements = KV_BLOCK * head_dim;
        match self {
            Cells::F32(_) | Cells::F16(_) | Cells::FiniteF16(_) => elements,
            Cells::Int8(_) => elements + KV_BLOCK * SCALE,
        }
    }

    /// The element without its scale, if it has one.
    #[inline(always)]
    fn get(&self, at: usize) -> f32 {
        match self {
            Cells::F32(cells) => cells[at],
            Cells::F16(cells) | Cells::FiniteF16(cells) => f16_to_f32(cells[at]),
            Cells::Int8(cells) => f32::from(cells[at]),
        }
    }
}

/// The cache of one key/value head.
///
/// Position `p` is in block `p / 32` at slot `p % 32`. Block `b` lies on page `pages[b]`, and page
/// `n` begins at cell `n * stride` of `keys` and of `values`. A block of keys is
/// `[head_dim][32]`: element `d` of slot `s` at `d * 32 + s`. A block of values is
/// `[32][head_dim]`: element `d` of slot `s` at `s * head_dim + d`. The slots of the last block
/// that hold no position may hold anything.
#[derive(Clone, Copy)]
pub struct KvHead<'a> {
    pub keys: Cells<'a>,
    pub values: Cells<'a>,
    /// Where each block lies.
    pub pages: &'a [u32],
    /// Cells between the beginnings of two pages.
    pub stride: usize,
    pub head_dim: usize,
}

impl KvHead<'_> {
    /// First cell of a block.
    #[inline(always)]
    pub(super) fn at(&self, block: usize) -> usize {
        self.pages[block] as usize * self.stride
    }

    /// Whether keys and values have every one of these blocks.
    fn has(&self, blocks: Range<usize>) -> bool {
        let Some(pages) = self.pages.get(blocks) else {
            return false;
        };
        let end = |page: &u32, cells: &Cells<'_>| {
            let first = (*page as usize).checked_mul(self.stride)?;
            first.checked_add(cells.block_len(self.head_dim))
        };
        let fits = |page, cells: &Cells<'_>| end(page, cells).is_some_and(|end| end <= cells.len());
        pages
            .iter()
            .all(|page| fits(page, &self.keys) && fits(page, &self.values))
    }

    /// Multiplies what belongs to the positions `span` by their scales, if `cells` have scales.
    #[inline(always)]
    fn scale(&self, cells: &Cells<'_>, span: Range<usize>, x: &mut [f32]) {
        let Cells::Int8(cells) = cells else {
            return;
        };
        let (mut from, mut rest) = (span.start, x);
        while from < span.end {
            let slot = from % KV_BLOCK;
            let count = (KV_BLOCK - slot).min(span.end - from);
            let first = self.at(from / KV_BLOCK) + KV_BLOCK * self.head_dim + slot * SCALE;
            let scales = cells[first..][..count * SCALE].as_chunks::<SCALE>().0;
            let (mine, after) = rest.split_at_mut(count);
            for (x, scale) in mine.iter_mut().zip(scales) {
                *x *= f32::from_le_bytes(scale.map(|byte| byte as u8));
            }
            (from, rest) = (from + count, after);
        }
    }
}

/// Query heads of neighbouring positions that read the same key/value head.
///
/// Several positions together read the cache once; what is computed for each of them is the same
/// as for it alone.
#[derive(Clone)]
pub struct Attention<'a> {
    /// `[positions][count][head_dim]`, `count >= 1`.
    pub queries: &'a [f32],
    pub positions: usize,
    pub kv: KvHead<'a>,
    /// Positions that the first position sees; each following one sees one more at the end.
    pub span: Range<usize>,
    pub scale: f32,
    /// `cap * tanh(score / cap)`; 0 is off.
    pub softcap: f32,
}

impl Attention<'_> {
    /// Elements of scratch for `queries` heads over all positions together, the last of which
    /// sees `span`.
    pub fn scratch_len(queries: usize, span: Range<usize>, head_dim: usize) -> usize {
        queries * padded(&span) + KV_BLOCK * head_dim + queries
    }

    /// Query heads of all positions.
    pub(super) fn queries(&self) -> usize {
        self.queries.len() / self.kv.head_dim
    }

    /// What the last position sees, and so somebody.
    pub(super) fn seen(&self) -> Range<usize> {
        self.span.start..self.span.end + (self.positions - 1)
    }

    /// Query head `query`'s position sees up to here.
    pub(super) fn end(&self, query: usize) -> usize {
        self.span.end + query / (self.queries() / self.positions)
    }

    /// Blocks that anybody sees.
    pub(super) fn blocks(&self) -> Range<usize> {
        self.span.start / KV_BLOCK..self.seen().end.div_ceil(KV_BLOCK)
    }
}

/// How an instruction set takes the two sums; everything else is the same for all.
///
/// `block` is scratch for one block of keys or values, `[32 * head_dim]`.
pub(super) trait Sums {
    /// `scores[p - start of the first block] = (sum over d of q[d] * k[p][d]) * scale` for whole
    /// blocks; `scores` is `[queries][padded]`. Of scaled cells only the codes count here.
    fn scores(&self, job: &Attention<'_>, scores: &mut [f32], block: &mut [f32]);

    /// `out[d] = sum over p of e[p] * v[p][d]` for what each query sees; `e` is
    /// `[queries][padded]`.
    fn values(&self, job: &Attention<'_>, e: &[f32], block: &mut [f32], out: &mut [f32]);

    /// Runs what is inlined into `work` on the instruction set.
    #[inline(always)]
    fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }
}

/// The whole of attention; `out` is shaped as the queries.
///
/// `InvalidArgument` for a span without keys, `Bounds` if the cache or a buffer is too short,
/// `NumericalFailure` if a score is NaN or the sum of exponentials is not finite and positive.
pub(super) fn attention(
    sums: &impl Sums,
    job: &Attention<'_>,
    scratch: &mut [f32],
    out: &mut [f32],
) -> Result<(), TrResult> {
    let head_dim = job.kv.head_dim;
    let empty = job.span.is_empty() || job.queries.is_empty();
    if empty || head_dim == 0 || job.positions == 0 {
        return Err(TrResult::InvalidArgument);
    }
    let queries = job.queries();
    if job.queries.len() != queries * head_dim
        || !queries.is_multiple_of(job.positions)
        || out.len() != job.queries.len()
        || scratch.len() < Attention::scratch_len(queries, job.seen(), head_dim)
        || !job.kv.has(job.blocks())
    {
        return Err(TrResult::Bounds);
    }
    let width = padded(&job.seen());
    let (scores, scratch) = scratch.split_at_mut(queries * width);
    let (block, scratch) = scratch.split_at_mut(KV_BLOCK * head_dim);
    let totals = &mut scratch[..queries];

    sums.scores(job, scores, block);
    let skipped = job.span.start % KV_BLOCK;
    let rows = scores.chunks_exact_mut(width).zip(totals.iter_mut());
    for (query, (scores, z)) in rows.enumerate() {
        let span = job.span.start..job.end(query);
        let scores = &mut scores[skipped..][..span.len()];
        *z = sums.with(|| {
            job.kv.scale(&job.kv.keys, span.clone(), scores);
            if job.softcap != 0.0 {
                soft_cap(scores, job.softcap);
            }
            let z = exponentials(scores)?;
            job.kv.scale(&job.kv.values, span, scores);
            Ok(z)
        })?;
    }
    sums.values(job, scores, block, out);
    for (out, z) in out.chunks_exact_mut(head_dim).zip(totals) {
        sums.with(|| divide(out, *z));
    }
    Ok(())
}

/// Positions of the blocks that `span` touches.
pub(super) fn padded(span: &Range<usize>) -> usize {
    span.end.next_multiple_of(KV_BLOCK) - span.start / KV_BLOCK * KV_BLOCK
}

/// The sums that define the bits.
pub(super) struct ScalarSums;

impl Sums for ScalarSums {
    fn scores(&self, job: &Attention<'_>, scores: &mut [f32], _block: &mut [f32]) {
        let KvHead { keys, head_dim, .. } = job.kv;
        let width = padded(&job.seen());
        for (q, scores) in job
            .queries
            .chunks_exact(head_dim)
            .zip(scores.chunks_exact_mut(width))
        {
            for (block, scores) in job.blocks().zip(scores.as_chunks_mut::<KV_BLOCK>().0) {
                let mut acc = [0.0f32; KV_BLOCK];
                for (d, q) in q.iter().enumerate() {
                    let row = job.kv.at(block) + d * KV_BLOCK;
                    for (slot, acc) in acc.iter_mut().enumerate() {
                        *acc += q * keys.get(row + slot);
                    }
                }
                *scores = acc.map(|sum| sum * job.scale);
            }
        }
    }

    fn values(&self, job: &Attention<'_>, e: &[f32], _block: &mut [f32], out: &mut [f32]) {
        let KvHead {
            values, head_dim, ..
        } = job.kv;
        let width = padded(&job.seen());
        let first = job.blocks().start * KV_BLOCK;
        let rows = e.chunks_exact(width).zip(out.chunks_exact_mut(head_dim));
        for (query, (e, out)) in rows.enumerate() {
            out.fill(0.0);
            for p in job.span.start..job.end(query) {
                let row = job.kv.at(p / KV_BLOCK) + p % KV_BLOCK * head_dim;
                let e = e[p - first];
                for (d, out) in out.iter_mut().enumerate() {
                    *out += e * values.get(row + d);
                }
            }
        }
    }
}

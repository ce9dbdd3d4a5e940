//! Attention over a cache in blocks of 32 positions.

use core::ops::Range;

use protocol::TrResult;

use super::half::f16_to_f32;
use super::vectors::{exponentials, scale_scores};

/// Positions in a block of the key/value cache.
pub const KV_BLOCK: usize = 32;

/// Elements of the cache.
#[derive(Clone, Copy)]
pub enum Cells<'a> {
    F32(&'a [f32]),
    /// Bits of 16-bit floats.
    F16(&'a [u16]),
}

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Cells::F32(cells) => cells.len(),
            Cells::F16(cells) => cells.len(),
        }
    }

    #[inline(always)]
    fn get(&self, at: usize) -> f32 {
        match self {
            Cells::F32(cells) => cells[at],
            Cells::F16(cells) => f16_to_f32(cells[at]),
        }
    }
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
        count * padded(&span)
    }

    /// Query heads.
    pub(super) fn count(&self) -> usize {
        self.queries.len() / self.kv.head_dim
    }

    /// Blocks that the span touches.
    pub(super) fn blocks(&self) -> Range<usize> {
        self.span.start / KV_BLOCK..self.span.end.div_ceil(KV_BLOCK)
    }
}

/// How an instruction set takes the two sums; everything else is the same for all.
pub(super) trait Sums {
    /// `scores[p - start of the first block] = sum over d of q[d] * k[p][d]` for whole blocks;
    /// `scores` is `[count][padded]`.
    fn scores(&self, job: &Attention<'_>, scores: &mut [f32]);

    /// `out[d] = sum over p of e[p] * v[p][d]` for the span; `e` is `[count][padded]`.
    fn values(&self, job: &Attention<'_>, e: &[f32], out: &mut [f32]);
}

/// The whole of attention; `out` is `[count][head_dim]`.
///
/// `InvalidArgument` for a span without keys, `Bounds` if the cache or a buffer is too short,
/// `NumericalFailure` if a score is NaN or the sum of exponentials is not finite and positive.
pub(super) fn attention(
    sums: &impl Sums,
    job: &Attention<'_>,
    scores: &mut [f32],
    out: &mut [f32],
) -> Result<(), TrResult> {
    let head_dim = job.kv.head_dim;
    if job.span.is_empty() || job.queries.is_empty() || head_dim == 0 {
        return Err(TrResult::InvalidArgument);
    }
    let width = padded(&job.span);
    let cells = (job.blocks().end - 1)
        .checked_mul(job.kv.stride)
        .and_then(|before| before.checked_add(KV_BLOCK * head_dim))
        .ok_or(TrResult::IntegerOverflow)?;
    let scores_len = job.count() * width;
    if job.queries.len() != job.count() * head_dim
        || out.len() != job.queries.len()
        || scores.len() < scores_len
        || job.kv.keys.len().min(job.kv.values.len()) < cells
    {
        return Err(TrResult::Bounds);
    }
    let heads = HEADS_TOGETHER * head_dim;
    let scores = scores[..scores_len].chunks_mut(HEADS_TOGETHER * width);
    for ((queries, scores), out) in job
        .queries
        .chunks(heads)
        .zip(scores)
        .zip(out.chunks_mut(heads))
    {
        together(
            sums,
            &Attention {
                queries,
                ..job.clone()
            },
            scores,
            out,
        )?;
    }
    Ok(())
}

/// Query heads whose values are summed in one pass over the cache.
const HEADS_TOGETHER: usize = 16;

fn together(
    sums: &impl Sums,
    job: &Attention<'_>,
    scores: &mut [f32],
    out: &mut [f32],
) -> Result<(), TrResult> {
    sums.scores(job, scores);
    let skipped = job.span.start % KV_BLOCK;
    let mut totals = [1.0; HEADS_TOGETHER];
    for (scores, z) in scores.chunks_exact_mut(padded(&job.span)).zip(&mut totals) {
        let scores = &mut scores[skipped..][..job.span.len()];
        scale_scores(scores, job.scale, job.softcap);
        *z = exponentials(scores)?;
    }
    sums.values(job, scores, out);
    for (out, z) in out.chunks_exact_mut(job.kv.head_dim).zip(totals) {
        for out in out {
            *out /= z;
        }
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
    fn scores(&self, job: &Attention<'_>, scores: &mut [f32]) {
        let KvHead {
            keys,
            stride,
            head_dim,
            ..
        } = job.kv;
        let width = padded(&job.span);
        for (q, scores) in job
            .queries
            .chunks_exact(head_dim)
            .zip(scores.chunks_exact_mut(width))
        {
            for (block, scores) in job.blocks().zip(scores.as_chunks_mut::<KV_BLOCK>().0) {
                let mut acc = [0.0f32; KV_BLOCK];
                for (d, q) in q.iter().enumerate() {
                    let row = block * stride + d * KV_BLOCK;
                    for (slot, acc) in acc.iter_mut().enumerate() {
                        *acc += q * keys.get(row + slot);
                    }
                }
                *scores = acc;
            }
        }
    }

    fn values(&self, job: &Attention<'_>, e: &[f32], out: &mut [f32]) {
        let KvHead {
            values,
            stride,
            head_dim,
            ..
        } = job.kv;
        let width = padded(&job.span);
        let first = job.blocks().start * KV_BLOCK;
        for (e, out) in e.chunks_exact(width).zip(out.chunks_exact_mut(head_dim)) {
            out.fill(0.0);
            for p in job.span.clone() {
                let row = p / KV_BLOCK * stride + p % KV_BLOCK * head_dim;
                let e = e[p - first];
                for (d, out) in out.iter_mut().enumerate() {
                    *out += e * values.get(row + d);
                }
            }
        }
    }
}

//! The two sums of attention on vectors: scores with positions in the lanes, values with elements.
//!
//! Block by block, so that the 32 positions stay in the nearest cache while all tiles pass over
//! them; up to four query heads share each read and each conversion of the cache.
#![allow(unsafe_code)]

use crate::kernels::attention::{Attention, Cells, KV_BLOCK, KvHead, padded};
use crate::kernels::half::f16_to_f32;
use crate::kernels::lanes::Lanes;

/// Vectors of a tile: as many as the cache's elements are loaded in.
const WIDE: usize = 2;

/// Elements of a cache, readable as vectors.
trait Element: Copy {
    /// # Safety
    ///
    /// As for [`Lanes`]: `2 * LEN` elements.
    unsafe fn load<L: Lanes>(from: *const Self) -> [L; WIDE];

    fn exact(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f32) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { [L::load(from), L::load(from.add(L::LEN))] }
    }

    #[inline(always)]
    fn exact(self) -> f32 {
        self
    }
}

impl Element for u16 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u16) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { L::load_two_f16(from) }
    }

    #[inline(always)]
    fn exact(self) -> f32 {
        f16_to_f32(self)
    }
}

/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
pub unsafe fn scores<L: Lanes>(job: &Attention<'_>, scores: &mut [f32]) {
    // SAFETY: the caller's contract.
    unsafe {
        match job.kv.keys {
            Cells::F32(keys) => scores_of::<L, f32>(job, keys, scores),
            Cells::F16(keys) => scores_of::<L, u16>(job, keys, scores),
        }
    }
}

#[inline(always)]
unsafe fn scores_of<L: Lanes, E: Element>(job: &Attention<'_>, keys: &[E], scores: &mut [f32]) {
    let KvHead {
        stride, head_dim, ..
    } = job.kv;
    let width = padded(&job.span);
    assert!(scores.len() == job.count() * width);
    for (index, block) in job.blocks().enumerate() {
        let keys = &keys[block * stride..][..head_dim * KV_BLOCK];
        let mut head = 0;
        while head < job.count() {
            let queries = &job.queries[head * head_dim..];
            let out = &mut scores[head * width + index * KV_BLOCK..];
            // SAFETY: the caller's contract.
            head += unsafe {
                match job.count() - head {
                    1 => block_scores::<L, E, 1>(keys, queries, head_dim, width, out),
                    2 => block_scores::<L, E, 2>(keys, queries, head_dim, width, out),
                    3 => block_scores::<L, E, 3>(keys, queries, head_dim, width, out),
                    _ => block_scores::<L, E, 4>(keys, queries, head_dim, width, out),
                }
            };
        }
    }
}

/// Scores of `H` heads over one block; returns `H`.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn block_scores<L: Lanes, E: Element, const H: usize>(
    keys: &[E],
    queries: &[f32],
    head_dim: usize,
    width: usize,
    out: &mut [f32],
) -> usize {
    assert!(keys.len() >= head_dim * KV_BLOCK && queries.len() >= H * head_dim);
    assert!(out.len() >= (H - 1) * width + KV_BLOCK);
    let mut slot = 0;
    while slot < KV_BLOCK {
        // SAFETY: `slot + WIDE * LEN <= 32` because `WIDE * LEN` divides 32; `d < head_dim`, so
        // the loads end within `head_dim * 32` keys, the queries within `H * head_dim`, and the
        // stores within `(H - 1) * width + 32`, all asserted above.
        unsafe {
            let mut acc = [[L::splat(0.0); WIDE]; H];
            for d in 0..head_dim {
                let row = keys.as_ptr().add(d * KV_BLOCK + slot);
                let k = E::load::<L>(row);
                for h in 0..H {
                    let q = L::splat(*queries.as_ptr().add(h * head_dim + d));
                    for v in 0..WIDE {
                        acc[h][v] = acc[h][v].add(q.mul(k[v]));
                    }
                }
            }
            for h in 0..H {
                for v in 0..WIDE {
                    acc[h][v].store(out.as_mut_ptr().add(h * width + slot + v * L::LEN));
                }
            }
        }
        slot += WIDE * L::LEN;
    }
    H
}

/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
pub unsafe fn values<L: Lanes>(job: &Attention<'_>, e: &[f32], out: &mut [f32]) {
    // SAFETY: the caller's contract.
    unsafe {
        match job.kv.values {
            Cells::F32(values) => values_of::<L, f32>(job, values, e, out),
            Cells::F16(values) => values_of::<L, u16>(job, values, e, out),
        }
    }
}

#[inline(always)]
unsafe fn values_of<L: Lanes, E: Element>(
    job: &Attention<'_>,
    values: &[E],
    e: &[f32],
    out: &mut [f32],
) {
    let KvHead {
        stride, head_dim, ..
    } = job.kv;
    let width = padded(&job.span);
    out.fill(0.0);
    for (index, block) in job.blocks().enumerate() {
        let from = job.span.start.max(block * KV_BLOCK) - block * KV_BLOCK;
        let to = job.span.end.min((block + 1) * KV_BLOCK) - block * KV_BLOCK;
        let values = &values[block * stride + from * head_dim..][..(to - from) * head_dim];
        let mut head = 0;
        while head < job.count() {
            let e = &e[head * width + index * KV_BLOCK + from..];
            let out = &mut out[head * head_dim..];
            // SAFETY: the caller's contract.
            head += unsafe {
                match job.count() - head {
                    1 => block_values::<L, E, 1>(values, e, head_dim, width, out),
                    2 => block_values::<L, E, 2>(values, e, head_dim, width, out),
                    3 => block_values::<L, E, 3>(values, e, head_dim, width, out),
                    _ => block_values::<L, E, 4>(values, e, head_dim, width, out),
                }
            };
        }
    }
}

/// Adds the values of some positions, in order, to `out` of `H` heads; returns `H`.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn block_values<L: Lanes, E: Element, const H: usize>(
    values: &[E],
    e: &[f32],
    head_dim: usize,
    width: usize,
    out: &mut [f32],
) -> usize {
    let count = values.len() / head_dim;
    assert!(e.len() >= (H - 1) * width + count && out.len() >= H * head_dim);
    let mut d = 0;
    while d + WIDE * L::LEN <= head_dim {
        // SAFETY: `d + WIDE * LEN <= head_dim` and `p < count`, so the loads end within
        // `count * head_dim` values and `(H - 1) * width + count` exponentials, and `out` within
        // `H * head_dim`; asserted above.
        unsafe {
            let mut acc = [[L::splat(0.0); WIDE]; H];
            for h in 0..H {
                for v in 0..WIDE {
                    acc[h][v] = L::load(out.as_ptr().add(h * head_dim + d + v * L::LEN));
                }
            }
            for p in 0..count {
                let row = values.as_ptr().add(p * head_dim + d);
                let x = E::load::<L>(row);
                for h in 0..H {
                    let e = L::splat(*e.as_ptr().add(h * width + p));
                    for v in 0..WIDE {
                        acc[h][v] = acc[h][v].add(e.mul(x[v]));
                    }
                }
            }
            for h in 0..H {
                for v in 0..WIDE {
                    acc[h][v].store(out.as_mut_ptr().add(h * head_dim + d + v * L::LEN));
                }
            }
        }
        d += WIDE * L::LEN;
    }
    for h in 0..H {
        for d in d..head_dim {
            let sum = &mut out[h * head_dim + d];
            for p in 0..count {
                *sum += e[h * width + p] * values[p * head_dim + d].exact();
            }
        }
    }
    H
}

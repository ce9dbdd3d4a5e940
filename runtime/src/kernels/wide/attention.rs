//! The two sums of attention on vectors: scores with positions in the lanes, values with elements.
//!
//! Block by block, so that the 32 positions stay in the nearest cache while all tiles pass over
//! them. Up to four query heads share each read; where there are more, a block is converted to
//! floats once for all of them.
#![allow(unsafe_code)]

use core::ops::Range;

use crate::kernels::attention::{Attention, Cells, KV_BLOCK, KvHead, padded};
use crate::kernels::half::f16_to_f32;
use crate::kernels::lanes::Lanes;

/// Vectors of a tile: as many as the cache's elements are loaded in.
const WIDE: usize = 2;
/// Query heads of a tile: their sums and what they are made of fill the registers.
const HEADS: usize = 4;

/// A kind of elements of a cache, readable as vectors.
trait Element {
    type Cell: Copy;
    /// Reading one costs more than reading a float.
    const PACKED: bool;

    /// # Safety
    ///
    /// As for [`Lanes`]: `2 * LEN` elements.
    unsafe fn load<L: Lanes>(from: *const Self::Cell, halves: L::Halves) -> [L; WIDE];

    fn exact(cell: Self::Cell) -> f32;
}

struct Single;

impl Element for Single {
    type Cell = f32;
    const PACKED: bool = false;

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f32, _: L::Halves) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { [L::load(from), L::load(from.add(L::LEN))] }
    }

    #[inline(always)]
    fn exact(cell: f32) -> f32 {
        cell
    }
}

struct Half;

impl Element for Half {
    type Cell = u16;
    const PACKED: bool = true;

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u16, _: L::Halves) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { L::load_two_f16(from) }
    }

    #[inline(always)]
    fn exact(cell: u16) -> f32 {
        f16_to_f32(cell)
    }
}

struct FiniteHalf;

impl Element for FiniteHalf {
    type Cell = u16;
    const PACKED: bool = true;

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u16, halves: L::Halves) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { L::load_two_finite_f16(from, halves) }
    }

    #[inline(always)]
    fn exact(cell: u16) -> f32 {
        f16_to_f32(cell)
    }
}

/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
pub unsafe fn scores<L: Lanes>(job: &Attention<'_>, scores: &mut [f32], block: &mut [f32]) {
    // SAFETY: the caller's contract.
    unsafe {
        match job.kv.keys {
            Cells::F32(keys) => scores_of::<L, Single>(job, keys, scores, block),
            Cells::F16(keys) => scores_of::<L, Half>(job, keys, scores, block),
            Cells::FiniteF16(keys) => scores_of::<L, FiniteHalf>(job, keys, scores, block),
        }
    }
}

#[inline(always)]
unsafe fn scores_of<L: Lanes, E: Element>(
    job: &Attention<'_>,
    keys: &[E::Cell],
    scores: &mut [f32],
    block: &mut [f32],
) {
    let KvHead {
        stride, head_dim, ..
    } = job.kv;
    for (index, at) in job.blocks().enumerate() {
        let keys = &keys[at * stride..][..head_dim * KV_BLOCK];
        // SAFETY: the caller's contract.
        unsafe {
            if E::PACKED && job.queries() > HEADS {
                unpack::<L, E>(keys, block);
                block_scores::<L, Single>(job, &block[..keys.len()], index, scores);
            } else {
                block_scores::<L, E>(job, keys, index, scores);
            }
        }
    }
}

/// Scores of all heads over block `index` of those that are seen.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn block_scores<L: Lanes, E: Element>(
    job: &Attention<'_>,
    keys: &[E::Cell],
    index: usize,
    scores: &mut [f32],
) {
    let width = padded(&job.seen());
    assert!(scores.len() == job.queries() * width);
    let mut head = 0;
    while head < job.queries() {
        let out = &mut scores[head * width + index * KV_BLOCK..];
        // SAFETY: the caller's contract.
        head += unsafe {
            match job.queries() - head {
                1 => heads_scores::<L, E, 1>(job, keys, head, width, out),
                2 => heads_scores::<L, E, 2>(job, keys, head, width, out),
                3 => heads_scores::<L, E, 3>(job, keys, head, width, out),
                _ => heads_scores::<L, E, HEADS>(job, keys, head, width, out),
            }
        };
    }
}

/// `into` becomes `from`, exactly.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn unpack<L: Lanes, E: Element>(from: &[E::Cell], into: &mut [f32]) {
    assert!(into.len() >= from.len());
    // SAFETY: the caller's contract.
    let halves = unsafe { L::halves() };
    let mut at = 0;
    while at + WIDE * L::LEN <= from.len() {
        // SAFETY: `WIDE * LEN` elements are left in both.
        unsafe {
            let vectors = E::load::<L>(from.as_ptr().add(at), halves);
            for v in 0..WIDE {
                vectors[v].store(into.as_mut_ptr().add(at + v * L::LEN));
            }
        }
        at += WIDE * L::LEN;
    }
    for (into, from) in into[at..].iter_mut().zip(&from[at..]) {
        *into = E::exact(*from);
    }
}

/// Scores of `H` heads from `head` on over one block; returns `H`.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn heads_scores<L: Lanes, E: Element, const H: usize>(
    job: &Attention<'_>,
    keys: &[E::Cell],
    head: usize,
    width: usize,
    out: &mut [f32],
) -> usize {
    let head_dim = job.kv.head_dim;
    let queries = &job.queries[head * head_dim..];
    assert!(keys.len() >= head_dim * KV_BLOCK && queries.len() >= H * head_dim);
    assert!(out.len() >= (H - 1) * width + KV_BLOCK);
    // SAFETY: the caller's contract.
    let halves = unsafe { L::halves() };
    let mut slot = 0;
    while slot < KV_BLOCK {
        // SAFETY: `slot + WIDE * LEN <= 32` because `WIDE * LEN` divides 32; `d < head_dim`, so
        // the loads end within `head_dim * 32` keys, the queries within `H * head_dim`, and the
        // stores within `(H - 1) * width + 32`, all asserted above.
        unsafe {
            let mut acc = [[L::splat(0.0); WIDE]; H];
            for d in 0..head_dim {
                let row = keys.as_ptr().add(d * KV_BLOCK + slot);
                let k = E::load::<L>(row, halves);
                for h in 0..H {
                    let q = L::splat(*queries.as_ptr().add(h * head_dim + d));
                    for v in 0..WIDE {
                        acc[h][v] = acc[h][v].add(q.mul(k[v]));
                    }
                }
            }
            let scale = L::splat(job.scale);
            for h in 0..H {
                for v in 0..WIDE {
                    let at = h * width + slot + v * L::LEN;
                    acc[h][v].mul(scale).store(out.as_mut_ptr().add(at));
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
pub unsafe fn values<L: Lanes>(job: &Attention<'_>, e: &[f32], block: &mut [f32], out: &mut [f32]) {
    // SAFETY: the caller's contract.
    unsafe {
        match job.kv.values {
            Cells::F32(values) => values_of::<L, Single>(job, values, e, block, out),
            Cells::F16(values) => values_of::<L, Half>(job, values, e, block, out),
            Cells::FiniteF16(values) => values_of::<L, FiniteHalf>(job, values, e, block, out),
        }
    }
}

#[inline(always)]
unsafe fn values_of<L: Lanes, E: Element>(
    job: &Attention<'_>,
    values: &[E::Cell],
    e: &[f32],
    block: &mut [f32],
    out: &mut [f32],
) {
    let KvHead {
        stride, head_dim, ..
    } = job.kv;
    let seen = job.seen();
    out.fill(0.0);
    for (index, at) in job.blocks().enumerate() {
        let first = at * KV_BLOCK;
        let seen = seen.start.max(first)..seen.end.min(first + KV_BLOCK);
        let values = &values[at * stride + (seen.start - first) * head_dim..];
        let values = &values[..seen.len() * head_dim];
        let e = &e[index * KV_BLOCK + (seen.start - first)..];
        // SAFETY: the caller's contract.
        unsafe {
            if E::PACKED && job.queries() > HEADS {
                unpack::<L, E>(values, block);
                block_values::<L, Single>(job, &block[..values.len()], seen, e, out);
            } else {
                block_values::<L, E>(job, values, seen, e, out);
            }
        }
    }
}

/// Adds the values of the positions `seen` to `out` of all heads, each as far as it sees.
/// `e` begins with the first head's exponential of the first of them.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn block_values<L: Lanes, E: Element>(
    job: &Attention<'_>,
    values: &[E::Cell],
    seen: Range<usize>,
    e: &[f32],
    out: &mut [f32],
) {
    let head_dim = job.kv.head_dim;
    let width = padded(&job.seen());
    let count = |query: usize| job.end(query).clamp(seen.start, seen.end) - seen.start;
    let mut head = 0;
    while head < job.queries() {
        let values = &values[..count(head) * head_dim];
        let alike = (head + 1..job.queries().min(head + HEADS))
            .take_while(|other| count(*other) == count(head));
        let e = &e[head * width..];
        let out = &mut out[head * head_dim..];
        // SAFETY: the caller's contract.
        head += unsafe {
            match 1 + alike.count() {
                1 => heads_values::<L, E, 1>(values, e, head_dim, width, out),
                2 => heads_values::<L, E, 2>(values, e, head_dim, width, out),
                3 => heads_values::<L, E, 3>(values, e, head_dim, width, out),
                _ => heads_values::<L, E, HEADS>(values, e, head_dim, width, out),
            }
        };
    }
}

/// Adds the values of some positions, in order, to `out` of `H` heads; returns `H`.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn heads_values<L: Lanes, E: Element, const H: usize>(
    values: &[E::Cell],
    e: &[f32],
    head_dim: usize,
    width: usize,
    out: &mut [f32],
) -> usize {
    let count = values.len() / head_dim;
    assert!(e.len() >= (H - 1) * width + count && out.len() >= H * head_dim);
    // SAFETY: the caller's contract.
    let halves = unsafe { L::halves() };
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
                let x = E::load::<L>(row, halves);
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
                *sum += e[h * width + p] * E::exact(values[p * head_dim + d]);
            }
        }
    }
    H
}

//! The two sums of attention on vectors: scores with positions in the lanes, values with elements.
//!
//! Block by block, so that the 32 positions stay in the nearest cache while all tiles pass over
//! them. Up to four query heads share each read; where there are more, a block is converted to
//! floats once for all of them.
#![allow(unsafe_code)]

use core::ops::Range;

use super::cells::{Code, Element, FiniteHalf, Half, Single, WIDE};
use crate::kernels::attention::{Attention, Cells, KV_BLOCK, padded};
use crate::kernels::lanes::Lanes;

/// Query heads of a tile: their sums and what they are made of fill the registers.
const HEADS: usize = 4;

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
            Cells::Int8(keys) => scores_of::<L, Code>(job, keys, scores, block),
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
    let head_dim = job.kv.head_dim;
    for (index, at) in job.blocks().enumerate() {
        let keys = &keys[job.kv.at(at)..][..head_dim * KV_BLOCK];
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
                1 => heads_scores::<L, E, 1, 2>(job, keys, head, width, out),
                2 => heads_scores::<L, E, 2, 2>(job, keys, head, width, out),
                3 => heads_scores::<L, E, 3, 1>(job, keys, head, width, out),
                _ => heads_scores::<L, E, HEADS, 1>(job, keys, head, width, out),
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
unsafe fn heads_scores<L: Lanes, E: Element, const H: usize, const LOADS: usize>(
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
    const { assert!(KV_BLOCK.is_multiple_of(LOADS * WIDE * L::LEN)) };
    let mut slot = 0;
    while slot < KV_BLOCK {
        // SAFETY: `slot + LOADS * WIDE * LEN <= 32` because that product divides 32 and
        // `d < head_dim`, so the loads end within `head_dim * 32` keys, the queries within
        // `H * head_dim`, and the stores within `(H - 1) * width + 32`, all asserted above.
        unsafe {
            let mut acc = [[[L::splat(0.0); WIDE]; LOADS]; H];
            for d in 0..head_dim {
                for load in 0..LOADS {
                    let at = d * KV_BLOCK + slot + load * WIDE * L::LEN;
                    let k = E::load::<L>(keys.as_ptr().add(at), halves);
                    for h in 0..H {
                        let q = L::splat(*queries.as_ptr().add(h * head_dim + d));
                        for v in 0..WIDE {
                            acc[h][load][v] = acc[h][load][v].add(q.mul(k[v]));
                        }
                    }
                }
            }
            let scale = L::splat(job.scale);
            for h in 0..H {
                for (v, sum) in acc[h].as_flattened().iter().enumerate() {
                    let at = h * width + slot + v * L::LEN;
                    sum.mul(scale).store(out.as_mut_ptr().add(at));
                }
            }
        }
        slot += LOADS * WIDE * L::LEN;
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
            Cells::Int8(values) => values_of::<L, Code>(job, values, e, block, out),
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
    let head_dim = job.kv.head_dim;
    let seen = job.seen();
    out.fill(0.0);
    for (index, at) in job.blocks().enumerate() {
        let first = at * KV_BLOCK;
        let seen = seen.start.max(first)..seen.end.min(first + KV_BLOCK);
        let values = &values[job.kv.at(at) + (seen.start - first) * head_dim..];
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
    let sums = Sums {
        values,
        e,
        head_dim,
        width,
    };
    // Few heads have few sums at a time, each waiting for its last addition: twice as many then.
    let mut d = 0;
    // SAFETY: the caller's contract, and asserted above.
    unsafe {
        if H <= 2 {
            d = sums.columns::<L, E, H, 2>(d, out);
        }
        d = sums.columns::<L, E, H, 1>(d, out);
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

/// Values of some positions, and their exponentials for several heads, `width` apart.
struct Sums<'a, C> {
    values: &'a [C],
    e: &'a [f32],
    head_dim: usize,
    width: usize,
}

impl<C> Sums<'_, C> {
    /// Adds whole vectors from element `d` on to `out` of `H` heads; returns the first element
    /// left.
    ///
    /// # Safety
    ///
    /// The instructions of `L` exist; `e` has `(H - 1) * width` elements and one for each position,
    /// `out` `H * head_dim`.
    #[inline(always)]
    unsafe fn columns<L: Lanes, E: Element<Cell = C>, const H: usize, const LOADS: usize>(
        &self,
        mut d: usize,
        out: &mut [f32],
    ) -> usize {
        let (head_dim, width) = (self.head_dim, self.width);
        // SAFETY: the caller's contract.
        let halves = unsafe { L::halves() };
        while d + LOADS * WIDE * L::LEN <= head_dim {
            // SAFETY: `d + LOADS * WIDE * LEN <= head_dim` and `p` is a position, so the loads end
            // within the values and the exponentials, and `out` within `H * head_dim`.
            unsafe {
                let mut acc = [[[L::splat(0.0); WIDE]; LOADS]; H];
                for h in 0..H {
                    for (v, sum) in acc[h].as_flattened_mut().iter_mut().enumerate() {
                        *sum = L::load(out.as_ptr().add(h * head_dim + d + v * L::LEN));
                    }
                }
                for p in 0..self.values.len() / head_dim {
                    for load in 0..LOADS {
                        let at = p * head_dim + d + load * WIDE * L::LEN;
                        let x = E::load::<L>(self.values.as_ptr().add(at), halves);
                        for h in 0..H {
                            let e = L::splat(*self.e.as_ptr().add(h * width + p));
                            for v in 0..WIDE {
                                acc[h][load][v] = acc[h][load][v].add(e.mul(x[v]));
                            }
                        }
                    }
                }
                for h in 0..H {
                    for (v, sum) in acc[h].as_flattened().iter().enumerate() {
                        sum.store(out.as_mut_ptr().add(h * head_dim + d + v * L::LEN));
                    }
                }
            }
            d += LOADS * WIDE * L::LEN;
        }
        d
    }
}

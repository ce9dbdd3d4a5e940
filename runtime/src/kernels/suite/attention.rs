//! Attention over caches of floats that lie in order.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use protocol::TrResult;

use super::operands::{Digest, Random, same};
use crate::kernels::{Attention, Cells, KV_BLOCK, Kernels, KvHead, f16_from_f32};

type Outcome = Result<u64, &'static str>;

enum Finite {
    Keys,
    Values,
}

/// By turns.
fn finite(turn: usize) -> Finite {
    match turn % 2 {
        0 => Finite::Keys,
        _ => Finite::Values,
    }
}

/// A cache of random content, longer than its positions by what a block leaves.
struct Cache {
    keys: Vec<f32>,
    values: Vec<f32>,
    halves: [Vec<u16>; 2],
    stride: usize,
    head_dim: usize,
}

impl Cache {
    fn new(random: &mut Random, positions: usize, head_dim: usize) -> Cache {
        // Something between the blocks, to be skipped.
        let stride = KV_BLOCK * head_dim + 8;
        let len = positions.div_ceil(KV_BLOCK) * stride;
        let (keys, values) = (random.units(len, 2.0), random.units(len, 3.0));
        let halves = [&keys, &values].map(|x| x.iter().map(|x| f16_from_f32(*x)).collect());
        Cache {
            keys,
            values,
            halves,
            stride,
            head_dim,
        }
    }

    /// Floats, or halves: known to be finite are the keys, or the values.
    fn head(&self, halves: Option<Finite>) -> KvHead<'_> {
        let [k, v] = &self.halves;
        let (keys, values) = match halves {
            None => (Cells::F32(&self.keys), Cells::F32(&self.values)),
            Some(Finite::Keys) => (Cells::FiniteF16(k), Cells::F16(v)),
            Some(Finite::Values) => (Cells::F16(k), Cells::FiniteF16(v)),
        };
        KvHead {
            keys,
            values,
            pages: &[0, 1, 2, 3],
            stride: self.stride,
            head_dim: self.head_dim,
        }
    }
}

fn attend(
    kernels: Kernels,
    queries: &[f32],
    kv: KvHead<'_>,
    span: Range<usize>,
    softcap: f32,
) -> Result<Vec<f32>, TrResult> {
    attend_all(kernels, queries, kv, [1, span.start, span.end], softcap)
}

/// For so many positions, of which the first sees from where to where.
fn attend_all(
    kernels: Kernels,
    queries: &[f32],
    kv: KvHead<'_>,
    [positions, start, end]: [usize; 3],
    softcap: f32,
) -> Result<Vec<f32>, TrResult> {
    let heads = queries.len() / kv.head_dim;
    let seen = start..end + positions - 1;
    let mut scratch = vec![f32::NAN; Attention::scratch_len(heads, seen, kv.head_dim)];
    let mut out = vec![f32::NAN; queries.len()];
    let job = Attention {
        queries,
        positions,
        kv,
        span: start..end,
        scale: 0.3,
        softcap,
    };
    kernels.attention(&job, &mut scratch, &mut out)?;
    Ok(out)
}

pub fn f32(kernels: Kernels) -> Outcome {
    lengths(kernels, false)
}

pub fn f16(kernels: Kernels) -> Outcome {
    lengths(kernels, true)
}

/// 1 to 100 positions, also from the middle of a block on; 1 to 18 query heads.
fn lengths(kernels: Kernels, half: bool) -> Outcome {
    let mut random = Random(5);
    let mut digest = Digest::new();
    for (head_dim, count) in [(8, 1), (64, 3), (20, 2), (7, 5), (16, 18), (48, 4)] {
        let cache = Cache::new(&mut random, 100, head_dim);
        for end in 1..=100 {
            let queries = random.units(count * head_dim, 1.0);
            let softcap = if end % 5 == 0 { 20.0 } else { 0.0 };
            for start in [0, end / 2, end - 1] {
                let run = |kernels| {
                    attend(
                        kernels,
                        &queries,
                        cache.head(half.then(|| finite(end))),
                        start..end,
                        softcap,
                    )
                };
                let (Ok(got), Ok(want)) = (run(kernels), run(Kernels::SCALAR)) else {
                    return Err("attention failed");
                };
                digest.floats(&got);
                if !same(&got, &want) {
                    return Err("attention differs from the scalar one");
                }
            }
        }
    }
    Ok(digest.0)
}

/// 1 to 7 neighbouring positions give what each gives alone, over the borders of blocks too.
pub fn together(kernels: Kernels) -> Outcome {
    let mut random = Random(12);
    let mut digest = Digest::new();
    for (head_dim, count) in [(64, 3), (20, 1), (7, 5), (16, 2)] {
        let cache = Cache::new(&mut random, 100, head_dim);
        for (start, end) in [
            (0, 1),
            (0, 29),
            (0, 31),
            (0, 32),
            (5, 60),
            (63, 64),
            (40, 90),
        ] {
            for positions in 1..=7 {
                let queries = random.units(positions * count * head_dim, 1.0);
                let softcap = if positions == 5 { 20.0 } else { 0.0 };
                for half in [false, true] {
                    let kv = cache.head(half.then(|| finite(positions)));
                    let all = [positions, start, end];
                    let Ok(got) = attend_all(kernels, &queries, kv, all, softcap) else {
                        return Err("attention failed");
                    };
                    digest.floats(&got);
                    for (at, queries) in queries.chunks_exact(count * head_dim).enumerate() {
                        let span = start..end + at;
                        let alone = attend(Kernels::SCALAR, queries, kv, span, softcap);
                        let got = &got[at * queries.len()..][..queries.len()];
                        if !alone.is_ok_and(|alone| same(got, &alone)) {
                            return Err("a position's attention depends on its neighbours");
                        }
                    }
                }
            }
        }
    }
    Ok(digest.0)
}

pub fn one_key(kernels: Kernels) -> Outcome {
    let mut random = Random(6);
    let mut digest = Digest::new();
    let cache = Cache::new(&mut random, 64, 24);
    for position in 0..64 {
        let queries = random.units(48, 1.0);
        let span = position..position + 1;
        let Ok(out) = attend(kernels, &queries, cache.head(None), span, 0.0) else {
            return Err("attention failed");
        };
        let row = position / KV_BLOCK * cache.stride + position % KV_BLOCK * 24;
        digest.floats(&out);
        if !same(&out[..24], &cache.values[row..row + 24]) || !same(&out[..24], &out[24..]) {
            return Err("one key does not get probability 1");
        }
    }
    Ok(digest.0)
}

pub fn failures(kernels: Kernels) -> Outcome {
    let mut random = Random(7);
    let mut cache = Cache::new(&mut random, 40, 8);
    let queries = random.units(8, 1.0);
    let span_of = |cache: &Cache, span| attend(kernels, &queries, cache.head(None), span, 0.0);
    if span_of(&cache, 3..3) != Err(TrResult::InvalidArgument) {
        return Err("a span without keys is not refused");
    }
    if span_of(&cache, 0..65) != Err(TrResult::Bounds) {
        return Err("a span beyond the cache is not refused");
    }
    // Element 0 of slot 5.
    for (key, value) in [
        (f32::NAN, 1.0),
        (f32::INFINITY, 1.0),
        (f32::NEG_INFINITY, 1.0),
    ] {
        cache.keys[5] = key * value;
        let outcome = span_of(&cache, 5..6);
        if outcome != Err(TrResult::NumericalFailure) {
            return Err("a score that is not finite is not refused");
        }
        if span_of(&cache, 6..40).is_err() {
            return Err("a key outside the span is not ignored");
        }
    }
    Ok(0)
}

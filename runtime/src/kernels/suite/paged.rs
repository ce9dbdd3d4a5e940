//! Attention over pages in any order, in every format of the cache.

use alloc::vec;
use alloc::vec::Vec;

use super::operands::{Digest, Random, same};
use crate::kernels::{
    Attention, Cells, KV_BLOCK, Kernels, KvHead, f16_from_f32, head_code, head_scale,
};

type Outcome = Result<u64, &'static str>;

const POSITIONS: usize = 100;
/// More than there are blocks, so that some are never read.
const PAGES: usize = 6;

/// Every width of a head up to two vectors of the widest kind, and those of real models.
const HEAD_DIMS: [usize; 27] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 24, 32, 40, 48, 64, 80, 96, 128,
    256,
];

enum Format {
    F32,
    F16,
    Int8,
}

/// The same numbers in blocks: floats, halves, and codes with their scales.
struct Side {
    floats: Vec<f32>,
    halves: Vec<u16>,
    codes: Vec<i8>,
}

/// Where element `d` of a slot lies in a block.
type At = fn(slot: usize, d: usize, head_dim: usize) -> usize;

/// `pages` of random numbers; `stride` cells are kept for one in every format.
fn side(random: &mut Random, head_dim: usize, stride: usize, at: At) -> Side {
    let len = PAGES * stride;
    let mut side = Side {
        floats: random.units(len, 3.0),
        halves: vec![0x7e00; len],
        codes: vec![77; len],
    };
    for (page, slot) in (0..PAGES).flat_map(|page| (0..KV_BLOCK).map(move |slot| (page, slot))) {
        let first = page * stride;
        let cell = |d: usize| first + at(slot, d, head_dim);
        let x: Vec<f32> = (0..head_dim).map(|d| side.floats[cell(d)]).collect();
        let scale = head_scale(&x);
        for (d, x) in x.iter().enumerate() {
            side.halves[cell(d)] = f16_from_f32(*x);
            side.codes[cell(d)] = head_code(*x, scale);
        }
        let scale_at = first + KV_BLOCK * head_dim + 4 * slot;
        side.codes[scale_at..scale_at + 4]
            .copy_from_slice(&scale.to_le_bytes().map(|byte| byte as i8));
    }
    side
}

/// Pages in some order.
fn shuffled(random: &mut Random) -> [u32; PAGES] {
    let mut pages = core::array::from_fn(|page| page as u32);
    for last in (1..PAGES).rev() {
        pages.swap(last, random.below(last + 1));
    }
    pages
}

struct Sample {
    queries: Vec<f32>,
    positions: usize,
    start: usize,
    end: usize,
    softcap: f32,
}

fn attend(kernels: Kernels, kv: KvHead<'_>, sample: &Sample) -> Result<Vec<f32>, &'static str> {
    let heads = sample.queries.len() / kv.head_dim;
    let seen = sample.start..sample.end + sample.positions - 1;
    let mut scratch = vec![f32::NAN; Attention::scratch_len(heads, seen, kv.head_dim)];
    let mut out = vec![f32::NAN; sample.queries.len()];
    let job = Attention {
        queries: &sample.queries,
        positions: sample.positions,
        kv,
        span: sample.start..sample.end,
        scale: 0.3,
        softcap: sample.softcap,
    };
    kernels
        .attention(&job, &mut scratch, &mut out)
        .map_err(|_| "attention failed")?;
    Ok(out)
}

/// Every width of a head with one to thirteen queries, over windows that begin and end anywhere.
fn every_width(kernels: Kernels, format: &Format) -> Outcome {
    let mut random = Random(41);
    let mut digest = Digest::new();
    for head_dim in HEAD_DIMS {
        let stride = KV_BLOCK * (head_dim + 4) + 5;
        let keys = side(&mut random, head_dim, stride, |slot, d, _| {
            d * KV_BLOCK + slot
        });
        let values = side(&mut random, head_dim, stride, |slot, d, head_dim| {
            slot * head_dim + d
        });
        for (turn, count) in [1, 2, 3, 4, 5, 13].into_iter().enumerate() {
            let positions = 1 + turn % 3;
            let end = 1 + random.below(POSITIONS - positions);
            let pages = shuffled(&mut random);
            let (keys, values) = match format {
                Format::F32 => (Cells::F32(&keys.floats), Cells::F32(&values.floats)),
                Format::F16 => (Cells::F16(&keys.halves), Cells::FiniteF16(&values.halves)),
                Format::Int8 => (Cells::Int8(&keys.codes), Cells::Int8(&values.codes)),
            };
            let kv = KvHead {
                keys,
                values,
                pages: &pages,
                stride,
                head_dim,
            };
            let sample = Sample {
                queries: random.units(positions * count * head_dim, 1.0),
                positions,
                start: random.below(end),
                end,
                softcap: if turn == 4 { 20.0 } else { 0.0 },
            };
            let got = attend(kernels, kv, &sample)?;
            digest.floats(&got);
            if !same(&got, &attend(Kernels::SCALAR, kv, &sample)?) {
                return Err("attention over pages differs from the scalar one");
            }
        }
    }
    Ok(digest.0)
}

pub fn f32(kernels: Kernels) -> Outcome {
    every_width(kernels, &Format::F32)
}

pub fn f16(kernels: Kernels) -> Outcome {
    every_width(kernels, &Format::F16)
}

pub fn int8(kernels: Kernels) -> Outcome {
    every_width(kernels, &Format::Int8)
}

/// Codes under the scale 1 are what the same numbers are as floats, and twice the scale of the
/// values is twice the outcome: exactly, because it is a power of two.
pub fn scales(kernels: Kernels) -> Outcome {
    let mut random = Random(42);
    let pages = [2, 0, 3, 1];
    for head_dim in [7, 16, 64] {
        let stride = KV_BLOCK * (head_dim + 4);
        let mut codes = || -> Vec<i8> {
            let code = |_| (random.below(255) as i32 - 127) as i8;
            (0..4 * stride).map(code).collect()
        };
        let (mut keys, mut values) = (codes(), codes());
        let floats = |codes: &[i8]| codes.iter().map(|x| f32::from(*x)).collect::<Vec<f32>>();
        let exact = [floats(&keys), floats(&values)];
        let sample = Sample {
            queries: random.units(3 * head_dim, 0.01),
            positions: 1,
            start: 3,
            end: 99,
            softcap: 0.0,
        };
        let floats = exact.each_ref().map(|floats| Cells::F32(floats));
        let mut want = attend(kernels, int8_head(floats, &pages, head_dim), &sample)?;
        set_scales(&mut keys, head_dim, 1.0);
        for factor in [1.0, 2.0] {
            set_scales(&mut values, head_dim, factor);
            let cells = [&keys, &values].map(|codes| Cells::Int8(codes));
            let got = attend(kernels, int8_head(cells, &pages, head_dim), &sample)?;
            if !same(&got, &want) {
                return Err("a scale of an int8 cache is not what it says");
            }
            want.iter_mut().for_each(|x| *x *= 2.0);
        }
    }
    Ok(0)
}

/// Keys and values of one head alone, spaced as an int8 cache has them.
fn int8_head<'a>([keys, values]: [Cells<'a>; 2], pages: &'a [u32], head_dim: usize) -> KvHead<'a> {
    KvHead {
        keys,
        values,
        pages,
        stride: KV_BLOCK * (head_dim + 4),
        head_dim,
    }
}

fn set_scales(codes: &mut [i8], head_dim: usize, scale: f32) {
    for page in codes.chunks_exact_mut(KV_BLOCK * (head_dim + 4)) {
        for bytes in page[KV_BLOCK * head_dim..].chunks_exact_mut(4) {
            bytes.copy_from_slice(&scale.to_le_bytes().map(|byte| byte as i8));
        }
    }
}

/// A page that does not exist and a table that is too short are refused, and a scale that is no
/// number ends in a refusal or in an outcome that is no number.
pub fn faults(kernels: Kernels) -> Outcome {
    let head_dim = 8;
    let stride = KV_BLOCK * (head_dim + 4);
    let codes = vec![1; 2 * stride];
    let mut broken = codes.clone();
    set_scales(&mut broken, head_dim, f32::NAN);
    let sample = Sample {
        queries: vec![1.0; head_dim],
        positions: 1,
        start: 0,
        end: 40,
        softcap: 0.0,
    };
    let run = |keys: &[i8], values: &[i8], pages: &[u32]| {
        let cells = [keys, values].map(Cells::Int8);
        attend(kernels, int8_head(cells, pages, head_dim), &sample)
    };
    if run(&codes, &codes, &[1, 0]).is_err() {
        return Err("sound pages were refused");
    }
    if run(&codes, &codes, &[0]).is_ok() || run(&codes, &codes, &[0, 2]).is_ok() {
        return Err("a page outside of the cache was not refused");
    }
    if run(&codes[..2 * stride - 1], &codes, &[0, 1]).is_ok() {
        return Err("a page without its last scale was not refused");
    }
    if run(&broken, &codes, &[0, 1]).is_ok() {
        return Err("a key's scale that is no number was not refused");
    }
    let through = run(&codes, &broken, &[0, 1])?;
    match through.iter().all(|x| x.is_nan()) {
        true => Ok(0),
        false => Err("a value's scale that is no number was lost"),
    }
}

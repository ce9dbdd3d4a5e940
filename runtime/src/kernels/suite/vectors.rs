//! Operations along one vector: the compiler's vector code against one element at a time.

use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;

use format::RopePairing;

use super::operands::{Digest, Random, same};
use crate::functions::{
    exp_v1, gelu_tanh_v1, rsqrt, sigmoid_v1, silu_v1, softplus_v1, sqrt, tanh_v1,
};
use crate::kernels::matrix::COLS;
use crate::kernels::{Kernels, Quantized, f16_from_f32, f16_to_f32};

type Outcome = Result<u64, &'static str>;

/// Numbers of all sizes, with the corners of the functions.
fn all_sizes(random: &mut Random, len: usize) -> Vec<f32> {
    let corners = [
        0.0,
        1e-45,
        1e-38,
        0.55,
        1.0,
        5.0,
        10.0,
        16.0,
        87.3,
        88.72,
        88.73,
        103.9,
        104.0,
        127.0,
        1e30,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    let corners = corners.into_iter().flat_map(|x| [x, -x]);
    let any = (0..len).map(|i| match i % 2 {
        0 => f32::from_bits(random.bits() as u32),
        _ => random.unit() * 20.0,
    });
    corners.chain(any).collect()
}

pub fn activations(kernels: Kernels) -> Outcome {
    let mut random = Random(8);
    let mut digest = Digest::new();
    let x = all_sizes(&mut random, 4000);
    let functions: [fn(f32) -> f32; 7] = [
        exp_v1,
        sigmoid_v1,
        tanh_v1,
        gelu_tanh_v1,
        silu_v1,
        softplus_v1,
        rsqrt,
    ];
    for function in functions {
        let single: Vec<f32> = x.iter().map(|x| black_box(function)(*x)).collect();
        digest.floats(&single);
    }
    let row: Vec<f32> = x.iter().map(|x| exp_v1(*x)).collect();
    let single: Vec<f32> = x.iter().map(|x| exp_v1(black_box(*x))).collect();
    if !same(&row, &single) {
        return Err("exponentials in a row differ from single ones");
    }
    let up = random.units(x.len(), 2.0);
    let mut row = vec![0.0; x.len()];
    kernels.silu_mul(&x, &up, &mut row);
    let single: Vec<f32> = x
        .iter()
        .zip(&up)
        .map(|(x, up)| silu_v1(black_box(*x)) * black_box(*up))
        .collect();
    if !same(&row, &single) {
        return Err("SiLU in a row differs from single ones");
    }
    Ok(digest.0)
}

/// Blocks of zeros, of one value, with ties, subnormal, huge and not finite.
pub fn quantization(kernels: Kernels) -> Outcome {
    let mut random = Random(9);
    let mut digest = Digest::new();
    let mut blocks: Vec<[f32; COLS]> = vec![
        [0.0; COLS],
        [-0.0; COLS],
        [1.0; COLS],
        [f32::MAX; COLS],
        [1e-45; COLS],
        [2e-43; COLS],
        [f32::NAN; COLS],
        [f32::INFINITY; COLS],
    ];
    // The scale is 1, and every second value halfway between two integers.
    let mut ties = [0.0; COLS];
    ties.iter_mut()
        .enumerate()
        .for_each(|(i, x)| *x = i as f32 * 0.5 - 8.0);
    ties[0] = 127.0;
    blocks.push(ties);
    blocks.push(ties.map(|x| -x));
    let mut mixed = [0.25; COLS];
    mixed[31] = f32::NAN;
    blocks.push(mixed);
    for exponent in [-140, -126, -20, 0, 60, 126] {
        let size = libm::exp2f(exponent as f32);
        blocks.push(core::array::from_fn(|_| random.unit() * size));
    }
    let x: Vec<f32> = blocks.iter().flatten().copied().collect();
    let mut out = Quantized::new(blocks.len(), COLS).map_err(|_| "no memory")?;
    kernels.quantize(&x, COLS, &mut out);
    for (t, x) in blocks.iter().enumerate() {
        let block = out.codes().row(t)[0];
        digest.floats(&[block.scale, block.scaled_sum]);
        block.codes.iter().for_each(|code| digest.add(*code as u32));
        let most = x.iter().fold(
            0.0f32,
            |most, x| if x.abs() > most { x.abs() } else { most },
        );
        if x.iter().any(|x| !x.is_finite()) {
            if block.scale.is_finite() || block.codes != [0; COLS] {
                return Err("activations that are not finite do not show");
            }
            continue;
        }
        if block.scale.to_bits() != (black_box(most) / 127.0).to_bits() {
            return Err("the scale is not amax / 127");
        }
        for (x, code) in x.iter().zip(block.codes) {
            let want = if block.scale > 0.0 {
                libm::rintf(x / block.scale)
            } else {
                0.0
            };
            if f32::from(code) != want.clamp(-127.0, 127.0) {
                return Err("a code is not the nearest even integer");
            }
        }
        let sum: i32 = block.codes.iter().map(|code| i32::from(*code)).sum();
        if sum != block.sum || block.scaled_sum.to_bits() != (block.scale * sum as f32).to_bits() {
            return Err("the sum of codes is wrong");
        }
    }
    Ok(digest.0)
}

pub fn norm_rope_add(kernels: Kernels) -> Outcome {
    let mut random = Random(10);
    let mut digest = Digest::new();
    for len in 1..=40 {
        let (x, weight) = (random.units(len, 3.0), random.units(len, 1.0));
        let mut out = vec![0.0; len];
        kernels.rms_norm(&x, &weight, 1e-5, &mut out);
        let mut stripes = [0.0f32; 4];
        for (i, x) in x.iter().enumerate() {
            stripes[i % 4] = black_box(stripes[i % 4] + x * x);
        }
        let mean = ((stripes[0] + stripes[1]) + (stripes[2] + stripes[3])) / len as f32;
        let inverse = 1.0 / sqrt(mean + 1e-5);
        let want: Vec<f32> = x
            .iter()
            .zip(&weight)
            .map(|(x, w)| black_box(x * inverse) * w)
            .collect();
        if !same(&out, &want) {
            return Err("the norm does not sum in four stripes");
        }
        kernels.add_assign(&mut out, &x);
        digest.floats(&out);
    }
    for pairing in [RopePairing::Half, RopePairing::Interleaved] {
        for (head_dim, pairs) in [(2, 1), (8, 4), (64, 32), (20, 5), (9, 3)] {
            let before = random.units(3 * head_dim, 2.0);
            let (cos, sin) = (random.units(pairs, 1.0), random.units(pairs, 1.0));
            let mut after = before.clone();
            kernels.rope(&mut after, head_dim, pairing, &cos, &sin);
            digest.floats(&after);
            for at in (0..3).flat_map(|h| (2 * pairs..head_dim).map(move |d| h * head_dim + d)) {
                if after[at].to_bits() != before[at].to_bits() {
                    return Err("an element that does not rotate changed");
                }
            }
        }
    }
    Ok(digest.0)
}

/// Halfway points between floats have 25 bits, so their squares are exact in f64.
pub fn square_roots(_: Kernels) -> Outcome {
    let mut random = Random(11);
    let mut digest = Digest::new();
    for _ in 0..20_000 {
        // From 2^-126 on, so that neighbours of the root are normal.
        let x = f32::from_bits(0x0080_0000 + random.below(0x7f00_0000) as u32);
        let root = sqrt(x);
        digest.floats(&[root]);
        let neighbour =
            |step: i32| f64::from(f32::from_bits(root.to_bits().wrapping_add_signed(step)));
        let above = (f64::from(root) + neighbour(1)) / 2.0;
        let below = (f64::from(root) + neighbour(-1)) / 2.0;
        if !(below * below <= f64::from(x) && f64::from(x) <= above * above) {
            return Err("a square root is not the nearest float");
        }
    }
    Ok(digest.0)
}

/// All 65,536 f16 there and back; halfway points go to even.
pub fn half(_: Kernels) -> Outcome {
    let mut digest = Digest::new();
    for bits in 0..=u16::MAX {
        let x = f16_to_f32(bits);
        digest.floats(&[x]);
        let back = f16_from_f32(x);
        if back != bits && !(x.is_nan() && back & 0x7fff == 0x7e00) {
            return Err("an f16 does not come back");
        }
        if bits & 0x7fff < 0x7bff {
            let half = (x + f16_to_f32(bits + 1)) * 0.5;
            if f16_from_f32(half) != bits + (bits & 1) {
                return Err("a halfway point does not go to even");
            }
        }
    }
    Ok(digest.0)
}

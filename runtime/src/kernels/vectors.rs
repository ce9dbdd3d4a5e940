//! Operations along one vector.
//!
//! There is one implementation: independent elements and four stripes, which a compiler turns
//! into vector code of any width without changing a bit. Everything is inlined into its caller, so
//! that it is compiled for the caller's instruction set.

use format::RopePairing;
use protocol::TrResult;

use super::matrix::COLS;
use super::quantized::QuantizedBlock;
use crate::functions::{exp_v1, rsqrt, silu_v1, tanh_v1};

#[inline(always)]
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    assert!(!x.is_empty() && x.len() == weight.len() && x.len() == out.len());
    let mut stripes = [0.0f32; 4];
    let (fours, rest) = x.as_chunks::<4>();
    for four in fours {
        for j in 0..4 {
            stripes[j] += four[j] * four[j];
        }
    }
    for (j, x) in rest.iter().enumerate() {
        stripes[j] += x * x;
    }
    let mean = join(stripes) / x.len() as f32;
    let inverse = rsqrt(mean + eps);
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = (x * inverse) * weight;
    }
}

#[inline(always)]
pub fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert!(gate.len() == up.len() && gate.len() == out.len());
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        *out = silu_v1(*gate) * up;
    }
}

#[inline(always)]
pub fn add_assign(y: &mut [f32], x: &[f32]) {
    assert!(x.len() == y.len());
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}

#[inline(always)]
pub fn rope(x: &mut [f32], head_dim: usize, pairing: RopePairing, cos: &[f32], sin: &[f32]) {
    let pairs = cos.len();
    assert!(sin.len() == pairs && 2 * pairs <= head_dim && x.len().is_multiple_of(head_dim));
    for head in x.chunks_exact_mut(head_dim) {
        match pairing {
            RopePairing::Half => {
                let (a, b) = head[..2 * pairs].split_at_mut(pairs);
                for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                    (*a, *b) = rotated(*a, *b, *cos, *sin);
                }
            }
            RopePairing::Interleaved => {
                let (both, _) = head[..2 * pairs].as_chunks_mut::<2>();
                for ((both, cos), sin) in both.iter_mut().zip(cos).zip(sin) {
                    (both[0], both[1]) = rotated(both[0], both[1], *cos, *sin);
                }
            }
        }
    }
}

#[inline(always)]
fn rotated(a: f32, b: f32, cos: f32, sin: f32) -> (f32, f32) {
    (a * cos - b * sin, a * sin + b * cos)
}

/// `s = amax / 127`, `q = round_ties_even(x / s)` within -127..=127; all codes are 0 if `s` is 0,
/// which is also so for an `amax` below 127 times the smallest subnormal.
///
/// A NaN or infinity among the activations becomes the scale, and so reaches every output.
#[inline(always)]
pub fn quantize(x: &[f32], blocks: &mut [QuantizedBlock]) {
    let (inputs, rest) = x.as_chunks::<COLS>();
    assert!(inputs.len() == blocks.len() && rest.is_empty());
    for (x, block) in inputs.iter().zip(blocks) {
        // Magnitudes as integers: NaN is above infinity, which is above all numbers.
        let mut most = [0; 8];
        for eight in x.as_chunks::<8>().0 {
            for (most, x) in most.iter_mut().zip(eight) {
                *most = (*most).max((x.to_bits() & 0x7fff_ffff) as i32);
            }
        }
        let most = most.into_iter().fold(0, i32::max);
        let scale = f32::from_bits(most as u32) / 127.0;
        let mut codes = [0i8; COLS];
        if scale > 0.0 && scale.is_finite() {
            for (code, x) in codes.iter_mut().zip(x) {
                *code = rounded(x / scale);
            }
        }
        *block = QuantizedBlock::of(codes, scale);
    }
}

/// Nearest integer, ties to even, within -127..=127; not for NaN.
#[inline(always)]
fn rounded(x: f32) -> i8 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: floats of this size are integers.
    let x = if x > 127.0 { 127.0 } else { x };
    let x = if x < -127.0 { -127.0 } else { x };
    (x + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i8
}

/// The scale of one head at one position, `amax / 127` over all its elements; not finite if one of
/// them is not.
#[inline(always)]
pub fn head_scale(x: &[f32]) -> f32 {
    let magnitude = |x: &f32| (x.to_bits() & 0x7fff_ffff) as i32;
    let most = x.iter().map(magnitude).fold(0, i32::max);
    f32::from_bits(most as u32) / 127.0
}

/// The code of an element under that scale, as in [`quantize`].
#[inline(always)]
pub fn head_code(x: f32, scale: f32) -> i8 {
    match scale > 0.0 && scale.is_finite() {
        true => rounded(x / scale),
        false => 0,
    }
}

/// Scores become `exp_v1(score - max)`; returns their sum.
///
/// `NumericalFailure` if a score is NaN or the sum is not finite and positive: a NaN is its own
/// exponential, and so the sum.
#[inline(always)]
pub fn exponentials(scores: &mut [f32]) -> Result<f32, TrResult> {
    let most = greatest(scores);
    for score in scores.iter_mut() {
        *score = exp_v1(*score - most);
    }
    let mut stripes = [0.0f32; 4];
    let (fours, rest) = scores.as_chunks::<4>();
    for four in fours {
        for j in 0..4 {
            stripes[j] += four[j];
        }
    }
    for (j, e) in rest.iter().enumerate() {
        stripes[j] += e;
    }
    let z = join(stripes);
    if !z.is_finite() || z <= 0.0 {
        return Err(TrResult::NumericalFailure);
    }
    Ok(z)
}

/// The greatest, a positive NaN before all numbers; negative infinity if there is nothing else.
/// Which zero is open.
///
/// Found as an integer in the same order, because only integers may be compared in any order.
#[inline(always)]
pub fn greatest(x: &[f32]) -> f32 {
    let ordered = |bits: i32| bits ^ ((bits >> 31) & i32::MAX);
    let least = ordered(f32::NEG_INFINITY.to_bits() as i32);
    let most = x
        .iter()
        .fold(least, |most, x| most.max(ordered(x.to_bits() as i32)));
    f32::from_bits(ordered(most) as u32)
}

/// `cap * tanh_v1(score / cap)`.
#[inline(always)]
pub fn soft_cap(scores: &mut [f32], cap: f32) {
    for score in scores.iter_mut() {
        *score = cap * tanh_v1(*score / cap);
    }
}

/// `sum / z`.
#[inline(always)]
pub fn divide(sums: &mut [f32], z: f32) {
    for sum in sums.iter_mut() {
        *sum /= z;
    }
}

#[inline(always)]
fn join(stripes: [f32; 4]) -> f32 {
    (stripes[0] + stripes[1]) + (stripes[2] + stripes[3])
}

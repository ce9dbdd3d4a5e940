//! Elementary functions that give the same bits everywhere.
//!
//! Plain f32 multiplications, additions, divisions and integer shifts, each rounded by itself, in
//! a fixed order; no branch depends on a value, so a loop over a slice becomes vector code without
//! changing a bit. Every function is within 2 ULP of the correctly rounded result for every f32
//! (`functions/tests.rs` walks them). NaN gives NaN.
//!
//! Polynomials are minimax fits made for this file (Remez exchange in 200-bit arithmetic, each
//! coefficient rounded to f32 before the next is fitted); they stand as bit patterns.

#[cfg(test)]
mod tests;

/// `e^x`; below -104 zero, above 88.73 infinity, subnormal results included.
#[inline(always)]
pub fn exp_v1(x: f32) -> f32 {
    Power::of(clamp(x, -110.0, 89.0), 0.0).value()
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid_v1(x: f32) -> f32 {
    logistic_times(1.0, clamp(x, -110.0, 110.0), 0.0)
}

/// `(e^x - e^-x) / (e^x + e^-x)`.
#[inline(always)]
pub fn tanh_v1(x: f32) -> f32 {
    let a = magnitude(x);
    let z = a * a;
    let p = horner(z, &TANH);
    let small = a + a * (z * p);
    let power = Power::of(clamp(a + a, 0.0, 40.0), 0.0);
    let large = 1.0 - 2.0 / (power.value() + 1.0);
    with_sign_of(if a < TANH_SPLIT { small } else { large }, x)
}

/// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, which is `x / (1 + e^-w)` with
/// `w = 2 sqrt(2 / pi) (x + 0.044715 x^3)`.
///
/// For negative `x` the error of `w` is multiplied by `|w|` up to 104, so `w` is a double float.
#[inline(always)]
pub fn gelu_tanh_v1(x: f32) -> f32 {
    // Beyond 16 the result is x or -0.
    let c = clamp(x, -16.0, 16.0);
    let (square, square_low) = product(c, c);
    let (cubic, cubic_low) = product(f32::from_bits(GELU_CUBE), square);
    let cubic_low = cubic_low
        + (f32::from_bits(GELU_CUBE) * square_low + f32::from_bits(GELU_CUBE_LOW) * square);
    let (slope, slope_low) = sum(f32::from_bits(GELU_LINE), cubic);
    let slope_low = slope_low + (cubic_low + f32::from_bits(GELU_LINE_LOW));
    let (w, w_low) = product(slope, c);
    let w_low = w_low + slope_low * c;
    logistic_times(at_least(x, -16.0), clamp(w, -126.0, 126.0), w_low)
}

/// `x / (1 + e^-x)`.
#[inline(always)]
pub fn silu_v1(x: f32) -> f32 {
    logistic_times(at_least(x, -126.0), clamp(x, -126.0, 126.0), 0.0)
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub fn softplus_v1(x: f32) -> f32 {
    let power = Power::of(clamp(-magnitude(x), -110.0, 0.0), 0.0);
    let e = power.value();
    // ln(1 + e) = e - e^2 / 2 + e^3 p(e), the first two terms without loss.
    let (square, square_low) = product(e, e);
    let tail = e * square * horner(e, &LOG1P);
    let (line, line_low) = ordered_sum(if x > 0.0 { x } else { 0.0 }, e);
    let (sum, sum_low) = sum(line, -0.5 * square);
    let soft = sum + ((line_low + sum_low) + (tail - 0.5 * square_low));
    // Beyond 64 the result is x; NaN fails the comparison and comes back through `e`.
    if x > 64.0 { x } else { soft }
}

/// `1 / sqrt(x)`, both steps correctly rounded.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / sqrt(x)
}

/// Correctly rounded square root, by the instruction where safe code can name it.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    {
        use core::arch::wasm32::{f32x4_extract_lane, f32x4_splat, f32x4_sqrt};
        f32x4_extract_lane::<0>(f32x4_sqrt(f32x4_splat(x)))
    }
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    libm::sqrtf(x)
}

/// `e^(x + low)` as `(mantissa + rest) * 2^exponent`, the mantissa in 0.7..1.42 with an error of
/// about half an ULP, with the rest about a tenth.
#[derive(Clone, Copy)]
struct Power {
    mantissa: f32,
    rest: f32,
    exponent: i32,
}

impl Power {
    /// `x` within -160..=130; `low` small against `x`.
    #[inline(always)]
    fn of(x: f32, low: f32) -> Power {
        // Adding 1.5 * 2^23 leaves the integer nearest to x / ln 2 in the low bits.
        let shifted = x * f32::from_bits(LOG2_E) + ROUND;
        let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
        let count = shifted - ROUND;
        // LN2_HIGH has 16 bits, so the product and the difference are exact.
        let high = x - count * f32::from_bits(LN2_HIGH);
        let correction = low - count * f32::from_bits(LN2_LOW);
        let (r, r_low) = ordered_sum(high, correction);
        let bend = r_low + (r * r) * horner(r, &EXP);
        let (one, one_low) = ordered_sum(1.0, r);
        let (mantissa, rest) = ordered_sum(one, one_low + bend);
        Power {
            mantissa,
            rest,
            exponent,
        }
    }

    #[inline(always)]
    fn value(self) -> f32 {
        scale(self.mantissa, self.exponent)
    }
}

/// `y / (1 + e^-(w + w_low))`, `w` within -126..=126; `y` at least -126 if `w` is negative.
///
/// With `e = e^-|w|` it is `y / (1 + e)` for positive `w`, else `y e / (1 + e)`; numerator and
/// denominator are double floats, and the power of two is applied last, so that a subnormal result
/// is rounded once.
#[inline(always)]
fn logistic_times(y: f32, w: f32, w_low: f32) -> f32 {
    let negative = w < 0.0;
    let power = Power::of(-magnitude(w), if negative { w_low } else { -w_low });
    let (one, one_low) = ordered_sum(1.0, power.value());
    let small = clamp(y, -126.0, 126.0);
    let (times, times_low) = product(small, power.mantissa);
    let above = if negative { times } else { y };
    let above_low = if negative {
        times_low + small * power.rest
    } else {
        0.0
    };
    let quotient = above / one;
    // The clamp keeps infinity times zero out; beyond it there is nothing to correct.
    let lost = above_low - clamp(quotient, -126.0, 126.0) * one_low;
    scale(
        quotient + lost / one,
        if negative { power.exponent } else { 0 },
    )
}

/// `y * 2^exponent`, rounded once; `y` normal, `exponent` in -250..=128.
#[inline(always)]
fn scale(y: f32, exponent: i32) -> f32 {
    let half = exponent >> 1;
    (y * two_to(half)) * two_to(exponent.wrapping_sub(half))
}

/// `2^k`, `k` in -126..=127.
#[inline(always)]
fn two_to(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}

/// `c[0] + x (c[1] + x (c[2] + ...))`, coefficients as bits.
#[inline(always)]
fn horner<const N: usize>(x: f32, bits: &[u32; N]) -> f32 {
    let mut sum = f32::from_bits(bits[N - 1]);
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = sum * x + f32::from_bits(bits[i]);
    }
    sum
}

/// `a + b` rounded, and what the rounding lost, exactly; `|a| >= |b|` (Dekker 1971).
#[inline(always)]
fn ordered_sum(a: f32, b: f32) -> (f32, f32) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// `a + b` rounded, and what the rounding lost, exactly (Knuth 1969).
#[inline(always)]
fn sum(a: f32, b: f32) -> (f32, f32) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// `a * b` rounded, and what the rounding lost, exactly, if nothing over- or underflows
/// (Veltkamp's splitting and Dekker's product, 1971).
#[inline(always)]
fn product(a: f32, b: f32) -> (f32, f32) {
    let (a_high, a_low) = halves(a);
    let (b_high, b_low) = halves(b);
    let p = a * b;
    let low = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
    (p, low)
}

/// `a` as a sum of two floats of 12 bits each.
#[inline(always)]
fn halves(a: f32) -> (f32, f32) {
    let c = 4097.0 * a;
    let high = c - (c - a);
    (high, a - high)
}

/// NaN passes.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = at_least(x, low);
    if x > high { high } else { x }
}

/// NaN passes.
#[inline(always)]
fn at_least(x: f32, low: f32) -> f32 {
    if x < low { low } else { x }
}

#[inline(always)]
fn magnitude(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0x7fff_ffff)
}

#[inline(always)]
fn with_sign_of(magnitude: f32, sign: f32) -> f32 {
    f32::from_bits(magnitude.to_bits() | (sign.to_bits() & 0x8000_0000))
}

/// 1.5 * 2^23: floats of this size are integers.
const ROUND: f32 = 12_582_912.0;
const LOG2_E: u32 = 0x3fb8_aa3b;
/// The first 16 bits of ln 2, and the rest.
const LN2_HIGH: u32 = 0x3f31_7200;
const LN2_LOW: u32 = 0x35bf_be8e;

/// `(e^r - 1 - r) / r^2` for `|r| <= ln(2) / 2`, relative error of `e^r` below 2^-31.
const EXP: [u32; 6] = [
    0x3f00_0000,
    0x3e2a_aa9e,
    0x3d2a_aa79,
    0x3c08_9b8f,
    0x3ab6_a04e,
    0x3935_d926,
];

/// Below this the series, above it the exponential.
const TANH_SPLIT: f32 = 0.55;
/// `(tanh(x) / x - 1) / x^2` as a polynomial in `x^2`, relative error of `tanh` below 2^-29.
const TANH: [u32; 5] = [
    0xbeaa_aaa6,
    0x3e08_86b5,
    0xbd5c_98fe,
    0x3cac_c13c,
    0xbbce_4a5b,
];

/// `(ln(1 + e) - e + e^2 / 2) / e^3` for `0 <= e <= 1`; the logarithm's relative error is below
/// 2^-28.
const LOG1P: [u32; 9] = [
    0x3eaa_aa9f,
    0xbe7f_f8cd,
    0x3e4c_5a4b,
    0xbe27_6a1b,
    0x3e04_c295,
    0xbdb8_5ab3,
    0x3d43_dfd9,
    0xbc85_edc0,
    0x3b2b_114d,
];

/// `2 sqrt(2 / pi)` as a double float, and that times 0.044715.
const GELU_LINE: u32 = 0x3fcc_422a;
const GELU_LINE_LOW: u32 = 0xb342_bc9b;
const GELU_CUBE: u32 = 0x3d92_2279;
const GELU_CUBE_LOW: u32 = 0x3124_d8b5;

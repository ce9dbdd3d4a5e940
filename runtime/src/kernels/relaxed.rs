//! Wasm relaxed SIMD: SIMD128 with an integer product of four byte pairs at once.
//!
//! `i32x4.relaxed_dot_i8x16_i7x16_add` is the only relaxed instruction here. It is loose in two
//! places, and this file stays out of both:
//!
//! - A byte of the second operand above 127 may be read as signed or unsigned. Here that operand
//!   is always a nibble (0..=15), seven bits of a code (0..=127) or one bit (0, 1).
//! - Engines add two neighbouring products in 16 bits, which may wrap or saturate, before they add
//!   the two sums and the third operand in 32 bits. The first operand is an activation, within
//!   -127..=127 (even -128 would do): two products are at most 2 * 128 * 127 = 32,512 in magnitude,
//!   which 16 bits hold. The 32-bit sums stay below 2^20 (`scalar`).
//!
//! So every engine must give the exact integer, whatever instructions it uses.
#![allow(unsafe_code)]

use core::arch::wasm32::*;

use super::lanes::{Dot, Places};
use super::matrix::Matrix;
use super::quantized::{Input, QuantizedBlock};
use super::shared::Part;
use super::simd128::Four;
use super::wide;

/// Proof that this module was compiled with relaxed SIMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relaxed(());

impl Relaxed {
    /// This file is compiled only with the feature.
    pub const HERE: Relaxed = Relaxed(());

    pub fn matmul(self, w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
        // SAFETY: the whole module may use the instructions.
        unsafe { wide::matmul::<SevenBits>(w, x, y) }
    }
}

struct SevenBits;

impl Dot for SevenBits {
    type L = Four;

    /// A code is its low seven bits less 128 if its sign bit is set.
    #[inline(always)]
    unsafe fn bytes<const T: usize>(from: Places, x: [*const QuantizedBlock; T]) -> [v128; T] {
        let mut sums = [i32x4_splat(0); T];
        let mut signs = [i32x4_splat(0); T];
        for j in 0..8 {
            // SAFETY: the trait's contract: 128 code bytes, `j < 8`.
            let w = unsafe { v128_load(from[0].add(16 * j).cast()) };
            let low = v128_and(w, u8x16_splat(0x7f));
            let sign = v128_and(u16x8_shr(w, 7), u8x16_splat(1));
            for t in 0..T {
                // SAFETY: `4 * j + 4 <= 32` codes.
                let x = unsafe { four_codes(x[t], 4 * j) };
                sums[t] = i32x4_relaxed_dot_i8x16_i7x16_add(x, low, sums[t]);
                signs[t] = i32x4_relaxed_dot_i8x16_i7x16_add(x, sign, signs[t]);
            }
        }
        for t in 0..T {
            sums[t] = i32x4_sub(sums[t], i32x4_shl(signs[t], 7));
        }
        sums
    }

    #[inline(always)]
    unsafe fn nibbles<const T: usize>(from: Places, x: [*const QuantizedBlock; T]) -> [v128; T] {
        let mut sums = [i32x4_splat(0); T];
        let bits = u8x16_splat(15);
        for j in 0..4 {
            // SAFETY: the trait's contract: 64 code bytes, `j < 4`.
            let w = unsafe { v128_load(from[0].add(16 * j).cast()) };
            let low = v128_and(w, bits);
            let high = v128_and(u16x8_shr(w, 4), bits);
            for t in 0..T {
                // SAFETY: `16 + 4 * j + 4 <= 32` codes.
                let (a, b) = unsafe { (four_codes(x[t], 4 * j), four_codes(x[t], 16 + 4 * j)) };
                sums[t] = i32x4_relaxed_dot_i8x16_i7x16_add(a, low, sums[t]);
                sums[t] = i32x4_relaxed_dot_i8x16_i7x16_add(b, high, sums[t]);
            }
        }
        sums
    }
}

/// Four neighbouring codes in each lane.
///
/// # Safety
///
/// `x` is a block; `at + 4 <= 32`.
#[inline(always)]
unsafe fn four_codes(x: *const QuantizedBlock, at: usize) -> v128 {
    // SAFETY: the caller's contract; `codes` is the block's first field and 32 bytes long.
    unsafe { v128_load32_splat(x.cast::<u8>().add(at).cast()) }
}

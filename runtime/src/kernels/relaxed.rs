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
// Tokens and vectors are counted: several arrays have the same index.
#![allow(clippy::needless_range_loop)]

use core::arch::wasm32::*;

use super::lanes::{Dot, PackedBlock, Places};
use super::matrix::{COLS, Matrix};
use super::quantized::{Input, QuantizedBlock};
use super::shared::Part;
use super::simd128::{Constant, Four, kept};
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
    /// Each four columns four times, as a vector wants them.
    type Codes = [[[i8; 4]; 4]; COLS / 4];

    #[inline(always)]
    fn codes(x: &QuantizedBlock) -> Self::Codes {
        let (fours, _) = x.codes.as_chunks::<4>();
        core::array::from_fn(|j| [fours[j]; 4])
    }

    /// A code is its low seven bits less 128 if its sign bit is set.
    #[inline(always)]
    unsafe fn bytes<const G: usize, const T: usize>(
        from: [Places; G],
        x: *const PackedBlock<Self::Codes>,
    ) -> [[v128; T]; G] {
        let zero = i32x4_splat(0);
        let (mut sums, mut signs) = ([[zero; T]; G], [[zero; T]; G]);
        let (low_bits, low_bit) = (kept(&Constant([0x7f; 16])), kept(&Constant([1; 16])));
        for j in 0..8 {
            let (mut low, mut sign) = ([zero; G], [zero; G]);
            for g in 0..G {
                // SAFETY: the trait's contract: 128 code bytes, `j < 8`.
                let w = unsafe { v128_load(from[g][0].add(16 * j).cast()) };
                low[g] = v128_and(w, low_bits);
                sign[g] = v128_and(u16x8_shr(w, 7), low_bit);
            }
            // SAFETY: the trait's contract; `j < 8`.
            unsafe {
                add_four(&mut sums, low, x, j);
                add_four(&mut signs, sign, x, j);
            }
        }
        for g in 0..G {
            for t in 0..T {
                sums[g][t] = i32x4_sub(sums[g][t], i32x4_shl(signs[g][t], 7));
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn nibbles<const G: usize, const T: usize>(
        from: [Places; G],
        x: *const PackedBlock<Self::Codes>,
    ) -> [[v128; T]; G] {
        let mut sums = [[i32x4_splat(0); T]; G];
        let bits = kept(&Constant([15; 16]));
        // Written out: as a loop, the compiler leaves it one, and engines keep fewer sums in
        // registers.
        // SAFETY: the trait's contract.
        unsafe {
            add_nibbles(&mut sums, from, bits, x, 0);
            add_nibbles(&mut sums, from, bits, x, 1);
            add_nibbles(&mut sums, from, bits, x, 2);
            add_nibbles(&mut sums, from, bits, x, 3);
        }
        sums
    }
}

type Block = PackedBlock<[[[i8; 4]; 4]; COLS / 4]>;

/// Adds the products of vector `j` of codes.
///
/// # Safety
///
/// As for [`Dot::nibbles`]; `j < 4`.
#[inline(always)]
unsafe fn add_nibbles<const G: usize, const T: usize>(
    sums: &mut [[v128; T]; G],
    from: [Places; G],
    bits: v128,
    x: *const Block,
    j: usize,
) {
    let (mut low, mut high) = ([bits; G], [bits; G]);
    for g in 0..G {
        // SAFETY: the caller's contract: 64 code bytes.
        let w = unsafe { v128_load(from[g][0].add(16 * j).cast()) };
        low[g] = v128_and(w, bits);
        high[g] = v128_and(u16x8_shr(w, 4), bits);
    }
    // SAFETY: the caller's contract: `4 + j < 8`.
    unsafe {
        add_four(sums, low, x, j);
        add_four(sums, high, x, 4 + j);
    }
}

/// Adds the products of the four columns from `4 * j` on.
///
/// # Safety
///
/// `x` are the blocks of `T` tokens; `j < 8`.
#[inline(always)]
unsafe fn add_four<const G: usize, const T: usize>(
    sums: &mut [[v128; T]; G],
    w: [v128; G],
    x: *const Block,
    j: usize,
) {
    for t in 0..T {
        // SAFETY: the caller's contract: `codes` is the first field and holds eight vectors.
        let x = unsafe { v128_load(x.add(t).cast::<v128>().add(j)) };
        for g in 0..G {
            sums[g][t] = i32x4_relaxed_dot_i8x16_i7x16_add(x, w[g], sums[g][t]);
        }
    }
}

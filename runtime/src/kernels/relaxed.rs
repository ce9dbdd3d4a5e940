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

const NIBBLE: Constant = Constant([15; 16]);
const LOW_BITS: Constant = Constant([0x7f; 16]);
const LOW_BIT: Constant = Constant([1; 16]);

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
    unsafe fn bytes<const T: usize>(from: Places, x: *const Block) -> [v128; T] {
        let (mut sums, mut signs) = ([i32x4_splat(0); T], [i32x4_splat(0); T]);
        let (low_bits, low_bit) = (kept(&LOW_BITS), kept(&LOW_BIT));
        for j in 0..8 {
            // SAFETY: the trait's contract: 128 code bytes, `j < 8`.
            unsafe {
                let w = v128_load(from[0].add(16 * j).cast());
                add_four(&mut sums, v128_and(w, low_bits), x, j);
                add_four(&mut signs, v128_and(u16x8_shr(w, 7), low_bit), x, j);
            }
        }
        for t in 0..T {
            sums[t] = i32x4_sub(sums[t], i32x4_shl(signs[t], 7));
        }
        sums
    }

    #[inline(always)]
    unsafe fn nibbles<const T: usize>(from: Places, x: *const Block) -> [v128; T] {
        let mut sums = [i32x4_splat(0); T];
        let bits = kept(&NIBBLE);
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

    /// Four columns at a time: so all that is needed stays in 16 registers.
    #[inline(always)]
    unsafe fn bytes_of_four(from: [Places; 4], x: *const Block) -> [v128; 4] {
        let (mut sums, mut signs) = ([i32x4_splat(0); 4], [i32x4_splat(0); 4]);
        for j in 0..8 {
            // Nothing is moved over these loads, so the columns stay apart.
            let (low_bits, low_bit) = (kept(&LOW_BITS), kept(&LOW_BIT));
            for g in 0..4 {
                // SAFETY: the trait's contract: 128 code bytes, `j < 8`.
                unsafe {
                    let w = v128_load(from[g][0].add(16 * j).cast());
                    let (low, sign) = (v128_and(w, low_bits), v128_and(u16x8_shr(w, 7), low_bit));
                    add_four(core::array::from_mut(&mut sums[g]), low, x, j);
                    add_four(core::array::from_mut(&mut signs[g]), sign, x, j);
                }
            }
        }
        for g in 0..4 {
            sums[g] = i32x4_sub(sums[g], i32x4_shl(signs[g], 7));
        }
        sums
    }

    /// Half of the columns at a time: so all that is needed stays in 16 registers.
    #[inline(always)]
    unsafe fn nibbles_of_four(from: [Places; 4], x: *const Block) -> [v128; 4] {
        let mut sums = [i32x4_splat(0); 4];
        // SAFETY: the trait's contract.
        unsafe {
            add_half(&mut sums, from, x, 0);
            add_half(&mut sums, from, x, 2);
        }
        sums
    }
}

/// Adds the products of vectors `j` and `j + 1` of codes.
///
/// # Safety
///
/// As for [`Dot::nibbles_of_four`]; `j < 3`.
#[inline(always)]
unsafe fn add_half(sums: &mut [v128; 4], from: [Places; 4], x: *const Block, j: usize) {
    // Nothing is moved over this load, so the halves stay apart.
    let bits = kept(&NIBBLE);
    // SAFETY: the caller's contract: 64 code bytes, `codes` is the first field and holds eight
    // vectors.
    unsafe {
        let x = [j, j + 1, j + 4, j + 5].map(|j| v128_load(x.cast::<v128>().add(j)));
        for g in 0..4 {
            let a = v128_load(from[g][0].add(16 * j).cast());
            let b = v128_load(from[g][0].add(16 * j + 16).cast());
            let sum = i32x4_relaxed_dot_i8x16_i7x16_add(x[0], v128_and(a, bits), sums[g]);
            let sum = i32x4_relaxed_dot_i8x16_i7x16_add(x[1], v128_and(b, bits), sum);
            let (a, b) = (u16x8_shr(a, 4), u16x8_shr(b, 4));
            let sum = i32x4_relaxed_dot_i8x16_i7x16_add(x[2], v128_and(a, bits), sum);
            sums[g] = i32x4_relaxed_dot_i8x16_i7x16_add(x[3], v128_and(b, bits), sum);
        }
    }
}

type Block = PackedBlock<[[[i8; 4]; 4]; COLS / 4]>;

/// Adds the products of vector `j` of codes.
///
/// # Safety
///
/// As for [`Dot::nibbles`]; `j < 4`.
#[inline(always)]
unsafe fn add_nibbles<const T: usize>(
    sums: &mut [v128; T],
    from: Places,
    bits: v128,
    x: *const Block,
    j: usize,
) {
    // SAFETY: the caller's contract: 64 code bytes, `4 + j < 8`.
    unsafe {
        let w = v128_load(from[0].add(16 * j).cast());
        add_four(sums, v128_and(w, bits), x, j);
        add_four(sums, v128_and(u16x8_shr(w, 4), bits), x, 4 + j);
    }
}

/// Adds the products of the four columns from `4 * j` on.
///
/// # Safety
///
/// `x` are the blocks of `T` tokens; `j < 8`.
#[inline(always)]
unsafe fn add_four<const T: usize>(sums: &mut [v128; T], w: v128, x: *const Block, j: usize) {
    for t in 0..T {
        // SAFETY: the caller's contract: `codes` is the first field and holds eight vectors.
        let x = unsafe { v128_load(x.add(t).cast::<v128>().add(j)) };
        sums[t] = i32x4_relaxed_dot_i8x16_i7x16_add(x, w, sums[t]);
    }
}

//! Integer products with plain SIMD128: pairs of 16-bit numbers.
#![allow(unsafe_code)]
// Tokens and vectors are counted: several arrays have the same index.
#![allow(clippy::needless_range_loop)]

use core::arch::wasm32::*;

use super::lanes::{Dot, PackedBlock, Places};
use super::matrix::{COLS, Matrix};
use super::quantized::{Input, QuantizedBlock};
use super::shared::Part;
use super::simd128::{Constant, Four, Simd128, kept};
use super::wide;

impl Simd128 {
    pub fn matmul(self, w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
        // SAFETY: the whole module may use the instructions.
        unsafe { wide::matmul::<Pairs>(w, x, y) }
    }
}

/// In each 32-bit lane of codes lie columns `a, b, c, d` of one row; as 16-bit numbers `a` and `c`
/// are the low bytes, `b` and `d` the high ones, so one dot product of pairs keeps a row in its
/// lane.
struct Pairs;

impl Dot for Pairs {
    type L = Four;
    /// Each four columns `a, b, c, d` as `a, c, b, d`.
    type Codes = [i16; COLS];

    #[inline(always)]
    fn codes(x: &QuantizedBlock) -> [i16; COLS] {
        let mut pairs = [0; COLS];
        for k in (0..COLS).step_by(4) {
            for (at, from) in [0, 2, 1, 3].into_iter().enumerate() {
                pairs[k + at] = i16::from(x.codes[k + from]);
            }
        }
        pairs
    }

    #[inline(always)]
    unsafe fn bytes<const G: usize, const T: usize>(
        from: [Places; G],
        x: *const PackedBlock<[i16; COLS]>,
    ) -> [[v128; T]; G] {
        let zero = i32x4_splat(0);
        let mut sums = [[zero; T]; G];
        for j in 0..8 {
            let (mut ac, mut bd) = ([zero; G], [zero; G]);
            for g in 0..G {
                // SAFETY: the trait's contract: 128 code bytes, `j < 8`.
                let w = unsafe { v128_load(from[g][0].add(16 * j).cast()) };
                ac[g] = i16x8_shr(i16x8_shl(w, 8), 8);
                bd[g] = i16x8_shr(w, 8);
            }
            // SAFETY: the trait's contract; `4 * j + 4 <= 32` codes.
            unsafe { add_four(&mut sums, ac, bd, x, 4 * j) };
        }
        sums
    }

    #[inline(always)]
    unsafe fn nibbles<const G: usize, const T: usize>(
        from: [Places; G],
        x: *const PackedBlock<[i16; COLS]>,
    ) -> [[v128; T]; G] {
        let mut sums = [[i32x4_splat(0); T]; G];
        let bits = kept(&Constant([
            15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0,
        ]));
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
    x: *const PackedBlock<[i16; COLS]>,
    j: usize,
) {
    let (mut w, mut ac, mut bd) = ([bits; G], [bits; G], [bits; G]);
    for g in 0..G {
        // SAFETY: the caller's contract: 64 code bytes.
        w[g] = unsafe { v128_load(from[g][0].add(16 * j).cast()) };
        ac[g] = v128_and(w[g], bits);
        bd[g] = v128_and(u16x8_shr(w[g], 8), bits);
    }
    // SAFETY: the caller's contract; `4 * j + 4 <= 16` codes.
    unsafe { add_four(sums, ac, bd, x, 4 * j) };
    for g in 0..G {
        ac[g] = v128_and(u16x8_shr(w[g], 4), bits);
        bd[g] = u16x8_shr(w[g], 12);
    }
    // SAFETY: the caller's contract; `16 + 4 * j + 4 <= 32` codes.
    unsafe { add_four(sums, ac, bd, x, 16 + 4 * j) };
}

/// Adds the products of four columns from `at` on.
///
/// # Safety
///
/// `x` are the blocks of `T` tokens; `at + 4 <= 32`.
#[inline(always)]
unsafe fn add_four<const G: usize, const T: usize>(
    sums: &mut [[v128; T]; G],
    ac: [v128; G],
    bd: [v128; G],
    x: *const PackedBlock<[i16; COLS]>,
    at: usize,
) {
    for t in 0..T {
        // SAFETY: the caller's contract: `codes` is the first field and holds 32 i16.
        let (x_ac, x_bd) = unsafe {
            let pairs = x.add(t).cast::<i16>().add(at).cast::<u32>();
            (v128_load32_splat(pairs), v128_load32_splat(pairs.add(1)))
        };
        for g in 0..G {
            let pairs = i32x4_add(i32x4_dot_i16x8(ac[g], x_ac), i32x4_dot_i16x8(bd[g], x_bd));
            sums[g][t] = i32x4_add(sums[g][t], pairs);
        }
    }
}

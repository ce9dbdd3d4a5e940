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
    unsafe fn bytes<const T: usize>(from: Places, x: *const Block) -> [v128; T] {
        let mut sums = [i32x4_splat(0); T];
        for j in 0..8 {
            // SAFETY: the trait's contract: 128 code bytes, `4 * j + 4 <= 32` codes.
            unsafe {
                let w = v128_load(from[0].add(16 * j).cast());
                let ac = i16x8_shr(i16x8_shl(w, 8), 8);
                add_four(&mut sums, ac, i16x8_shr(w, 8), x, 4 * j);
            }
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
        let mut sums = [i32x4_splat(0); 4];
        for j in 0..8 {
            // Nothing is moved over this load, so the columns stay apart.
            kept(&NIBBLE);
            for g in 0..4 {
                // SAFETY: the trait's contract: 128 code bytes, `4 * j + 4 <= 32` codes.
                unsafe {
                    let w = v128_load(from[g][0].add(16 * j).cast());
                    let (ac, bd) = (i16x8_shr(i16x8_shl(w, 8), 8), i16x8_shr(w, 8));
                    add_four(core::array::from_mut(&mut sums[g]), ac, bd, x, 4 * j);
                }
            }
        }
        sums
    }

    /// As `bytes_of_four`: eight columns at a time.
    #[inline(always)]
    unsafe fn nibbles_of_four(from: [Places; 4], x: *const Block) -> [v128; 4] {
        let mut sums = [i32x4_splat(0); 4];
        for j in 0..4 {
            // As in `bytes_of_four`.
            let bits = kept(&NIBBLE);
            for g in 0..4 {
                let sum = core::array::from_mut(&mut sums[g]);
                // SAFETY: the trait's contract.
                unsafe { add_nibbles(sum, from[g], bits, x, j) };
            }
        }
        sums
    }
}

const NIBBLE: Constant = Constant([15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0]);

type Block = PackedBlock<[i16; COLS]>;

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
    // SAFETY: the caller's contract: 64 code bytes, `16 + 4 * j + 4 <= 32` codes.
    unsafe {
        let w = v128_load(from[0].add(16 * j).cast());
        let bd = v128_and(u16x8_shr(w, 8), bits);
        add_four(sums, v128_and(w, bits), bd, x, 4 * j);
        let ac = v128_and(u16x8_shr(w, 4), bits);
        add_four(sums, ac, u16x8_shr(w, 12), x, 16 + 4 * j);
    }
}

/// Adds the products of four columns from `at` on.
///
/// # Safety
///
/// `x` are the blocks of `T` tokens; `at + 4 <= 32`.
#[inline(always)]
unsafe fn add_four<const T: usize>(
    sums: &mut [v128; T],
    ac: v128,
    bd: v128,
    x: *const Block,
    at: usize,
) {
    for t in 0..T {
        // SAFETY: the caller's contract: `codes` is the first field and holds 32 i16.
        let (x_ac, x_bd) = unsafe {
            let pairs = x.add(t).cast::<i16>().add(at).cast::<u32>();
            (v128_load32_splat(pairs), v128_load32_splat(pairs.add(1)))
        };
        let pairs = i32x4_add(i32x4_dot_i16x8(ac, x_ac), i32x4_dot_i16x8(bd, x_bd));
        sums[t] = i32x4_add(sums[t], pairs);
    }
}

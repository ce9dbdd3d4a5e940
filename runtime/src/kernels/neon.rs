//! arm64: one group of four rows in a vector of NEON, which every such processor has.
//!
//! No fused multiplication: `vfmaq_f32` would round once where the contract rounds twice.
#![allow(unsafe_code)]
// Tokens and vectors are counted: several arrays have the same index.
#![allow(clippy::needless_range_loop)]

use core::arch::aarch64::*;

use protocol::TrResult;

use super::attention::{Attention, Sums, attention};
use super::lanes::{Dot, Lanes, PackedBlock, Places};
use super::matrix::{COLS, Matrix};
use super::quantized::{Input, QuantizedBlock};
use super::shared::Part;
use super::wide;

/// Proof that this was compiled with NEON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neon(());

impl Neon {
    /// This file is compiled only with the feature.
    pub const HERE: Neon = Neon(());

    pub fn matmul(self, w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
        // SAFETY: the whole program may use the instructions.
        unsafe { wide::matmul::<Widening>(w, x, y) }
    }

    pub fn attention(
        self,
        job: &Attention<'_>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), TrResult> {
        attention(&self, job, scratch, out)
    }
}

impl Sums for Neon {
    fn scores(&self, job: &Attention<'_>, scores: &mut [f32], block: &mut [f32]) {
        // SAFETY: the whole program may use the instructions.
        unsafe { wide::scores::<Four>(job, scores, block) }
    }

    fn values(&self, job: &Attention<'_>, e: &[f32], block: &mut [f32], out: &mut [f32]) {
        // SAFETY: the whole program may use the instructions.
        unsafe { wide::values::<Four>(job, e, block, out) }
    }
}

#[derive(Clone, Copy)]
struct Four(float32x4_t);

// SAFETY comments below: the trait asks its caller for the instruction set and for readable
// memory; each body uses only NEON instructions and unaligned loads of the size that the trait
// names.
impl Lanes for Four {
    const GROUPS: usize = 1;
    type Ints = int32x4_t;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Four {
        // SAFETY: the trait's contract.
        unsafe { Four(vdupq_n_f32(x)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Four) -> Four {
        // SAFETY: the trait's contract.
        unsafe { Four(vaddq_f32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Four) -> Four {
        // SAFETY: the trait's contract.
        unsafe { Four(vmulq_f32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Four {
        // SAFETY: the trait's contract.
        unsafe { Four(vld1q_f32(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe { vst1q_f32(to, self.0) }
    }

    #[inline(always)]
    unsafe fn load_two_f16(from: *const u16) -> [Four; 2] {
        // SAFETY: the trait's contract.
        unsafe { [four_f16(from), four_f16(from.add(4))] }
    }

    type Halves = ();

    #[inline(always)]
    unsafe fn halves() {}

    /// One instruction has no easy cases.
    #[inline(always)]
    unsafe fn load_two_finite_f16(from: *const u16, _: ()) -> [Four; 2] {
        // SAFETY: the trait's contract.
        unsafe { Four::load_two_f16(from) }
    }

    #[inline(always)]
    unsafe fn load_two_i8(from: *const i8) -> [Four; 2] {
        // SAFETY: the trait's contract.
        unsafe {
            let halves = vmovl_s8(vld1_s8(from));
            [vget_low_s16(halves), vget_high_s16(halves)]
                .map(|four| Four(vcvtq_f32_s32(vmovl_s16(four))))
        }
    }

    #[inline(always)]
    unsafe fn groups_f32(from: Places) -> Four {
        // SAFETY: the trait's contract; bytes are loaded, at any alignment.
        unsafe { Four(vreinterpretq_f32_u8(vld1q_u8(from[0]))) }
    }

    #[inline(always)]
    unsafe fn groups_f16(from: Places) -> Four {
        // SAFETY: the trait's contract.
        unsafe { four_f16(from[0].cast()) }
    }

    #[inline(always)]
    unsafe fn groups_two_f16(from: Places) -> (Four, Four) {
        // SAFETY: the trait's contract.
        unsafe { (four_f16(from[0].cast()), four_f16(from[0].add(8).cast())) }
    }

    #[inline(always)]
    unsafe fn groups_bf16(from: Places) -> Four {
        // SAFETY: the trait's contract.
        unsafe {
            let bits = vreinterpret_u16_u8(vld1_u8(from[0]));
            Four(vreinterpretq_f32_u32(vshll_n_u16::<16>(bits)))
        }
    }

    #[inline(always)]
    unsafe fn transpose(rows: [Four; 4]) -> [Four; 4] {
        // SAFETY: the trait's contract.
        unsafe {
            let pairs = |r: usize| {
                let (a, b) = (rows[r].0, rows[r + 1].0);
                [vtrn1q_f32(a, b), vtrn2q_f32(a, b)].map(|pair| vreinterpretq_f64_f32(pair))
            };
            let ([even, odd], [even_low, odd_low]) = (pairs(0), pairs(2));
            [
                vtrn1q_f64(even, even_low),
                vtrn1q_f64(odd, odd_low),
                vtrn2q_f64(even, even_low),
                vtrn2q_f64(odd, odd_low),
            ]
            .map(|column| Four(vreinterpretq_f32_f64(column)))
        }
    }

    #[inline(always)]
    unsafe fn groups_codes(from: Places) -> int32x4_t {
        // SAFETY: the trait's contract.
        unsafe { vreinterpretq_s32_s8(codes(from[0])) }
    }

    #[inline(always)]
    unsafe fn byte(codes: int32x4_t, column: usize) -> int32x4_t {
        // SAFETY: the trait's contract.
        unsafe {
            let up = vdupq_n_s32(24 - 8 * column as i32);
            vshrq_n_s32::<24>(vshlq_s32(codes, up))
        }
    }

    #[inline(always)]
    unsafe fn nibble(codes: int32x4_t, nibble: usize) -> int32x4_t {
        // SAFETY: the trait's contract.
        unsafe {
            let down = vdupq_n_s32(-4 * nibble as i32);
            vandq_s32(vshlq_s32(codes, down), vdupq_n_s32(15))
        }
    }

    #[inline(always)]
    unsafe fn subtract(ints: int32x4_t, x: i32) -> int32x4_t {
        // SAFETY: the trait's contract.
        unsafe { vsubq_s32(ints, vdupq_n_s32(x)) }
    }

    #[inline(always)]
    unsafe fn floats(ints: int32x4_t) -> Four {
        // SAFETY: the trait's contract.
        unsafe { Four(vcvtq_f32_s32(ints)) }
    }
}

/// Multiplications of bytes into 16 bits.
struct Widening;

impl Dot for Widening {
    type L = Four;
    type Codes = [i8; COLS];

    #[inline(always)]
    fn codes(x: &QuantizedBlock) -> [i8; COLS] {
        x.codes
    }

    /// Products are summed in 16 bits two by two, at most 2 * 128 * 127 = 32,512 in magnitude,
    /// then with their neighbour, the same row's, in 32.
    #[inline(always)]
    unsafe fn bytes<const T: usize>(
        from: Places,
        x: *const PackedBlock<[i8; COLS]>,
    ) -> [int32x4_t; T] {
        // SAFETY: the trait's contract: 128 code bytes, and `8 * j + 8 <= 32` codes.
        unsafe {
            let mut sums = [[vdupq_n_s32(0); 2]; T];
            for j in 0..4 {
                let from = from[0].add(32 * j);
                let w = [codes(from), codes(from.add(16))];
                for t in 0..T {
                    let x = x.add(t);
                    let x = [four_codes(x, 8 * j), four_codes(x, 8 * j + 4)];
                    let low = vmull_s8(vget_low_s8(w[0]), vget_low_s8(x[0]));
                    let low = vmlal_s8(low, vget_low_s8(w[1]), vget_low_s8(x[1]));
                    let high = vmlal_high_s8(vmull_high_s8(w[0], x[0]), w[1], x[1]);
                    let [a, b] = sums[t];
                    sums[t] = [vpadalq_s16(a, low), vpadalq_s16(b, high)];
                }
            }
            sums.map(|[low, high]| vpaddq_s32(low, high))
        }
    }

    /// Eight products are summed in 16 bits: at most 8 * 15 * 127 = 15,240.
    #[inline(always)]
    unsafe fn nibbles<const T: usize>(
        from: Places,
        x: *const PackedBlock<[i8; COLS]>,
    ) -> [int32x4_t; T] {
        // SAFETY: the trait's contract: 64 code bytes, and `16 + 4 * j + 4 <= 32` codes.
        unsafe {
            let bits = vdupq_n_u8(15);
            let mut sums = [[vdupq_n_s16(0); 2]; T];
            for j in 0..4 {
                let w = vreinterpretq_u8_s8(codes(from[0].add(16 * j)));
                let nibbles = [vandq_u8(w, bits), vshrq_n_u8::<4>(w)];
                for t in 0..T {
                    for (half, nibbles) in nibbles.into_iter().enumerate() {
                        let w = vreinterpretq_s8_u8(nibbles);
                        let x = four_codes(x.add(t), 16 * half + 4 * j);
                        let [low, high] = sums[t];
                        sums[t] = [
                            vmlal_s8(low, vget_low_s8(w), vget_low_s8(x)),
                            vmlal_high_s8(high, w, x),
                        ];
                    }
                }
            }
            sums.map(|[low, high]| vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)))
        }
    }
}

/// Four f16 exactly, subnormal, infinite and NaN ones too.
///
/// # Safety
///
/// 8 bytes can be read.
#[inline(always)]
unsafe fn four_f16(from: *const u16) -> Four {
    // SAFETY: the caller's contract; bytes are loaded, at any alignment.
    unsafe {
        let bits = vreinterpret_f16_u8(vld1_u8(from.cast()));
        Four(vcvt_f32_f16(bits))
    }
}

/// 16 codes.
///
/// # Safety
///
/// 16 bytes can be read.
#[inline(always)]
unsafe fn codes(from: *const u8) -> int8x16_t {
    // SAFETY: the caller's contract.
    unsafe { vld1q_s8(from.cast()) }
}

/// Four neighbouring codes in each lane.
///
/// # Safety
///
/// As for [`Lanes`]; `at + 4 <= 32`.
#[inline(always)]
unsafe fn four_codes(x: *const PackedBlock<[i8; COLS]>, at: usize) -> int8x16_t {
    // SAFETY: the caller's contract; `codes` is the block's first field and 32 bytes long.
    unsafe {
        let four = x.cast::<u8>().add(at).cast::<i32>().read_unaligned();
        vreinterpretq_s8_s32(vdupq_n_s32(four))
    }
}

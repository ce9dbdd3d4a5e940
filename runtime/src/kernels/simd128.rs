//! Wasm SIMD128: one group of four rows in a vector.
#![allow(unsafe_code)]

use core::arch::wasm32::*;
use core::array::from_fn;
use core::hint::black_box;

use protocol::TrResult;

use super::attention::{Attention, Sums, attention};
use super::lanes::{Lanes, Places};
use super::matrix::COLS;
use super::quantized::QuantizedBlock;
use super::wide;

/// Proof that this module was compiled with SIMD128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd128(());

impl Simd128 {
    /// This file is compiled only with the feature.
    pub const HERE: Simd128 = Simd128(());

    /// As `vectors::quantize`, which a compiler does not turn into vector code here.
    pub fn quantize(self, x: &[f32], blocks: &mut [QuantizedBlock]) {
        let (inputs, rest) = x.as_chunks::<COLS>();
        assert!(inputs.len() == blocks.len() && rest.is_empty());
        for (x, block) in inputs.iter().zip(blocks) {
            quantize_block(x, block);
        }
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

impl Sums for Simd128 {
    fn scores(&self, job: &Attention<'_>, scores: &mut [f32], block: &mut [f32]) {
        // SAFETY: the whole module may use the instructions.
        unsafe { wide::scores::<Four>(job, scores, block) }
    }

    fn values(&self, job: &Attention<'_>, e: &[f32], block: &mut [f32], out: &mut [f32]) {
        // SAFETY: the whole module may use the instructions.
        unsafe { wide::values::<Four>(job, e, block, out) }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Four(v128);

impl Lanes for Four {
    const GROUPS: usize = 1;
    type Ints = v128;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Four {
        Four(f32x4_splat(x))
    }

    #[inline(always)]
    unsafe fn spread(x: *const [f32; 4]) -> Four {
        // SAFETY: the trait's contract.
        unsafe { Four(v128_load(x.cast())) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Four) -> Four {
        Four(f32x4_add(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn mul(self, other: Four) -> Four {
        Four(f32x4_mul(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Four {
        // SAFETY: the trait's contract; Wasm loads at any alignment.
        unsafe { Four(v128_load(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe { v128_store(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn load_two_f16(from: *const u16) -> [Four; 2] {
        // SAFETY: the trait's contract.
        let bits = unsafe { v128_load(from.cast()) };
        let magnitude = v128_and(bits, i16x8_splat(0x7fff));
        let special = i16x8_gt(magnitude, i16x8_splat(0x7bff));
        halves(bits, v128_and(special, i16x8_splat(0x7f80)))
    }

    type Halves = [v128; 2];

    /// Opaque: made anew for each vector, constants would cost as much as what they are for.
    #[inline(always)]
    unsafe fn halves() -> [v128; 2] {
        black_box([u32x4_splat(0x8fff_e000), u32x4_splat((127 + 112) << 23)])
    }

    /// As `halves` below, with the sign spread over what is masked away.
    #[inline(always)]
    unsafe fn load_two_finite_f16(from: *const u16, [kept, up]: [v128; 2]) -> [Four; 2] {
        [0, 4].map(|at| {
            // SAFETY: the trait's contract.
            let bits = unsafe { i32x4_load_extend_i16x4(from.add(at).cast()) };
            Four(f32x4_mul(v128_and(i32x4_shl(bits, 13), kept), up))
        })
    }

    #[inline(always)]
    unsafe fn load_two_i8(from: *const i8) -> [Four; 2] {
        // SAFETY: the trait's contract.
        let halves = unsafe { i16x8_load_extend_i8x8(from) };
        [
            i32x4_extend_low_i16x8(halves),
            i32x4_extend_high_i16x8(halves),
        ]
        .map(|four| Four(f32x4_convert_i32x4(four)))
    }

    #[inline(always)]
    unsafe fn groups_f32(from: Places) -> Four {
        // SAFETY: the trait's contract.
        unsafe { Four(v128_load(from[0].cast())) }
    }

    #[inline(always)]
    unsafe fn groups_f16(from: Places) -> Four {
        // SAFETY: the trait's contract.
        scales(unsafe { v128_load64_splat(from[0].cast()) })[0]
    }

    #[inline(always)]
    unsafe fn groups_two_f16(from: Places) -> (Four, Four) {
        // SAFETY: the trait's contract.
        let [first, second] = scales(unsafe { v128_load(from[0].cast()) });
        (first, second)
    }

    #[inline(always)]
    unsafe fn groups_normal_f16(from: Places) -> Four {
        // SAFETY: the trait's contract.
        kept_halves(unsafe { v128_load64_zero(from[0].cast()) })[0]
    }

    #[inline(always)]
    unsafe fn groups_two_normal_f16(from: Places) -> (Four, Four) {
        // SAFETY: the trait's contract.
        let [first, second] = kept_halves(unsafe { v128_load(from[0].cast()) });
        (first, second)
    }

    #[inline(always)]
    unsafe fn groups_bf16(from: Places) -> Four {
        // SAFETY: the trait's contract.
        let bits = unsafe { v128_load64_zero(from[0].cast()) };
        Four(u32x4_shl(u32x4_extend_low_u16x8(bits), 16))
    }

    #[inline(always)]
    unsafe fn transpose(rows: [Four; 4]) -> [Four; 4] {
        let [a, b, c, d] = rows.map(|row| row.0);
        let low = [
            i32x4_shuffle::<0, 4, 1, 5>(a, b),
            i32x4_shuffle::<0, 4, 1, 5>(c, d),
        ];
        let high = [
            i32x4_shuffle::<2, 6, 3, 7>(a, b),
            i32x4_shuffle::<2, 6, 3, 7>(c, d),
        ];
        [
            Four(i64x2_shuffle::<0, 2>(low[0], low[1])),
            Four(i64x2_shuffle::<1, 3>(low[0], low[1])),
            Four(i64x2_shuffle::<0, 2>(high[0], high[1])),
            Four(i64x2_shuffle::<1, 3>(high[0], high[1])),
        ]
    }

    #[inline(always)]
    unsafe fn groups_codes(from: Places) -> v128 {
        // SAFETY: the trait's contract.
        unsafe { v128_load(from[0].cast()) }
    }

    #[inline(always)]
    unsafe fn byte(codes: v128, column: usize) -> v128 {
        i32x4_shr(i32x4_shl(codes, 24 - 8 * column as u32), 24)
    }

    #[inline(always)]
    unsafe fn nibble(codes: v128, nibble: usize) -> v128 {
        v128_and(u32x4_shr(codes, 4 * nibble as u32), u32x4_splat(15))
    }

    #[inline(always)]
    unsafe fn subtract(ints: v128, x: i32) -> v128 {
        i32x4_sub(ints, i32x4_splat(x))
    }

    #[inline(always)]
    unsafe fn floats(ints: v128) -> Four {
        Four(f32x4_convert_i32x4(ints))
    }
}

#[inline(always)]
fn quantize_block(x: &[f32; COLS], block: &mut QuantizedBlock) {
    // SAFETY: the eight vectors are the 32 floats.
    let x: [v128; 8] = from_fn(|i| unsafe { v128_load(x.as_ptr().add(4 * i).cast()) });
    let magnitudes = x.map(|x| v128_and(x, i32x4_splat(i32::MAX)));
    let greater = |a, b| i32x4_max(a, b);
    let most = across(
        magnitudes.into_iter().fold(i32x4_splat(0), greater),
        greater,
    );
    let scale = f32::from_bits(most as u32) / 127.0;
    if !(scale > 0.0 && scale.is_finite()) {
        *block = QuantizedBlock::of([0; COLS], scale);
        return;
    }
    let round = f32x4_splat(12_582_912.0); // 1.5 * 2^23: floats of this size are integers.
    let codes = x.map(|x| {
        let x = f32x4_div(x, f32x4_splat(scale));
        let x = f32x4_pmax(f32x4_pmin(x, f32x4_splat(127.0)), f32x4_splat(-127.0));
        i32x4_sub(f32x4_add(x, round), round)
    });
    let plus = |a, b| i32x4_add(a, b);
    let sum = across(codes.into_iter().fold(i32x4_splat(0), plus), plus);
    for half in 0..2 {
        let four = |i: usize| codes[4 * half + i];
        let wide = [
            i16x8_narrow_i32x4(four(0), four(1)),
            i16x8_narrow_i32x4(four(2), four(3)),
        ];
        // SAFETY: 16 bytes of the 32 codes.
        unsafe {
            let narrow = i8x16_narrow_i16x8(wide[0], wide[1]);
            v128_store(block.codes.as_mut_ptr().add(16 * half).cast(), narrow);
        }
    }
    (block.scale, block.sum) = (scale, sum);
    block.scaled_sum = scale * sum as f32;
}

/// One number of all four lanes.
#[inline(always)]
fn across(lanes: v128, join: impl Fn(v128, v128) -> v128) -> i32 {
    let two = join(lanes, i32x4_shuffle::<2, 3, 0, 1>(lanes, lanes));
    i32x4_extract_lane::<0>(join(two, i32x4_shuffle::<1, 0, 3, 2>(two, two)))
}

/// Eight f16 exactly, with `special` (the f32 exponent of infinity, or nothing) added to the upper
/// half of each.
///
/// The bits of an f16, moved to where an f32 has its sign and exponent, are that number times
/// 2^-112; the multiplication is exact. Subnormals among them make it slow on some machines: they
/// are rare in a cache.
#[inline(always)]
fn halves(bits: v128, special: v128) -> [Four; 2] {
    let upper = v128_or(v128_and(i16x8_shr(bits, 3), u16x8_splat(0x8fff)), special);
    let lower = i16x8_shl(bits, 13);
    raised(lower, upper, u32x4_splat((127 + 112) << 23))
}

/// The 16-bit halves of eight f32, put together and multiplied by `up`.
#[inline(always)]
fn raised(lower: v128, upper: v128, up: v128) -> [Four; 2] {
    [
        Four(f32x4_mul(
            i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(lower, upper),
            up,
        )),
        Four(f32x4_mul(
            i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(lower, upper),
            up,
        )),
    ]
}

const UPPER: Constant = Constant([
    0xff, 0x8f, 0xff, 0x8f, 0xff, 0x8f, 0xff, 0x8f, 0xff, 0x8f, 0xff, 0x8f, 0xff, 0x8f, 0xff, 0x8f,
]);
/// 2^112.
const UP: Constant = Constant([
    0, 0, 0x80, 0x77, 0, 0, 0x80, 0x77, 0, 0, 0x80, 0x77, 0, 0, 0x80, 0x77,
]);

/// As [`halves`] for finite f16, with constants that are loaded.
#[inline(always)]
fn kept_halves(bits: v128) -> [Four; 2] {
    let upper_bits = kept(&UPPER);
    let up = kept(&UP);
    let upper = v128_and(i16x8_shr(bits, 3), upper_bits);
    raised(i16x8_shl(bits, 13), upper, up)
}

/// Eight finite f16 exactly. Whole tensors can have subnormal scales: these go another way.
#[inline(always)]
fn scales(bits: v128) -> [Four; 2] {
    let magnitude = v128_and(bits, i16x8_splat(0x7fff));
    if v128_any_true(i16x8_lt(magnitude, i16x8_splat(0x0400))) {
        return small_scales(bits);
    }
    halves(bits, u32x4_splat(0))
}

/// As [`scales`] without subnormal operands; `half::f16_to_f32` says why it is right. Inlined: a
/// call, even one that is never made, would have all vector registers saved in memory before it.
#[inline(always)]
fn small_scales(bits: v128) -> [Four; 2] {
    let zero = u32x4_splat(0);
    let lanes = [
        i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(zero, bits),
        i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(zero, bits),
    ];
    lanes.map(|lanes| {
        let magnitude = u32x4_shr(v128_and(lanes, u32x4_splat(0x7fff_ffff)), 3);
        let t = i32x4_add(magnitude, u32x4_splat(112 << 23));
        let doubled = i32x4_add(magnitude, u32x4_splat(113 << 23));
        let without_one = f32x4_sub(doubled, u32x4_splat(113 << 23));
        let sign = v128_and(lanes, u32x4_splat(0x8000_0000));
        Four(v128_or(f32x4_pmin(t, without_one), sign))
    })
}

/// A constant's bytes.
#[repr(align(16))]
pub(super) struct Constant(pub [u8; 16]);

/// A constant that is loaded: V8 would make one anew, with three instructions, at each use in a
/// loop. Volatile, so that the compiler does not see through it.
#[inline(always)]
pub(super) fn kept(constant: &'static Constant) -> v128 {
    // SAFETY: the reference is to 16 aligned bytes.
    unsafe { (&raw const constant.0).cast::<v128>().read_volatile() }
}

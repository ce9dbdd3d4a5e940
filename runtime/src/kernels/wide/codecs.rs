//! How blocks of four interleaved rows store codes, scales and minima.
#![allow(unsafe_code)]

use crate::kernels::lanes::{Dot, Ints, Lanes, PackedBlock, Places};
use crate::kernels::matrix::{Q4_0_BYTES, Q4_1_BYTES, Q8_0_BYTES};

/// A codec of blocks of four interleaved rows.
pub trait Codec {
    const BYTES: usize;
    /// Bytes of codes, which stand before the scales.
    const CODES: usize;
    const HAS_MIN: bool;

    /// Sums of codes times activations, for `T` tokens.
    ///
    /// # Safety
    ///
    /// As for [`Dot`]; a block at each place.
    unsafe fn dot<D: Dot, const T: usize>(
        from: Places,
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; T];

    /// As `dot` for four vectors of rows and one token.
    ///
    /// # Safety
    ///
    /// As for `dot`.
    unsafe fn dot_of_four<D: Dot>(
        from: [Places; 4],
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; 4];

    /// The codes of column `k` as integers.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; a block at each place, `k < 32`.
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints;

    /// The minima are the scales again where the layout has none. `NORMAL` says that subnormal
    /// ones are too rare to look for.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; a block at each place.
    #[inline(always)]
    unsafe fn scales_and_mins<L: Lanes, const NORMAL: bool>(from: Places) -> (L, L) {
        // SAFETY: the caller's contract: four or eight f16 stand after the codes.
        unsafe {
            let from = forward(from, Self::CODES);
            let one = |scales| (scales, scales);
            match (Self::HAS_MIN, NORMAL) {
                (true, true) => L::groups_two_normal_f16(from),
                (true, false) => L::groups_two_f16(from),
                (false, true) => one(L::groups_normal_f16(from)),
                (false, false) => one(L::groups_f16(from)),
            }
        }
    }
}

pub struct Q8;

impl Codec for Q8 {
    const BYTES: usize = Q8_0_BYTES;
    const CODES: usize = 128;
    const HAS_MIN: bool = false;

    #[inline(always)]
    unsafe fn dot<D: Dot, const T: usize>(
        from: Places,
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; T] {
        // SAFETY: the caller's contract.
        unsafe { D::bytes(from, x) }
    }

    #[inline(always)]
    unsafe fn dot_of_four<D: Dot>(
        from: [Places; 4],
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; 4] {
        // SAFETY: the caller's contract.
        unsafe { D::bytes_of_four(from, x) }
    }

    #[inline(always)]
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints {
        // SAFETY: the caller's contract: `16 * (k / 4) + 16 <= 128`.
        unsafe { L::byte(L::groups_codes(forward(from, k / 4 * 16)), k % 4) }
    }
}

pub struct Q4;

impl Codec for Q4 {
    const BYTES: usize = Q4_0_BYTES;
    const CODES: usize = 64;
    const HAS_MIN: bool = false;

    /// The codes are stored with 8 added.
    #[inline(always)]
    unsafe fn dot<D: Dot, const T: usize>(
        from: Places,
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; T] {
        // SAFETY: the caller's contract.
        unsafe {
            let mut sums = D::nibbles::<T>(from, x);
            for (t, sum) in sums.iter_mut().enumerate() {
                *sum = D::L::subtract(*sum, 8 * (*x.add(t)).sum);
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn dot_of_four<D: Dot>(
        from: [Places; 4],
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; 4] {
        // SAFETY: the caller's contract.
        unsafe {
            let mut sums = D::nibbles_of_four(from, x);
            for sum in &mut sums {
                *sum = D::L::subtract(*sum, 8 * (*x).sum);
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints {
        // SAFETY: the caller's contract.
        unsafe { L::subtract(Q4Min::column::<L>(from, k), 8) }
    }
}

pub struct Q4Min;

impl Codec for Q4Min {
    const BYTES: usize = Q4_1_BYTES;
    const CODES: usize = 64;
    const HAS_MIN: bool = true;

    #[inline(always)]
    unsafe fn dot<D: Dot, const T: usize>(
        from: Places,
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; T] {
        // SAFETY: the caller's contract.
        unsafe { D::nibbles(from, x) }
    }

    #[inline(always)]
    unsafe fn dot_of_four<D: Dot>(
        from: [Places; 4],
        x: *const PackedBlock<D::Codes>,
    ) -> [Ints<D>; 4] {
        // SAFETY: the caller's contract.
        unsafe { D::nibbles_of_four(from, x) }
    }

    #[inline(always)]
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints {
        // SAFETY: the caller's contract: `16 * (k % 16 / 4) + 16 <= 64`.
        unsafe {
            L::nibble(
                L::groups_codes(forward(from, k % 16 / 4 * 16)),
                k % 4 * 2 + k / 16,
            )
        }
    }
}

/// All places moved by `bytes`.
///
/// # Safety
///
/// The results lie in or at the end of the places' memory.
#[inline(always)]
pub unsafe fn forward(from: Places, bytes: usize) -> Places {
    // SAFETY: the caller's contract.
    unsafe { [from[0].add(bytes), from[1].add(bytes)] }
}

//! Products with blocks of four interleaved rows.
#![allow(unsafe_code)]

use core::array::from_fn;
use core::marker::PhantomData;

use super::Product;
use crate::kernels::lanes::{Dot, Lanes, Places};
use crate::kernels::matrix::{COLS, Matrix, Q4_0_BYTES, Q4_1_BYTES, Q8_0_BYTES};
use crate::kernels::quantized::{Input, Quantized, QuantizedBlock};

type Ints<D> = <<D as Dot>::L as Lanes>::Ints;

/// A codec of blocks of four interleaved rows.
pub trait Codec {
    const BYTES: usize;
    /// Bytes of codes, which stand before the scales.
    const CODES: usize;
    const HAS_MIN: bool;

    /// # Safety
    ///
    /// As for [`Lanes`]; a block at each place.
    unsafe fn dot<D: Dot, const T: usize>(
        from: Places,
        x: [*const QuantizedBlock; T],
    ) -> [Ints<D>; T];

    /// The codes of column `k` as integers.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; a block at each place, `k < 32`.
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints;

    /// The minima are the scales again where the layout has none.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; a block at each place.
    #[inline(always)]
    unsafe fn scales_and_mins<L: Lanes>(from: Places) -> (L, L) {
        // SAFETY: the caller's contract: four or eight f16 stand after the codes.
        unsafe {
            let from = forward(from, Self::CODES);
            match Self::HAS_MIN {
                true => L::groups_two_f16(from),
                false => {
                    let scales = L::groups_f16(from);
                    (scales, scales)
                }
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
        x: [*const QuantizedBlock; T],
    ) -> [Ints<D>; T] {
        // SAFETY: the caller's contract.
        unsafe { D::bytes(from, x) }
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
        x: [*const QuantizedBlock; T],
    ) -> [Ints<D>; T] {
        // SAFETY: the caller's contract.
        unsafe {
            let sums = D::nibbles(from, x);
            from_fn(|t| D::L::subtract(sums[t], 8 * (*x[t]).sum))
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
        x: [*const QuantizedBlock; T],
    ) -> [Ints<D>; T] {
        // SAFETY: the caller's contract.
        unsafe { D::nibbles(from, x) }
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
unsafe fn forward(from: Places, bytes: usize) -> Places {
    // SAFETY: the caller's contract.
    unsafe { [from[0].add(bytes), from[1].add(bytes)] }
}

/// The beginnings of two neighbouring groups, or of `last` twice.
#[inline(always)]
fn places(w: &Matrix<'_>, group: usize, last: usize) -> Places {
    [
        w.group(group).as_ptr(),
        w.group((group + 1).min(last)).as_ptr(),
    ]
}

/// `acc = acc + (isum as f32) * (s_w * s_x)`, then `acc = acc + min_w * (s_x * isum_x as f32)`.
pub struct Int8<'a, C, D> {
    w: &'a Matrix<'a>,
    x: &'a Quantized,
    kind: PhantomData<(C, D)>,
}

impl<'a, C: Codec, D: Dot> Int8<'a, C, D> {
    pub fn new(w: &'a Matrix<'a>, x: &'a Quantized) -> Int8<'a, C, D> {
        assert!(x.cols() == w.cols() && w.group(0).len() == w.blocks() * C::BYTES);
        Int8 {
            w,
            x,
            kind: PhantomData,
        }
    }
}

impl<C: Codec, D: Dot> Product for Int8<'_, C, D> {
    type L = D::L;

    #[inline(always)]
    unsafe fn tile<const T: usize>(&self, group: usize, last: usize, first: usize) -> [D::L; T] {
        let mut w = places(self.w, group, last);
        let mut x: [*const QuantizedBlock; T] = from_fn(|t| self.x.row(first + t).as_ptr());
        // SAFETY: `new` has checked that a group is `blocks` blocks of `C::BYTES` and a token
        // `blocks` quantized blocks; the pointers advance by one block as many times.
        unsafe {
            let mut acc = [D::L::splat(0.0); T];
            for _ in 0..self.w.blocks() {
                let sums = C::dot::<D, T>(w, x);
                let (scales, mins) = C::scales_and_mins::<D::L>(w);
                for t in 0..T {
                    let scale = scales.mul(D::L::splat((*x[t]).scale));
                    acc[t] = acc[t].add(D::L::floats(sums[t]).mul(scale));
                    if C::HAS_MIN {
                        acc[t] = acc[t].add(mins.mul(D::L::splat((*x[t]).scaled_sum)));
                    }
                }
                w = forward(w, C::BYTES);
                x = x.map(|x| x.add(1));
            }
            acc
        }
    }
}

/// `acc = acc + x[k] * (q[k] as f32 * scale)`, with a minimum `x[k] * (q[k] as f32 * scale + min)`.
pub struct Strict<'a, C, L> {
    w: &'a Matrix<'a>,
    x: Input<'a>,
    kind: PhantomData<(C, L)>,
}

impl<'a, C: Codec, L: Lanes> Strict<'a, C, L> {
    pub fn new(w: &'a Matrix<'a>, x: Input<'a>) -> Strict<'a, C, L> {
        assert!(x.cols() == w.cols() && w.group(0).len() == w.blocks() * C::BYTES);
        Strict {
            w,
            x,
            kind: PhantomData,
        }
    }
}

impl<C: Codec, L: Lanes> Product for Strict<'_, C, L> {
    type L = L;

    #[inline(always)]
    unsafe fn tile<const T: usize>(&self, group: usize, last: usize, first: usize) -> [L; T] {
        let mut w = places(self.w, group, last);
        let mut x: [*const f32; T] = from_fn(|t| self.x.row(first + t).as_ptr());
        // SAFETY: `new` has checked that a group is `blocks` blocks of `C::BYTES` and a token
        // `32 * blocks` floats; the pointers advance by one block as many times.
        unsafe {
            let mut acc = [L::splat(0.0); T];
            for _ in 0..self.w.blocks() {
                let (scales, mins) = C::scales_and_mins::<L>(w);
                for k in 0..COLS {
                    let product = L::floats(C::column::<L>(w, k)).mul(scales);
                    let weights = if C::HAS_MIN {
                        product.add(mins)
                    } else {
                        product
                    };
                    for t in 0..T {
                        acc[t] = acc[t].add(L::splat(*x[t].add(k)).mul(weights));
                    }
                }
                w = forward(w, C::BYTES);
                x = x.map(|x| x.add(COLS));
            }
            acc
        }
    }
}

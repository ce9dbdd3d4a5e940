//! Products with float matrices, whose rows lie one after the other.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use super::Product;
use crate::kernels::lanes::{Lanes, Places};
use crate::kernels::matrix::Matrix;
use crate::kernels::quantized::Input;

/// An element of a float matrix.
pub trait Element {
    const SIZE: usize;

    /// # Safety
    ///
    /// As for [`Lanes`]: four elements at each place.
    unsafe fn four<L: Lanes>(from: Places) -> L;
}

pub struct F32;

impl Element for F32 {
    const SIZE: usize = 4;

    #[inline(always)]
    unsafe fn four<L: Lanes>(from: Places) -> L {
        // SAFETY: the caller's contract.
        unsafe { L::groups_f32(from) }
    }
}

pub struct F16;

impl Element for F16 {
    const SIZE: usize = 2;

    #[inline(always)]
    unsafe fn four<L: Lanes>(from: Places) -> L {
        // SAFETY: the caller's contract.
        unsafe { L::groups_f16(from) }
    }
}

pub struct Bf16;

impl Element for Bf16 {
    const SIZE: usize = 2;

    #[inline(always)]
    unsafe fn four<L: Lanes>(from: Places) -> L {
        // SAFETY: the caller's contract.
        unsafe { L::groups_bf16(from) }
    }
}

/// `acc = acc + x[k] * w[k]` over rows in source order: four columns of four rows are read and
/// transposed, so that each lane has its row.
pub struct Floats<'a, E, L> {
    w: &'a Matrix<'a>,
    x: Input<'a>,
    kind: PhantomData<(E, L)>,
}

impl<'a, E: Element, L: Lanes> Floats<'a, E, L> {
    pub fn new(w: &'a Matrix<'a>, x: Input<'a>) -> Floats<'a, E, L> {
        assert!(x.cols() == w.cols() && w.float_row(0).len() == w.cols() * E::SIZE);
        Floats {
            w,
            x,
            kind: PhantomData,
        }
    }

    /// Columns `k..k + 4`, one vector each; columns beyond the last are zero.
    ///
    /// # Safety
    ///
    /// The instructions of `L` exist; `k < cols`.
    #[inline(always)]
    unsafe fn columns(&self, group: usize, k: usize) -> [L; 4] {
        let left = self.w.cols() - k;
        // Rows beyond the last are the last again; their sums are dropped.
        let row = |group: usize, r: usize| {
            &self.w.float_row((group * 4 + r).min(self.w.rows() - 1))[k * E::SIZE..]
        };
        // SAFETY: the caller's contract.
        let mut rows = [unsafe { L::splat(0.0) }; 4];
        for (r, four) in rows.iter_mut().enumerate() {
            let (a, b) = (row(group, r), row(group + 1, r));
            *four = if left >= 4 {
                // SAFETY: four elements are left in both rows.
                unsafe { E::four::<L>([a.as_ptr(), b.as_ptr()]) }
            } else {
                let mut padded = [[0u8; 16]; 2];
                padded[0][..a.len()].copy_from_slice(a);
                padded[1][..b.len()].copy_from_slice(b);
                // SAFETY: 16 bytes hold four elements of any size.
                unsafe { E::four::<L>([padded[0].as_ptr(), padded[1].as_ptr()]) }
            };
        }
        // SAFETY: the caller's contract.
        unsafe { L::transpose(rows) }
    }
}

impl<E: Element, L: Lanes> Product for Floats<'_, E, L> {
    type L = L;

    #[inline(always)]
    unsafe fn tile<const T: usize>(&self, group: usize, _last: usize, first: usize) -> [L; T] {
        let cols = self.w.cols();
        // SAFETY: `k < cols`.
        unsafe {
            let mut acc = [L::splat(0.0); T];
            let mut k = 0;
            while k < cols {
                let columns = self.columns(group, k);
                for c in 0..(cols - k).min(4) {
                    for t in 0..T {
                        let x = self.x.row(first + t)[k + c];
                        acc[t] = acc[t].add(L::splat(x).mul(columns[c]));
                    }
                }
                k += 4;
            }
            acc
        }
    }
}

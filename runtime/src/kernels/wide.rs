//! Matrix products on vectors whose lanes are output rows.
//!
//! The association is that of `scalar`. A tile is as many rows as a vector has lanes, times one or
//! several tokens: the weights are unpacked once for all of them, and each token's own sums are
//! those that it would have alone.
//!
//! Everything here is inlined into one function that has the instruction set enabled.
#![allow(unsafe_code)]
// Tokens, heads and vectors are counted: several arrays have the same index.
#![allow(clippy::needless_range_loop)]

mod attention;
mod cells;
mod codecs;
mod floats;
mod int8;
mod strict;

use format::Layout;

pub(super) use attention::{scores, values};
use codecs::{Q4, Q4Min, Q8};
use floats::{Bf16, F16, F32, Floats};
use int8::Int8;
use strict::Strict;

use super::lanes::{Dot, GROUPS_MAX, Lanes, Places};
use super::matrix::Matrix;
use super::quantized::Input;
use super::shared::Part;

/// # Safety
///
/// The instructions of `D` exist.
#[inline(always)]
pub unsafe fn matmul<D: Dot>(w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
    // SAFETY: the caller's contract.
    unsafe {
        match (w.layout(), x.codes()) {
            (Layout::Q8_0R4, Some(codes)) => Int8::<Q8, D>::new(w, codes).run(y),
            (Layout::Q4_0R4, Some(codes)) => Int8::<Q4, D>::new(w, codes).run(y),
            (Layout::Q4_1R4, Some(codes)) => Int8::<Q4Min, D>::new(w, codes).run(y),
            (Layout::Q8_0R4, None) => tiles(y, &Strict::<Q8, D::L>::new(w, x)),
            (Layout::Q4_0R4, None) => tiles(y, &Strict::<Q4, D::L>::new(w, x)),
            (Layout::Q4_1R4, None) => tiles(y, &Strict::<Q4Min, D::L>::new(w, x)),
            (Layout::F32, _) => tiles(y, &Floats::<F32, D::L>::new(w, x)),
            (Layout::F16, _) => tiles(y, &Floats::<F16, D::L>::new(w, x)),
            (Layout::Bf16, _) => tiles(y, &Floats::<Bf16, D::L>::new(w, x)),
            (Layout::Bytes, _) => unreachable!("Matrix::new refuses opaque bytes"),
        }
    }
}

/// A kind of product, for the rows of a vector and `T` tokens.
trait Product {
    type L: Lanes;

    /// Sums of the rows from group `group` on. Groups beyond `last` are `last` again.
    ///
    /// # Safety
    ///
    /// The instructions exist; `group <= last` is a group of the matrix, `first + T` at
    /// most the input's tokens.
    unsafe fn tile<const T: usize>(&self, group: usize, last: usize, first: usize) -> [Self::L; T];
}

/// # Safety
///
/// The instructions of the product exist.
#[inline(always)]
unsafe fn tiles<P: Product>(y: &mut Part<'_>, product: &P) {
    let columns = y.columns();
    let last = columns.end.div_ceil(4) - 1;
    let mut group = columns.start / 4;
    while group <= last {
        let at = group * 4 - columns.start;
        let mut first = 0;
        while first + 4 <= y.tokens() {
            // SAFETY: `group` and `last` are groups of the part, `first + 4` tokens exist.
            unsafe {
                let sums = product.tile::<4>(group, last, first);
                for (t, sums) in sums.into_iter().enumerate() {
                    write(y, first + t, at, sums);
                }
            }
            first += 4;
        }
        while first < y.tokens() {
            // SAFETY: `group` and `last` are groups of the part, token `first` exists.
            unsafe {
                let [sums] = product.tile::<1>(group, last, first);
                write(y, first, at, sums);
            }
            first += 1;
        }
        group += P::L::GROUPS;
    }
}

/// Writes a vector of rows of token `token`, from the part's column `at` on. Rows beyond the part
/// are dropped.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn write<L: Lanes>(y: &mut Part<'_>, token: usize, at: usize, sums: L) {
    let out = &mut y.row_mut(token)[at..];
    if out.len() >= L::LEN {
        // SAFETY: `LEN` floats are there.
        unsafe { sums.store(out.as_mut_ptr()) };
    } else {
        let mut rows = [0.0f32; 4 * GROUPS_MAX];
        // SAFETY: `LEN` is at most `4 * GROUPS_MAX`.
        unsafe { sums.store(rows.as_mut_ptr()) };
        let len = out.len();
        out.copy_from_slice(&rows[..len]);
    }
}

/// What [`write`] has written; zeros beyond the part.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn read<L: Lanes>(y: &mut Part<'_>, token: usize, at: usize) -> L {
    let sums = &y.row_mut(token)[at..];
    if sums.len() >= L::LEN {
        // SAFETY: `LEN` floats are there.
        return unsafe { L::load(sums.as_ptr()) };
    }
    let mut rows = [0.0f32; 4 * GROUPS_MAX];
    rows[..sums.len()].copy_from_slice(sums);
    // SAFETY: `LEN` is at most `4 * GROUPS_MAX`.
    unsafe { L::load(rows.as_ptr()) }
}

/// The beginnings of two neighbouring groups, or of `last` twice.
#[inline(always)]
fn places(w: &Matrix<'_>, group: usize, last: usize) -> Places {
    [
        w.group(group).as_ptr(),
        w.group((group + 1).min(last)).as_ptr(),
    ]
}

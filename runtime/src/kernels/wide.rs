//! Matrix products on vectors whose lanes are output rows.
//!
//! The association is that of `scalar`. A tile is as many rows as a vector has lanes, times one or
//! several tokens: the weights are unpacked once for all of them, and each token's own sums are
//! those that it would have alone.
//!
//! Everything here is inlined into one function that has the instruction set enabled.
#![allow(unsafe_code)]

use core::array::from_fn;

use format::Layout;

use super::lanes::{GROUPS_MAX, Lanes, Places};
use super::matrix::{COLS, Matrix, Q4_0_BYTES, Q4_1_BYTES, Q8_0_BYTES};
use super::quantized::{Input, Quantized, QuantizedBlock};
use super::shared::Part;

/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
pub unsafe fn matmul<L: Lanes>(w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
    // SAFETY: the caller's contract.
    unsafe {
        match (w.layout(), x.codes()) {
            (Layout::Q8_0R4, Some(codes)) => tiles::<L>(y, &Int8::<Q8>::new(w, codes)),
            (Layout::Q4_0R4, Some(codes)) => tiles::<L>(y, &Int8::<Q4>::new(w, codes)),
            (Layout::Q4_1R4, Some(codes)) => tiles::<L>(y, &Int8::<Q4Min>::new(w, codes)),
            (Layout::Q8_0R4, None) => tiles::<L>(y, &Strict::<Q8>::new(w, x)),
            (Layout::Q4_0R4, None) => tiles::<L>(y, &Strict::<Q4>::new(w, x)),
            (Layout::Q4_1R4, None) => tiles::<L>(y, &Strict::<Q4Min>::new(w, x)),
            (Layout::F32, _) => tiles::<L>(y, &Floats::<F32>::new(w, x)),
            (Layout::F16, _) => tiles::<L>(y, &Floats::<F16>::new(w, x)),
            (Layout::Bf16, _) => tiles::<L>(y, &Floats::<Bf16>::new(w, x)),
            (Layout::Bytes, _) => unreachable!("Matrix::new refuses opaque bytes"),
        }
    }
}

/// A kind of product, for the rows of a vector and `T` tokens.
trait Product {
    /// Sums of the rows from group `group` on. Groups beyond `last` are `last` again.
    ///
    /// # Safety
    ///
    /// The instructions of `L` exist; `group <= last` is a group of the matrix, `first + T` at
    /// most the input's tokens.
    unsafe fn tile<L: Lanes, const T: usize>(
        &self,
        group: usize,
        last: usize,
        first: usize,
    ) -> [L; T];
}

/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn tiles<L: Lanes>(y: &mut Part<'_>, product: &impl Product) {
    let columns = y.columns();
    let last = columns.end.div_ceil(4) - 1;
    let mut group = columns.start / 4;
    while group <= last {
        let at = group * 4 - columns.start;
        let mut first = 0;
        while first + 4 <= y.tokens() {
            // SAFETY: `group` and `last` are groups of the part, `first + 4` tokens exist.
            unsafe {
                let sums = product.tile::<L, 4>(group, last, first);
                write(y, first, at, sums);
            }
            first += 4;
        }
        while first < y.tokens() {
            // SAFETY: `group` and `last` are groups of the part, token `first` exists.
            unsafe {
                let sums = product.tile::<L, 1>(group, last, first);
                write(y, first, at, sums);
            }
            first += 1;
        }
        group += L::GROUPS;
    }
}

/// Rows beyond the part are dropped.
///
/// # Safety
///
/// The instructions of `L` exist.
#[inline(always)]
unsafe fn write<L: Lanes, const T: usize>(y: &mut Part<'_>, first: usize, at: usize, sums: [L; T]) {
    for (t, sum) in sums.into_iter().enumerate() {
        let out = &mut y.row_mut(first + t)[at..];
        if out.len() >= L::LEN {
            // SAFETY: `LEN` floats are there.
            unsafe { sum.store(out.as_mut_ptr()) };
        } else {
            let mut rows = [0.0f32; 4 * GROUPS_MAX];
            // SAFETY: `LEN` is at most `4 * GROUPS_MAX`.
            unsafe { sum.store(rows.as_mut_ptr()) };
            let len = out.len();
            out.copy_from_slice(&rows[..len]);
        }
    }
}

/// A codec of blocks of four interleaved rows.
trait Codec {
    const BYTES: usize;
    /// Bytes of codes, which stand before the scales.
    const CODES: usize;
    const HAS_MIN: bool;

    /// # Safety
    ///
    /// As for [`Lanes`]; a block at each place.
    unsafe fn dot<L: Lanes, const T: usize>(
        from: Places,
        x: [*const QuantizedBlock; T],
    ) -> [L::Ints; T];

    /// The codes of column `k` as integers.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; a block at each place, `k < 32`.
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints;
}

struct Q8;

impl Codec for Q8 {
    const BYTES: usize = Q8_0_BYTES;
    const CODES: usize = 128;
    const HAS_MIN: bool = false;

    #[inline(always)]
    unsafe fn dot<L: Lanes, const T: usize>(
        from: Places,
        x: [*const QuantizedBlock; T],
    ) -> [L::Ints; T] {
        // SAFETY: the caller's contract.
        unsafe { L::dot_bytes(from, x) }
    }

    #[inline(always)]
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints {
        // SAFETY: the caller's contract: `16 * (k / 4) + 16 <= 128`.
        unsafe { L::byte(L::groups_codes(forward(from, k / 4 * 16)), k % 4) }
    }
}

struct Q4;

impl Codec for Q4 {
    const BYTES: usize = Q4_0_BYTES;
    const CODES: usize = 64;
    const HAS_MIN: bool = false;

    /// The codes are stored with 8 added.
    #[inline(always)]
    unsafe fn dot<L: Lanes, const T: usize>(
        from: Places,
        x: [*const QuantizedBlock; T],
    ) -> [L::Ints; T] {
        // SAFETY: the caller's contract.
        unsafe {
            let sums = L::dot_nibbles(from, x);
            from_fn(|t| L::subtract(sums[t], 8 * (*x[t]).sum))
        }
    }

    #[inline(always)]
    unsafe fn column<L: Lanes>(from: Places, k: usize) -> L::Ints {
        // SAFETY: the caller's contract.
        unsafe { L::subtract(Q4Min::column::<L>(from, k), 8) }
    }
}

struct Q4Min;

impl Codec for Q4Min {
    const BYTES: usize = Q4_1_BYTES;
    const CODES: usize = 64;
    const HAS_MIN: bool = true;

    #[inline(always)]
    unsafe fn dot<L: Lanes, const T: usize>(
        from: Places,
        x: [*const QuantizedBlock; T],
    ) -> [L::Ints; T] {
        // SAFETY: the caller's contract.
        unsafe { L::dot_nibbles(from, x) }
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
struct Int8<'a, C> {
    w: &'a Matrix<'a>,
    x: &'a Quantized,
    codec: core::marker::PhantomData<C>,
}

impl<'a, C: Codec> Int8<'a, C> {
    fn new(w: &'a Matrix<'a>, x: &'a Quantized) -> Int8<'a, C> {
        assert!(x.cols() == w.cols() && w.group(0).len() == w.blocks() * C::BYTES);
        Int8 {
            w,
            x,
            codec: core::marker::PhantomData,
        }
    }
}

impl<C: Codec> Product for Int8<'_, C> {
    #[inline(always)]
    unsafe fn tile<L: Lanes, const T: usize>(
        &self,
        group: usize,
        last: usize,
        first: usize,
    ) -> [L; T] {
        let mut w = places(self.w, group, last);
        let mut x: [*const QuantizedBlock; T] = from_fn(|t| self.x.row(first + t).as_ptr());
        // SAFETY: `new` has checked that a group is `blocks` blocks of `C::BYTES` and a token
        // `blocks` quantized blocks; the pointers advance by one block as many times.
        unsafe {
            let mut acc = [L::splat(0.0); T];
            for _ in 0..self.w.blocks() {
                let sums = C::dot::<L, T>(w, x);
                let scales = L::groups_f16(forward(w, C::CODES));
                for t in 0..T {
                    let scale = scales.mul(L::splat((*x[t]).scale));
                    acc[t] = acc[t].add(L::floats(sums[t]).mul(scale));
                }
                if C::HAS_MIN {
                    let mins = L::groups_f16(forward(w, C::CODES + 8));
                    for t in 0..T {
                        acc[t] = acc[t].add(mins.mul(L::splat((*x[t]).scaled_sum)));
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
struct Strict<'a, C> {
    w: &'a Matrix<'a>,
    x: Input<'a>,
    codec: core::marker::PhantomData<C>,
}

impl<'a, C: Codec> Strict<'a, C> {
    fn new(w: &'a Matrix<'a>, x: Input<'a>) -> Strict<'a, C> {
        assert!(x.cols() == w.cols() && w.group(0).len() == w.blocks() * C::BYTES);
        Strict {
            w,
            x,
            codec: core::marker::PhantomData,
        }
    }
}

impl<C: Codec> Product for Strict<'_, C> {
    #[inline(always)]
    unsafe fn tile<L: Lanes, const T: usize>(
        &self,
        group: usize,
        last: usize,
        first: usize,
    ) -> [L; T] {
        let mut w = places(self.w, group, last);
        let mut x: [*const f32; T] = from_fn(|t| self.x.row(first + t).as_ptr());
        // SAFETY: `new` has checked that a group is `blocks` blocks of `C::BYTES` and a token
        // `32 * blocks` floats; the pointers advance by one block as many times.
        unsafe {
            let mut acc = [L::splat(0.0); T];
            for _ in 0..self.w.blocks() {
                let scales = L::groups_f16(forward(w, C::CODES));
                let mins = match C::HAS_MIN {
                    true => L::groups_f16(forward(w, C::CODES + 8)),
                    false => scales,
                };
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

/// An element of a float matrix.
trait Element {
    const SIZE: usize;

    /// # Safety
    ///
    /// As for [`Lanes`]: four elements at each place.
    unsafe fn four<L: Lanes>(from: Places) -> L;
}

struct F32;

impl Element for F32 {
    const SIZE: usize = 4;

    #[inline(always)]
    unsafe fn four<L: Lanes>(from: Places) -> L {
        // SAFETY: the caller's contract.
        unsafe { L::groups_f32(from) }
    }
}

struct F16;

impl Element for F16 {
    const SIZE: usize = 2;

    #[inline(always)]
    unsafe fn four<L: Lanes>(from: Places) -> L {
        // SAFETY: the caller's contract.
        unsafe { L::groups_f16(from) }
    }
}

struct Bf16;

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
struct Floats<'a, E> {
    w: &'a Matrix<'a>,
    x: Input<'a>,
    element: core::marker::PhantomData<E>,
}

impl<'a, E: Element> Floats<'a, E> {
    fn new(w: &'a Matrix<'a>, x: Input<'a>) -> Floats<'a, E> {
        assert!(x.cols() == w.cols() && w.float_row(0).len() == w.cols() * E::SIZE);
        Floats {
            w,
            x,
            element: core::marker::PhantomData,
        }
    }

    /// Columns `k..k + 4`, one vector each; columns beyond the last are zero.
    ///
    /// # Safety
    ///
    /// The instructions of `L` exist; `k < cols`.
    #[inline(always)]
    unsafe fn columns<L: Lanes>(&self, group: usize, k: usize) -> [L; 4] {
        let left = self.w.cols() - k;
        // Rows beyond the last are the last again; their sums are dropped.
        let row = |group: usize, r: usize| {
            &self.w.float_row((group * 4 + r).min(self.w.rows() - 1))[k * E::SIZE..]
        };
        let mut rows = [None; 4];
        for (r, four) in rows.iter_mut().enumerate() {
            let (a, b) = (row(group, r), row(group + 1, r));
            *four = Some(if left >= 4 {
                // SAFETY: four elements are left in both rows.
                unsafe { E::four::<L>([a.as_ptr(), b.as_ptr()]) }
            } else {
                let mut padded = [[0u8; 16]; 2];
                padded[0][..a.len()].copy_from_slice(a);
                padded[1][..b.len()].copy_from_slice(b);
                // SAFETY: 16 bytes hold four elements of any size.
                unsafe { E::four::<L>([padded[0].as_ptr(), padded[1].as_ptr()]) }
            });
        }
        // SAFETY: the caller's contract.
        unsafe { L::transpose(rows.map(|row| row.unwrap_or(L::splat(0.0)))) }
    }
}

impl<E: Element> Product for Floats<'_, E> {
    #[inline(always)]
    unsafe fn tile<L: Lanes, const T: usize>(
        &self,
        group: usize,
        _last: usize,
        first: usize,
    ) -> [L; T] {
        let cols = self.w.cols();
        // SAFETY: `k < cols`.
        unsafe {
            let mut acc = [L::splat(0.0); T];
            let mut k = 0;
            while k < cols {
                let columns = self.columns::<L>(group, k);
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

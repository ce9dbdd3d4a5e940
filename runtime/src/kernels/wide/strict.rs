//! Products of blocks with float activations.
#![allow(unsafe_code)]

use core::array::from_fn;
use core::marker::PhantomData;

use super::codecs::{Codec, forward};
use super::{Product, places};
use crate::kernels::lanes::Lanes;
use crate::kernels::matrix::{COLS, Matrix};
use crate::kernels::quantized::Input;

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
                let (scales, mins) = C::scales_and_mins::<L, false>(w);
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

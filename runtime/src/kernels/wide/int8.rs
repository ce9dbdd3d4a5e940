//! Products of blocks with 8-bit activations.
//!
//! A tile is some vectors of rows times some tokens. For one token several vectors of rows share
//! each load of activations; for several tokens a block of weights is unpacked once for all. The
//! activations of a tile's tokens are packed first, in the order in which they are read.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::codecs::{Codec, forward};
use super::{places, read, write};
use crate::kernels::lanes::{Dot, Ints, Lanes, PackedBlock, Places};
use crate::kernels::matrix::Matrix;
use crate::kernels::quantized::Codes;
use crate::kernels::shared::Part;

/// Most tokens in a tile: their sums are held in as many of the 16 vector registers.
const TOKENS: usize = 8;
/// Blocks of columns that are packed at a time: with eight tokens 20 to 46 KB on the stack, which
/// is most of a nearest cache.
const BLOCKS: usize = 32;
/// How far before its use a stream of weights is asked for, for one token, whose products wait for
/// memory more than they compute: beyond the two groups that a stream of 576 columns reads at once.
const AHEAD: usize = 3072;
/// Bytes that come from memory together. A block of 72 or 80 has parts of two such lines, and the
/// next block asks for the second.
const LINE: usize = 64;

type Packed<D> = [MaybeUninit<PackedBlock<<D as Dot>::Codes>>; TOKENS * BLOCKS];

/// `acc = acc + (isum as f32) * (s_w * s_x)`, then `acc = acc + min_w * (s_x * isum_x as f32)`.
pub struct Int8<'a, C, D> {
    w: &'a Matrix<'a>,
    x: Codes<'a>,
    kind: PhantomData<(C, D)>,
}

impl<'a, C: Codec, D: Dot> Int8<'a, C, D> {
    pub fn new(w: &'a Matrix<'a>, x: Codes<'a>) -> Int8<'a, C, D> {
        assert!(x.cols() == w.cols() && w.group(0).len() == w.blocks() * C::BYTES);
        Int8 {
            w,
            x,
            kind: PhantomData,
        }
    }

    /// All rows of the part for all tokens.
    ///
    /// # Safety
    ///
    /// The instructions of `D` exist.
    #[inline(always)]
    pub unsafe fn run(&self, y: &mut Part<'_>) {
        assert!(y.tokens() == self.x.tokens() && y.columns().end <= self.w.rows());
        let mut packed: Packed<D> = [const { MaybeUninit::uninit() }; TOKENS * BLOCKS];
        let mut first = 0;
        while first < y.tokens() {
            // SAFETY: the caller's contract; as many tokens are left.
            first += unsafe {
                match y.tokens() - first {
                    TOKENS.. => self.tokens::<1, TOKENS, false>(first, &mut packed, y),
                    4.. => self.tokens::<1, 4, false>(first, &mut packed, y),
                    2.. => self.tokens::<2, 2, false>(first, &mut packed, y),
                    _ if self.w.is_rarely_subnormal() => {
                        self.tokens::<4, 1, true>(first, &mut packed, y)
                    }
                    _ => self.tokens::<1, 1, false>(first, &mut packed, y),
                }
            };
        }
    }

    /// All rows of the part for the `T` tokens from `first` on, `G` vectors of rows at a time;
    /// answers `T`. `NORMAL` says that subnormal scales need no care.
    ///
    /// The vectors of a tile are as far apart as the part allows: `G` streams of weights, each in
    /// its own pages of memory, come in faster than neighbours that share a page.
    ///
    /// # Safety
    ///
    /// The instructions of `D` exist; `first + T` is at most the input's tokens.
    #[inline(always)]
    unsafe fn tokens<const G: usize, const T: usize, const NORMAL: bool>(
        &self,
        first: usize,
        packed: &mut Packed<D>,
        y: &mut Part<'_>,
    ) -> usize {
        let columns = y.columns();
        let last = columns.end.div_ceil(4) - 1;
        let most = TOKENS * BLOCKS / T;
        for start in (0..self.w.blocks()).step_by(most) {
            let count = most.min(self.w.blocks() - start);
            let x = self.pack::<T>(first, start, count, packed);
            let mut group = columns.start / 4;
            let apart = (last + 1 - group) / (G * D::L::GROUPS) * D::L::GROUPS;
            let end = group + apart;
            while group < end {
                let groups = core::array::from_fn(|g| group + g * apart);
                // SAFETY: the caller's contract; all groups up to `last` are the part's.
                unsafe { self.tile::<G, T, NORMAL>(groups, last, first, [start, count], x, y) };
                group += D::L::GROUPS;
            }
            group += (G - 1) * apart;
            while group <= last {
                // SAFETY: the caller's contract; groups `group..=last` are the part's.
                unsafe { self.tile::<1, T, NORMAL>([group], last, first, [start, count], x, y) };
                group += D::L::GROUPS;
            }
        }
        T
    }

    /// Blocks `start..start + count` of `T` tokens: the first block of all, then the second.
    #[inline(always)]
    fn pack<const T: usize>(
        &self,
        first: usize,
        start: usize,
        count: usize,
        packed: &mut Packed<D>,
    ) -> *const PackedBlock<D::Codes> {
        for t in 0..T {
            let row = &self.x.row(first + t)[start..start + count];
            for (x, out) in row.iter().zip(packed.chunks_exact_mut(T)) {
                out[t].write(PackedBlock {
                    codes: D::codes(x),
                    scale: [x.scale; 4],
                    scaled_sum: [x.scaled_sum; 4],
                    sum: x.sum,
                });
            }
        }
        packed.as_ptr().cast()
    }

    /// The rows of `G` vectors for `T` tokens, over some blocks. Groups beyond the last are the
    /// last again.
    ///
    /// # Safety
    ///
    /// The instructions of `D` exist; `groups` and `last` are groups of the part, `first + T` is at
    /// most its tokens, and `x` are `count` packed blocks of `T` tokens.
    #[inline(always)]
    unsafe fn tile<const G: usize, const T: usize, const NORMAL: bool>(
        &self,
        groups: [usize; G],
        last: usize,
        first: usize,
        [start, count]: [usize; 2],
        mut x: *const PackedBlock<D::Codes>,
        y: &mut Part<'_>,
    ) {
        let columns = groups.map(|group| group * 4 - y.columns().start);
        let mut w = groups.map(|group| places(self.w, group, last));
        // SAFETY: `new` has checked that a group is `blocks` blocks of `C::BYTES`; the pointers
        // advance by one block `start + count <= blocks` times, `x` by `T` blocks `count` times.
        unsafe {
            let mut acc = [[D::L::splat(0.0); T]; G];
            if start > 0 {
                for g in 0..G {
                    w[g] = forward(w[g], start * C::BYTES);
                    for t in 0..T {
                        acc[g][t] = read::<D::L>(y, first + t, columns[g]);
                    }
                }
            }
            for _ in 0..count {
                // Written out: as a loop, the compiler leaves it one, with its sums in memory.
                if G == 4 && T == 1 {
                    for w in w {
                        D::L::fetch(w.map(|w| w.wrapping_add(AHEAD)));
                        if C::BYTES > 2 * LINE {
                            D::L::fetch(w.map(|w| w.wrapping_add(AHEAD + LINE)));
                        }
                    }
                    let sums = C::dot_of_four::<D>([w[0], w[1], w[2], w[3]], x);
                    add_scaled::<C, D, T, NORMAL>(&mut acc[0], [sums[0]; T], &mut w[0], x);
                    add_scaled::<C, D, T, NORMAL>(&mut acc[1], [sums[1]; T], &mut w[1], x);
                    add_scaled::<C, D, T, NORMAL>(&mut acc[2], [sums[2]; T], &mut w[2], x);
                    add_scaled::<C, D, T, NORMAL>(&mut acc[3], [sums[3]; T], &mut w[3], x);
                } else {
                    let sums = C::dot::<D, T>(w[0], x);
                    add_scaled::<C, D, T, NORMAL>(&mut acc[0], sums, &mut w[0], x);
                    if G > 1 {
                        let sums = C::dot::<D, T>(w[1], x);
                        add_scaled::<C, D, T, NORMAL>(&mut acc[1], sums, &mut w[1], x);
                    }
                }
                x = x.add(T);
            }
            for g in 0..G {
                for t in 0..T {
                    write(y, first + t, columns[g], acc[g][t]);
                }
            }
        }
    }
}

/// Adds a block's sums for `T` tokens, scaled, and goes on to the next block.
///
/// # Safety
///
/// As for [`Codec::dot`].
#[inline(always)]
unsafe fn add_scaled<C: Codec, D: Dot, const T: usize, const NORMAL: bool>(
    acc: &mut [D::L; T],
    sums: [Ints<D>; T],
    w: &mut Places,
    x: *const PackedBlock<D::Codes>,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let (scales, mins) = C::scales_and_mins::<D::L, NORMAL>(*w);
        for t in 0..T {
            let x = x.add(t);
            let scale = scales.mul(D::L::spread(&raw const (*x).scale));
            let mut sum = acc[t].add(D::L::floats(sums[t]).mul(scale));
            if C::HAS_MIN {
                sum = sum.add(mins.mul(D::L::spread(&raw const (*x).scaled_sum)));
            }
            acc[t] = sum;
        }
        *w = forward(*w, C::BYTES);
    }
}

//! One output matrix that several workers fill at the same time.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::team::split;

/// `[tokens][width]` elements, cut into parts of whole columns; each part can be taken once.
///
/// ```text
/// let y = SharedRows::new(&mut out, rows, 4, team.workers());
/// team.run(|worker| { kernels.matmul(&w, x, y.part(worker)); Ok(()) })
/// ```
pub struct SharedRows<'a, T = f32> {
    start: *mut T,
    tokens: usize,
    width: usize,
    unit: usize,
    parts: usize,
    /// One bit for each part that was taken.
    taken: AtomicU64,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: the only access to the elements is through `Part`s, which never overlap: columns of
// different parts are disjoint by `split`, and no part is given out twice.
unsafe impl<T: Send> Sync for SharedRows<'_, T> {}

impl<'a, T> SharedRows<'a, T> {
    /// Parts begin at multiples of `unit` columns (4 for a matrix product, `head_dim` for heads)
    /// and are those of `team::split(width, unit, parts, worker)`. At most 64 parts; `y` holds
    /// whole rows of `width` columns.
    pub fn new(y: &'a mut [T], width: usize, unit: usize, parts: usize) -> SharedRows<'a, T> {
        assert!(width > 0 && unit > 0 && y.len().is_multiple_of(width));
        assert!((1..=64).contains(&parts));
        SharedRows {
            start: y.as_mut_ptr(),
            tokens: y.len() / width,
            width,
            unit,
            parts,
            taken: AtomicU64::new(0),
            owner: PhantomData,
        }
    }

    /// The part of `worker`. Panics if it was taken before or there is no such part.
    pub fn part(&self, worker: usize) -> Part<'_, T> {
        assert!(worker < self.parts);
        let bit = 1 << worker;
        assert!(
            self.taken.fetch_or(bit, Ordering::Relaxed) & bit == 0,
            "part taken twice"
        );
        Part {
            start: self.start,
            tokens: self.tokens,
            width: self.width,
            columns: split(self.width, self.unit, self.parts, worker),
            owner: PhantomData,
        }
    }
}

/// Some columns of all rows of the output: one worker's own.
pub struct Part<'a, T = f32> {
    start: *mut T,
    tokens: usize,
    width: usize,
    columns: Range<usize>,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: a part owns its elements exclusively, like the `&mut [T]` that it came from.
unsafe impl<T: Send> Send for Part<'_, T> {}

impl<'a, T> Part<'a, T> {
    /// All of `y`, which are whole rows of `width` elements.
    pub fn whole(y: &'a mut [T], width: usize) -> Part<'a, T> {
        assert!(width > 0 && y.len().is_multiple_of(width));
        Part {
            start: y.as_mut_ptr(),
            tokens: y.len() / width,
            width,
            columns: 0..width,
            owner: PhantomData,
        }
    }

    /// The same part for a while.
    pub fn lend(&mut self) -> Part<'_, T> {
        Part {
            start: self.start,
            tokens: self.tokens,
            width: self.width,
            columns: self.columns.clone(),
            owner: PhantomData,
        }
    }

    /// The columns of the whole that are this part's.
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Rows of the output.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Splits off the first `count` columns, or what is left; `None` if nothing is.
    pub fn take(&mut self, count: usize) -> Option<Part<'_, T>> {
        let Range { start, end } = self.columns;
        let middle = end.min(start.saturating_add(count));
        self.columns.start = middle;
        // `self` keeps the other columns, so the two never overlap.
        (start < middle).then_some(Part {
            columns: start..middle,
            ..*self
        })
    }

    /// This part's columns of row `token`; index 0 is `columns().start`.
    #[inline(always)]
    pub fn row_mut(&mut self, token: usize) -> &mut [T] {
        assert!(token < self.tokens);
        // SAFETY: row `token` of `width` elements lies within the slice given to `SharedRows::new`
        // or `Part::whole` (asserted above), `columns` within the row; nobody else has these
        // columns, and the borrow of `self` keeps this slice the only one.
        unsafe {
            let row = self.start.add(token * self.width + self.columns.start);
            core::slice::from_raw_parts_mut(row, self.columns.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_given_out_once() {
        let mut y = [0.0; 8];
        let shared = SharedRows::new(&mut y, 8, 4, 2);
        shared.part(0).row_mut(0).fill(1.0);
        shared.part(1).row_mut(0).fill(2.0);
        let again = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            shared.part(1);
        }));
        assert!(again.is_err());
        assert_eq!(y, [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
    }
}

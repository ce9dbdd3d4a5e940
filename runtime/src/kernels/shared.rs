//! One output matrix that several workers fill at the same time.

use core::marker::PhantomData;
use core::ops::Range;

/// `[tokens][width]` floats, cut into parts of whole columns; each part can be taken once.
///
/// ```text
/// let y = SharedRows::new(&mut out, rows, 4, team.workers());
/// team.run(|worker| { kernels.matmul(&w, x, y.part(worker)); Ok(()) })
/// ```
pub struct SharedRows<'a> {
    y: PhantomData<&'a mut [f32]>,
}

impl<'a> SharedRows<'a> {
    /// Parts begin at multiples of `unit` columns (4 for a matrix product, `head_dim` for heads)
    /// and are those of `team::split(width, unit, parts, worker)`. At most 64 parts.
    pub fn new(y: &'a mut [f32], width: usize, unit: usize, parts: usize) -> SharedRows<'a> {
        todo!("{y:?}{width}{unit}{parts}")
    }

    /// The part of `worker`. Panics if it was taken before.
    pub fn part(&self, worker: usize) -> Part<'_> {
        todo!("{worker}")
    }
}

/// Some columns of all rows of the output: one worker's own.
pub struct Part<'a> {
    y: PhantomData<&'a mut [f32]>,
}

impl Part<'_> {
    /// The columns of the whole that are this part's.
    pub fn columns(&self) -> Range<usize> {
        todo!()
    }

    /// Rows of the output.
    pub fn tokens(&self) -> usize {
        todo!()
    }

    /// This part's columns of row `token`; index 0 is `columns().start`.
    pub fn row_mut(&mut self, token: usize) -> &mut [f32] {
        let _ = self.y;
        todo!("{token}")
    }
}

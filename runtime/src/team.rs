//! Workers that share one operation.

use core::ops::Range;

use crate::RuntimeError;

/// A fixed number of workers that run the same closure at the same time, each with its own number.
pub struct Team {
    workers: usize,
}

impl Team {
    /// One worker: the caller itself.
    pub fn solo() -> Team {
        Team { workers: 1 }
    }

    /// A persistent pool of `workers` threads.
    #[cfg(feature = "threads")]
    pub fn threads(workers: usize) -> Result<Team, RuntimeError> {
        todo!("{workers}")
    }

    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Runs `work(0) .. work(workers - 1)` and returns when all have. If several fail, the failure
    /// of the lowest worker is returned.
    pub fn run<E: Send>(&self, work: impl Fn(usize) -> Result<(), E> + Sync) -> Result<(), E> {
        let _ = |e: RuntimeError| e;
        work(0)
    }
}

/// Worker `worker`'s share of `0..count`: contiguous, beginning at a multiple of `unit`, the shares
/// of all workers in order cover the whole. A share can be empty.
pub fn split(count: usize, unit: usize, workers: usize, worker: usize) -> Range<usize> {
    let units = count.div_ceil(unit);
    let at = |worker: usize| (units * worker / workers * unit).min(count);
    at(worker)..at(worker + 1)
}

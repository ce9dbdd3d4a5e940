//! Workers that share one operation.

use core::ops::Range;

#[cfg(feature = "threads")]
use crate::RuntimeError;

/// A fixed number of workers that run the same closure at the same time, each with its own number.
pub struct Team {
    #[cfg(feature = "threads")]
    pool: Option<rayon::ThreadPool>,
}

impl Team {
    /// One worker: the caller itself.
    pub fn solo() -> Team {
        Team {
            #[cfg(feature = "threads")]
            pool: None,
        }
    }

    /// A persistent pool of `workers` threads, at most 64. `InvalidArgument` for none or more,
    /// `WorkerFailure` if the system gives no threads.
    #[cfg(feature = "threads")]
    pub fn threads(workers: usize) -> Result<Team, RuntimeError> {
        use protocol::{Stage, TrResult};
        match workers {
            0 | 65.. => return Err(RuntimeError::new(TrResult::InvalidArgument, Stage::Start)),
            1 => return Ok(Team::solo()),
            _ => {}
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build();
        match pool {
            Ok(pool) => Ok(Team { pool: Some(pool) }),
            Err(_) => Err(RuntimeError::new(TrResult::WorkerFailure, Stage::Start)),
        }
    }

    pub fn workers(&self) -> usize {
        #[cfg(feature = "threads")]
        if let Some(pool) = &self.pool {
            return pool.current_num_threads();
        }
        1
    }

    /// Runs `work(0) .. work(workers - 1)` and returns when all have. If several fail, the failure
    /// of the lowest worker is returned.
    pub fn run<E: Send>(&self, work: impl Fn(usize) -> Result<(), E> + Sync) -> Result<(), E> {
        #[cfg(feature = "threads")]
        if let Some(pool) = &self.pool {
            return pool.broadcast(|at| work(at.index())).into_iter().collect();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_the_whole_in_units() {
        for (count, unit) in [(0, 4), (1, 4), (9, 4), (64, 4), (576, 64), (49152, 4)] {
            for workers in 1..=9 {
                let mut at = 0;
                for worker in 0..workers {
                    let share = split(count, unit, workers, worker);
                    assert_eq!(share.start, at);
                    assert!(share.is_empty() || share.start.is_multiple_of(unit));
                    at = share.end;
                }
                assert_eq!(at, count);
            }
        }
    }

    #[test]
    fn every_worker_runs_once_and_the_lowest_failure_is_told() {
        use core::sync::atomic::{AtomicUsize, Ordering};
        let teams = [
            Team::solo(),
            #[cfg(feature = "threads")]
            Team::threads(3).expect("threads"),
        ];
        for team in teams {
            let runs = AtomicUsize::new(0);
            let told = team.run(|worker| {
                runs.fetch_add(1 << (8 * worker), Ordering::Relaxed);
                if worker + 1 >= team.workers().min(2) {
                    Err(worker)
                } else {
                    Ok(())
                }
            });
            assert_eq!(told, Err(team.workers().min(2) - 1));
            assert_eq!(runs.into_inner(), 0x010101 >> (8 * (3 - team.workers())));
        }
    }
}

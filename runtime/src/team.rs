//! Workers that share one operation.
//!
//! Reading order: `meeting` (how they come together), `bell` (how they sleep), `threads` (how they
//! start natively; in a lane the host starts them, see `abi`).

// Where there is one thread nobody is met.
#[cfg_attr(
    not(any(feature = "threads", target_feature = "atomics")),
    allow(dead_code)
)]
mod bell;
#[cfg_attr(
    not(any(feature = "threads", target_feature = "atomics")),
    allow(dead_code)
)]
mod meeting;
#[cfg(any(test, target_feature = "atomics"))]
pub mod rehearsal;
#[cfg(feature = "threads")]
mod threads;

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use protocol::TrResult;

use meeting::Meeting;

#[cfg(target_feature = "atomics")]
pub use bell::Bell;
#[cfg(target_feature = "atomics")]
pub use meeting::PATIENCE_SLICES;
pub use meeting::WORKERS_MAX;

/// A fixed number of workers that run the same closure at the same time, each with its own number.
/// A clone is the same team.
#[derive(Clone)]
pub struct Team {
    meeting: Arc<Meeting>,
    /// Ended with the last clone.
    #[cfg(feature = "threads")]
    _threads: Option<Arc<threads::Threads>>,
}

/// Stops a team's work from any thread.
#[cfg(feature = "threads")]
#[derive(Clone)]
pub struct Stopper(Arc<Meeting>);

#[cfg(feature = "threads")]
impl Stopper {
    /// Stops the request with this number, if it is being computed now or later; 0 stops none.
    pub fn stop(&self, request: u32) {
        let word = self.0.stop();
        word.store(request, core::sync::atomic::Ordering::Relaxed);
    }
}

/// Parts of the work of one meeting. A worker that is done with one takes the next that nobody has:
/// fast cores do more than slow ones, and a worker that the system interrupts is waited for no
/// longer than its one part takes.
pub struct Parts {
    next: AtomicUsize,
    count: usize,
}

impl Parts {
    pub fn new(count: usize) -> Parts {
        Parts {
            next: AtomicUsize::new(0),
            count,
        }
    }

    /// Calls `work` with one part after another until none is left, or until it fails.
    pub fn take_each(
        &self,
        mut work: impl FnMut(usize) -> Result<(), TrResult>,
    ) -> Result<(), TrResult> {
        loop {
            let part = self.next.fetch_add(1, Relaxed);
            if part >= self.count {
                return Ok(());
            }
            work(part)?;
        }
    }
}

impl Team {
    /// One worker: the caller itself.
    pub fn solo() -> Team {
        Team {
            meeting: Arc::new(Meeting::new(1)),
            #[cfg(feature = "threads")]
            _threads: None,
        }
    }

    /// `workers` workers on threads that live as long as the team, at most [`WORKERS_MAX`].
    /// `InvalidArgument` for none or more, `WorkerFailure` if the system gives no threads.
    #[cfg(feature = "threads")]
    pub fn threads(workers: usize) -> Result<Team, crate::RuntimeError> {
        use crate::RuntimeError;
        use protocol::Stage;
        if !(1..=WORKERS_MAX).contains(&workers) {
            return Err(RuntimeError::new(TrResult::InvalidArgument, Stage::Start));
        }
        let meeting = Arc::new(Meeting::new(workers));
        let threads = threads::Threads::start(&meeting, workers)
            .ok_or(RuntimeError::new(TrResult::WorkerFailure, Stage::Start))?;
        Ok(Team {
            meeting,
            _threads: Some(Arc::new(threads)),
        })
    }

    /// `workers` workers whose threads the host starts; each calls [`Team::attend`].
    #[cfg(target_feature = "atomics")]
    pub fn hosted(workers: usize) -> Team {
        Team {
            meeting: Arc::new(Meeting::new(workers)),
        }
    }

    /// The life of worker `index`.
    #[cfg(target_feature = "atomics")]
    pub fn attend(&self, index: usize) {
        self.meeting.attend(index, |work| work(index));
    }

    /// The stop word, and the word that tells of a lost worker.
    #[cfg(target_feature = "atomics")]
    pub fn words(&self) -> [&core::sync::atomic::AtomicU32; 2] {
        [self.meeting.stop(), self.meeting.broken()]
    }

    /// From now on the first `workers` are the team, and a silent one counts as dead after
    /// `slices` of a tenth of a second, or `None` of the usual number.
    #[cfg(target_feature = "atomics")]
    pub fn set(&self, workers: usize, slices: Option<u32>) -> Result<(), TrResult> {
        let usual = meeting::PATIENCE_SLICES;
        self.meeting.set_patience(slices.unwrap_or(usual));
        self.meeting.set_workers(workers)
    }

    pub fn workers(&self) -> usize {
        self.meeting.workers()
    }

    /// Bytes of the block in which workers meet.
    pub fn control_bytes(&self) -> u64 {
        size_of::<Meeting>() as u64
    }

    /// Runs `work(0) .. work(workers - 1)`, the caller being worker 0, and returns when all have.
    /// Allocates nothing.
    ///
    /// If several fail, the failure of the lowest worker is returned. `Cancelled` if the request
    /// that is computed was stopped before; `WorkerFailure` if a worker panicked or never came,
    /// and then for ever after.
    pub fn run(&self, work: impl Fn(usize) -> Result<(), TrResult> + Sync) -> Result<(), TrResult> {
        self.meeting.run(&work)
    }

    /// Runs `work(part)` for every part of `0..parts`, each once, by whichever worker is free. Else
    /// as [`Team::run`].
    pub fn share(
        &self,
        parts: usize,
        work: impl Fn(usize) -> Result<(), TrResult> + Sync,
    ) -> Result<(), TrResult> {
        let parts = Parts::new(parts);
        self.run(|_| parts.take_each(&work))
    }

    /// From now on the request with this number is computed: a stop of that number ends it.
    /// 0 cannot be stopped.
    pub fn serve(&self, request: u32) {
        self.meeting.serve(request);
    }

    /// `Cancelled` if the request that is computed is to stop. One load: for between row tiles.
    #[inline]
    pub fn check(&self) -> Result<(), TrResult> {
        self.meeting.check()
    }

    /// Shares of meetings that a worker has finished since the team was made.
    pub fn shares(&self, worker: usize) -> u64 {
        self.meeting.shares(worker)
    }

    /// What stops this team's work from another thread.
    #[cfg(feature = "threads")]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.meeting))
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
mod tests;

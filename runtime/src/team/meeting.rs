//! The control block of a team: where workers wait for work and the caller waits for workers.
//!
//! ```text
//! caller: job, word = (generation, expected) -> own share -> done == expected - 1 -> failure
//! worker: word changed -> seat taken -> share -> done + 1
//! ```
//!
//! Both sides spin, as long as that pays, and then sleep. A meeting is over when everyone expected
//! has finished; it never goes on with fewer. If nothing is heard for too long, the caller takes
//! back the seats of those who never came, and the team meets no more.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use protocol::TrResult;

use super::bell::Bell;
use gathering::Gathering;
use looks::Looks;

mod gathering;
mod looks;

/// As many as a word of bits has, see `SharedRows`; no browser's machine has more that help.
pub const WORKERS_MAX: usize = 64;
/// Slices of [`super::bell::SLICE_NANOS`] without any sign of a worker until it counts as dead:
/// five seconds. A share of a meeting takes milliseconds, so a machine would have to be a thousand
/// times overloaded to be misjudged.
pub const PATIENCE_SLICES: u32 = 50;
/// Low bits of the word: how many workers are expected.
const EXPECTED_BITS: u32 = 8;
const EXPECTED_MASK: u32 = (1 << EXPECTED_BITS) - 1;

/// What one meeting does: called once with every worker's number.
pub type Work<'a> = dyn Fn(usize) -> Result<(), TrResult> + Sync + 'a;

/// A cache line of its own, and its neighbour's, which processors fetch together.
#[repr(align(128))]
struct Line<T>(T);

pub struct Meeting {
    /// Written from outside at any time: the number of the request to be stopped.
    stop: Line<AtomicU32>,
    call: Line<Call>,
    answer: Line<Answer>,
    /// Of worker 1 and up; the caller is worker 0.
    seats: [Line<Seat>; WORKERS_MAX],
    /// Written by the caller while nobody else may read it.
    job: UnsafeCell<Option<*const Work<'static>>>,
    /// The request that is being computed; 0 cannot be stopped.
    request: AtomicU32,
    /// Workers of the next meeting, the caller included.
    active: AtomicU32,
    /// A meeting is in progress.
    busy: AtomicBool,
    /// A worker was lost.
    broken: AtomicU32,
    patience: AtomicU32,
}

/// What workers wait for.
struct Call {
    /// Generation and expected workers.
    word: AtomicU32,
    sleepers: AtomicU32,
    /// Workers from this number on leave.
    keep: AtomicU32,
    bell: Bell,
}

/// What the caller waits for.
struct Answer {
    done: AtomicU32,
    is_awaited: AtomicU32,
    looks: Looks,
    bell: Bell,
    /// Worker in the upper half, code in the lower; the least of all failures.
    failure: AtomicU64,
}

struct Seat {
    /// The word of the meeting for which the seat is taken, by its worker or by the caller who
    /// gave up waiting for it.
    taken: AtomicU32,
    /// Finished shares.
    shares: AtomicU64,
}

const NO_FAILURE: u64 = u64::MAX;

// SAFETY: everything but `job` is atomic. `job` is written only by the caller that holds `busy`,
// while no worker has a seat, and read only by workers with a seat, which they take after they saw
// the word that was released after the write.
unsafe impl Sync for Meeting {}
// SAFETY: the pointer in `job` is followed only during a meeting, by whoever holds a seat.
unsafe impl Send for Meeting {}

impl Meeting {
    /// A block for `workers` workers, the caller included; at most [`WORKERS_MAX`].
    pub const fn new(workers: usize) -> Meeting {
        Meeting {
            stop: Line(AtomicU32::new(0)),
            call: Line(Call {
                word: AtomicU32::new(0),
                sleepers: AtomicU32::new(0),
                keep: AtomicU32::new(u32::MAX),
                bell: Bell::new(),
            }),
            answer: Line(Answer {
                done: AtomicU32::new(0),
                is_awaited: AtomicU32::new(0),
                looks: Looks::new(),
                bell: Bell::new(),
                failure: AtomicU64::new(NO_FAILURE),
            }),
            seats: [const {
                Line(Seat {
                    taken: AtomicU32::new(0),
                    shares: AtomicU64::new(0),
                })
            }; WORKERS_MAX],
            job: UnsafeCell::new(None),
            request: AtomicU32::new(0),
            active: AtomicU32::new(workers as u32),
            busy: AtomicBool::new(false),
            broken: AtomicU32::new(0),
            patience: AtomicU32::new(PATIENCE_SLICES),
        }
    }

    pub fn workers(&self) -> usize {
        self.active.load(Relaxed) as usize
    }

    /// Who stores a request's number here stops that request.
    pub fn stop(&self) -> &AtomicU32 {
        &self.stop.0
    }

    /// From now on this request is computed.
    pub fn serve(&self, request: u32) {
        self.request.store(request, Relaxed);
    }

    /// `Cancelled` if the request that is being computed is to be stopped.
    #[inline]
    pub fn check(&self) -> Result<(), TrResult> {
        let asked = self.stop.0.load(Relaxed);
        match asked != 0 && asked == self.request.load(Relaxed) {
            true => Err(TrResult::Cancelled),
            false => Ok(()),
        }
    }

    /// Shares that a worker has finished.
    pub fn shares(&self, worker: usize) -> u64 {
        self.seats[worker].0.shares.load(Relaxed)
    }

    /// Not 0 once a worker was lost.
    #[cfg(target_feature = "atomics")]
    pub fn broken(&self) -> &AtomicU32 {
        &self.broken
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Relaxed) != 0
    }

    /// Slices until a silent worker counts as dead.
    #[cfg_attr(not(any(test, target_arch = "wasm32")), allow(dead_code))]
    pub fn set_patience(&self, slices: u32) {
        self.patience.store(slices, Relaxed);
    }

    /// From the next meeting on `workers` take part; those that are left over sleep.
    /// `IllegalState` during a meeting.
    #[cfg_attr(not(any(test, target_arch = "wasm32")), allow(dead_code))]
    pub fn set_workers(&self, workers: usize) -> Result<(), TrResult> {
        let _turn = self.turn()?;
        self.active.store(workers as u32, Relaxed);
        for seat in &self.seats {
            // A seat's old word could come again after very many meetings.
            seat.0.taken.store(0, Relaxed);
        }
        Ok(())
    }

    /// Workers from number `keep` on leave when they wake.
    #[cfg_attr(
        target_arch = "wasm32",
        expect(dead_code, reason = "a host ends its workers itself")
    )]
    pub fn retire(&self, keep: usize) {
        self.call.0.keep.store(keep as u32, SeqCst);
        self.summon(0);
    }

    /// Runs `work` with every worker's number and returns when all have finished: the failure of
    /// the lowest worker, `WorkerFailure` if one was lost, `IllegalState` from within a meeting.
    pub fn run(&self, work: &Work<'_>) -> Result<(), TrResult> {
        let _turn = self.turn()?;
        self.check()?;
        let workers = self.workers();
        if workers == 1 {
            return self.share(0, work);
        }
        if self.is_broken() {
            return Err(TrResult::WorkerFailure);
        }
        let work: *const Work<'_> = work;
        // SAFETY: only the lifetime changes. `Gathering` does not let this function return or
        // unwind before every worker that can follow the pointer has finished.
        let work: *const Work<'static> = unsafe { core::mem::transmute(work) };
        // SAFETY: this caller holds `busy`, and no worker has a seat between meetings.
        unsafe { *self.job.get() = Some(work) };
        self.answer.0.done.store(0, Relaxed);
        self.answer.0.failure.store(NO_FAILURE, Relaxed);
        let gathering = Gathering {
            meeting: self,
            word: self.summon(workers as u32),
            expected: workers as u32 - 1,
        };
        // SAFETY: the pointer came from a reference that lives until this function returns.
        let own = self.share(0, unsafe { &*work });
        let all = gathering.wait();
        core::mem::forget(gathering);
        all?;
        own?;
        match self.answer.0.failure.load(Relaxed) {
            NO_FAILURE => Ok(()),
            failure => {
                Err(TrResult::from_code(failure as u32 as i32)
                    .unwrap_or(TrResult::InternalInvariant))
            }
        }
    }

    /// A worker's life: meets until it is retired. `index` is at least 1.
    pub fn attend(&self, index: usize, run: impl Fn(&Work<'_>) -> Result<(), TrResult>) {
        let mut seen = 0;
        loop {
            let word = self.next_word(seen);
            seen = word;
            if self.call.0.keep.load(SeqCst) <= index as u32 {
                return;
            }
            if (word & EXPECTED_MASK) as usize <= index {
                continue;
            }
            let seat = &self.seats[index].0;
            if seat.taken.swap(word, AcqRel) == word {
                // The caller gave up waiting.
                return;
            }
            // SAFETY: the seat is taken for this meeting, so the caller waits for this worker;
            // `job` was written before the word was released.
            let outcome = match unsafe { *self.job.get() } {
                // SAFETY: as above; the caller keeps what the pointer points at until `done`.
                Some(work) => run(unsafe { &*work }),
                None => Err(TrResult::InternalInvariant),
            };
            if let Err(code) = outcome {
                self.fail(index, code);
            }
            seat.shares.fetch_add(1, Relaxed);
            self.answer.0.done.fetch_add(1, SeqCst);
            if self.answer.0.is_awaited.load(SeqCst) != 0 {
                self.answer.0.bell.ring(&self.answer.0.done);
            }
        }
    }

    /// A worker that panicked: the meeting fails, and there is no other.
    #[cfg(feature = "threads")]
    pub fn give_up(&self) {
        self.broken.store(1, Relaxed);
    }

    fn share(&self, worker: usize, work: &Work<'_>) -> Result<(), TrResult> {
        let outcome = work(worker);
        self.seats[worker].0.shares.fetch_add(1, Relaxed);
        outcome
    }

    fn fail(&self, worker: usize, code: TrResult) {
        let failure = (worker as u64) << 32 | u64::from(code as i32 as u32);
        self.answer.0.failure.fetch_min(failure, Relaxed);
    }

    fn turn(&self) -> Result<Turn<'_>, TrResult> {
        match self.busy.swap(true, Acquire) {
            false => Ok(Turn(self)),
            true => Err(TrResult::IllegalState),
        }
    }

    /// Publishes the next word.
    fn summon(&self, expected: u32) -> u32 {
        let call = &self.call.0;
        let generation = (call.word.load(Relaxed) >> EXPECTED_BITS).wrapping_add(1);
        // Zero is what a seat holds that was never taken.
        let generation = match generation << EXPECTED_BITS {
            0 => 1 << EXPECTED_BITS,
            shifted => shifted,
        };
        let word = generation | expected;
        call.word.store(word, SeqCst);
        if call.sleepers.load(SeqCst) != 0 {
            call.bell.ring(&call.word);
        }
        word
    }

    fn next_word(&self, seen: u32) -> u32 {
        let call = &self.call.0;
        let look = || Some(call.word.load(Acquire)).filter(|word| *word != seen);
        if let Some(word) = self.answer.0.looks.until(look) {
            return word;
        }
        call.sleepers.fetch_add(1, SeqCst);
        let word = loop {
            let word = call.word.load(SeqCst);
            if word != seen {
                break word;
            }
            call.bell.wait(&call.word, seen);
        };
        call.sleepers.fetch_sub(1, SeqCst);
        word
    }
}

/// The right to hold a meeting.
struct Turn<'a>(&'a Meeting);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Release);
    }
}

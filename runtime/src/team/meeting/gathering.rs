//! Waiting for everyone who was called.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

use protocol::TrResult;

use super::Meeting;

/// A meeting whose workers have been called. It is waited for even if the caller unwinds.
pub struct Gathering<'a> {
    pub meeting: &'a Meeting,
    pub word: u32,
    /// Workers besides the caller.
    pub expected: u32,
}

impl Gathering<'_> {
    pub fn wait(&self) -> Result<(), TrResult> {
        let answer = &self.meeting.answer.0;
        let look = || (answer.done.load(Acquire) == self.expected).then_some(());
        let is_here = answer.looks.until(look).is_some();
        answer.looks.learn(is_here);
        if is_here {
            return Ok(());
        }
        answer.is_awaited.store(1, SeqCst);
        let all = self.wait_asleep();
        answer.is_awaited.store(0, Relaxed);
        all
    }

    fn wait_asleep(&self) -> Result<(), TrResult> {
        let answer = &self.meeting.answer.0;
        let mut silent = 0;
        let mut seen = answer.done.load(SeqCst);
        while seen < self.expected {
            answer.bell.wait(&answer.done, seen);
            let done = answer.done.load(SeqCst);
            silent = if done == seen { silent + 1 } else { 0 };
            if silent > self.meeting.patience.load(Relaxed) {
                return self.abandon();
            }
            seen = done;
        }
        Ok(())
    }

    /// Takes back the seats of workers that never came. Those that came hold borrowed memory:
    /// natively they are waited for without end, because a thread does not vanish; a lane stops
    /// for good, because its host may have ended them.
    fn abandon(&self) -> Result<(), TrResult> {
        let meeting = self.meeting;
        meeting.broken.store(1, Relaxed);
        let seats = &meeting.seats[1..=self.expected as usize];
        let absent = seats.iter().filter(|seat| {
            let was = seat.0.taken.swap(self.word, AcqRel);
            was != self.word
        });
        let present = self.expected - absent.count() as u32;
        if meeting.answer.0.done.load(SeqCst) < present {
            self.outlast(present);
        }
        Err(TrResult::WorkerFailure)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn outlast(&self, present: u32) {
        let answer = &self.meeting.answer.0;
        loop {
            match answer.done.load(SeqCst) {
                done if done >= present => return,
                done => answer.bell.wait(&answer.done, done),
            }
        }
    }

    #[cfg(target_arch = "wasm32")]
    fn outlast(&self, _: u32) {
        core::arch::wasm32::unreachable();
    }
}

impl Drop for Gathering<'_> {
    fn drop(&mut self) {
        // Only an unwinding caller comes here; its own failure is told.
        if self.wait().is_err() {
            self.meeting.broken.store(1, Relaxed);
        }
    }
}

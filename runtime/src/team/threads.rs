//! Workers on the system's threads.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

use protocol::TrResult;

use super::meeting::{Meeting, Work};

/// The threads of a team; dropping it ends them.
pub struct Threads {
    meeting: Arc<Meeting>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts workers 1 to `workers - 1`. `None` if the system refuses one; the others end.
    pub fn start(meeting: &Arc<Meeting>, workers: usize) -> Option<Threads> {
        let mut threads = Threads {
            meeting: Arc::clone(meeting),
            handles: Vec::new(),
        };
        for index in 1..workers {
            let meeting = Arc::clone(meeting);
            let life = move || meeting.attend(index, |work| guarded(&meeting, work, index));
            let handle = Builder::new().spawn(life).ok()?;
            threads.handles.push(handle);
        }
        Some(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.meeting.retire(0);
        for handle in self.handles.drain(..) {
            // A worker catches every panic, so there is none to hand on.
            handle.join().ok();
        }
    }
}

/// A worker outlives a panic, so that the caller is not left waiting.
fn guarded(meeting: &Meeting, work: &Work<'_>, index: usize) -> Result<(), TrResult> {
    catch_unwind(AssertUnwindSafe(|| work(index))).unwrap_or_else(|_| {
        meeting.give_up();
        Err(TrResult::WorkerFailure)
    })
}

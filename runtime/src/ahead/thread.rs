//! A reader on a thread of the system.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::{Buffer, Filled, ReadAhead};
use crate::weights::Source;

/// Dropping it waits for a read that is under way.
pub struct Reader {
    /// Gone when the thread is to end.
    asked: Option<SyncSender<(u64, Buffer)>>,
    /// Never locked: only whoever holds this alone asks it.
    answers: Mutex<Receiver<Answer>>,
    thread: Option<JoinHandle<()>>,
    /// Something was begun, and its end was not taken.
    is_busy: bool,
    /// The end that was seen but not taken.
    seen: Option<Answer>,
}

type Answer = (Buffer, Filled);

impl Reader {
    /// `None` if the system refuses a thread.
    pub fn start(mut source: impl Source + Send + 'static) -> Option<Reader> {
        let (asked, asks) = sync_channel::<(u64, Buffer)>(1);
        let (answer, answers) = sync_channel(1);
        let life = move || {
            for (at, mut buffer) in asks {
                let filled = match source.read_at(at, buffer.wanted()) {
                    Ok(()) => Filled::Whole,
                    Err(_) => Filled::Not,
                };
                if answer.send((buffer, filled)).is_err() {
                    return;
                }
            }
        };
        Some(Reader {
            asked: Some(asked),
            answers: Mutex::new(answers),
            thread: Some(Builder::new().spawn(life).ok()?),
            is_busy: false,
            seen: None,
        })
    }
}

impl ReadAhead for Reader {
    fn begin(&mut self, at: u64, buffer: Buffer) -> Result<(), Buffer> {
        let Some(asked) = self.asked.as_ref().filter(|_| !self.is_busy) else {
            return Err(buffer);
        };
        let sent = asked.send((at, buffer));
        sent.map_err(|refused| refused.0.1)?;
        self.is_busy = true;
        Ok(())
    }

    fn is_done(&mut self) -> bool {
        if self.seen.is_none() {
            let answers = self.answers.get_mut().ok();
            self.seen = answers.and_then(|answers| answers.try_recv().ok());
        }
        self.seen.is_some()
    }

    fn finish(&mut self) -> Option<Answer> {
        if !self.is_busy {
            return None;
        }
        self.is_busy = false;
        // A thread that panicked is gone, and the buffer with it.
        let answers = self.answers.get_mut().ok();
        self.seen.take().or_else(|| answers?.recv().ok())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            // Its source may have panicked, which harms nobody here.
            thread.join().ok();
        }
    }
}

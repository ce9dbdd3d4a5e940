//! A reader that the host starts, in a worker of its own over the same memory.
//!
//! Both meet at a few words: the engine writes what it wants and counts `asked` up, the reader
//! fills the buffer and counts `answered` up. A reader serves one model, whose number it knows; it
//! leaves when another number stands there. `public/reader.js` is the other side.

use alloc::sync::Arc;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::{Buffer, Filled, ReadAhead};
use crate::team::{Bell, PATIENCE_SLICES};

/// The words, in the order that `protocol::abi` gives.
#[repr(C)]
#[derive(Default)]
pub struct Words {
    /// The model that is served, by number.
    serves: AtomicU32,
    /// The reader that is there, by the number of its model.
    here: AtomicU32,
    asked: AtomicU32,
    answered: AtomicU32,
    /// 1 if all bytes were read.
    filled: AtomicU32,
    /// File byte.
    at_low: AtomicU32,
    at_high: AtomicU32,
    /// Address and length.
    to: AtomicU32,
    len: AtomicU32,
}

/// The words of a lane's models. A reader may look at them at any time, so they are never freed;
/// a block whose model is closed serves a later one.
#[derive(Default)]
pub struct Board {
    words: alloc::vec::Vec<Arc<Words>>,
}

impl Board {
    /// The reader of one model more, which the host may start or not.
    pub fn reader(&mut self) -> Beside {
        let free = self
            .words
            .iter()
            .find(|words| Arc::strong_count(words) == 1);
        let words = match free {
            Some(words) => Arc::clone(words),
            None => {
                let words = Arc::new(Words::default());
                self.words.push(Arc::clone(&words));
                words
            }
        };
        let number = words.serves.load(SeqCst).wrapping_add(1).max(1);
        words.serves.store(number, SeqCst);
        Beside {
            words,
            number,
            lent: None,
        }
    }
}

pub struct Beside {
    words: Arc<Words>,
    number: u32,
    /// Only the reader touches it.
    lent: Option<Buffer>,
}

impl Beside {
    /// Address of the words, and the number that the reader has to know.
    pub fn place(&self) -> [u32; 2] {
        let address = Arc::as_ptr(&self.words).expose_provenance();
        [address as u32, self.number]
    }

    fn has_answered(&self) -> bool {
        let Words {
            asked, answered, ..
        } = &*self.words;
        answered.load(SeqCst) == asked.load(Relaxed)
    }
}

impl ReadAhead for Beside {
    fn begin(&mut self, at: u64, mut buffer: Buffer) -> Result<(), Buffer> {
        let words = &*self.words;
        if self.lent.is_some() || words.here.load(SeqCst) != self.number {
            return Err(buffer);
        }
        let wanted = buffer.wanted();
        words.len.store(wanted.len() as u32, Relaxed);
        // The reader writes through this address, so the compiler is told that it is known outside.
        let to = wanted.as_mut_ptr().expose_provenance();
        words.to.store(to as u32, Relaxed);
        words.at_low.store(at as u32, Relaxed);
        words.at_high.store((at >> 32) as u32, Relaxed);
        self.lent = Some(buffer);
        words.asked.fetch_add(1, SeqCst);
        Bell::new().ring(&words.asked);
        Ok(())
    }

    fn is_done(&mut self) -> bool {
        self.has_answered()
    }

    fn finish(&mut self) -> Option<(Buffer, Filled)> {
        let buffer = self.lent.take()?;
        let words = &*self.words;
        for _ in 0..PATIENCE_SLICES {
            let seen = words.answered.load(SeqCst);
            if seen == words.asked.load(Relaxed) {
                let filled = match words.filled.load(SeqCst) {
                    1 => Filled::Whole,
                    _ => Filled::Not,
                };
                return Some((buffer, filled));
            }
            Bell::new().wait(&words.answered, seen);
        }
        // It may still write: buffer and words stay what they are, for good.
        core::mem::forget(buffer);
        core::mem::forget(Arc::clone(&self.words));
        None
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // A buffer that is being filled must not be given to others.
        drop(self.finish());
        // The reader wakes, sees that it is not wanted, and leaves.
        let Words { serves, asked, .. } = &*self.words;
        serves.store(self.number.wrapping_add(1).max(1), SeqCst);
        asked.fetch_add(1, SeqCst);
        Bell::new().ring(asked);
    }
}

//! Reading what will be wanted next while something else is computed.
//!
//! A reader takes a buffer, fills it and gives it back; meanwhile nobody else has it, so nothing is
//! shared but the buffer's ownership. Whatever a reader fails at is read once more by the engine
//! itself, whose failure then counts: so a reader changes no bit and no error.

#[cfg(target_feature = "atomics")]
pub mod beside;
#[cfg(feature = "threads")]
pub mod thread;

use alloc::vec::Vec;
use core::ops::Range;

use protocol::Stage;

use crate::RuntimeError;
use crate::error::take_memory;
use crate::plan::WEIGHTS_ALIGN;

/// Fills one buffer at a time, beside the computation.
pub trait ReadAhead: Send + Sync {
    /// Begins to fill the buffer from file byte `at` on. The buffer comes back at once if the
    /// reader has one already, or is not there.
    fn begin(&mut self, at: u64, buffer: Buffer) -> Result<(), Buffer>;

    /// Whether `finish` would not wait.
    fn is_done(&mut self) -> bool;

    /// Waits for the buffer: filled, or with anything in it. `None` if nothing was begun, or if the
    /// reader is lost and the buffer with it.
    fn finish(&mut self) -> Option<(Buffer, Filled)>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    Whole,
    /// It could not be read.
    Not,
}

/// Memory of a fixed length at an address that is a multiple of 64, of which a part is to be read.
pub struct Buffer {
    memory: Vec<u8>,
    skip: usize,
    len: usize,
}

impl Buffer {
    pub fn open(bytes: u64) -> Result<Buffer, RuntimeError> {
        let memory = take_memory::<u8>(bytes as usize + WEIGHTS_ALIGN - 1, Stage::Allocate)?;
        Ok(Buffer {
            skip: memory.as_ptr().align_offset(WEIGHTS_ALIGN) % WEIGHTS_ALIGN,
            memory,
            len: 0,
        })
    }

    /// Bytes that [`Buffer::open`] takes.
    pub fn bytes_for(bytes: u64) -> u64 {
        bytes + WEIGHTS_ALIGN as u64 - 1
    }

    /// The first `len` bytes, which are to be read.
    pub fn reach(&mut self, len: usize) -> &mut [u8] {
        self.len = len;
        self.wanted()
    }

    /// What is to be read.
    pub fn wanted(&mut self) -> &mut [u8] {
        &mut self.memory[self.skip..self.skip + self.len]
    }

    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.memory[self.skip + range.start..self.skip + range.end]
    }

    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }
}

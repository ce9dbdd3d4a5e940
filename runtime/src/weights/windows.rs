//! Where blocks of the file pass through: one window that is used, and with a reader another that
//! is filled meanwhile.

use alloc::boxed::Box;
use core::ops::Range;

use crate::RuntimeError;
use crate::ahead::{Buffer, Filled, ReadAhead};
use crate::arrange::Arrangement;

use super::Source;

/// None of its memory is taken if nothing is streamed.
pub struct Windows {
    used: Option<Buffer>,
    /// File bytes in it.
    held: Range<u64>,
    /// Not here while the reader has it.
    other: Option<Buffer>,
    reader: Option<Box<dyn ReadAhead>>,
    /// What the reader was asked for.
    asked: Range<u64>,
    /// Bytes read so far.
    streamed: u64,
    /// Blocks that the reader had read when they were wanted.
    read_ahead: u64,
}

impl Windows {
    pub fn open(
        arrangement: &Arrangement,
        reader: Option<Box<dyn ReadAhead>>,
    ) -> Result<Windows, RuntimeError> {
        let bytes = arrangement.window.end - arrangement.window.start;
        let count = match arrangement.streams() {
            true => arrangement.windows,
            false => 0,
        };
        let window = |at| (at < count).then(|| Buffer::open(bytes)).transpose();
        Ok(Windows {
            used: window(0)?,
            held: 0..0,
            other: window(1)?,
            reader,
            asked: 0..0,
            streamed: 0,
            read_ahead: 0,
        })
    }

    /// Brings file bytes into the window that is used, unless they are there already. The caller
    /// has looked that they fit.
    pub fn bring(
        &mut self,
        source: &mut dyn Source,
        file: &Range<u64>,
    ) -> Result<(), RuntimeError> {
        if self.held == *file {
            return Ok(());
        }
        if self.asked != *file || !self.take_over(file) {
            let Some(window) = &mut self.used else {
                return Ok(());
            };
            // A failed read may have written a part.
            self.held = 0..0;
            source.read_at(file.start, window.reach(length(file)))?;
            self.held = file.clone();
        }
        self.streamed += file.end - file.start;
        Ok(())
    }

    /// These bytes will be wanted next.
    pub fn foresee(&mut self, file: &Range<u64>) {
        if self.held == *file || self.asked == *file {
            return;
        }
        let Some(reader) = &mut self.reader else {
            return;
        };
        if !self.asked.is_empty() {
            // It was asked for something that is not wanted any more.
            if !reader.is_done() {
                return;
            }
            self.take_back();
        }
        let (Some(reader), Some(mut window)) = (&mut self.reader, self.other.take()) else {
            return;
        };
        window.reach(length(file));
        match reader.begin(file.start, window) {
            Ok(()) => self.asked = file.clone(),
            Err(window) => self.other = Some(window),
        }
    }

    /// Changes the windows if the reader has filled the other with what it was asked for.
    fn take_over(&mut self, file: &Range<u64>) -> bool {
        match self.take_back() {
            Some(Filled::Whole) => {
                core::mem::swap(&mut self.used, &mut self.other);
                self.held = file.clone();
                self.read_ahead += 1;
                true
            }
            Some(Filled::Not) | None => false,
        }
    }

    /// Waits for the window that the reader has. A lost reader keeps it, and is asked no more.
    fn take_back(&mut self) -> Option<Filled> {
        self.asked = 0..0;
        match self.reader.as_mut()?.finish() {
            Some((window, filled)) => {
                self.other = Some(window);
                Some(filled)
            }
            None => {
                self.reader = None;
                None
            }
        }
    }

    /// Bytes of the window that is used.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        match &self.used {
            Some(window) => window.bytes(range),
            None => &[],
        }
    }

    pub fn streamed(&self) -> u64 {
        self.streamed
    }

    pub fn read_ahead(&self) -> u64 {
        self.read_ahead
    }

    /// Bytes taken, also of a window that the reader has.
    pub fn taken(&self) -> u64 {
        let of = |window: &Option<Buffer>| window.as_ref().map_or(0, Buffer::capacity) as u64;
        let lent = match self.asked.is_empty() {
            true => 0,
            false => of(&self.used),
        };
        of(&self.used) + of(&self.other) + lent
    }
}

fn length(file: &Range<u64>) -> usize {
    (file.end - file.start) as usize
}

//! How a model arrives whose identity nobody knows yet: a conversion's output, in order.
//!
//! The shell opens `incoming-<n>.part`, appends, and after `finish` writes `<root>.pieces` and
//! renames the file to `<root>.slm`. An interrupted conversion is not resumed: its file is a stray.

use format::{Hasher, PIECE_BYTES, PieceLayer};

use crate::{Disk, StoreError};

pub struct SequentialImport<D> {
    part: D,
    length: u64,
    hasher: Hasher,
    /// Where the buffered bytes belong.
    at: u64,
    /// Less than a piece: storage takes 1 MiB many times faster than 16 KiB.
    buffer: Vec<u8>,
    stopped: Option<StoreError>,
}

impl<D: Disk> SequentialImport<D> {
    /// Takes over an empty file and reserves `length` bytes, the exact size of what will come.
    pub fn start(mut part: D, length: u64) -> Result<SequentialImport<D>, StoreError> {
        part.set_len(length)?;
        Ok(SequentialImport {
            part,
            length,
            hasher: Hasher::default(),
            at: 0,
            buffer: Vec::with_capacity(PIECE_BYTES as usize),
            stopped: None,
        })
    }

    /// Bytes appended so far.
    pub fn bytes(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Takes the next bytes, in portions of any size. [`StoreError::Overrun`] beyond the announced
    /// length; after any error the import is over.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        self.stopped.clone().map_or(Ok(()), Err)?;
        let got = self.bytes().saturating_add(bytes.len() as u64);
        if got > self.length {
            let want = self.length;
            return Err(self.stop(StoreError::Overrun { want, got }));
        }
        self.hasher.update(bytes);
        while !bytes.is_empty() {
            let room = PIECE_BYTES as usize - self.buffer.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == PIECE_BYTES as usize {
                self.write_buffer()?;
            }
        }
        Ok(())
    }

    /// Flushes, closes, and tells which model this is.
    pub fn finish(mut self) -> Result<PieceLayer, StoreError> {
        self.stopped.clone().map_or(Ok(()), Err)?;
        if self.bytes() != self.length {
            let (want, got) = (self.length, self.bytes());
            return Err(StoreError::Incomplete { want, got });
        }
        self.write_buffer()?;
        self.part.flush()?;
        self.part.close()?;
        Ok(self.hasher.finish())
    }

    fn write_buffer(&mut self) -> Result<(), StoreError> {
        if let Err(error) = self.part.write_at(self.at, &self.buffer) {
            return Err(self.stop(error));
        }
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn stop(&mut self, error: StoreError) -> StoreError {
        self.stopped = Some(error.clone());
        error
    }
}

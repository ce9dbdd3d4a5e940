//! The memory of the weights: what is kept, and windows for what is not.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use format::{
    Digest, LEAF_BYTES, LEAVES_PER_PIECE, PIECE_BYTES, hash_leaves, piece_hash_of_leaves,
};
use protocol::abi::{DETAIL_BYTES, DETAIL_REFUSED, REGION_TRANSFER, REGION_WEIGHTS};
use protocol::{Residency, Stage, TrResult};

use super::Source;
use super::windows::Windows;
use crate::RuntimeError;
use crate::ahead::ReadAhead;
use crate::arrange::Arrangement;
use crate::error::take_memory;
use crate::kernels::SharedRows;
use crate::plan::WEIGHTS_ALIGN;
use crate::team::Team;

pub struct Region {
    /// What is kept, at an address that is a multiple of 64.
    memory: Vec<u8>,
    /// Bytes before the aligned address.
    skip: usize,
    pub arrangement: Arrangement,
    file_len: u64,
    /// Which pieces have been seen.
    loaded: Vec<bool>,
    /// A piece on its way, where not all of it is kept.
    piece: Vec<u8>,
    windows: Windows,
}

impl Region {
    pub fn open(
        arrangement: Arrangement,
        residency: Residency,
        file_len: u64,
        reader: Option<Box<dyn ReadAhead>>,
    ) -> Result<Region, RuntimeError> {
        let bytes = arrangement.kept_bytes();
        let refuse = |region: u32, bytes: u64| {
            let error = RuntimeError::new(TrResult::OutOfMemory, Stage::Allocate);
            error.item(region as usize).detail(DETAIL_REFUSED, 0, bytes)
        };
        let refuse_weights = || refuse(REGION_WEIGHTS, arrangement.bytes());
        let len = usize::try_from(bytes).map_err(|_| refuse_weights())?;
        let memory = take_memory::<u8>(len, Stage::Allocate).map_err(|_| refuse_weights())?;
        let windows = Windows::open(&arrangement, reader).map_err(|_| refuse_weights())?;
        let pieces = (file_len - arrangement.first).div_ceil(u64::from(PIECE_BYTES));
        let piece = match residency {
            Residency::Full => 0,
            Residency::Hybrid | Residency::Paged => u64::from(PIECE_BYTES).min(file_len),
        };
        Ok(Region {
            skip: memory.as_ptr().align_offset(WEIGHTS_ALIGN) % WEIGHTS_ALIGN,
            memory,
            arrangement,
            file_len,
            loaded: take_memory(pieces as usize, Stage::Allocate)?,
            piece: take_memory(piece as usize, Stage::Allocate)
                .map_err(|_| refuse(REGION_TRANSFER, piece))?,
            windows,
        })
    }

    /// Reads one piece, keeps what is to be kept of it and gives the hash of all of it, which the
    /// team computes.
    pub fn load(
        &mut self,
        source: &mut dyn Source,
        at: u64,
        len: u32,
        team: &Team,
    ) -> Result<Digest, RuntimeError> {
        let refuse = |code| RuntimeError::new(code, Stage::Load).at(at);
        let piece = u64::from(PIECE_BYTES);
        let first = self.arrangement.first;
        if at < first || at >= self.file_len || !at.is_multiple_of(piece) {
            return Err(refuse(TrResult::Bounds));
        }
        let whole = (self.file_len - at).min(piece);
        if u64::from(len) != whole {
            let error = refuse(TrResult::Bounds);
            return Err(error.detail(DETAIL_BYTES, whole, u64::from(len)));
        }
        let index = ((at - first) / piece) as usize;
        // A failed read may have written a part.
        self.loaded[index] = false;
        let range = at..at + whole;
        if self.piece.is_empty() {
            let place = self.arrangement.find(&range);
            let place = place.ok_or_else(|| refuse(TrResult::InternalInvariant))?;
            let file_len = self.file_len;
            let into = self.bytes_mut(&place);
            source.read_at(at, into)?;
            let digest = piece_digest(into, file_len, team).map_err(refuse)?;
            self.loaded[index] = true;
            return Ok(digest);
        }
        let bytes = &mut self.piece[..len as usize];
        source.read_at(at, bytes)?;
        let digest = piece_digest(bytes, self.file_len, team).map_err(refuse)?;
        self.keep(&range);
        self.loaded[index] = true;
        Ok(digest)
    }

    /// Copies what is kept of the piece to its place.
    fn keep(&mut self, range: &Range<u64>) {
        for (kept, at) in &self.arrangement.kept {
            let (start, end) = (kept.start.max(range.start), kept.end.min(range.end));
            if start < end {
                let from = (start - range.start) as usize..(end - range.start) as usize;
                let to = self.skip + (at + start - kept.start) as usize;
                self.memory[to..to + from.len()].copy_from_slice(&self.piece[from]);
            }
        }
    }

    pub fn check_loaded(&self) -> Result<(), RuntimeError> {
        match self.loaded.iter().position(|loaded| !loaded) {
            None => Ok(()),
            Some(piece) => Err(RuntimeError::new(TrResult::IllegalState, Stage::Load)
                .at(self.arrangement.first + piece as u64 * u64::from(PIECE_BYTES))),
        }
    }

    /// Brings file bytes into a window, unless they are there already.
    pub fn bring(
        &mut self,
        source: &mut dyn Source,
        file: &Range<u64>,
    ) -> Result<(), RuntimeError> {
        let place = self.arrangement.in_window(file, file.start);
        if place.end as u64 > self.arrangement.window.end {
            return Err(RuntimeError::new(TrResult::InternalInvariant, Stage::Load).at(file.start));
        }
        self.windows.bring(source, file)
    }

    /// These bytes will be brought next.
    pub fn foresee(&mut self, file: &Range<u64>) {
        self.windows.foresee(file);
    }

    /// Where file bytes are: kept, or in the window with the block that begins at `block`.
    pub fn place(&self, file: &Range<u64>, block: u64) -> Range<usize> {
        let kept = self.arrangement.find(file);
        kept.unwrap_or_else(|| self.arrangement.in_window(file, block))
    }

    /// Bytes read into windows since the model was opened.
    pub fn streamed(&self) -> u64 {
        self.windows.streamed()
    }

    pub fn read_ahead(&self) -> u64 {
        self.windows.read_ahead()
    }

    pub fn bytes(&self, range: &Range<usize>) -> &[u8] {
        let window = &self.arrangement.window;
        match self.arrangement.streams() && range.start as u64 >= window.start {
            true => {
                let start = window.start as usize;
                self.windows.bytes(range.start - start..range.end - start)
            }
            false => &self.memory[self.skip + range.start..self.skip + range.end],
        }
    }

    fn bytes_mut(&mut self, range: &Range<usize>) -> &mut [u8] {
        &mut self.memory[self.skip + range.start..self.skip + range.end]
    }

    /// Bytes taken for weights, for pieces on their way, and for records.
    pub fn taken(&self) -> [u64; 3] {
        let records = self.loaded.capacity()
            + self.arrangement.layers.capacity() * size_of::<Range<u64>>()
            + self.arrangement.kept.capacity() * size_of::<(Range<u64>, u64)>();
        [
            self.memory.capacity() as u64 + self.windows.taken(),
            self.piece.capacity() as u64,
            records as u64,
        ]
    }
}

/// Hash of one piece, whose leaves the team shares, four of them being hashed together.
fn piece_digest(bytes: &[u8], file_len: u64, team: &Team) -> Result<Digest, TrResult> {
    const LEAF: usize = LEAF_BYTES as usize;
    let mut leaves = [Digest::default(); LEAVES_PER_PIECE as usize];
    let leaves = &mut leaves[..bytes.len().div_ceil(LEAF)];
    let count = leaves.len();
    let shared = SharedRows::new(leaves, count, 4, team.workers());
    team.run(|worker| {
        let mut part = shared.part(worker);
        let first = part.columns().start * LEAF;
        hash_leaves(&bytes[first.min(bytes.len())..], part.row_mut(0));
        Ok(())
    })?;
    Ok(piece_hash_of_leaves(leaves, file_len))
}

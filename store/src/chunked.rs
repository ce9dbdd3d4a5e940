//! Files as chunks in a database that answers later, made to look like files that answer at once.
//!
//! IndexedDB cannot be waited for, and [`Disk`] does not wait. So what is written is collected as
//! one [`Batch`] while the batch before it is being stored, and every batch is one transaction: it
//! is there as a whole or not at all, and never before an earlier one. Reading looks at the batches
//! first and then at what is stored, which the shell has opened as handles that answer at once.
//!
//! `flush` therefore promises order, not arrival: a record of verified pieces is never stored
//! before the pieces. Arrival is what the calls of the directory wait for, so a model gets its
//! name only when all of it is there. What a crash can cost is the newest batches.
//!
//! A batch that the database refuses takes every later one with it, and all calls of the files
//! that have written are refused from then on: a hole must not be followed by a record over it.

mod batch;

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;

use format::PIECE_BYTES;

use crate::{Disk, StoreError};

pub use batch::{Batch, ChunkKey, FileId};
use batch::{parts, place};

/// A piece is a chunk, so an import never writes a chunk twice.
pub const CHUNK_BYTES: usize = PIECE_BYTES as usize;

/// The stored content of one chunk, readable at once. What it lacks at its end are zeros.
pub trait Chunk {
    /// In bytes, at most [`CHUNK_BYTES`].
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` from byte `at` on; `at + into.len()` is at most `len`.
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), StoreError>;
}

/// All files of one database. Clones are the same files.
pub struct ChunkedFiles<C> {
    state: Rc<RefCell<State<C>>>,
}

/// One open file.
pub struct ChunkedDisk<C> {
    id: FileId,
    /// Afterwards the file may be open again, under another handle.
    is_closed: bool,
    state: Rc<RefCell<State<C>>>,
}

struct State<C> {
    open: BTreeMap<FileId, Open<C>>,
    /// What the next transaction will be.
    pending: Batch,
    /// What the present transaction is.
    in_flight: Option<Rc<Batch>>,
    /// Of a batch that was refused, until somebody was told.
    failure: Option<StoreError>,
}

struct Open<C> {
    name: String,
    len: u64,
    stored: BTreeMap<u32, C>,
    has_written: bool,
    failed: Option<StoreError>,
}

impl<C> Default for ChunkedFiles<C> {
    fn default() -> ChunkedFiles<C> {
        let state = State {
            open: BTreeMap::new(),
            pending: Batch::default(),
            in_flight: None,
            failure: None,
        };
        ChunkedFiles {
            state: Rc::new(RefCell::new(state)),
        }
    }
}

impl<C> Clone for ChunkedFiles<C> {
    fn clone(&self) -> ChunkedFiles<C> {
        let state = Rc::clone(&self.state);
        ChunkedFiles { state }
    }
}

impl<C: Chunk> ChunkedFiles<C> {
    /// Opens a file whose stored chunks are these. No batch may be under way.
    pub fn open(
        &self,
        name: &str,
        id: FileId,
        len: u64,
        stored: BTreeMap<u32, C>,
    ) -> Result<ChunkedDisk<C>, StoreError> {
        self.must_be_closed(name)?;
        let open = Open {
            name: name.into(),
            len,
            stored,
            has_written: false,
            failed: None,
        };
        self.state.borrow_mut().open.insert(id, open);
        Ok(ChunkedDisk {
            id,
            is_closed: false,
            state: Rc::clone(&self.state),
        })
    }

    /// [`StoreError::Busy`] if the file is open.
    pub fn must_be_closed(&self, name: &str) -> Result<(), StoreError> {
        let state = self.state.borrow();
        match state.open.values().any(|open| open.name == name) {
            true => Err(StoreError::Busy { name: name.into() }),
            false => Ok(()),
        }
    }

    /// The next transaction, if there is one to make and none is under way.
    pub fn take_batch(&self) -> Option<Rc<Batch>> {
        let mut state = self.state.borrow_mut();
        if state.in_flight.is_some() || state.pending.is_empty() {
            return None;
        }
        let batch = Rc::new(std::mem::take(&mut state.pending));
        state.in_flight = Some(Rc::clone(&batch));
        Some(batch)
    }

    /// The batch is stored; `stored` are handles on what it left of its chunks.
    pub fn committed(&self, stored: Vec<(ChunkKey, C)>) {
        let mut state = self.state.borrow_mut();
        let Some(batch) = state.in_flight.take() else {
            return;
        };
        for (key, content) in &batch.chunks {
            if let (Some(open), None) = (state.open.get_mut(&key.file), content) {
                open.stored.remove(&key.index);
            }
        }
        for (key, chunk) in stored {
            if let Some(open) = state.open.get_mut(&key.file) {
                open.stored.insert(key.index, chunk);
            }
        }
    }

    /// The batch was refused, and nothing of it is stored.
    pub fn refused(&self, error: &StoreError) {
        let mut state = self.state.borrow_mut();
        state.in_flight = None;
        state.pending = Batch::default();
        for open in state.open.values_mut().filter(|open| open.has_written) {
            open.failed = Some(error.clone());
        }
        state.failure = Some(error.clone());
    }

    /// Everything written is stored or refused.
    pub fn is_settled(&self) -> bool {
        let state = self.state.borrow();
        state.in_flight.is_none() && state.pending.is_empty()
    }

    /// Bytes that were written and are not yet stored.
    pub fn behind(&self) -> usize {
        let state = self.state.borrow();
        let in_flight = state.in_flight.as_ref().map_or(0, |batch| batch.bytes());
        in_flight + state.pending.bytes()
    }

    /// Why a batch was refused, if nobody was told yet.
    pub fn take_failure(&self) -> Result<(), StoreError> {
        self.state.borrow_mut().failure.take().map_or(Ok(()), Err)
    }
}

impl<C: Chunk> State<C> {
    fn file(&mut self, id: FileId) -> Result<&mut Open<C>, StoreError> {
        let open = self.open.get_mut(&id).ok_or(StoreError::Closed)?;
        match &open.failed {
            Some(error) => {
                self.failure = None;
                Err(error.clone())
            }
            None => Ok(open),
        }
    }

    /// Fills `into` from one chunk; zeros where nothing was ever written.
    fn read(&self, key: ChunkKey, at: usize, into: &mut [u8]) -> Result<(), StoreError> {
        into.fill(0);
        let waiting = self.pending.chunks.get(&key);
        let in_flight = self.in_flight.as_ref();
        let written = waiting.or_else(|| in_flight.and_then(|batch| batch.chunks.get(&key)));
        if let Some(content) = written {
            let content = content.as_deref().unwrap_or_default();
            let there = content.get(at..).unwrap_or_default();
            let len = there.len().min(into.len());
            into[..len].copy_from_slice(&there[..len]);
            return Ok(());
        }
        let open = self.open.get(&key.file).ok_or(StoreError::Closed)?;
        match open.stored.get(&key.index) {
            Some(chunk) if chunk.len() > at => {
                let len = (chunk.len() - at).min(into.len());
                chunk.read(at, &mut into[..len])
            }
            _ => Ok(()),
        }
    }

    /// The chunk's bytes in the pending batch, at least `len` of them, to be changed.
    fn chunk(&mut self, key: ChunkKey, len: usize) -> Result<&mut Vec<u8>, StoreError> {
        let is_waiting = matches!(self.pending.chunks.get(&key), Some(Some(_)));
        if !is_waiting {
            let mut bytes = vec![0; self.chunk_len(key)];
            self.read(key, 0, &mut bytes)?;
            self.pending.chunks.insert(key, Some(bytes));
        }
        let slot = self.pending.chunks.entry(key).or_default();
        let bytes = slot.get_or_insert_default();
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        Ok(bytes)
    }

    /// Bytes of the chunk that are written anywhere.
    fn chunk_len(&self, key: ChunkKey) -> usize {
        let in_batch = |batch: &Batch| {
            let content = batch.chunks.get(&key)?;
            Some(content.as_ref().map_or(0, Vec::len))
        };
        let in_flight = self.in_flight.as_ref();
        let written = in_batch(&self.pending).or_else(|| in_flight.and_then(|it| in_batch(it)));
        written.unwrap_or_else(|| {
            let stored = self.open.get(&key.file);
            let chunk = stored.and_then(|open| open.stored.get(&key.index));
            chunk.map_or(0, Chunk::len)
        })
    }

    /// Every chunk of the file from this one on that is written anywhere.
    fn chunks_from(&self, file: FileId, index: u32) -> Vec<ChunkKey> {
        let from = ChunkKey { file, index };
        let to = ChunkKey {
            file,
            index: u32::MAX,
        };
        let mut keys: Vec<ChunkKey> = self
            .pending
            .chunks
            .range(from..=to)
            .map(|(key, _)| *key)
            .collect();
        if let Some(batch) = &self.in_flight {
            keys.extend(batch.chunks.range(from..=to).map(|(key, _)| *key));
        }
        if let Some(open) = self.open.get(&file) {
            keys.extend(open.stored.range(index..).map(|(index, _)| ChunkKey {
                file,
                index: *index,
            }));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

impl<C: Chunk> Disk for ChunkedDisk<C> {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut state = self.state()?;
        let len = state.file(self.id)?.len;
        let want = into.len() as u64;
        if want == 0 {
            return Ok(());
        }
        let end = at.checked_add(want).filter(|end| *end <= len);
        if end.is_none() {
            let got = len.saturating_sub(at).min(want);
            return Err(StoreError::ShortRead { at, want, got });
        }
        for (key, part, range) in parts(self.id, at, into.len())? {
            state.read(key, part, &mut into[range])?;
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut state = self.state()?;
        let file = state.file(self.id)?;
        if bytes.is_empty() {
            return Ok(());
        }
        file.has_written = true;
        for (key, part, range) in parts(self.id, at, bytes.len())? {
            let end = part + range.len();
            if end - part == CHUNK_BYTES {
                let whole = Some(bytes[range].to_vec());
                state.pending.chunks.insert(key, whole);
            } else {
                state.chunk(key, end)?[part..end].copy_from_slice(&bytes[range]);
            }
        }
        let end = at + bytes.len() as u64;
        let file = state.file(self.id)?;
        if end > file.len {
            file.len = end;
            state.pending.lens.insert(self.id, end);
        }
        Ok(())
    }

    fn len(&self) -> Result<u64, StoreError> {
        self.state()?.file(self.id).map(|file| file.len)
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        let mut state = self.state()?;
        let file = state.file(self.id)?;
        file.has_written = true;
        let was = std::mem::replace(&mut file.len, len);
        state.pending.lens.insert(self.id, len);
        if len < was {
            let (index, rest) = place(len)?;
            // What is cut off must not come back when the file grows again.
            for key in state.chunks_from(self.id, index) {
                if key.index == index && rest > 0 {
                    state.chunk(key, 0)?.truncate(rest);
                } else {
                    state.pending.chunks.insert(key, None);
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.state()?.file(self.id).map(drop)
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.let_go();
        Ok(())
    }
}

impl<C> ChunkedDisk<C> {
    fn state(&self) -> Result<RefMut<'_, State<C>>, StoreError> {
        match self.is_closed {
            true => Err(StoreError::Closed),
            false => Ok(self.state.borrow_mut()),
        }
    }

    /// What was written goes on its way all the same.
    fn let_go(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.state.borrow_mut().open.remove(&self.id);
        }
    }
}

impl<C> Drop for ChunkedDisk<C> {
    fn drop(&mut self) {
        self.let_go();
    }
}

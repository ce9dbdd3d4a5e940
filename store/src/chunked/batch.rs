//! What one transaction stores.

use std::collections::BTreeMap;
use std::ops::Range;

use super::CHUNK_BYTES;
use crate::StoreError;

/// Number of a file, which renaming keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// One chunk of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkKey {
    pub file: FileId,
    pub index: u32,
}

/// Changes that belong together: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// New content of chunks; `None` removes one.
    pub chunks: BTreeMap<ChunkKey, Option<Vec<u8>>>,
    /// New lengths of files, in bytes.
    pub lens: BTreeMap<FileId, u64>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.lens.is_empty()
    }

    /// Bytes of content.
    pub fn bytes(&self) -> usize {
        self.chunks.values().flatten().map(Vec::len).sum()
    }
}

/// The chunk of a byte, and its place in there.
pub fn place(at: u64) -> Result<(u32, usize), StoreError> {
    let chunk = CHUNK_BYTES as u64;
    let index = u32::try_from(at / chunk).map_err(|_| StoreError::Bounds { at, len: 0 })?;
    Ok((index, (at % chunk) as usize))
}

/// Cuts `len` bytes at `at` into what lies in one chunk each: the chunk, the place in it, and
/// which of the bytes.
pub fn parts(
    file: FileId,
    at: u64,
    len: usize,
) -> Result<Vec<(ChunkKey, usize, Range<usize>)>, StoreError> {
    let bounds = StoreError::Bounds {
        at,
        len: len as u64,
    };
    at.checked_add(len as u64).ok_or(bounds)?;
    let mut parts = Vec::new();
    let mut done = 0;
    while done < len {
        let (index, part) = place(at + done as u64)?;
        let more = (CHUNK_BYTES - part).min(len - done);
        parts.push((ChunkKey { file, index }, part, done..done + more));
        done += more;
    }
    Ok(parts)
}

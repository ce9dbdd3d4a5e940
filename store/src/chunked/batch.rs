//! What one transaction stores.

use std::collections::BTreeMap;

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

//! The first pass: the SHA-256 of every source file, read from end to end.

use format::Digest;
use sha2::{Digest as _, Sha256};

use crate::limits::WINDOW_BYTES;
use crate::step::{Need, SourceFile};

pub(crate) struct Checksum {
    /// Indices and lengths of the files, in the order of their names.
    files: Vec<(u32, u64)>,
    /// File of the list being read, and bytes of it read so far.
    index: usize,
    at: u64,
    hash: Sha256,
    digests: Vec<Digest>,
    done: u64,
    total: u64,
}

impl Checksum {
    pub fn new(hashed: &[u32], files: &[SourceFile]) -> Checksum {
        let files: Vec<(u32, u64)> = hashed
            .iter()
            .map(|index| (*index, files[*index as usize].len))
            .collect();
        Checksum {
            total: files.iter().map(|(_, len)| len).sum(),
            files,
            index: 0,
            at: 0,
            hash: Sha256::new(),
            digests: Vec::new(),
            done: 0,
        }
    }

    /// Bytes hashed so far, and all of them.
    pub fn progress(&self) -> (u64, u64) {
        (self.done, self.total)
    }

    /// The next bytes to hash; `None` at the end.
    pub fn advance(&mut self) -> Option<Need> {
        while let Some((source, len)) = self.files.get(self.index) {
            if self.at < *len {
                return Some(Need {
                    source: *source,
                    at: self.at,
                    len: (len - self.at).min(WINDOW_BYTES.into()) as u32,
                });
            }
            let hash = std::mem::take(&mut self.hash);
            self.digests.push(Digest(hash.finalize().into()));
            self.index += 1;
            self.at = 0;
        }
        None
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.at += bytes.len() as u64;
        self.done += bytes.len() as u64;
    }

    /// The digest of one file; of several, the digest of their digests in name order.
    pub fn finish(self) -> Digest {
        match self.digests.as_slice() {
            [digest] => *digest,
            digests => {
                let mut hash = Sha256::new();
                digests.iter().for_each(|digest| hash.update(digest.0));
                Digest(hash.finalize().into())
            }
        }
    }
}

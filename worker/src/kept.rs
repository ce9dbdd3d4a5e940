//! The file in which the computed part of a conversation is kept.
//!
//! ```text
//! head    magic, identity of the cache, length of a page's place, ids,
//!         for each page its length and its SHA-256; then the head's own SHA-256
//! pages   from a fixed place on, each at a multiple of the length of a page's place
//! ```
//!
//! Pages are written before the head that names them, and a head that names less before a page is
//! written over, so whatever moment ends the writing, the file says nothing that is not so.

use format::{Digest, Root, sha256};
use store::{Disk, StoreError};

/// Positions of a page.
pub const PAGE: usize = 32;
/// Longer conversations are not kept: their head would not fit before the pages.
pub const TOKENS_MAX: usize = 48 * 1024;
/// Where pages begin.
const PAGES_AT: u64 = 256 * 1024;
/// More than a page of the largest model that a lane can hold.
const PAGE_BYTES_MAX: u32 = 1 << 28;

const MAGIC: [u8; 8] = *b"trlm-kv1";
/// Magic, identity, length of a page's place, count of ids.
const START: usize = 8 + 32 + 4 + 4;
const RECORD: usize = 4 + 32;
const HASH: usize = 32;

const _: () = {
    let pages = TOKENS_MAX.div_ceil(PAGE);
    assert!(START + 4 * TOKENS_MAX + RECORD * pages + HASH <= PAGES_AT as usize);
};

/// Why a kept conversation is of no use.
#[derive(Debug, PartialEq)]
pub enum KeptFault {
    Store(StoreError),
    /// These bytes are not what was written.
    Damaged,
}

/// What a file says that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Of the cache that the pages come from.
    pub identity: Digest,
    /// Length of the place of each page.
    pub place: u32,
    pub ids: Vec<u32>,
    /// One for each 32 ids, the last one for what is left.
    pub pages: Vec<PageRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRecord {
    pub len: u32,
    pub sha256: Digest,
}

impl From<StoreError> for KeptFault {
    fn from(error: StoreError) -> KeptFault {
        KeptFault::Store(error)
    }
}

/// What the file of a conversation is called after.
pub fn key(conversation: u64) -> Root {
    Root(sha256(&conversation.to_le_bytes()))
}

impl Head {
    /// Nothing yet.
    pub fn new(identity: Digest, place: u32) -> Head {
        Head {
            identity,
            place,
            ids: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Reads a head; `None` if there was never one.
    pub fn read<D: Disk>(disk: &D) -> Result<Option<Head>, KeptFault> {
        if disk.len()? == 0 {
            return Ok(None);
        }
        let mut start = [0; START];
        disk.read_at(0, &mut start)?;
        let count = word(&start[44..]) as usize;
        let pages = count.div_ceil(PAGE);
        if start[..8] != MAGIC || count > TOKENS_MAX {
            return Err(KeptFault::Damaged);
        }
        let mut bytes = vec![0; START + 4 * count + RECORD * pages + HASH];
        disk.read_at(0, &mut bytes)?;
        let (said, hash) = bytes.split_at(bytes.len() - HASH);
        if sha256(said).0 != hash {
            return Err(KeptFault::Damaged);
        }
        let (ids, records) = said[START..].split_at(4 * count);
        let head = Head {
            identity: digest(&said[8..]),
            place: word(&said[40..]),
            ids: ids.chunks_exact(4).map(word).collect(),
            pages: records
                .chunks_exact(RECORD)
                .map(|record| PageRecord {
                    len: word(record),
                    sha256: digest(&record[4..]),
                })
                .collect(),
        };
        let fits = |page: &PageRecord| page.len <= head.place;
        match head.place <= PAGE_BYTES_MAX && head.pages.iter().all(fits) {
            true => Ok(Some(head)),
            false => Err(KeptFault::Damaged),
        }
    }

    /// Writes this head, after everything that it names.
    pub fn write<D: Disk>(&self, disk: &mut D) -> Result<(), StoreError> {
        disk.flush()?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.identity.0);
        bytes.extend(self.place.to_le_bytes());
        bytes.extend((self.ids.len() as u32).to_le_bytes());
        bytes.extend(self.ids.iter().flat_map(|id| id.to_le_bytes()));
        for page in &self.pages {
            bytes.extend(page.len.to_le_bytes());
            bytes.extend(page.sha256.0);
        }
        let hash = sha256(&bytes);
        bytes.extend(hash.0);
        disk.write_at(0, &bytes)?;
        disk.flush()
    }

    /// Only the first pages, which are whole, and their ids.
    pub fn cut(&mut self, pages: usize) {
        self.pages.truncate(pages);
        self.ids.truncate(pages * PAGE);
    }

    /// Puts the next page behind the others. `ids` are those on it.
    pub fn push<D: Disk>(
        &mut self,
        disk: &mut D,
        ids: &[u32],
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        disk.write_at(self.at(self.pages.len()), bytes)?;
        self.pages.push(PageRecord {
            len: bytes.len() as u32,
            sha256: sha256(bytes),
        });
        self.ids.extend(ids);
        Ok(())
    }

    /// The bytes of a page, if they are those that were written.
    pub fn page<D: Disk>(&self, disk: &D, page: usize) -> Result<Vec<u8>, KeptFault> {
        let record = self.pages.get(page).ok_or(KeptFault::Damaged)?;
        let mut bytes = vec![0; record.len as usize];
        disk.read_at(self.at(page), &mut bytes)?;
        match sha256(&bytes) == record.sha256 {
            true => Ok(bytes),
            false => Err(KeptFault::Damaged),
        }
    }

    /// Bytes of the whole file.
    pub fn file_len(&self) -> u64 {
        self.at(self.pages.len())
    }

    /// Bytes of a file with so many ids.
    pub fn file_len_of(&self, ids: usize) -> u64 {
        self.at(ids.div_ceil(PAGE))
    }

    fn at(&self, page: usize) -> u64 {
        PAGES_AT + page as u64 * u64::from(self.place)
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |word| u32::from_le_bytes(*word))
}

fn digest(bytes: &[u8]) -> Digest {
    Digest(bytes.first_chunk().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use store::{Catalog, MemoryCatalog, MemoryDisk};

    use super::*;

    fn file() -> MemoryDisk {
        MemoryCatalog::default().create("kept").unwrap()
    }

    fn written(disk: &mut MemoryDisk) -> Head {
        let mut head = Head::new(Digest([7; 32]), 1000);
        let ids: Vec<u32> = (0..40).collect();
        head.push(disk, &ids[..32], &[1; 1000]).unwrap();
        head.push(disk, &ids[32..], &[2; 700]).unwrap();
        head.write(disk).unwrap();
        head
    }

    #[test]
    fn what_was_written_is_read() {
        let mut disk = file();
        assert_eq!(Head::read(&disk), Ok(None));
        let head = written(&mut disk);
        assert_eq!(Head::read(&disk), Ok(Some(head.clone())));
        assert_eq!(head.page(&disk, 0), Ok(vec![1; 1000]));
        assert_eq!(head.page(&disk, 1), Ok(vec![2; 700]));
        assert_eq!(head.page(&disk, 2), Err(KeptFault::Damaged));
        assert_eq!(head.file_len(), PAGES_AT + 2000);
    }

    /// Every bit of the head, and one of every byte of a page.
    #[test]
    fn no_flipped_bit_is_believed() {
        let mut disk = file();
        let head = written(&mut disk);
        let len = START + 4 * 40 + RECORD * 2 + HASH;
        for bit in 0..8 * len {
            flip(&mut disk, bit as u64 / 8, 1 << (bit % 8));
            // A count that is greater may ask for bytes that the file does not have.
            assert!(Head::read(&disk).is_err(), "bit {bit}");
            flip(&mut disk, bit as u64 / 8, 1 << (bit % 8));
        }
        for byte in 0..1000 {
            flip(&mut disk, PAGES_AT + byte, 1 << (byte % 8));
            assert_eq!(head.page(&disk, 0), Err(KeptFault::Damaged));
            flip(&mut disk, PAGES_AT + byte, 1 << (byte % 8));
        }
        assert_eq!(Head::read(&disk), Ok(Some(head)));
    }

    fn flip(disk: &mut MemoryDisk, at: u64, bit: u8) {
        let mut byte = [0];
        disk.read_at(at, &mut byte).unwrap();
        disk.write_at(at, &[byte[0] ^ bit]).unwrap();
    }

    #[test]
    fn a_short_file_is_damaged_or_cannot_be_read() {
        let mut disk = file();
        written(&mut disk);
        for len in [1, 47, 48, 300, PAGES_AT + 999] {
            disk.set_len(len).unwrap();
            let head = Head::read(&disk);
            let page = match head {
                Ok(Some(head)) => head.page(&disk, 0).map(|_| ()),
                Ok(None) => Ok(()),
                Err(fault) => Err(fault),
            };
            assert!(page.is_err(), "{len}");
            disk.set_len(PAGES_AT + 2000).unwrap();
            written(&mut disk);
        }
    }
}

//! Which pieces of an unfinished import are here, written so that a crash cannot spoil it.
//!
//! A `.have` file is two slots of equal size. Records go to them in turn, so the one that a crash
//! tears is never the newest whole one.
//!
//! ```text
//! 8   magic "slmhave1"
//! 8   sequence, LE: the greater one is newer
//! 32  root of the model
//! 8   length of the model in bytes, LE
//! n   bitfield, ceil(pieces / 8) bytes (`Bitfield`)
//! 32  SHA-256 of all the above
//!     zeros up to a multiple of 4096
//! ```

use format::{Digest, ModelId, PIECE_BYTES, PieceIndex, Root, sha256};

use crate::{Bitfield, Disk, Progress, StoreError};

const MAGIC: &[u8; 8] = b"slmhave1";
const HEAD_BYTES: usize = 8 + 8 + 32 + 8;
const DIGEST_BYTES: usize = 32;
/// Slots lie in sectors of their own on every medium we know.
const SLOT_ALIGN: usize = 4096;
/// A bitfield for 64 TiB. Refuses to read what no import of ours could have written.
const SLOT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// One record: what was verified and flushed before it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaveRecord {
    pub id: ModelId,
    pub sequence: u64,
    pub have: Bitfield,
}

/// The open `.have` file of a running import.
pub(crate) struct Journal<D> {
    id: ModelId,
    disk: D,
    /// Of the newest record that is safely there; 0 if none is.
    sequence: u64,
}

/// What a journal knew when it was opened.
pub(crate) struct Remembered {
    pub newest: Option<Bitfield>,
    /// The record just before: its pieces were flushed once more since.
    pub older: Option<Bitfield>,
}

/// Length of a `.have` file in bytes.
pub fn have_file_len(id: ModelId) -> u64 {
    2 * slot_len(id.pieces()) as u64
}

/// The newest whole record in the bytes of `<root>.have`, or `None` if there is none.
pub fn read_have(root: Root, bytes: &[u8]) -> Option<HaveRecord> {
    let [newest, _] = read_slots(root, bytes);
    newest
}

impl HaveRecord {
    pub fn progress(&self) -> Progress {
        Progress::of(self.id, &self.have)
    }
}

impl<D: Disk> Journal<D> {
    pub fn open(id: ModelId, mut disk: D) -> Result<(Journal<D>, Remembered), StoreError> {
        let len = have_file_len(id);
        if disk.len()? != len {
            // Reserved now, so that a full disk cannot refuse a record later. What a crash left of
            // an older reservation may still hold a record.
            disk.set_len(len)?;
        }
        let mut bytes = vec![0; len as usize];
        disk.read_at(0, &mut bytes)?;
        let slots = read_slots(id.root, &bytes);
        let ours = |slot: Option<HaveRecord>| slot.filter(|record| record.id == id);
        let [newest, older] = slots.map(ours);
        let sequence = newest.as_ref().map_or(0, |record| record.sequence);
        // If the record just before the newest was lost, this one may name pieces that were found
        // wrong since.
        let older = older.filter(|record| record.sequence + 1 == sequence);
        let remembered = Remembered {
            newest: newest.map(|record| record.have),
            older: older.map(|record| record.have),
        };
        let journal = Journal { id, disk, sequence };
        Ok((journal, remembered))
    }

    /// Writes and flushes one record. The pieces must have been flushed before.
    pub fn record(&mut self, have: &Bitfield) -> Result<(), StoreError> {
        let record = HaveRecord {
            id: self.id,
            sequence: self.sequence + 1,
            have: have.clone(),
        };
        let slot = write_slot(&record);
        let at = (record.sequence % 2) * slot.len() as u64;
        self.disk.write_at(at, &slot)?;
        self.disk.flush()?;
        self.sequence = record.sequence;
        Ok(())
    }

    pub fn close(&mut self) -> Result<(), StoreError> {
        self.disk.close()
    }
}

fn slot_len(pieces: u32) -> usize {
    let bytes = HEAD_BYTES + pieces.div_ceil(8) as usize + DIGEST_BYTES;
    bytes.next_multiple_of(SLOT_ALIGN)
}

fn write_slot(record: &HaveRecord) -> Vec<u8> {
    let mut slot = Vec::with_capacity(slot_len(record.id.pieces()));
    slot.extend_from_slice(MAGIC);
    slot.extend_from_slice(&record.sequence.to_le_bytes());
    slot.extend_from_slice(&record.id.root.0.0);
    slot.extend_from_slice(&record.id.length.to_le_bytes());
    slot.extend_from_slice(record.have.as_bytes());
    let digest = sha256(&slot);
    slot.extend_from_slice(&digest.0);
    slot.resize(slot_len(record.id.pieces()), 0);
    slot
}

/// Newest first.
fn read_slots(root: Root, bytes: &[u8]) -> [Option<HaveRecord>; 2] {
    let (a, b) = bytes.split_at(bytes.len() / 2);
    if a.len() != b.len() || a.len() as u64 > SLOT_BYTES_MAX {
        return [None, None];
    }
    let mut slots = [read_slot(root, a), read_slot(root, b)];
    slots.sort_by_key(|slot| std::cmp::Reverse(slot.as_ref().map(|record| record.sequence)));
    slots
}

fn read_slot(root: Root, slot: &[u8]) -> Option<HaveRecord> {
    let (magic, rest) = slot.split_first_chunk::<8>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (named, rest) = rest.split_first_chunk::<32>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let sequence = u64::from_le_bytes(*sequence);
    let length = u64::from_le_bytes(*length);
    // The next record needs a greater number.
    let readable = magic == MAGIC && Root(Digest(*named)) == root && sequence < u64::MAX;
    let pieces = u32::try_from(length.div_ceil(u64::from(PIECE_BYTES))).ok()?;
    if !readable || slot_len(pieces) != slot.len() {
        return None;
    }
    let (bits, rest) = rest.split_at_checked(pieces.div_ceil(8) as usize)?;
    let (digest, _) = rest.split_first_chunk::<DIGEST_BYTES>()?;
    let hashed = &slot[..HEAD_BYTES + bits.len()];
    if sha256(hashed).0 != *digest {
        return None;
    }
    Some(HaveRecord {
        id: ModelId { root, length },
        sequence,
        have: Bitfield::from_bytes(pieces, bits)?,
    })
}

/// Pieces of `newest` that `older` does not vouch for.
pub(crate) fn doubtful(remembered: &Remembered) -> Vec<PieceIndex> {
    let Some(newest) = &remembered.newest else {
        return Vec::new();
    };
    let older = remembered.older.as_ref();
    let vouched = |piece: &PieceIndex| older.is_some_and(|older| older.contains(*piece));
    newest.iter().filter(|piece| !vouched(piece)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Catalog, MemoryCatalog};

    fn id(length: u64) -> ModelId {
        ModelId {
            root: Root(Digest([7; 32])),
            length,
        }
    }

    /// Three records; returns the file and the last record's bitfield.
    fn three_records(id: ModelId) -> (Vec<u8>, Bitfield) {
        let files = MemoryCatalog::default();
        let disk = files.create("have").unwrap();
        let (mut journal, remembered) = Journal::open(id, disk).unwrap();
        assert!(remembered.newest.is_none());
        let mut have = Bitfield::empty(id.pieces());
        for piece in 0..3 {
            have.insert(PieceIndex(piece));
            journal.record(&have).unwrap();
        }
        (files.get("have").unwrap(), have)
    }

    #[test]
    fn the_newest_record_counts_and_the_one_before_vouches() {
        let id = id(5 << 20);
        let (bytes, have) = three_records(id);
        assert_eq!(bytes.len() as u64, have_file_len(id));
        let record = read_have(id.root, &bytes).unwrap();
        assert_eq!((record.sequence, &record.have), (3, &have));

        let files = MemoryCatalog::default();
        files.put("have", bytes);
        let (_, remembered) = Journal::open(id, files.open("have").unwrap()).unwrap();
        assert_eq!(doubtful(&remembered), [PieceIndex(2)]);
    }

    #[test]
    fn a_record_of_another_model_is_none() {
        let (bytes, _) = three_records(id(5 << 20));
        assert_eq!(read_have(Root(Digest([8; 32])), &bytes), None);
        let files = MemoryCatalog::default();
        files.put("have", bytes);
        // Same root, other length: the root alone does not say how long a file is.
        let other = id((5 << 20) - 1);
        let (_, remembered) = Journal::open(other, files.open("have").unwrap()).unwrap();
        assert!(remembered.newest.is_none());
    }

    /// Two records lost, the one before them still there: it names pieces that were dropped since.
    #[test]
    fn only_the_record_just_before_vouches() {
        let id = id(5 << 20);
        let (bytes, have) = three_records(id);
        let (older, newest) = bytes.split_at(bytes.len() / 2);
        let mut late = read_slot(id.root, newest).unwrap();
        late.sequence += 2;
        let files = MemoryCatalog::default();
        files.put("have", [older, &write_slot(&late)].concat());
        let (_, remembered) = Journal::open(id, files.open("have").unwrap()).unwrap();
        assert_eq!(doubtful(&remembered).len(), have.count() as usize);
    }

    proptest! {
        /// One torn slot never costs more than that slot's record.
        #[test]
        fn damage_in_one_slot_leaves_the_other(at in 0usize..89, flip in 1u8..=255) {
            let id = id(5 << 20);
            let (bytes, _) = three_records(id);
            let slot = bytes.len() / 2;
            // Records 1 and 3 lie in the second slot, record 2 in the first.
            for (damaged, left) in [(0, 3), (slot, 2)] {
                let mut bytes = bytes.clone();
                bytes[damaged + at] ^= flip;
                let record = read_have(id.root, &bytes);
                prop_assert_eq!(record.map(|record| record.sequence), Some(left));
            }
        }

        /// Any bytes at all are answered, whatever lengths they claim.
        #[test]
        fn hostile_files_are_none(
            length in any::<u64>(),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let root = Root(Digest([7; 32]));
            let mut slot = MAGIC.to_vec();
            slot.extend_from_slice(&1u64.to_le_bytes());
            slot.extend_from_slice(&root.0.0);
            slot.extend_from_slice(&length.to_le_bytes());
            slot.extend_from_slice(&bytes);
            prop_assert_eq!(read_have(root, &slot), None);
            slot.resize(8192, 0);
            prop_assert_eq!(read_have(root, &slot), None);
        }
    }
}

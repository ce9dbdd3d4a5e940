//! Files that nobody vouches for, over damage and changes.

#![allow(clippy::unwrap_used)]

use format::{PIECE_BYTES, PieceIndex};
use store::{About, Catalog, MemoryCatalog, MemoryDisk, RawFile, raw_key};

const PIECE: u64 = PIECE_BYTES as u64;
const LENGTH: u64 = 5 * PIECE + 1_000;

fn about() -> About {
    About {
        url: "https://host/a.gguf".into(),
        length: LENGTH,
        validator: "\"one\"\n".into(),
    }
}

fn piece(index: u32) -> Vec<u8> {
    let len = (LENGTH - u64::from(index) * PIECE).min(PIECE);
    vec![index as u8 + 1; len as usize]
}

fn open(catalog: &MemoryCatalog) -> (MemoryDisk, MemoryDisk) {
    let file = |name: &str| {
        catalog
            .open(name)
            .or_else(|_| catalog.create(name))
            .unwrap()
    };
    (file("a.raw"), file("a.got"))
}

fn started(catalog: &MemoryCatalog) -> RawFile<MemoryDisk> {
    let (part, record) = open(catalog);
    RawFile::start(about(), part, record).unwrap()
}

fn resumed(catalog: &MemoryCatalog) -> Option<RawFile<MemoryDisk>> {
    let (part, record) = open(catalog);
    RawFile::resume(part, record).unwrap()
}

#[test]
fn what_was_kept_is_there_again_and_what_was_not_is_not() {
    let catalog = MemoryCatalog::default();
    assert!(resumed(&catalog).is_none(), "empty files hold nothing");
    let mut raw = started(&catalog);
    for index in [0, 5, 3] {
        raw.put(0, PieceIndex(index), &piece(index)).unwrap();
    }
    raw.keep(0).unwrap();
    raw.put(0, PieceIndex(1), &piece(1)).unwrap();
    raw.close().unwrap();
    let raw = resumed(&catalog).unwrap();
    assert_eq!(raw.about(), &about());
    let have: Vec<u32> = raw.have().iter().map(|piece| piece.0).collect();
    assert_eq!(have, [0, 3, 5]);
    assert_eq!(raw.bytes(), 2 * PIECE + 1_000);
    assert!(raw.covers(3 * PIECE + 5, 100) && !raw.covers(3 * PIECE + 5, PIECE_BYTES));
    assert_eq!(raw.read(3 * PIECE + 5, 2).unwrap(), [4, 4]);
}

#[test]
fn a_damaged_piece_is_wanted_again_and_a_torn_record_is_passed_over() {
    let catalog = MemoryCatalog::default();
    let mut raw = started(&catalog);
    for index in 0..4 {
        raw.put(0, PieceIndex(index), &piece(index)).unwrap();
        raw.keep(0).unwrap();
    }
    raw.close().unwrap();
    drop(raw);
    let (mut part, mut record) = open(&catalog);
    store::Disk::write_at(&mut part, PIECE + 9, &[0]).unwrap();
    // The newest record is number 4, in the first slot.
    store::Disk::write_at(&mut record, 60, &[0xff; 8]).unwrap();
    drop((part, record));
    let raw = resumed(&catalog).unwrap();
    let have: Vec<u32> = raw.have().iter().map(|piece| piece.0).collect();
    assert_eq!(have, [0, 2]);
}

#[test]
fn without_a_validator_only_a_whole_file_is_kept() {
    for pieces in [5, 6] {
        let catalog = MemoryCatalog::default();
        let (part, record) = open(&catalog);
        let about = About {
            validator: String::new(),
            ..about()
        };
        let mut raw = RawFile::start(about, part, record).unwrap();
        for index in 0..pieces {
            raw.put(0, PieceIndex(index), &piece(index)).unwrap();
        }
        raw.keep(0).unwrap();
        raw.close().unwrap();
        drop(raw);
        assert_eq!(resumed(&catalog).is_some(), pieces == 6);
    }
}

#[test]
fn a_changed_file_is_forgotten() {
    let catalog = MemoryCatalog::default();
    let mut raw = started(&catalog);
    raw.put(0, PieceIndex(0), &piece(0)).unwrap();
    raw.keep(0).unwrap();
    raw.forget().unwrap();
    raw.close().unwrap();
    drop(raw);
    assert!(resumed(&catalog).is_none());
    assert_ne!(raw_key("https://a/b"), raw_key("https://a/c"));
}

/// Its length is not known before its end, and then it is as good as one whose length was.
#[test]
fn a_file_of_unknown_length_grows_to_its_end() {
    let catalog = MemoryCatalog::default();
    let (part, record) = open(&catalog);
    let mut raw = RawFile::grow("https://host/a.gguf", part, record).unwrap();
    for index in 0..6 {
        assert!(!raw.covers(u64::from(index) * PIECE, 1));
        raw.append(&piece(index)).unwrap();
        assert!(raw.covers(u64::from(index) * PIECE, 1));
    }
    assert_eq!((raw.bytes(), raw.is_growing()), (LENGTH, true));
    // Nobody can go on with what has no end.
    raw.keep(9_000).unwrap();
    raw.close().unwrap();
    assert!(resumed(&catalog).is_none());

    let (part, record) = open(&catalog);
    let mut raw = RawFile::grow("https://host/a.gguf", part, record).unwrap();
    (0..6).for_each(|index| raw.append(&piece(index)).unwrap());
    raw.end(0, "\"one\"\n").unwrap();
    assert!(raw.have().is_full());
    raw.close().unwrap();
    let raw = resumed(&catalog).unwrap();
    assert_eq!((raw.about(), raw.bytes()), (&about(), LENGTH));
}

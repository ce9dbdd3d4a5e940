//! How models arrive. Users' situations are named as on the users' page (D1 to D19).
#![allow(clippy::unwrap_used)]

mod model;

use format::{PIECE_BYTES, PieceIndex, VerifiedPiece};
use model::{PIECE, feed_all, layer_of, piece_of, publish, source, start};
use store::faulty::{Faults, FaultyCatalog};
use store::{
    CHECKPOINT_MS, Catalog, Fed, Found, Import, Library, MemoryCatalog, MemoryDisk, StoreError,
    names,
};

/// First piece, count, first byte and length of the next request.
fn asked(import: &mut Import<MemoryDisk>, max_bytes: u64) -> Option<(u32, u32, u64, u64)> {
    let run = import.next_wanted(max_bytes)?;
    Some((run.first.0, run.count, run.at, run.len))
}

#[test]
fn a_model_arrives_in_any_order_and_is_the_source() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    assert_eq!(import.resumed().found, Found::Nothing);
    // The room is taken before the first byte.
    let part = files.get(&names::part(layer.id.root)).unwrap();
    assert_eq!(part.len(), bytes.len());
    feed_all(&mut import, &bytes, [3, 0, 5, 1, 4].into_iter());
    assert!(!import.is_complete());
    feed_all(&mut import, &bytes, 2..3);
    assert!(import.is_complete());
    let layer = publish(&files, import);
    assert_eq!(files.get(&names::done(layer.id.root)).unwrap(), bytes);
    assert_eq!(files.list().unwrap().len(), 1);
}

#[test]
fn wanted_pieces_come_in_runs_and_only_once() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let mut import = start(&MemoryCatalog::default(), &layer).unwrap();
    feed_all(&mut import, &bytes, 2..3);
    let piece = u64::from(PIECE_BYTES);
    // A run stops at what is here already, at the limit, and at the end; one piece is always given.
    assert_eq!(asked(&mut import, u64::MAX), Some((0, 2, 0, 2 * piece)));
    assert_eq!(asked(&mut import, 0), Some((3, 1, 3 * piece, piece)));
    let last = Some((4, 2, 4 * piece, piece + 12_345));
    assert_eq!(asked(&mut import, piece + 12_345), last);
    assert_eq!(asked(&mut import, u64::MAX), None);
    // A request that failed half-way: what came is not asked for again.
    feed_all(&mut import, &bytes, 4..5);
    import.release(store::PieceRun {
        first: PieceIndex(4),
        count: 2,
        at: 0,
        len: 0,
    });
    assert_eq!(asked(&mut import, piece), Some((5, 1, 5 * piece, 12_345)));
}

/// D2, D5, D7, D8: probe answers, tails of another file, text and pages never enter the store.
#[test]
fn only_bytes_with_the_right_hash_are_written() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, 1..2);
    let before = files.get(&names::part(layer.id.root)).unwrap();

    let mut other = piece_of(&bytes, 0).to_vec();
    other[PIECE - 1] ^= 1;
    let mut page = b"<!DOCTYPE html>".to_vec();
    page.resize(PIECE, b' ');
    for wrong in [&other, &page, &vec![0; PIECE], piece_of(&bytes, 2)] {
        assert_eq!(asked(&mut import, 1), Some((0, 1, 0, PIECE as u64)));
        match import.feed(9_999_999, PieceIndex(0), wrong) {
            Err(StoreError::DigestMismatch { piece, want, got }) => {
                assert_eq!((piece, want), (PieceIndex(0), layer.hashes()[0]));
                assert_ne!(want, got);
            }
            other => panic!("{other:?}"),
        }
    }
    for (piece, wrong, want) in [
        (0, &b"{"[..], PIECE as u64),
        (0, &[], PIECE as u64),
        (5, piece_of(&bytes, 0), 12_345),
    ] {
        let got = wrong.len() as u64;
        let piece = PieceIndex(piece);
        let error = StoreError::PieceLength { piece, want, got };
        assert_eq!(import.feed(0, piece, wrong), Err(error));
    }
    let piece = PieceIndex(6);
    let error = StoreError::NoSuchPiece { piece, pieces: 6 };
    assert_eq!(import.feed(0, piece, piece_of(&bytes, 0)), Err(error));

    assert_eq!(files.get(&names::part(layer.id.root)).unwrap(), before);
    assert_eq!(import.progress().pieces, 1);
    feed_all(&mut import, &bytes, [0, 2, 3, 4, 5].into_iter());
    publish(&files, import);
    assert_eq!(files.get(&names::done(layer.id.root)).unwrap(), bytes);
}

/// Peers' pieces were hashed when they came; what they were hashed against counts.
#[test]
fn a_verified_piece_is_taken_by_its_own_model_alone() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    let mut other = bytes.clone();
    other[0] ^= 1;
    let of_another = VerifiedPiece::check(
        &layer_of(&other),
        PieceIndex(1),
        piece_of(&bytes, 1).to_vec(),
    );
    let refused = import.feed_whole(0, &of_another.unwrap());
    assert!(
        matches!(refused, Err(StoreError::NoSuchPiece { .. })),
        "{refused:?}"
    );
    assert_eq!(import.have().count(), 0);

    // The same bytes under their own model.
    let wrong = piece_of(&other, 0).to_vec();
    assert_eq!(VerifiedPiece::check(&layer, PieceIndex(0), wrong), None);
    for piece in 0..layer.id.pieces() {
        let whole = piece_of(&bytes, piece).to_vec();
        let whole = VerifiedPiece::check(&layer, PieceIndex(piece), whole).unwrap();
        assert_eq!(import.feed_whole(0, &whole), Ok(Fed::Stored));
        assert_eq!(import.feed_whole(0, &whole), Ok(Fed::AlreadyHere));
    }
    publish(&files, import);
    assert_eq!(files.get(&names::done(layer.id.root)).unwrap(), bytes);
}

#[test]
fn a_piece_that_comes_twice_is_written_once() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = FaultyCatalog::new(0, Faults::default());
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, 0..1);
    let changes = files.changes();
    // Even other bytes: nobody looks at them.
    let again = import.feed(0, PieceIndex(0), b"whatever");
    assert_eq!(again, Ok(Fed::AlreadyHere));
    assert_eq!(files.changes(), changes);
}

/// A tab that is killed says nothing: the record of the last two seconds is what counts.
#[test]
fn records_follow_the_clock_and_a_tick_is_enough() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    let have = |files: &MemoryCatalog| {
        let bytes = files.get(&names::have(layer.id.root)).unwrap();
        store::read_have(layer.id.root, &bytes).map(|record| record.have.count())
    };
    let mut import = start(&files, &layer).unwrap();
    import
        .feed(1000, PieceIndex(0), piece_of(&bytes, 0))
        .unwrap();
    assert_eq!(have(&files), None);
    import.tick(1000 + CHECKPOINT_MS - 1).unwrap();
    assert_eq!(have(&files), None);
    import.tick(1000 + CHECKPOINT_MS).unwrap();
    assert_eq!(have(&files), Some(1));
    // A clock that goes back delays a record and breaks nothing.
    import.feed(5, PieceIndex(1), piece_of(&bytes, 1)).unwrap();
    assert_eq!(have(&files), Some(1));
    let last = 1000 + 2 * CHECKPOINT_MS;
    import
        .feed(last, PieceIndex(2), piece_of(&bytes, 2))
        .unwrap();
    assert_eq!(have(&files), Some(3));
}

#[test]
fn records_follow_the_amount_of_data() {
    let bytes = vec![0x5a; 17 * PIECE];
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    let have = || files.get(&names::have(layer.id.root)).unwrap();
    feed_all(&mut import, &bytes, 0..15);
    assert_eq!(store::read_have(layer.id.root, &have()), None);
    feed_all(&mut import, &bytes, 15..16);
    let record = store::read_have(layer.id.root, &have()).unwrap();
    assert_eq!(record.have.count(), 16);
}

/// D6, D9: a second loader never sees a half-written file under the model's name.
#[test]
fn the_name_of_a_model_appears_only_when_it_is_whole() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let root = layer.id.root;
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    for piece in 0..6 {
        let library = Library::derive(&files.list().unwrap());
        assert_eq!((library.complete.len(), library.partial.len()), (0, 1));
        let busy = StoreError::Busy {
            name: names::part(root),
        };
        assert_eq!(start(&files, &layer).err(), Some(busy));
        feed_all(&mut import, &bytes, piece..piece + 1);
    }
    publish(&files, import);
    let library = Library::derive(&files.list().unwrap());
    assert_eq!(library.complete[0].id, layer.id);
}

//! Imports that were interrupted or failed, and go on. Users' situations: D1, D13, D19.
#![allow(clippy::unwrap_used)]

mod model;

use format::{PIECE_BYTES, PieceIndex};
use model::{PIECE, assert_right, feed_all, layer_of, piece_of, publish, source, start};
use store::faulty::{Faults, FaultyCatalog};
use store::{
    CHECKPOINT_MS, Catalog, Found, Library, MemoryCatalog, Progress, StoreError, have_file_len,
    names,
};

/// D1: the tab is closed at 37 %; the next start knows what is there and asks for the rest only.
/// D19: what is shown while it is interrupted comes from the directory.
#[test]
fn an_interrupted_import_goes_on_at_the_first_missing_piece() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let root = layer.id.root;
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, 0..2);
    let progress = import.suspend(0).unwrap();
    let expected = Progress {
        bytes: 2 * PIECE as u64,
        bytes_total: bytes.len() as u64,
        pieces: 2,
        pieces_total: 6,
    };
    assert_eq!(progress, expected);

    let library = Library::derive(&files.list().unwrap());
    let partial = library.partial[0];
    let record = partial.progress(&files.get(&names::have(root)).unwrap());
    let record = record.unwrap();
    assert_eq!((record.id, record.progress()), (layer.id, expected));

    let mut import = start(&files, &layer).unwrap();
    assert_eq!(import.progress(), expected);
    assert_eq!(import.next_wanted(1).map(|run| run.first.0), Some(2));
    feed_all(&mut import, &bytes, 2..6);
    let layer = publish(&files, import);
    assert_eq!(layer_of(&files.get(&names::done(root)).unwrap()), layer);
}

/// After a failed flush the system has forgotten the data, and a second flush would not say so.
#[test]
fn a_failed_flush_takes_back_what_it_was_for() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let failed = StoreError::Closed;
    let faults = Faults {
        // Flushes: data, record, data.
        fail_flush: Some((2, failed.clone())),
        ..Faults::default()
    };
    let files = FaultyCatalog::new(5, faults);
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, 0..2);
    import.tick(CHECKPOINT_MS).unwrap();
    import
        .feed(CHECKPOINT_MS, PieceIndex(2), piece_of(&bytes, 2))
        .unwrap();
    assert_eq!(import.tick(2 * CHECKPOINT_MS), Err(failed));
    assert_eq!(import.progress().pieces, 2);
    drop(import);
    let files = files.crash(Faults::default());
    let import = start(&files, &layer).unwrap();
    assert_eq!(import.progress().pieces, 2);
}

#[test]
fn storage_that_forgot_is_noticed_at_the_start() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = FaultyCatalog::new(5, Faults::default());
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, 0..4);
    import.suspend(0).unwrap();
    files.flip_bit(&names::part(layer.id.root), 2 * PIECE as u64 + 77);

    let mut import = start(&files, &layer).unwrap();
    let resumed = import.resumed();
    assert_eq!((resumed.rehashed, resumed.dropped), (4, 1));
    assert_eq!(import.next_wanted(1).map(|run| run.first.0), Some(2));
    // The corrected record stands at once, so no later record can vouch for the lost piece.
    drop(import);
    let import = start(&files, &layer).unwrap();
    assert_eq!(import.resumed().dropped, 0);
    assert!(!import.have().contains(PieceIndex(2)));
}

/// The record is lost, the part file is not: nothing is believed, everything can be saved.
#[test]
fn a_part_file_without_a_record_is_saved_piece_by_piece() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, [0, 2, 5].into_iter());
    import.suspend(0).unwrap();
    files.put(&names::have(layer.id.root), b"not a record".to_vec());

    let mut import = start(&files, &layer).unwrap();
    assert_eq!(import.resumed().found, Found::PartOnly);
    assert_eq!(import.progress().pieces, 0);
    let saved: Vec<bool> = (0..6)
        .map(|piece| import.recheck(0, PieceIndex(piece)).unwrap())
        .collect();
    assert_eq!(saved, [true, false, true, false, false, true]);
    import.suspend(0).unwrap();
    assert_eq!(start(&files, &layer).unwrap().progress().pieces, 3);
}

#[test]
fn a_part_file_of_another_length_is_not_trusted() {
    let bytes = source();
    let layer = layer_of(&bytes);
    for len in [PIECE + 5, bytes.len() + 1] {
        let files = MemoryCatalog::default();
        let mut import = start(&files, &layer).unwrap();
        feed_all(&mut import, &bytes, 0..2);
        import.tick(0).unwrap();
        import.tick(CHECKPOINT_MS).unwrap();
        feed_all(&mut import, &bytes, 2..4);
        import.suspend(CHECKPOINT_MS).unwrap();
        let name = names::part(layer.id.root);
        let mut part = files.get(&name).unwrap();
        part.resize(len, 0);
        files.put(&name, part);

        let import = start(&files, &layer).unwrap();
        // All four are hashed again, also those that an older record vouches for.
        assert_eq!(import.resumed().rehashed, 4);
        let right = if len > bytes.len() { 4 } else { 1 };
        assert_eq!(import.progress().pieces, right, "{len}");
        assert_eq!(files.get(&name).unwrap().len(), bytes.len());
    }
}

#[test]
fn an_unfinished_import_cannot_be_finished() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, 0..5);
    let error = StoreError::Incomplete {
        want: bytes.len() as u64,
        got: 5 * PIECE as u64,
    };
    assert_eq!(import.finish(0), Err(error));
    assert_eq!(start(&files, &layer).unwrap().progress().pieces, 5);
}

/// D13: a disk that fills up half-way ends the import with its own error; the rest is kept.
#[test]
fn a_full_disk_keeps_what_was_verified() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let quota = StoreError::Quota {
        needed: u64::from(PIECE_BYTES),
    };
    for torn in [false, true] {
        let chosen = Some((3, quota.clone()));
        let faults = match torn {
            true => Faults {
                tear_write: chosen,
                ..Faults::default()
            },
            false => Faults {
                fail_write: chosen,
                ..Faults::default()
            },
        };
        let files = FaultyCatalog::new(11, faults);
        let mut import = start(&files, &layer).unwrap();
        feed_all(&mut import, &bytes, 0..3);
        let fed = import.feed(0, PieceIndex(3), piece_of(&bytes, 3));
        assert_eq!(fed, Err(quota.clone()));
        // It is over: no more requests, and every call says why.
        assert_eq!(import.next_wanted(1), None);
        let fed = import.feed(0, PieceIndex(4), piece_of(&bytes, 4));
        assert_eq!(fed, Err(quota.clone()));
        assert_eq!(import.tick(0), Err(quota.clone()));
        drop(import);

        let mut import = start(&files, &layer).unwrap();
        assert_eq!(import.progress().pieces, 3);
        assert_eq!(import.next_wanted(1).map(|run| run.first.0), Some(3));
        feed_all(&mut import, &bytes, 3..6);
        publish(&files, import);
        let disk = files.open(&names::done(layer.id.root)).unwrap();
        assert_right(layer.clone(), disk, &bytes);
    }
}

/// D13: where the system counts reserved room, the refusal comes before the first byte.
#[test]
fn too_little_room_is_refused_at_the_start() {
    let layer = layer_of(&source());
    let quota = layer.id.length + have_file_len(layer.id) - 1;
    let files = FaultyCatalog::new(
        0,
        Faults {
            quota: Some(quota),
            ..Faults::default()
        },
    );
    let needed = layer.id.length;
    let refused = start(&files, &layer).err();
    assert_eq!(refused, Some(StoreError::Quota { needed }));
    // Nothing stays open: the user frees some room and tries again.
    files.set_faults(Faults::default());
    assert!(start(&files, &layer).is_ok());
}

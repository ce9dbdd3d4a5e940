//! Conversions that are stored, and stored models that are read back.
#![allow(clippy::unwrap_used)]

mod model;

use format::{PIECE_BYTES, PieceIndex};
use model::{PIECE, assert_right, feed_all, layer_of, publish, source, start};
use store::faulty::{Faults, FaultyCatalog};
use store::{
    Catalog, ChunkStore, Corruption, LayerRebuild, MemoryCatalog, SequentialImport, StoreError,
    names,
};

#[test]
fn a_conversion_learns_its_root_at_the_end() {
    let bytes = source();
    let expected = layer_of(&bytes);
    for portion in [1000, PIECE, 3 * PIECE + 1] {
        let files = MemoryCatalog::default();
        let name = names::incoming(4);
        let length = bytes.len() as u64;
        let part = files.create(&name).unwrap();
        let mut import = SequentialImport::start(part, length).unwrap();
        for bytes in bytes.chunks(portion) {
            import.append(bytes).unwrap();
        }
        assert_eq!(import.bytes(), length);
        let layer = import.finish().unwrap();
        assert_eq!(layer, expected);
        let done = names::done(layer.id.root);
        files.rename(&name, &done).unwrap();
        assert_eq!(files.get(&done).unwrap(), bytes);
    }
}

#[test]
fn a_conversion_of_another_length_than_announced_is_refused() {
    let files = MemoryCatalog::default();
    let part = files.create(&names::incoming(0)).unwrap();
    let mut import = SequentialImport::start(part, 10).unwrap();
    import.append(b"12345678").unwrap();
    let over = StoreError::Overrun { want: 10, got: 11 };
    assert_eq!(import.append(b"9ab"), Err(over.clone()));
    assert_eq!(import.append(b"9"), Err(over.clone()));
    assert_eq!(import.finish(), Err(over));

    let part = files.create(&names::incoming(1)).unwrap();
    let mut import = SequentialImport::start(part, 10).unwrap();
    import.append(b"12345678").unwrap();
    let error = StoreError::Incomplete { want: 10, got: 8 };
    assert_eq!(import.finish(), Err(error));
}

#[test]
fn reading_verifies_and_names_the_bad_piece() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = FaultyCatalog::new(0, Faults::default());
    let mut import = start(&files, &layer).unwrap();
    feed_all(&mut import, &bytes, 0..6);
    let layer = publish(&files, import);
    let done = names::done(layer.id.root);
    assert_right(layer.clone(), files.open(&done).unwrap(), &bytes);

    files.flip_bit(&done, 4 * PIECE as u64);
    let store = ChunkStore::open(layer.clone(), files.open(&done).unwrap()).unwrap();
    let mut piece = vec![0; PIECE];
    assert_eq!(store.read_piece(PieceIndex(3), &mut piece), Ok(PIECE_BYTES));
    match store.read_piece(PieceIndex(4), &mut piece) {
        Err(StoreError::DigestMismatch { piece, .. }) => assert_eq!(piece, PieceIndex(4)),
        other => panic!("{other:?}"),
    }
    let none = StoreError::NoSuchPiece {
        piece: PieceIndex(6),
        pieces: 6,
    };
    assert_eq!(store.read_piece(PieceIndex(6), &mut piece), Err(none));
    let small = StoreError::PieceLength {
        piece: PieceIndex(0),
        want: PIECE as u64,
        got: 10,
    };
    assert_eq!(
        store.read_piece(PieceIndex(0), &mut piece[..10]),
        Err(small)
    );
}

#[test]
fn a_stored_file_of_another_length_is_not_the_model() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    files.put("a", bytes[1..].to_vec());
    let what = Corruption::Length {
        want: bytes.len() as u64,
        got: bytes.len() as u64 - 1,
    };
    let error = StoreError::Corrupt { id: layer.id, what };
    let opened = ChunkStore::open(layer, files.open("a").unwrap());
    assert_eq!(opened.err(), Some(error));
}

#[test]
fn a_lost_piece_layer_is_made_again_or_the_model_is_damaged() {
    let bytes = source();
    let layer = layer_of(&bytes);
    let files = MemoryCatalog::default();
    files.put("right", bytes.clone());
    let mut wrong = bytes;
    wrong[0] ^= 1;
    files.put("wrong", wrong);
    let rebuild = |name: &str| {
        let disk = files.open(name).unwrap();
        let mut rebuild = LayerRebuild::start(layer.id.root, &disk).unwrap();
        let mut steps = 0;
        loop {
            steps += 1;
            if let Some(layer) = rebuild.step(&disk)? {
                assert_eq!((steps, rebuild.bytes()), (7, layer.id.length));
                return Ok(layer);
            }
        }
    };
    assert_eq!(rebuild("right"), Ok(layer.clone()));
    match rebuild("wrong") {
        Err(StoreError::Corrupt {
            what: Corruption::Root { want, .. },
            ..
        }) => assert_eq!(want, layer.id.root.0),
        other => panic!("{other:?}"),
    }
}

//! A small model, and what the shell does around an import.
// Each test file uses its own part of this.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::OnceLock;

use format::{Hasher, PIECE_BYTES, PieceIndex, PieceLayer};
use store::faulty::Seeded;
use store::{Catalog, ChunkStore, Disk, Fed, Import, StoreError, names};

pub const PIECE: usize = PIECE_BYTES as usize;

/// A model file of five whole pieces and a short one.
pub fn source() -> Vec<u8> {
    let mut random = Seeded(7);
    (0..5 * PIECE + 12_345)
        .map(|_| random.draw() as u8)
        .collect()
}

/// What machines that lose their power import.
pub struct Model {
    pub bytes: Vec<u8>,
    pub layer: PieceLayer,
}

/// The same for every test of a file: a piece of zeros is right where zeros belong, and reserved
/// room looks just like it.
pub fn simulated() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| {
        let mut random = Seeded(99);
        let mut bytes: Vec<u8> = (0..4 * PIECE + 700).map(|_| random.draw() as u8).collect();
        bytes[PIECE..2 * PIECE].fill(0);
        let layer = layer_of(&bytes);
        Model { bytes, layer }
    })
}

/// How many power cuts are tried.
pub fn crash_seeds() -> u64 {
    let asked = std::env::var("STORE_CRASH_SEEDS").ok();
    asked.map_or(200, |text| {
        text.parse().expect("STORE_CRASH_SEEDS: a number")
    })
}

pub fn layer_of(bytes: &[u8]) -> PieceLayer {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish()
}

pub fn piece_of(bytes: &[u8], piece: u32) -> &[u8] {
    let at = piece as usize * PIECE;
    &bytes[at..bytes.len().min(at + PIECE)]
}

pub fn open_or_create<C: Catalog>(catalog: &C, name: &str) -> Result<C::Disk, StoreError> {
    match catalog.open(name) {
        Err(StoreError::NotFound { .. }) => catalog.create(name),
        opened => opened,
    }
}

pub fn start<C: Catalog>(catalog: &C, layer: &PieceLayer) -> Result<Import<C::Disk>, StoreError> {
    let part = open_or_create(catalog, &names::part(layer.id.root))?;
    let have = open_or_create(catalog, &names::have(layer.id.root))?;
    Import::start(layer.clone(), part, have)
}

pub fn feed_all<D: Disk>(import: &mut Import<D>, bytes: &[u8], pieces: impl Iterator<Item = u32>) {
    for piece in pieces {
        let fed = import.feed(0, PieceIndex(piece), piece_of(bytes, piece));
        assert_eq!(fed, Ok(Fed::Stored), "piece {piece}");
    }
}

/// What the shell does at the end.
pub fn publish<C: Catalog>(catalog: &C, import: Import<C::Disk>) -> PieceLayer {
    let layer = import.finish(0).unwrap();
    let root = layer.id.root;
    catalog
        .rename(&names::part(root), &names::done(root))
        .unwrap();
    catalog.remove(&names::have(root)).unwrap();
    layer
}

pub fn assert_right<D: Disk>(layer: PieceLayer, disk: D, bytes: &[u8]) {
    let store = ChunkStore::open(layer, disk).unwrap();
    let mut piece = vec![0; PIECE];
    for index in 0..store.id().pieces() {
        let len = store.read_piece(PieceIndex(index), &mut piece).unwrap();
        assert_eq!(&piece[..len as usize], piece_of(bytes, index));
    }
    store.close().unwrap();
}

//! What the browser tests call in a worker: the suite of every backend, and an import that may be
//! killed at any moment and must go on.

use format::{Hasher, PIECE_BYTES, PieceIndex, PieceLayer};
use wasm_bindgen::prelude::*;

use crate::indexeddb::IndexedDbCatalog;
use crate::later::{LaterCatalog, conform};
use crate::opfs::OpfsCatalog;
use crate::{ChunkStore, Import, StoreError, names};

/// Beside the app's own directory and database.
const PLACE: &str = "suite";
const PIECES: u32 = 24;
/// The record is due by time after every fourth piece.
const PIECE_MS: u64 = 500;

/// Which form chunks have, or a failure in words.
#[wasm_bindgen]
pub async fn run(tier: String) -> Result<String, String> {
    match tier.as_str() {
        "opfs" => {
            let directory = OpfsCatalog::at(PLACE).await.map_err(words)?;
            conform(&directory).await.map_err(failure)?;
            Ok("files".into())
        }
        _ => {
            let directory = IndexedDbCatalog::at(PLACE).await.map_err(words)?;
            conform(&directory).await.map_err(failure)?;
            let blobs = directory.stores_blobs();
            Ok(if blobs { "blobs" } else { "bytes" }.into())
        }
    }
}

/// Goes on with the import of a model that nobody has, to its end: reads everything back,
/// removes it, and tells how many pieces earlier lives had left.
#[wasm_bindgen]
pub async fn live(tier: String) -> Result<u32, String> {
    match tier.as_str() {
        "opfs" => import(&OpfsCatalog::at(PLACE).await.map_err(words)?).await,
        _ => import(&IndexedDbCatalog::at(PLACE).await.map_err(words)?).await,
    }
}

async fn import<C: LaterCatalog>(directory: &C) -> Result<u32, String> {
    let layer = layer();
    let root = layer.id.root;
    let part = open(directory, &names::part(root)).await.map_err(words)?;
    let have = open(directory, &names::have(root)).await.map_err(words)?;
    let mut import = Import::start(layer.clone(), part, have).map_err(words)?;
    let found = import.have().count();
    if import.resumed().dropped > 0 {
        return Err(format!(
            "a record named pieces that are not there: {:?}",
            import.resumed()
        ));
    }
    for index in (0..PIECES).map(PieceIndex) {
        let now_ms = u64::from(index.0) * PIECE_MS;
        import.feed(now_ms, index, &piece(index)).map_err(words)?;
        directory.room().await;
    }
    import.finish(u64::from(PIECES) * PIECE_MS).map_err(words)?;
    let done = names::done(root);
    directory
        .rename(&names::part(root), &done)
        .await
        .map_err(words)?;
    directory.remove(&names::have(root)).await.map_err(words)?;
    let disk = directory.open(&done).await.map_err(words)?;
    let store = ChunkStore::open(layer, disk).map_err(words)?;
    let mut bytes = vec![0; PIECE_BYTES as usize];
    for index in (0..PIECES).map(PieceIndex) {
        store.read_piece(index, &mut bytes).map_err(words)?;
    }
    drop(store);
    directory.remove(&done).await.map_err(words)?;
    Ok(found)
}

async fn open<C: LaterCatalog>(directory: &C, name: &str) -> Result<C::Disk, StoreError> {
    match directory.open(name).await {
        Err(StoreError::NotFound { .. }) => directory.create(name).await,
        opened => opened,
    }
}

fn layer() -> PieceLayer {
    let mut hasher = Hasher::default();
    for index in (0..PIECES).map(PieceIndex) {
        hasher.update(&piece(index));
    }
    hasher.finish()
}

/// Bytes that no other piece has at their places; the last piece is short.
fn piece(index: PieceIndex) -> Vec<u8> {
    let len = match index.0 + 1 == PIECES {
        true => 12_345,
        false => PIECE_BYTES,
    };
    (0..len)
        .map(|at| (at % 251) as u8 ^ index.0 as u8)
        .collect()
}

fn words(error: StoreError) -> String {
    error.to_string()
}

fn failure(failure: Box<crate::conformance::Failure>) -> String {
    format!("{failure:?}")
}

//! Reading a stored model's descriptions, and the words for what is wrong with them.

use format::{
    Digest, Header, ModelId, PIECE_BYTES, PieceIndex, PieceLayer, TOKENIZER_TENSOR, piece_hash,
};
use prompt::Prompter;
use protocol::{ErrorReport, Stage as Place, TrResult};
use store::{Disk, StoreError};

use crate::words;

/// A tokenizer is read whole; the largest published ones have 33 MB.
const TOKENIZER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The stored piece layer, if it is the model's.
pub fn layer<D: Disk>(disk: &D, id: ModelId) -> Option<PieceLayer> {
    let len = disk.len().ok()?;
    if len != 32 * u64::from(id.pieces()) {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    disk.read_at(0, &mut bytes).ok()?;
    PieceLayer::parse(id, &bytes).ok()
}

/// Length of the header region, from the file's first bytes.
pub fn header_len<D: Disk>(disk: &D, length: u64) -> Result<u64, ErrorReport> {
    let stored = |error: StoreError| words::store_error(&error, Place::Load);
    let found = disk.len().map_err(stored)?;
    if found != length {
        let what = format!("the stored file has {found} bytes, the model has {length}");
        return Err(damage(&what));
    }
    let mut first = [0; 8];
    disk.read_at(0, &mut first).map_err(stored)?;
    format::header_len(first, length).map_err(|error| words::format_error(&error, Place::Parse))
}

/// The header region, from pieces whose hashes are right.
pub fn header_region<D: Disk>(
    disk: &D,
    layer: &PieceLayer,
    len: u64,
) -> Result<Vec<u8>, ErrorReport> {
    let id = layer.id;
    let pieces = len.div_ceil(u64::from(PIECE_BYTES)) as u32;
    let mut region = Vec::new();
    for (piece, want) in (0..pieces).map(PieceIndex).zip(layer.hashes()) {
        let (at, piece_len) = id.piece_range(piece);
        let mut bytes = vec![0; piece_len as usize];
        disk.read_at(at, &mut bytes)
            .map_err(|error| words::store_error(&error, Place::Load))?;
        let got = piece_hash(&bytes, id.length);
        if got != *want {
            return Err(damaged(piece, *want, got));
        }
        region.extend_from_slice(&bytes);
    }
    region.truncate(len as usize);
    Ok(region)
}

/// The tokenizer, checked by the hash in the header.
pub fn prompter<D: Disk>(disk: &D, header: &Header) -> Result<Option<Prompter>, ErrorReport> {
    let Some(tensor) = header.tensor(TOKENIZER_TENSOR) else {
        return Ok(None);
    };
    let len = tensor.range.end - tensor.range.start;
    if len > TOKENIZER_BYTES_MAX {
        let what = format!("the tokenizer has {}", words::megabytes(len));
        let remedy = "choose another model";
        return Err(words::report(TrResult::Bounds, Place::Load, &what, remedy));
    }
    let mut payload = vec![0; len as usize];
    disk.read_at(tensor.range.start, &mut payload)
        .map_err(|error| words::store_error(&error, Place::Load))?;
    header
        .check_tokenizer(&payload)
        .map_err(|error| words::format_error(&error, Place::Load))?;
    let prompter = Prompter::open(&header.manifest, &payload);
    prompter
        .map(Some)
        .map_err(|error| words::prompt_error(&error))
}

/// A piece of the stored model is not what the root promises.
pub fn damaged(piece: PieceIndex, want: Digest, got: Digest) -> ErrorReport {
    damage(&format!(
        "piece {} of the stored model is damaged: hash {got} instead of {want}",
        piece.0
    ))
}

fn damage(what: &str) -> ErrorReport {
    let remedy = "Repair it on the page Models, or import its file again; sound pieces are kept.";
    words::report(TrResult::HashMismatch, Place::Load, what, remedy)
}

/// A call that came without a model.
pub fn no_model() -> ErrorReport {
    words::illegal(Place::Load, "no model is loaded", "load a model first")
}

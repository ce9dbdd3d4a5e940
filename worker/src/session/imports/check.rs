//! What arrived bytes are worth, and the words for what they are not.

use format::{Header, ModelId, PieceIndex, PieceLayer, piece_hash};
use protocol::{ErrorReport, Event, Stage as Place, TrResult, Wish};
use store::{StoreError, looks_like_a_page};

use super::job::{Bench, End};
use crate::engine::{Engine, EngineError};
use crate::session::loading::{Verdict, judge};
use crate::source::{SourceFault, beginning};
use crate::words;

/// Longest model that is worth a browser's disk: what is larger than a lane's memory can be read
/// page by page, but a hundred times as much would take minutes for a word.
const MODEL_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;

/// Parses the header at the start of `bytes` and tells the page whether such a model fits.
pub fn sound_header<E: Engine>(
    bytes: &[u8],
    length: u64,
    model: Option<ModelId>,
    bench: &mut Bench<'_, E>,
) -> Result<Header, End> {
    let refused = |error| End::Refused(words::format_error(&error, Place::Import));
    let len = match bytes.first_chunk::<8>() {
        Some(first) => format::header_len(*first, length).map_err(refused)?,
        None => 8,
    };
    let region = bytes.get(..len as usize).unwrap_or(bytes);
    let header = Header::parse(region, length).map_err(refused)?;
    let lost = || EngineError::new(TrResult::WorkerFailure, Place::Plan);
    let wish = bench.wish.unwrap_or(Wish::USUAL);
    let refused = |error| words::engine_error(&error, Some(&header));
    let engine = bench.engine.as_mut().ok_or_else(lost);
    let judged = engine.and_then(|engine| judge(*engine, &header, region, wish, model));
    let Verdict { fit, chosen } = judged.map_err(refused)?;
    bench.desk.event(Event::Fit(Box::new(fit)));
    chosen.map_err(refused)?;
    Ok(header)
}

pub fn check_length(length: u64) -> Result<(), End> {
    if length <= MODEL_BYTES_MAX {
        return Ok(());
    }
    let what = format!(
        "the model has {}; a browser can hold {}",
        words::megabytes(length),
        words::megabytes(MODEL_BYTES_MAX)
    );
    let remedy = "choose a smaller model";
    Err(words::report(TrResult::OutOfMemory, Place::Import, &what, remedy).into())
}

/// Checks one arrived piece; a web page in its place is named as such.
pub fn check_piece(layer: &PieceLayer, piece: PieceIndex, bytes: &[u8]) -> Result<(), End> {
    let id = layer.id;
    let got = piece_hash(bytes, id.length);
    match layer.hashes().get(piece.0 as usize) {
        Some(want) if *want == got => Ok(()),
        Some(want) => {
            let want = *want;
            Err(wrong_piece(
                &StoreError::DigestMismatch { piece, want, got },
                bytes,
            ))
        }
        None => {
            let pieces = id.pieces();
            Err(StoreError::NoSuchPiece { piece, pieces }.into())
        }
    }
}

/// What arrived is not the model's piece.
pub fn wrong_piece(error: &StoreError, bytes: &[u8]) -> End {
    let mut report = words::store_error(error, Place::Import);
    report.remedy = "The server's file is damaged or another one; tell whoever runs it.".into();
    page_or(bytes, report)
}

/// A source gave something else: a web page is named as such, otherwise what was found.
pub fn page_or(bytes: &[u8], report: ErrorReport) -> End {
    if looks_like_a_page(bytes) {
        let first = beginning(bytes);
        return SourceFault::Page { first }.into();
    }
    End::BadSource(report)
}

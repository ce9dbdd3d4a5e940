//! Failures in words for people: one sentence of what, one sentence of what to do.
//!
//! Each error becomes a report once, here, when the session hands it to the page.

use convert::ConvertError;
use format::{FormatError, Header};
use p2p::{Fault, LinkId, P2pError};
use prompt::PromptError;
use protocol::{ErrorReport, Stage, TrResult, abi};
use store::{Corruption, StoreError, WaitCause};

use crate::EngineError;

const AGAIN: &str = "Repair the model on the page Models, or import it again.";
const FAULT: &str = "This is a fault of the program; please report it.";

/// A report from its parts.
pub fn report(code: TrResult, stage: Stage, what: &str, remedy: &str) -> ErrorReport {
    ErrorReport {
        code,
        stage,
        what: sentence(what),
        remedy: sentence(remedy),
    }
}

/// A command that is not legal now.
pub fn illegal(stage: Stage, what: &str, remedy: &str) -> ErrorReport {
    report(TrResult::IllegalState, stage, what, remedy)
}

/// The engine is of no more use.
pub fn is_fatal(code: TrResult) -> bool {
    matches!(
        code,
        TrResult::TrapRecoveredByHost | TrResult::WorkerFailure
    )
}

/// Decimal megabytes with one digit, as disks are sold.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

pub fn format_error(error: &FormatError, stage: Stage) -> ErrorReport {
    let (code, remedy) = match error {
        FormatError::NoManifest | FormatError::HeaderMisaligned { .. } => (
            TrResult::UnsupportedFeature,
            "This is a plain safetensors file; convert the model's folder with the command-line \
             program, or choose a GGUF file.",
        ),
        FormatError::AdapterUnsupported => (
            TrResult::UnsupportedFeature,
            "Adapters cannot be used alone; choose a whole model.",
        ),
        FormatError::UnknownSchema { .. } => (
            TrResult::UnsupportedFeature,
            "Reload the page to get the newest program, or convert the model again.",
        ),
        FormatError::TokenizerHash | FormatError::PieceLayerRoot => (
            TrResult::HashMismatch,
            "The file is damaged; get it from its source again.",
        ),
        _ => (
            TrResult::InvalidModel,
            "Choose a .slm or GGUF file; if it is one, get it from its source again.",
        ),
    };
    let what = match error {
        FormatError::NoManifest | FormatError::HeaderMisaligned { .. } => {
            format!("this is a safetensors file, but not a .slm file: {error}")
        }
        _ => error.to_string(),
    };
    report(code, stage, &what, remedy)
}

pub fn convert_error(error: &ConvertError) -> ErrorReport {
    use ConvertError::*;
    let code = match error {
        NotThisFormat { .. } | Truncated { .. } | SourceChanged { .. } => TrResult::Source,
        TensorType { .. } | TensorDtype { .. } | VectorType { .. } => {
            TrResult::UnsupportedQuantization
        }
        PartialBlock { .. } => TrResult::UnsupportedShape,
        OldFormat { .. } | UnknownVersion { .. } | BigEndian | SplitFile { .. } => {
            TrResult::UnsupportedFeature
        }
        Unsupported { .. } | RopeFactors { .. } | UnexpectedTensor { .. } => {
            TrResult::UnsupportedFeature
        }
        NotAsked { .. } => TrResult::InternalInvariant,
        _ => TrResult::InvalidModel,
    };
    report(code, Stage::Convert, &error.to_string(), error.remedy())
}

pub fn prompt_error(error: &PromptError) -> ErrorReport {
    let code = match error {
        PromptError::Tokenizer { .. } | PromptError::Template { .. } => TrResult::InvalidModel,
        PromptError::NoTokenizer | PromptError::NoTemplate => TrResult::UnsupportedFeature,
        PromptError::TextTooLong { .. } => TrResult::ContextExceeded,
        _ => TrResult::InvalidArgument,
    };
    report(code, Stage::Prompt, &error.to_string(), error.remedy())
}

pub fn store_error(error: &StoreError, stage: Stage) -> ErrorReport {
    let (code, remedy) = match error {
        StoreError::DigestMismatch { .. } => (TrResult::HashMismatch, AGAIN),
        StoreError::Corrupt { what, .. } => match what {
            Corruption::Length { .. } | Corruption::Root { .. } => (TrResult::HashMismatch, AGAIN),
        },
        StoreError::Quota { .. } | StoreError::NoRoom { .. } => (
            TrResult::Storage,
            "Delete a model or free space on this device, then try again.",
        ),
        StoreError::Busy { .. } => (
            TrResult::Storage,
            "Close every other tab with TinyRustLM and reload this one.",
        ),
        StoreError::Denied { .. } | StoreError::Unsupported { .. } => (
            TrResult::Storage,
            "Allow this site to store data, or leave the private window.",
        ),
        StoreError::NotFound { .. } => (
            TrResult::Storage,
            "Reload the page; the browser may have deleted the site's data.",
        ),
        StoreError::ShortRead { .. } => (TrResult::Storage, AGAIN),
        StoreError::Io { .. } | StoreError::Browser { .. } => (
            TrResult::Storage,
            "Try again; if it happens again, reload the page and check the disk.",
        ),
        _ => (TrResult::InternalInvariant, FAULT),
    };
    let what = match error {
        StoreError::Quota { needed: 0 } => "there is no room left".into(),
        StoreError::Quota { needed } => {
            format!("there is no room left for {}", megabytes(*needed))
        }
        StoreError::NoRoom { needed, free, used } => format!(
            "{} are needed, {} are free, and this site uses {}",
            megabytes(*needed),
            megabytes(*free),
            megabytes(*used)
        ),
        error => error.to_string(),
    };
    report(code, stage, &what, remedy)
}

/// The storage is full in the middle of an import that needs so many bytes more.
pub fn no_room_midway(missing: u64) -> ErrorReport {
    let what = format!(
        "there is no room left, and {} of the model are still to come",
        megabytes(missing)
    );
    let remedy =
        "Delete a model or free space on this device, then continue: what has come is kept.";
    report(TrResult::Storage, Stage::Store, &what, remedy)
}

/// Why a model cannot go from browser to browser.
pub fn sharing_error(error: &P2pError) -> ErrorReport {
    let remedy = "ask for another link, or get the model another way";
    report(
        TrResult::InvalidArgument,
        Stage::Import,
        &error.to_string(),
        remedy,
    )
}

/// Who lied, and how; what to do about it was done already.
pub fn peer_lied(link: LinkId, fault: &Fault) -> ErrorReport {
    let what = format!("peer {} was left: {fault}", link.0);
    let remedy = "nothing of it was kept, and others are asked";
    report(TrResult::Source, Stage::Import, &what, remedy)
}

/// `header` turns the number of a tensor into its name.
pub fn engine_error(error: &EngineError, header: Option<&Header>) -> ErrorReport {
    let what = engine_what(error, header);
    report(error.code(), error.stage(), &what, engine_remedy(error))
}

fn engine_what(error: &EngineError, header: Option<&Header>) -> String {
    let place = &error.0;
    let (expected, found) = (place.expected, place.found);
    let place_words = place_words(error, header);
    match (error.code(), place.detail) {
        (TrResult::OutOfMemory, abi::DETAIL_REGION) => format!(
            "{} need {}, and only {} are left for them",
            region(place.item),
            megabytes(found),
            megabytes(expected)
        ),
        (TrResult::OutOfMemory, abi::DETAIL_REFUSED) => format!(
            "the browser has no {} of memory left for {}",
            megabytes(found),
            region(place.item)
        ),
        (TrResult::TrapRecoveredByHost, abi::DETAIL_REFUSED) => format!(
            "the engine ran out of memory: it could not have {}",
            megabytes(found)
        ),
        (TrResult::OutOfMemory, abi::DETAIL_BYTES) => {
            format!("the browser has no {} of memory left", megabytes(found))
        }
        (TrResult::OutOfMemory, _) => "the browser has no memory left".into(),
        (TrResult::ContextExceeded, _) => {
            format!("the text has {found} tokens, and there is room for {expected}")
        }
        (TrResult::InvalidArgument, abi::DETAIL_TOKEN_ID) => {
            format!("token id {found} is above the greatest one, {expected}")
        }
        (TrResult::InvalidArgument, abi::DETAIL_POSITIONS) if error.stage() == Stage::Prefill => {
            "the prompt is empty".into()
        }
        (TrResult::InvalidModel, _) if error.stage() == Stage::Load => {
            format!(
                "{place_words} has a value that is not a number at byte {}",
                place.at
            )
        }
        (TrResult::HostRead, _) => {
            format!("the stored file could not be read at byte {}", place.at)
        }
        (TrResult::NumericalFailure, _) => {
            format!(
                "the computation left the numbers at position {} ({place_words})",
                place.at
            )
        }
        (TrResult::TrapRecoveredByHost, _) => "the engine stopped unexpectedly".into(),
        (TrResult::WorkerFailure, _) => {
            "a worker of the engine died or did not answer, so the engine was ended".into()
        }
        (code, abi::DETAIL_NONE) => format!("the engine refused: {code:?} ({place_words})"),
        (code, _) => format!(
            "the engine refused: {code:?} ({place_words}), expected {expected}, found {found}"
        ),
    }
}

fn place_words(error: &EngineError, header: Option<&Header>) -> String {
    let item = error.0.item;
    let tensor = header.and_then(|header| header.tensors.get(item as usize));
    match (error.stage(), item, tensor) {
        (_, u32::MAX, _) => "the model".into(),
        (Stage::Prefill | Stage::Decode | Stage::Sample, layer, _) => format!("layer {layer}"),
        (_, _, Some(tensor)) => format!("tensor {:?}", tensor.name),
        (_, item, None) => format!("tensor number {item}"),
    }
}

fn region(number: u32) -> &'static str {
    match number {
        abi::REGION_WEIGHTS => "the weights",
        abi::REGION_METADATA => "the model's tables",
        abi::REGION_KV => "the keys and values of the conversation",
        abi::REGION_SCRATCH => "the intermediate results",
        abi::REGION_LOGITS => "the results",
        abi::REGION_SAMPLER => "the choice of a word",
        abi::REGION_TOKENIZER => "the tokenizer",
        abi::REGION_CONTROL | abi::REGION_STACKS => "the engine's threads",
        abi::REGION_TRANSFER => "what passes between page and engine",
        _ => "the parts of the model",
    }
}

fn engine_remedy(error: &EngineError) -> &'static str {
    match (error.code(), error.stage()) {
        (TrResult::OutOfMemory, _) => {
            "Choose one of the ways below, if there are any, or a smaller model."
        }
        (TrResult::ContextExceeded, Stage::Plan) => "Choose a shorter context.",
        (TrResult::ContextExceeded, _) => "Shorten the text or start a new conversation.",
        (TrResult::InvalidModel | TrResult::HashMismatch | TrResult::HostRead, _) => AGAIN,
        (TrResult::NumericalFailure, _) => {
            "Try again; if it happens again, import the model from another source."
        }
        (TrResult::InvalidArgument, _) => "Change the settings and try again.",
        (TrResult::WorkerFailure, _) => {
            "Load the model again: it will run in an engine with one thread; reload the page to \
             try several again."
        }
        (TrResult::TrapRecoveredByHost, _) => {
            "Load the model again; if that fails, reload the page."
        }
        _ => FAULT,
    }
}

/// Why nothing comes from a server for now; the page adds when it is tried again.
pub fn waiting(cause: WaitCause) -> &'static str {
    match cause {
        WaitCause::Offline => "There is no network.",
        WaitCause::Unreachable => "The server cannot be reached.",
        WaitCause::Cut => "The connection broke off.",
        WaitCause::Stalled => "The server has stopped sending.",
        WaitCause::Busy(429) => "The server asks to be left alone for a while.",
        WaitCause::Busy(_) => "The server is busy.",
    }
}

/// First letter large, full stop at the end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut out = String::with_capacity(text.len() + 1);
    let mut rest = text.chars();
    out.extend(rest.next().into_iter().flat_map(char::to_uppercase));
    out.push_str(rest.as_str());
    if !out.ends_with(['.', '!', '?']) {
        out.push('.');
    }
    out
}

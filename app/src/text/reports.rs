//! What went wrong, in words.

use protocol::{Diagnostics, ErrorReport, Stage, TrResult};

use super::bytes;
use crate::error::AppError;

/// A heading for a failure; the report's own sentences follow it.
pub fn code(code: TrResult) -> &'static str {
    match code {
        TrResult::InvalidModel => "This file cannot be used",
        TrResult::HashMismatch => "The bytes are not the ones that were promised",
        TrResult::UnsupportedQuantization | TrResult::UnsupportedShape => {
            "This kind of model is not supported"
        }
        TrResult::UnsupportedFeature | TrResult::UnsupportedAbi => "This browser cannot do that",
        TrResult::OutOfMemory => "There is not enough memory",
        TrResult::ContextExceeded => "This conversation is too long for the model",
        TrResult::Cancelled => "Stopped",
        TrResult::WorkerFailure | TrResult::TrapRecoveredByHost => "The engine stopped",
        TrResult::SelfTestFailed => "The engine failed its own test",
        TrResult::NumericalFailure => "The model produced numbers that are not numbers",
        TrResult::Storage | TrResult::HostRead => "The storage refused",
        TrResult::Source => "The model could not be fetched",
        _ => "Something went wrong",
    }
}

/// The report of a failure on the page's own side.
pub fn report(error: &AppError) -> ErrorReport {
    let (code, stage) = place(error);
    ErrorReport {
        code,
        stage,
        what: what(error),
        remedy: remedy(error).into(),
    }
}

fn place(error: &AppError) -> (TrResult, Stage) {
    match error {
        AppError::WorkerRefused | AppError::WorkerDied | AppError::MessageUnreadable => {
            (TrResult::WorkerFailure, Stage::Start)
        }
        AppError::ImportBusy => (TrResult::IllegalState, Stage::Import),
        AppError::LoadDied(_) => (TrResult::OutOfMemory, Stage::Load),
        AppError::SavedUnavailable
        | AppError::SavedWrite
        | AppError::SavedRead
        | AppError::RecordDamaged
        | AppError::RecordNewer { .. }
        | AppError::ExportFailed => (TrResult::Storage, Stage::Store),
        AppError::ClipboardRefused => (TrResult::UnsupportedFeature, Stage::Start),
    }
}

fn what(error: &AppError) -> String {
    let words = match error {
        AppError::WorkerRefused => "The engine's worker could not be started.",
        AppError::WorkerDied => {
            "The engine stopped without being asked to, often for want of memory."
        }
        AppError::MessageUnreadable => "The page and its engine are of different builds.",
        AppError::ImportBusy => "Another model is being brought in; one is taken at a time.",
        AppError::LoadDied(_) => {
            "The page ended while it was loading this model, so it was not loaded by itself again."
        }
        AppError::SavedUnavailable => {
            "This window offers no database, so conversations last only until it closes."
        }
        AppError::SavedWrite => "The conversation could not be saved on this device.",
        AppError::SavedRead => "The saved conversations could not be read.",
        AppError::RecordDamaged => "A saved conversation is damaged and is not shown.",
        AppError::RecordNewer { found, known } => {
            return format!(
                "A saved conversation has form {found}; this build of the page knows form {known}."
            );
        }
        AppError::ExportFailed => "The model could not be saved as a file.",
        AppError::ClipboardRefused => "The browser did not let the page copy to the clipboard.",
    };
    words.into()
}

fn remedy(error: &AppError) -> &'static str {
    match error {
        AppError::WorkerRefused => {
            "Reload the page; if that does not help, a content blocker may be stopping it."
        }
        AppError::WorkerDied => {
            "Your conversations are safe. Start the engine again, or use a smaller model."
        }
        AppError::MessageUnreadable => "Reload the page so that both come from one build.",
        AppError::ImportBusy => "Wait until it is here or cancel it, then try again.",
        AppError::LoadDied(_) => "Load it from Models when you like, or choose a smaller one.",
        AppError::SavedUnavailable => {
            "Copy what you want to keep, or use a window that is not private."
        }
        AppError::SavedWrite => {
            "Free some space, for example by deleting a model, then send another message."
        }
        AppError::ExportFailed => "Look whether there is room where it should go, and try again.",
        AppError::SavedRead => "Reload the page; nothing has been deleted.",
        AppError::RecordDamaged => "Nothing has been deleted; the others are complete.",
        AppError::RecordNewer { .. } => "Reload the page to get the newer build.",
        AppError::ClipboardRefused => "Select the text and copy it by hand.",
    }
}

/// Diagnostics as a person can paste them; sentences and numbers only.
pub fn diagnostics(known: &Diagnostics) -> String {
    let mut out = format!(
        "TinyRustLM {}\nlane {}, {} self-tests, isolated {}\nstorage {:?}, {} stored\n\
         kernel calls: {} scalar, {} simd, {} relaxed\n",
        env!("CARGO_PKG_VERSION"),
        known.lane.lane.name(),
        known.lane.self_tests,
        known.lane.cross_origin_isolated,
        known.storage,
        bytes(known.stored_bytes),
        known.scalar_calls,
        known.simd_calls,
        known.relaxed_calls,
    );
    if let Some(sha256) = known.lane.sha256 {
        out.push_str(&format!("build {sha256}\n"));
    }
    if let Some(fit) = known.fit {
        out.push_str(&format!("memory {} of {} bytes\n", fit.total, fit.limit));
    }
    for record in &known.records {
        let (code, stage) = (record.code, record.stage);
        out.push_str(&format!(
            "{code:?} at {stage:?}: {} {}\n",
            record.what, record.remedy
        ));
    }
    out
}

/// The receipt as JSON; empty if it could not be written, which its types rule out.
pub fn receipt(known: &Diagnostics) -> String {
    serde_json::to_string_pretty(&known.receipt).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_own_error_says_what_and_what_next() {
        let digest = format::Digest::default();
        let model = format::ModelId {
            root: format::Root(digest),
            length: 1,
        };
        let all = [
            AppError::WorkerRefused,
            AppError::WorkerDied,
            AppError::MessageUnreadable,
            AppError::ImportBusy,
            AppError::LoadDied(model),
            AppError::SavedUnavailable,
            AppError::SavedWrite,
            AppError::SavedRead,
            AppError::RecordDamaged,
            AppError::RecordNewer { found: 2, known: 1 },
            AppError::ClipboardRefused,
        ];
        for error in all {
            let report = report(&error);
            assert!(
                report.what.ends_with('.') && report.remedy.ends_with('.'),
                "{report:?}"
            );
        }
    }
}

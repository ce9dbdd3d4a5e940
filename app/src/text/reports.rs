//! What went wrong, in words.

use protocol::{
    DIAGNOSIS_SCHEMA, DiagnosticDetails, DiagnosticRecord, Diagnostics, ErrorReport, FailureRecord,
    ResourceSnapshot, Stage, TrResult,
};

use super::bytes;
use crate::error::AppError;
use crate::state::Known;

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
        AppError::WorkerRefused
        | AppError::WorkerDied
        | AppError::MessageUnreadable
        | AppError::OtherBuild
        | AppError::Outdated => (TrResult::WorkerFailure, Stage::Start),
        AppError::ImportBusy => (TrResult::IllegalState, Stage::Import),
        AppError::SavedUnavailable
        | AppError::SavedWrite
        | AppError::SavedRead
        | AppError::RecordDamaged
        | AppError::RecordNewer { .. }
        | AppError::ExportFailed => (TrResult::Storage, Stage::Store),
        AppError::ClipboardRefused | AppError::NoConnections => {
            (TrResult::UnsupportedFeature, Stage::Start)
        }
        AppError::Code(_) | AppError::NotAnOffer | AppError::NoSuchOffer => {
            (TrResult::InvalidArgument, Stage::Import)
        }
    }
}

fn what(error: &AppError) -> String {
    let words = match error {
        AppError::WorkerRefused => "The engine's worker could not be started.",
        AppError::WorkerDied => {
            "The engine stopped without being asked to, often for want of memory."
        }
        AppError::MessageUnreadable | AppError::OtherBuild => {
            "The page and its engine are of different builds."
        }
        AppError::Outdated => "Another tab works with a newer version of TinyRustLM.",
        AppError::ImportBusy => "Another model is being brought in; one is taken at a time.",
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
        AppError::NoConnections => "This browser makes no connection to other browsers.",
        AppError::Code(error) => super::code_refused(error).0,
        AppError::NotAnOffer => "This is the code of the second step.",
        AppError::NoSuchOffer => "This code answers an offer that this page has not made.",
    };
    words.into()
}

fn remedy(error: &AppError) -> &'static str {
    match error {
        AppError::WorkerRefused => {
            "Reload the page; if that does not help, a content blocker may be stopping it."
        }
        AppError::WorkerDied => {
            "Your conversations are safe. If it happens again, use a smaller model."
        }
        AppError::MessageUnreadable => "Reload the page so that both come from one build.",
        AppError::OtherBuild => {
            "Reload the page; if that does not help, open it once with ?fresh at the end of the \
             address."
        }
        AppError::Outdated => "Reload this tab to use it too; conversations can be read meanwhile.",
        AppError::ImportBusy => "Wait until it is here or cancel it, then try again.",
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
        AppError::NoConnections => {
            "Get the model from a file or a server, or use Chromium, Firefox or Safari."
        }
        AppError::Code(error) => super::code_refused(error).1,
        AppError::NotAnOffer => "Paste the code that belongs to the link.",
        AppError::NoSuchOffer => "Make a new code and give it to the other person.",
    }
}

/// Diagnostics as a person can paste them: JSON, one record for each failure, and the state of
/// things first. `utc` writes a time in milliseconds since 1970; `Known` has the page's now.
pub fn diagnostics(known: &Known, utc: &dyn Fn(u64) -> String) -> String {
    let Known { diagnostics, at } = known;
    let records: Vec<DiagnosticRecord> = diagnostics
        .records
        .iter()
        .map(|record| {
            let ago = diagnostics.now_ms.saturating_sub(record.at_ms);
            diagnosis(diagnostics, record, utc(at.saturating_sub(ago)))
        })
        .collect();
    let lane = diagnostics.lane.as_ref();
    let whole = serde_json::json!({
        "runtime_version": env!("CARGO_PKG_VERSION"),
        "build_profile": lane.map(|lane| lane.lane.name()),
        "self_tests": lane.map(|lane| lane.self_tests),
        "cross_origin_isolated": lane.map(|lane| lane.cross_origin_isolated),
        "storage": storage_name(diagnostics),
        "stored": bytes(diagnostics.stored_bytes),
        "state": diagnostics.state,
        "memory_bytes": diagnostics.fit.map(|fit| fit.total),
        "memory_limit_bytes": diagnostics.fit.map(|fit| fit.limit),
        "blocks_read_ahead": diagnostics.read_ahead,
        "kernel_calls": {
            "scalar": diagnostics.scalar_calls,
            "simd": diagnostics.simd_calls,
            "relaxed": diagnostics.relaxed_calls,
        },
        "records": records,
    });
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

fn diagnosis(
    known: &Diagnostics,
    record: &FailureRecord,
    utc_timestamp: String,
) -> DiagnosticRecord {
    let lane = known.lane.as_ref().map_or("none", |lane| lane.lane.name());
    DiagnosticRecord {
        schema: DIAGNOSIS_SCHEMA.into(),
        runtime_version: env!("CARGO_PKG_VERSION").into(),
        build_profile: lane.into(),
        model_id: record.model.map(|model| model.root.to_string()),
        artifact_sha256: known.lane.as_ref().and_then(|lane| lane.sha256),
        stage: record.report.stage,
        error_code: record.report.code,
        message: record.report.what.clone(),
        details: DiagnosticDetails {
            state: record.state.clone(),
            remedy: record.report.remedy.clone(),
            backend: lane.into(),
            cross_origin_isolated: known
                .lane
                .as_ref()
                .is_some_and(|lane| lane.cross_origin_isolated),
            storage: storage_name(known),
            workers: known.receipt.observed.workers_started,
        },
        resource_snapshot: ResourceSnapshot {
            reserved_bytes: record.reserved_bytes,
            committed_bytes: record.committed_bytes,
            duplicate_copy_bytes: 0,
        },
        utc_timestamp,
    }
}

fn storage_name(known: &Diagnostics) -> String {
    let name = known.storage.map(|kind| format!("{kind:?}"));
    name.unwrap_or_else(|| "unknown".into())
}

/// The receipt as JSON; empty if it could not be written, which its types rule out.
pub fn receipt(known: &Known) -> String {
    serde_json::to_string_pretty(&known.diagnostics.receipt).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_own_error_says_what_and_what_next() {
        let all = [
            AppError::WorkerRefused,
            AppError::WorkerDied,
            AppError::MessageUnreadable,
            AppError::OtherBuild,
            AppError::Outdated,
            AppError::ImportBusy,
            AppError::SavedUnavailable,
            AppError::SavedWrite,
            AppError::SavedRead,
            AppError::RecordDamaged,
            AppError::RecordNewer { found: 2, known: 1 },
            AppError::ClipboardRefused,
            AppError::NoConnections,
            AppError::Code(p2p::P2pError::NotAnInvite),
            AppError::NotAnOffer,
            AppError::NoSuchOffer,
        ];
        for error in all {
            let report = report(&error);
            assert!(
                report.what.ends_with('.') && report.remedy.ends_with('.'),
                "{report:?}"
            );
        }
    }

    /// Field names as the document of the deterministic runtime has them, and nothing of what was
    /// said: a failure's words never hold it, and no other field could.
    #[test]
    fn a_copied_record_has_the_agreed_shape() {
        let record = FailureRecord {
            report: ErrorReport {
                code: TrResult::OutOfMemory,
                stage: Stage::Allocate,
                what: "What.".into(),
                remedy: "Do.".into(),
            },
            at_ms: 4_000,
            state: "Planned".into(),
            model: None,
            reserved_bytes: 7,
            committed_bytes: 3,
        };
        let diagnostics = Diagnostics {
            lane: Some(protocol::LaneReport {
                lane: protocol::LaneId::ScalarWasm32,
                sha256: None,
                self_tests: 1,
                cross_origin_isolated: false,
            }),
            storage: Some(protocol::StorageKind::Memory),
            scalar_calls: 1,
            simd_calls: 0,
            relaxed_calls: 0,
            fit: None,
            read_ahead: 0,
            stored_bytes: 0,
            state: "Unloaded".into(),
            now_ms: 5_000,
            records: vec![record],
            receipt: Default::default(),
        };
        let known = Known {
            diagnostics,
            at: 10_000,
        };
        let text = diagnostics_text(&known);
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        let record = whole["records"][0].as_object().unwrap();
        let names = [
            "runtime_version",
            "build_profile",
            "model_id",
            "artifact_sha256",
            "stage",
            "error_code",
            "message",
            "details",
            "resource_snapshot",
            "utc_timestamp",
        ];
        for name in names {
            assert!(record.contains_key(name), "{name}");
        }
        assert_eq!(record["utc_timestamp"], "at 9000", "a second before now");
        assert_eq!(record["error_code"], "OutOfMemory");
        assert_eq!(record["resource_snapshot"]["reserved_bytes"], 7);
        assert_eq!(record["resource_snapshot"]["duplicate_copy_bytes"], 0);
    }

    fn diagnostics_text(known: &Known) -> String {
        diagnostics(known, &|millis| format!("at {millis}"))
    }
}

//! The closed list of result codes, and a report of one failure.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Result codes across every boundary. Extended only at the end; never renumbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(i32)]
pub enum TrResult {
    Ok = 0,
    InvalidArgument = 1,
    UnsupportedAbi = 2,
    UnsupportedFeature = 3,
    InvalidHandle = 4,
    StaleHandle = 5,
    Bounds = 6,
    Alignment = 7,
    IntegerOverflow = 8,
    OutOfMemory = 9,
    InvalidModel = 10,
    HashMismatch = 11,
    UnsupportedQuantization = 12,
    UnsupportedShape = 13,
    ContextExceeded = 14,
    Cancelled = 15,
    WorkerFailure = 16,
    SelfTestFailed = 17,
    NumericalFailure = 18,
    TrapRecoveredByHost = 19,
    InternalInvariant = 20,
    /// The host could not deliver bytes that the engine asked for.
    HostRead = 21,
    /// The disk refused: quota, permission, or another program holds the file.
    Storage = 22,
    /// A source of bytes failed or sent something else.
    Source = 23,
    /// The call is not legal in this state.
    IllegalState = 24,
    /// The handle is another lane's.
    ForeignHandle = 25,
}

impl TrResult {
    pub const ALL: [TrResult; 26] = [
        TrResult::Ok,
        TrResult::InvalidArgument,
        TrResult::UnsupportedAbi,
        TrResult::UnsupportedFeature,
        TrResult::InvalidHandle,
        TrResult::StaleHandle,
        TrResult::Bounds,
        TrResult::Alignment,
        TrResult::IntegerOverflow,
        TrResult::OutOfMemory,
        TrResult::InvalidModel,
        TrResult::HashMismatch,
        TrResult::UnsupportedQuantization,
        TrResult::UnsupportedShape,
        TrResult::ContextExceeded,
        TrResult::Cancelled,
        TrResult::WorkerFailure,
        TrResult::SelfTestFailed,
        TrResult::NumericalFailure,
        TrResult::TrapRecoveredByHost,
        TrResult::InternalInvariant,
        TrResult::HostRead,
        TrResult::Storage,
        TrResult::Source,
        TrResult::IllegalState,
        TrResult::ForeignHandle,
    ];

    /// `None` for a number that is not a code.
    pub fn from_code(code: i32) -> Option<TrResult> {
        TrResult::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

/// Where in a model's life something failed. Numbers cross the C boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u32)]
pub enum Stage {
    Start = 0,
    Parse = 1,
    Plan = 2,
    Allocate = 3,
    Load = 4,
    Prefill = 5,
    Decode = 6,
    Sample = 7,
    Import = 8,
    Convert = 9,
    Store = 10,
    Prompt = 11,
}

impl Stage {
    pub const ALL: [Stage; 12] = [
        Stage::Start,
        Stage::Parse,
        Stage::Plan,
        Stage::Allocate,
        Stage::Load,
        Stage::Prefill,
        Stage::Decode,
        Stage::Sample,
        Stage::Import,
        Stage::Convert,
        Stage::Store,
        Stage::Prompt,
    ];

    pub fn from_code(code: u32) -> Option<Stage> {
        Stage::ALL.get(code as usize).copied()
    }
}

/// A failure as people and logs see it. Never holds prompt text, weights, paths or device names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    pub code: TrResult,
    pub stage: Stage,
    /// What was expected and what was found, with tensor, piece or byte offset; one sentence.
    pub what: String,
    /// What to do next; one sentence.
    pub remedy: String,
}

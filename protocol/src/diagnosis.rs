//! A failure and what was going on then: kept in the worker, and copied by a person as JSON.
//!
//! Nothing in it says what was asked or answered, where a file lay, or which device this is.

use alloc::string::String;

use format::{Digest, ModelId};
use serde::{Deserialize, Serialize};

use crate::{ErrorReport, Stage, TrResult};

pub const DIAGNOSIS_SCHEMA: &str = "tinyrustlm.diagnosis.v1";

/// As the worker keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    pub report: ErrorReport,
    /// Milliseconds of the worker's clock.
    pub at_ms: u64,
    /// Where the model stood in its life when that began which failed.
    pub state: String,
    /// The model that was loaded or being loaded.
    pub model: Option<ModelId>,
    /// Bytes that the plan allows, and that the engine has.
    pub reserved_bytes: u64,
    pub committed_bytes: u64,
}

/// As it is copied. Written alike by every build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosticRecord {
    pub schema: String,
    pub runtime_version: String,
    /// The lane that was in use.
    pub build_profile: String,
    /// The root of the model: what it is, not what a person calls it.
    pub model_id: Option<String>,
    /// Of the engine's module.
    pub artifact_sha256: Option<Digest>,
    pub stage: Stage,
    pub error_code: TrResult,
    pub message: String,
    pub details: DiagnosticDetails,
    pub resource_snapshot: ResourceSnapshot,
    pub utc_timestamp: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosticDetails {
    pub state: String,
    pub remedy: String,
    pub backend: String,
    pub cross_origin_isolated: bool,
    pub storage: String,
    pub workers: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSnapshot {
    pub reserved_bytes: u64,
    pub committed_bytes: u64,
    /// Weights are read straight to where they are used, so there is no second copy.
    pub duplicate_copy_bytes: u64,
}

//! What was observed, chosen and executed in one browser; never what was hoped.
//!
//! A receipt says nothing about the device that a page is not told anyway: no processor, no
//! clock, no amount of memory but the engine's own.

use alloc::string::String;
use alloc::vec::Vec;

use format::Digest;
use serde::{Deserialize, Serialize};

use crate::{ErrorReport, LaneId, Mode};

pub const RECEIPT_SCHEMA: &str = "tinyrustlm.capability-receipt.v1";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityReceipt {
    pub schema: String,
    /// When the engine was started.
    pub created_utc: String,
    pub runtime_semantics: u32,
    pub abi_version: u32,
    pub host_reported: HostReported,
    /// `None` where the engine is linked in instead of loaded.
    pub module: Option<ModuleFacts>,
    pub observed: Observed,
    pub selection: Selection,
    pub self_test: SelfTestFacts,
    pub executed_path_evidence: Executed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReported {
    /// Brand and major version, as in `Firefox 153`, or `unknown`.
    pub browser: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFacts {
    pub artifact_id: LaneId,
    pub sha256: Digest,
    /// Of the signed head.
    pub build_manifest_sha256: Digest,
    pub rustc: String,
    pub compile_features: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub cross_origin_isolated: bool,
    pub feature_probes: Vec<ProbeOutcome>,
    pub workers_requested: u32,
    pub workers_started: u32,
    pub memory_mode: MemoryMode,
    /// Size of the engine's memory now.
    pub memory_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOutcome {
    pub name: String,
    pub version: u32,
    pub sha256: Digest,
    pub validates: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryMode {
    #[default]
    #[serde(rename = "native")]
    Native,
    #[serde(rename = "wasm32-growing")]
    Growing,
    #[serde(rename = "wasm32-shared-fixed")]
    SharedFixed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    pub lane: Option<LaneId>,
    /// `None` while no model is loaded.
    pub numerical_mode: Option<Mode>,
    /// Faster lanes that were refused, and why.
    pub refused: Vec<ErrorReport>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTestFacts {
    pub vector_set_sha256: Digest,
    pub tests: u32,
    pub failed: u32,
}

/// Counted by the engine itself since it was started, self-tests included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    pub scalar_kernel_calls: u64,
    pub simd_kernel_calls: u64,
    pub relaxed_kernel_calls: u64,
    pub worker_ids_participating: Vec<u32>,
}

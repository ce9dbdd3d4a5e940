//! What a device can do with a model: the one document that the page and the native program write.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use format::{Digest, ModelId};
use serde::{Deserialize, Serialize};

use crate::{FitReport, Mode, TrResult};

pub const BENCH_SCHEMA: &str = "tinyrustlm.bench.v1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchBundle {
    /// [`BENCH_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub program: String,
    pub outcome: BenchOutcome,
}

/// All figures, or the reasons why there are none: a bundle never has gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BenchOutcome {
    Complete(Box<BenchFigures>),
    Refused(Vec<BenchReason>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchReason {
    /// Which part could not be measured.
    pub part: BenchPart,
    pub what: String,
    /// Of the engine, if it was the engine that refused.
    pub code: Option<TrResult>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchPart {
    Load,
    FirstToken,
    Prefill,
    Decode,
    Cancel,
}

/// Times are milliseconds. A list holds one value for each repetition, in the order they ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchFigures {
    pub model: BenchModel,
    pub engine: BenchEngine,
    /// From the wish to load a stored model to a model that can answer; the first is cold.
    pub load_ms: Vec<f64>,
    pub first_token_ms: BenchFirstToken,
    pub prefill: Vec<BenchRun>,
    pub decode: Vec<BenchRun>,
    /// Bytes by purpose; nothing beyond them is ever taken for this model.
    pub memory: FitReport,
    /// From the wish to stop during a long prefill to the end of the request.
    pub cancel_ms: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchModel {
    pub name: String,
    pub id: ModelId,
}

/// What ran, and what it says that it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchEngine {
    /// Name of a lane, or of the native kernels.
    pub lane: String,
    /// Of the lane's module; the native program has none.
    pub sha256: Option<Digest>,
    pub mode: Mode,
    pub threads: u32,
    /// Kernel calls by path since the engine started.
    pub scalar_calls: u64,
    pub simd_calls: u64,
    /// With the relaxed integer dot product; not among `simd_calls`.
    pub relaxed_calls: u64,
}

/// From the wish to the first token after a prompt of [`BENCH_SHORT`] tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchFirstToken {
    /// The model is not loaded, and this engine has not computed yet.
    pub cold: f64,
    /// The model is not loaded, but was.
    pub cached: f64,
    /// The model is loaded.
    pub warm: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchRun {
    /// Tokens read, or written after the first one.
    pub tokens: u32,
    pub ms: f64,
    /// Milliseconds of all threads on a core, where the system tells them.
    pub cpu_ms: Option<f64>,
}

/// Tokens of the prompt before the first token, and before decode.
pub const BENCH_SHORT: u32 = 16;

/// Ids of a prompt for measuring, below `vocab`.
pub fn bench_prompt(tokens: u32, vocab: u32) -> Vec<u32> {
    (0..tokens)
        .map(|position| (position * 37 + 11) % vocab.max(1))
        .collect()
}

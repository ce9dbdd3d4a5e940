//! The results: every single run, as one JSON document.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{BenchError, Result};
use crate::machine::Machine;
use crate::task::Work;

pub const SCHEMA: &str = "tinyrustlm.comparison.v1";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bundle {
    pub schema: String,
    pub machine: Machine,
    pub models: Vec<ModelResults>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ModelResults {
    pub model: String,
    /// What a token reads of the weights.
    pub weight_bytes: u64,
    /// Gigabytes a second that one thread and two threads read, before and after.
    pub bandwidth: [Vec<f64>; 2],
    pub entries: Vec<Entry>,
}

/// One engine with one number of threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Entry {
    pub engine: String,
    pub version: String,
    pub threads: usize,
    /// Bytes at hand to an engine that can answer.
    pub load_s: Option<f64>,
    /// Right after the load, when a browser has not optimized the code yet.
    pub first_use: Vec<Sample>,
    pub samples: Vec<Sample>,
    /// From the start of a new page in a new browser process to the first token.
    pub first_token_s: Vec<f64>,
    pub peak_mib: Option<f64>,
    /// Why there are no samples, or fewer than wanted.
    pub refused: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub work: Work,
    pub tokens: u32,
    pub wall_s: f64,
    /// Of all threads of the engine's processes.
    pub cpu_s: f64,
    /// The share of their time that the working threads waited for a core.
    pub waited: Option<f64>,
}

impl Bundle {
    pub fn read(folder: &Path) -> Result<Bundle> {
        let path = folder.join("comparison.json");
        let text = std::fs::read_to_string(&path).map_err(BenchError::io(&path))?;
        serde_json::from_str(&text).map_err(|error| BenchError::answer("comparison.json", error))
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
        let path = folder.join("comparison.json");
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| BenchError::answer("comparison.json", error))?;
        std::fs::write(&path, text + "\n").map_err(BenchError::io(&path))?;
        let path = folder.join("comparison.md");
        std::fs::write(&path, crate::report::markdown(self)).map_err(BenchError::io(&path))
    }
}

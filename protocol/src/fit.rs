//! The memory of a model as people see it: what is planned, what was taken, and what helps if it
//! is too much.

use alloc::string::String;
use alloc::vec::Vec;

use format::ModelId;
use serde::{Deserialize, Serialize};

use crate::abi::Plan;
use crate::{KvFormat, Residency};

/// Bytes of every region, see [`Plan`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regions {
    pub weights: u64,
    pub metadata: u64,
    pub kv: u64,
    pub scratch: u64,
    pub logits: u64,
    pub sampler: u64,
    pub tokenizer: u64,
    pub control: u64,
    pub stacks: u64,
    pub transfer: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FitReport {
    pub weights: u64,
    pub metadata: u64,
    pub kv: u64,
    pub scratch: u64,
    pub logits: u64,
    pub sampler: u64,
    /// Of the engine; the host's own tables are not among these.
    pub tokenizer: u64,
    pub control: u64,
    pub stacks: u64,
    pub transfer: u64,
    /// Sum of all: the peak of prefill.
    pub total: u64,
    pub limit: u64,
    /// What decoding touches of it.
    pub decode: u64,
    /// Bytes read from the file for one token.
    pub streamed: u64,
    pub context: u32,
    pub residency: Residency,
    pub kv_format: KvFormat,
    /// Layers in memory, of `layers`.
    pub kept_layers: u32,
    pub layers: u32,
    /// What was really taken, once a model is loaded.
    pub taken: Option<Regions>,
}

/// How a model is to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// 0 takes the most of the usual ones that fits.
    pub context: u32,
    pub kv_format: KvFormat,
    pub residency: Residency,
}

/// Whether a model fits, said before a byte of its weights is fetched or read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// Known for a stored model and for one of a catalogue.
    pub model: Option<ModelId>,
    pub name: String,
    /// As it would be loaded; if nothing fits, as it would take least without a lever.
    pub report: FitReport,
    /// The first region for which too little is left.
    pub over: Option<Short>,
    /// What makes it fit, best first; empty if it fits, or if nothing helps.
    pub levers: Vec<Lever>,
}

/// `REGION_...`, what was left for it, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Short {
    pub region: u32,
    pub left: u64,
    pub needed: u64,
}

/// A way of loading a model that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lever {
    pub wish: Wish,
    pub report: FitReport,
}

impl Wish {
    /// All of the model in memory, and as much room as fits.
    pub const USUAL: Wish = Wish {
        context: 0,
        kv_format: KvFormat::F16,
        residency: Residency::Full,
    };
}

impl Regions {
    fn of(plan: &Plan) -> Regions {
        Regions {
            weights: plan.weights,
            metadata: plan.metadata,
            kv: plan.kv,
            scratch: plan.scratch,
            logits: plan.logits,
            sampler: plan.sampler,
            tokenizer: plan.tokenizer,
            control: plan.control,
            stacks: plan.stacks,
            transfer: plan.transfer,
        }
    }

    pub fn total(&self) -> u64 {
        let parts = [
            self.weights,
            self.metadata,
            self.kv,
            self.scratch,
            self.logits,
            self.sampler,
            self.tokenizer,
            self.control,
            self.stacks,
            self.transfer,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl FitReport {
    /// Codes that this build does not know are taken for the usual ones.
    pub fn of(plan: &Plan, taken: Option<&Plan>) -> FitReport {
        let regions = Regions::of(plan);
        FitReport {
            weights: regions.weights,
            metadata: regions.metadata,
            kv: regions.kv,
            scratch: regions.scratch,
            logits: regions.logits,
            sampler: regions.sampler,
            tokenizer: regions.tokenizer,
            control: regions.control,
            stacks: regions.stacks,
            transfer: regions.transfer,
            total: plan.total,
            limit: plan.limit,
            decode: plan.decode,
            streamed: plan.streamed,
            context: plan.context,
            residency: Residency::from_code(plan.residency).unwrap_or_default(),
            kv_format: KvFormat::from_code(plan.kv_format).unwrap_or(KvFormat::F16),
            kept_layers: plan.kept_layers,
            layers: plan.layers,
            taken: taken.map(Regions::of),
        }
    }

    /// The planned regions alone.
    pub fn regions(&self) -> Regions {
        Regions {
            weights: self.weights,
            metadata: self.metadata,
            kv: self.kv,
            scratch: self.scratch,
            logits: self.logits,
            sampler: self.sampler,
            tokenizer: self.tokenizer,
            control: self.control,
            stacks: self.stacks,
            transfer: self.transfer,
        }
    }
}

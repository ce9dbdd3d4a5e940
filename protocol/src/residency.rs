//! Which weights are in memory, and the regions of a memory plan.

use serde::{Deserialize, Serialize};

use crate::abi::{
    Plan, REGION_CONTROL, REGION_KV, REGION_LOGITS, REGION_METADATA, REGION_SAMPLER,
    REGION_SCRATCH, REGION_STACKS, REGION_TOKENIZER, REGION_TRANSFER, REGION_WEIGHTS,
    RESIDENCY_FULL, RESIDENCY_HYBRID, RESIDENCY_PAGED,
};

/// Where weights are while a model computes. No choice changes a bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Residency {
    /// All in memory.
    #[default]
    Full,
    /// Embedding, norms, head and the first layers in memory, the others read when needed. Every
    /// layer is used once a token, so none is worth more than another.
    Hybrid,
    /// Norms and biases in memory, everything else read when needed.
    Paged,
}

impl Residency {
    pub const ALL: [Residency; 3] = [Residency::Full, Residency::Hybrid, Residency::Paged];

    /// The mode that `RESIDENCY_...` stands for.
    pub fn from_code(code: u32) -> Option<Residency> {
        Residency::ALL.into_iter().find(|mode| mode.code() == code)
    }

    pub fn code(self) -> u32 {
        match self {
            Residency::Full => RESIDENCY_FULL,
            Residency::Hybrid => RESIDENCY_HYBRID,
            Residency::Paged => RESIDENCY_PAGED,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Residency::Full => "full",
            Residency::Hybrid => "hybrid",
            Residency::Paged => "paged",
        }
    }
}

/// A region for which too little is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// `REGION_...`.
    pub region: u32,
    pub left: u64,
    pub needed: u64,
}

impl Plan {
    /// All regions with their bytes, in the order in which room is given to them: what is there
    /// anyway first, and what can be chosen smallest last.
    pub fn regions(&self) -> [(u32, u64); 10] {
        [
            (REGION_CONTROL, self.control),
            (REGION_STACKS, self.stacks),
            (REGION_TRANSFER, self.transfer),
            (REGION_TOKENIZER, self.tokenizer),
            (REGION_METADATA, self.metadata),
            (REGION_LOGITS, self.logits),
            (REGION_SAMPLER, self.sampler),
            (REGION_SCRATCH, self.scratch),
            (REGION_WEIGHTS, self.weights),
            (REGION_KV, self.kv),
        ]
    }

    /// The sum of all regions; saturating, so a plan that is absurd is merely too large.
    pub fn sum(&self) -> u64 {
        let regions = self.regions().into_iter();
        regions.fold(0, |sum, (_, bytes)| sum.saturating_add(bytes))
    }

    /// The first region that does not fit within the limit, if one does not. `block_max` is the
    /// most that weights may be in one piece.
    pub fn over(&self, block_max: u64) -> Option<Over> {
        let mut left = self.limit;
        for (region, needed) in self.regions() {
            let most = match region {
                REGION_WEIGHTS => left.min(block_max),
                _ => left,
            };
            if needed > most {
                return Some(Over {
                    region,
                    left: most,
                    needed,
                });
            }
            left -= needed;
        }
        None
    }
}

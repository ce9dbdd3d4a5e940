//! Rotary position embedding (Su et al. 2021), with the published context scalings.
//!
//! Angles are taken in f64 with `libm`, which is the same code in every lane, and rounded once to
//! f32 cosines and sines. A tile's angles are made when the tile begins and serve all its layers.

use alloc::vec::Vec;
use core::f64::consts::PI;

use format::{Rope, RopePairing, RopeScaling};
use protocol::Stage;

use crate::RuntimeError;
use crate::error::take_memory;

/// Which elements rotate together, how fast, and by how much cosine and sine are scaled.
pub struct Rotary {
    pairing: RopePairing,
    /// `[dim / 2]` radians per position.
    frequencies: Vec<f64>,
    /// The attention factor of YaRN; 1 elsewhere.
    scale: f64,
}

impl Rotary {
    /// Allocates `dim / 2` frequencies.
    pub fn new(rope: &Rope) -> Result<Rotary, RuntimeError> {
        let half = rope.dim as usize / 2;
        let mut frequencies = take_memory(half, Stage::Allocate)?;
        for (pair, frequency) in frequencies.iter_mut().enumerate() {
            *frequency = scaled_frequency(rope, pair);
        }
        let scale = match rope.scaling {
            RopeScaling::Yarn {
                attention_factor, ..
            } => attention_factor,
            _ => 1.0,
        };
        Ok(Rotary {
            pairing: rope.pairing,
            frequencies,
            scale,
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        (self.frequencies.capacity() * size_of::<f64>()) as u64
    }

    /// Pairs that rotate in one head: the length of a position's cosines and of its sines.
    pub fn pairs(&self) -> usize {
        self.frequencies.len()
    }

    /// Writes `cos[pairs]` and `sin[pairs]` of one position.
    pub fn angles(&self, position: u32, cos: &mut [f32], sin: &mut [f32]) {
        let out = cos.iter_mut().zip(sin.iter_mut());
        for (frequency, (cos, sin)) in self.frequencies.iter().zip(out) {
            let (sine, cosine) = libm::sincos(f64::from(position) * frequency);
            *cos = (cosine * self.scale) as f32;
            *sin = (sine * self.scale) as f32;
        }
    }

    /// Which elements of a head rotate together.
    pub fn pairing(&self) -> RopePairing {
        self.pairing
    }
}

/// Radians per position of pair `pair`.
fn scaled_frequency(rope: &Rope, pair: usize) -> f64 {
    let frequency = libm::pow(rope.base, -(2.0 * pair as f64) / f64::from(rope.dim));
    match rope.scaling {
        RopeScaling::None => frequency,
        RopeScaling::Linear { factor } => frequency / factor,
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_context,
        } => {
            // Turns within the original context: few are interpolated, many are left alone.
            let turns = f64::from(original_context) * frequency / (2.0 * PI);
            if turns < low_freq_factor {
                frequency / factor
            } else if turns > high_freq_factor {
                frequency
            } else {
                let keep = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                (1.0 - keep) * frequency / factor + keep * frequency
            }
        }
        RopeScaling::Yarn {
            factor,
            beta_fast,
            beta_slow,
            original_context,
            truncate,
            ..
        } => {
            // Pair at which a frequency makes `turns` turns within the original context.
            let pair_at = |turns: f64| {
                let wavelengths = f64::from(original_context) / (turns * 2.0 * PI);
                f64::from(rope.dim) * libm::log(wavelengths) / (2.0 * libm::log(rope.base))
            };
            let (mut low, mut high) = (pair_at(beta_fast), pair_at(beta_slow));
            if truncate {
                (low, high) = (libm::floor(low), libm::ceil(high));
            }
            low = low.max(0.0);
            high = high.min(f64::from(rope.dim - 1));
            if low == high {
                high += 0.001;
            }
            let interpolate = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
            frequency / factor * interpolate + frequency * (1.0 - interpolate)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::vec::Vec;

    use serde_json::Value;

    use super::*;
    use crate::kernels::Kernels;

    fn golden(name: &str) -> Vec<Value> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden/ops");
        let text = std::fs::read_to_string(folder.join(name)).expect("golden ops folder");
        let value: Value = serde_json::from_str(&text).expect("golden JSON");
        value["cases"].as_array().expect("cases").clone()
    }

    fn floats(value: &Value) -> Vec<f32> {
        let numbers = value.as_array().expect("array").iter();
        numbers
            .map(|n| n.as_f64().expect("number") as f32)
            .collect()
    }

    fn number(case: &Value, key: &str) -> f64 {
        case[key].as_f64().expect("number")
    }

    /// Expected: `ops/rope.json`, float64 angles. Each product and the sum round once.
    #[test]
    fn rotates_as_the_reference() {
        for case in golden("rope.json") {
            let pairing = match case["style"].as_str() {
                Some("half") => RopePairing::Half,
                Some("interleaved") => RopePairing::Interleaved,
                other => panic!("unknown style {other:?}"),
            };
            let rope = Rope {
                base: number(&case, "theta"),
                pairing,
                dim: number(&case, "rotary_dim") as u32,
                scaling: RopeScaling::None,
            };
            let rotary = Rotary::new(&rope).expect("small");
            let (mut cos, mut sin) = (
                std::vec![0.0; rotary.pairs()],
                std::vec![0.0; rotary.pairs()],
            );
            rotary.angles(number(&case, "position") as u32, &mut cos, &mut sin);
            let mut head = floats(&case["x"]);
            let head_dim = head.len();
            Kernels::SCALAR.rope(&mut head, head_dim, pairing, &cos, &sin);
            for (found, expected) in head.iter().zip(floats(&case["expected"])) {
                assert!(
                    (found - expected).abs() <= 1e-6,
                    "{found} {expected} {case}"
                );
            }
        }
    }

    /// Expected: `ops/rope_scaling.json`, float64 rounded to float32: equal but for one rounding.
    #[test]
    fn scales_frequencies_as_published() {
        for case in golden("rope_scaling.json") {
            let context = || number(&case, "original_max_position_embeddings") as u32;
            let factor = number(&case, "factor");
            let scaling = match case["type"].as_str() {
                Some("linear") => RopeScaling::Linear { factor },
                Some("llama3") => RopeScaling::Llama3 {
                    factor,
                    low_freq_factor: number(&case, "low_freq_factor"),
                    high_freq_factor: number(&case, "high_freq_factor"),
                    original_context: context(),
                },
                Some("yarn") => RopeScaling::Yarn {
                    factor,
                    beta_fast: number(&case, "beta_fast"),
                    beta_slow: number(&case, "beta_slow"),
                    original_context: context(),
                    attention_factor: number(&case, "attention_factor"),
                    truncate: case["truncate"].as_bool().expect("bool"),
                },
                other => panic!("unknown type {other:?}"),
            };
            let rope = Rope {
                base: number(&case, "theta"),
                pairing: RopePairing::Half,
                dim: number(&case, "head_dim") as u32,
                scaling,
            };
            let rotary = Rotary::new(&rope).expect("small");
            for (found, expected) in rotary.frequencies.iter().zip(floats(&case["inv_freq"])) {
                let error = (*found as f32 - expected).abs() / expected;
                assert!(error <= 1.2e-7, "{found} {expected} {case}");
            }
            assert_eq!(
                rotary.scale as f32,
                number(&case, "attention_factor") as f32
            );
        }
    }
}

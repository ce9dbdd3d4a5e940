//! Vectors that can be checked by hand, and two whole paths whose outcome is plain.
//!
//! The vectors stand in `vectors/by_hand.json`, each with where it comes from; `vectors/make.py`
//! makes them and knows nothing of this engine.

use alloc::vec;
use alloc::vec::Vec;

use format::{Layout, Rope, RopePairing, RopeScaling, pack_r4};
use serde_json::Value;

use super::operands::product;
use super::routing;
use crate::kernels::{Kernels, Matrix};
use crate::rope::Rotary;
use crate::sampler::{Sampler, Settings};

type Outcome = Result<u64, &'static str>;
type Floats = Result<Vec<f32>, &'static str>;

const VECTORS: &str = include_str!("../../../vectors/by_hand.json");
const SCHEMA: &str = "tinyrustlm.golden-vector.v1";
const MALFORMED: &str = "a vector is malformed";

pub fn rope(kernels: Kernels) -> Outcome {
    every("rope", |vector, floats| turned(kernels, vector, floats))
}

pub fn swiglu(kernels: Kernels) -> Outcome {
    every("silu_mul", |_, floats| {
        let (gate, up) = floats.split_at(floats.len() / 2);
        let mut out = vec![f32::NAN; gate.len()];
        kernels.silu_mul(gate, up, &mut out);
        Ok(out)
    })
}

pub fn tails(kernels: Kernels) -> Outcome {
    every("matmul_strict", |vector, floats| {
        let (rows, cols) = (
            size(&vector["shape"]["rows"]),
            size(&vector["shape"]["cols"]),
        );
        let bytes = blocks(&vector["input"]["blocks"], rows)?;
        let w = Matrix::new(Layout::Q8_0R4, rows, cols, &bytes).map_err(|_| "matrix refused")?;
        Ok(product(kernels, &w, floats, false, 1))
    })
}

/// Four query heads on two key/value heads: the first two read only the first, the others only the
/// second, however large the keys are.
pub fn heads(kernels: Kernels) -> Outcome {
    let logits = routing::logits(kernels).map_err(|_| "the model refused")?;
    // 3 / sqrt(9 + 1e-5) in float32, as numpy computes it.
    let size = f32::from_bits(0x3f7f_fff6);
    let want = |at: usize| match at {
        0..16 => size,
        16..32 => -size,
        _ => 0.0,
    };
    match (0..50).all(|at| logits[at].to_bits() == want(at).to_bits()) {
        true => Ok(0),
        false => Err("a query head reads another key head's values"),
    }
}

/// A repeated token becomes less likely whatever the sign of its logit: 3 / 2 < 2, and
/// -1 * 2 < -1.5, where dividing both would keep the second at -0.5.
pub fn repetition(_: Kernels) -> Outcome {
    for (logits, repeated, want) in [
        ([3.0, 2.0, -9.0], 0, 1),
        ([-9.0, -1.0, -1.5], 1, 2),
        ([5.0, 2.0, -9.0], 0, 0),
        ([-1.0, -2.5, -9.0], 0, 0),
        ([0.0, -0.5, -9.0], 0, 0),
    ] {
        let settings = Settings {
            repetition_penalty: 2.0,
            vocab: 3,
            ..Settings::GREEDY
        };
        let mut sampler = Sampler::new(3).map_err(|_| "no memory")?;
        sampler.begin(&settings).map_err(|_| "settings refused")?;
        sampler.observe(repeated);
        let choice = sampler.sample(&logits).map_err(|_| "logits refused")?;
        if choice.token != Some(want) {
            return Err("a repetition penalty turned the wrong way");
        }
    }
    Ok(0)
}

/// Compares what `compute` makes of each vector of this operator.
fn every(operator: &str, compute: impl Fn(&Value, &[f32]) -> Floats) -> Outcome {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).map_err(|_| MALFORMED)?;
    let mut count = 0;
    for vector in vectors
        .iter()
        .filter(|vector| vector["operator"] == operator)
    {
        if vector["schema"] != SCHEMA || vector["runtime_semantics"] != 1 {
            return Err(MALFORMED);
        }
        let got = compute(vector, &floats(&vector["input"]["floats"])?)?;
        let want = floats(&vector["expected"]["values"])?;
        let ulp = size(&vector["alternate_tolerance"]["max_ulp"]) as u32;
        let close = |(got, want): (&f32, &f32)| order(*got).abs_diff(order(*want)) <= ulp;
        if got.len() != want.len() || !got.iter().zip(&want).all(close) {
            return Err("a vector that was computed by hand differs");
        }
        count += 1;
    }
    match count {
        0 => Err("there are no such vectors"),
        _ => Ok(0),
    }
}

fn turned(kernels: Kernels, vector: &Value, floats: &[f32]) -> Floats {
    let input = &vector["input"];
    let pairing = match input["pairing"].as_str() {
        Some("half") => RopePairing::Half,
        Some("interleaved") => RopePairing::Interleaved,
        _ => return Err(MALFORMED),
    };
    let rotary = Rotary::new(&Rope {
        base: input["base"].as_f64().ok_or(MALFORMED)?,
        pairing,
        dim: floats.len() as u32,
        scaling: RopeScaling::None,
    });
    let rotary = rotary.map_err(|_| "rotation refused")?;
    let pairs = floats.len() / 2;
    let (mut cos, mut sin) = (vec![0.0; pairs], vec![0.0; pairs]);
    rotary.angles(size(&input["position"]) as u32, &mut cos, &mut sin);
    let mut out = floats.to_vec();
    kernels.rope(&mut out, floats.len(), pairing, &cos, &sin);
    Ok(out)
}

/// Rows of ggml blocks in hexadecimal digits, packed as a file has them.
fn blocks(digits: &Value, rows: usize) -> Result<Vec<u8>, &'static str> {
    let digits = digits.as_str().ok_or(MALFORMED)?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let bytes = bytes.ok_or(MALFORMED)?;
    let row = bytes.len() / rows;
    let mut packed = Vec::new();
    for group in bytes.chunks(4 * row) {
        let mut rows = group.chunks(row);
        let rows = [rows.next(), rows.next(), rows.next(), rows.next()];
        let mut out = vec![0; 4 * row];
        pack_r4(Layout::Q8_0R4, rows, &mut out).map_err(|_| MALFORMED)?;
        packed.extend_from_slice(&out);
    }
    Ok(packed)
}

fn floats(words: &Value) -> Floats {
    let words = words.as_array().ok_or(MALFORMED)?.iter();
    let float = |word: &Value| {
        let digits = word.as_str()?.strip_prefix("0x")?;
        u32::from_str_radix(digits, 16).ok().map(f32::from_bits)
    };
    words.map(|word| float(word).ok_or(MALFORMED)).collect()
}

fn size(value: &Value) -> usize {
    value.as_u64().unwrap_or(0) as usize
}

/// Neighbouring floats have neighbouring numbers; the two zeros stay apart.
fn order(x: f32) -> i32 {
    let bits = x.to_bits() as i32;
    if bits < 0 {
        i32::MIN.wrapping_sub(bits).wrapping_sub(1)
    } else {
        bits
    }
}

//! The real model (SmolLM2-135M-Instruct, Q4_1) against PyTorch on the dequantized weights.
//!
//! Expected values and tolerances are those of `golden/README.md`. In mode `strict-f32-v1` with an
//! f32 cache, logits are within 5e-4 and every greedy token is equal, unless the reference itself
//! is nearer than 5e-4 to a tie. In mode `int8-v1`, whose activations have 8 bits, the README asks
//! to judge by figures: llama.cpp's 8-bit kernels gave 38 of 40 first tokens and no departure at a
//! margin of 0.58 or more; asked here are 93 of 100 and no departure at 1.0 or more.
//!
//! The strict test takes the first 20 prompts; `TINYRUSTLM_ALL_PROMPTS=1` makes it take all 100.

#![allow(clippy::unwrap_used)]

mod golden;
mod models;

use std::fs;
use std::sync::OnceLock;

use format::Header;
use models::{INT8, STRICT, engine, finish, greedy, open};
use runtime::{Kernels, Model, Options, Request};
use serde_json::Value;

const NOISE: f64 = 5e-4;
const NEW: u32 = 16;

fn model(options: Options) -> Model {
    static FILE: OnceLock<(Header, Vec<u8>)> = OnceLock::new();
    let (header, file) = FILE.get_or_init(golden::real_model);
    // The longest prompt has 71 ids.
    let options = Options {
        context: 128,
        ..options
    };
    open(header, file, options, engine(Kernels::best(), 2))
}

struct Case {
    id: String,
    prompt: Vec<u32>,
    new: Vec<u32>,
    margins: Vec<f64>,
}

fn cases() -> Vec<Case> {
    let file = golden::json("smollm2-135m/greedy.json");
    let case = |case: &Value| Case {
        id: case["id"].to_string(),
        prompt: golden::ids(&case["prompt_ids"]),
        new: golden::ids(&case["new_ids"]),
        margins: golden::numbers(&case["margin"]),
    };
    let cases: Vec<Case> = file["cases"].as_array().unwrap().iter().map(case).collect();
    assert_eq!(cases.len(), 100);
    cases
}

/// Greedy tokens, and the logits after the prompt.
fn continuation(model: &mut Model, case: &Case) -> (Vec<u32>, Vec<f32>) {
    let request = greedy(model, &case.prompt, NEW);
    let request = Request {
        digest: false,
        ..request
    };
    model.begin(request).unwrap();
    let first = loop {
        let step = model.step().unwrap();
        if step.has_token == 1 {
            break step.token;
        }
    };
    let logits = model.logits().to_vec();
    let rest = finish(model).unwrap().ids;
    ([&[first], &rest[..]].concat(), logits)
}

/// `logits.npy`: float32, ten rows of the vocabulary, little endian, in C order.
fn reference_logits() -> Vec<Vec<f32>> {
    let bytes = fs::read(golden::path("smollm2-135m/logits.npy")).expect("golden logits");
    let header_len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, data) = bytes[10..].split_at(header_len);
    let header = std::str::from_utf8(header).unwrap();
    assert!(header.contains("'<f4'") && header.contains("(10, 49152)"));
    let rows = data.chunks_exact(49152 * 4);
    let floats = |row: &[u8]| {
        let values = row.as_chunks::<4>().0.iter();
        values.map(|bits| f32::from_le_bytes(*bits)).collect()
    };
    rows.map(floats).collect()
}

#[test]
fn strict_logits_and_continuations_equal_the_reference() {
    let all = std::env::var("TINYRUSTLM_ALL_PROMPTS").is_ok_and(|value| value == "1");
    let reference = reference_logits();
    let mut model = model(STRICT);
    let (mut worst, mut ties) = (0.0, Vec::new());
    for (index, case) in cases().iter().take(if all { 100 } else { 20 }).enumerate() {
        let (found, logits) = continuation(&mut model, case);
        if let Some(expected) = reference.get(index) {
            let pairs = logits.iter().zip(expected);
            worst = pairs.map(|(a, b)| (a - b).abs()).fold(worst, f32::max);
            assert!(worst <= 5e-4, "case {}: {worst}", case.id);
        }
        // After a tie the rest of the case says nothing.
        let tie = case.margins.iter().position(|margin| *margin < NOISE);
        ties.extend(tie.map(|step| (case.id.clone(), step)));
        let said = tie.unwrap_or(NEW as usize);
        assert_eq!(found[..said], case.new[..said], "case {}", case.id);
    }
    println!("largest logit difference {worst:e}, ties passed over {ties:?}");
}

#[test]
fn int8_departs_only_near_ties() {
    let mut model = model(INT8);
    let (mut first_equal, mut all_equal, mut departures) = (0, 0, Vec::new());
    for case in cases() {
        let (found, _) = continuation(&mut model, &case);
        let departure = found.iter().zip(&case.new).position(|(a, b)| a != b);
        first_equal += u32::from(departure != Some(0));
        all_equal += u32::from(departure.is_none());
        departures.extend(departure.map(|step| (case.margins[step], step, case.id)));
    }
    departures.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("first token equal in {first_equal}, all {NEW} in {all_equal} of 100");
    println!(
        "widest margins of a departure, step, case: {:?}",
        &departures[..5]
    );
    assert!(first_equal >= 93, "{first_equal} of 100 first tokens");
    assert!(departures[0].0 < 1.0, "{:?}", departures[0]);
}

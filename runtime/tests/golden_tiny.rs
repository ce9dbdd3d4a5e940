//! Whole models against PyTorch: every `golden/tiny/llama_*`, in mode `strict-f32-v1` with an f32
//! cache.
//!
//! Expected values and tolerances are those of `golden/README.md`: logits within 1e-4, or ten times
//! the model's own float32-to-float64 difference; the smallest margin is 0.0011, so the most likely
//! token of every position and all greedy tokens must be equal.

#![allow(clippy::unwrap_used)]

mod golden;
mod models;

use models::{STRICT, engine, finish, greedy, open};
use runtime::{Kernels, Options, Request};

#[track_caller]
fn check(name: &str) {
    let (header, file) = golden::folder(&format!("tiny/{name}"));
    let expected = golden::json(&format!("tiny/{name}/expected.json"));
    let difference = expected["f32_vs_f64_max_abs_diff"]["logits_all_positions"].as_f64();
    let tolerance = (10.0 * difference.unwrap()).max(1e-4) as f32;
    let sequences = expected["sequences"].as_array().unwrap();
    assert_eq!(sequences.len(), 3);
    // A tile that divides no sequence evenly, and the default.
    for (prefill_tile, workers) in [(5, 1), (0, 2)] {
        let options = Options {
            prefill_tile,
            ..STRICT
        };
        let mut model = open(&header, &file, options, engine(Kernels::best(), workers));
        for (index, sequence) in sequences.iter().enumerate() {
            let place = format!("{name}, sequence {index}, tile {prefill_tile}");
            let ids = golden::ids(&sequence["input_ids"]);
            let request = greedy(&model, &ids, 24);
            model
                .begin(Request {
                    argmax: true,
                    ..request
                })
                .unwrap();
            let first = loop {
                let step = model.step().unwrap();
                if step.has_token == 1 {
                    break step.token;
                }
            };
            assert_eq!(model.argmax(), golden::ids(&sequence["argmax"]), "{place}");
            let logits = golden::floats(&sequence["last_logits"]);
            assert_eq!(model.logits().len(), logits.len());
            let pairs = model.logits().iter().zip(&logits);
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst <= tolerance, "{place}: {worst} > {tolerance}");
            let rest = finish(&mut model).unwrap().ids;
            let found = [&[first], &rest[..]].concat();
            assert_eq!(found, golden::ids(&sequence["greedy"]), "{place}");
        }
    }
}

#[test]
fn multi_head_untied() {
    check("llama_mha");
}

#[test]
fn grouped_queries_tied() {
    check("llama_gqa_tied");
}

#[test]
fn one_key_value_head_and_a_head_width_of_its_own() {
    check("llama_gqa_headdim");
}

/// Every layer sees 12 positions: the rings of the cache against PyTorch.
#[test]
fn a_sliding_window() {
    check("mistral_swa");
}

#[test]
fn biases_everywhere() {
    check("llama_bias");
}

#[test]
fn bf16_weights() {
    check("llama_bf16");
}

#[test]
fn f16_weights() {
    check("llama_f16");
}

#[test]
fn linear_rope_scaling() {
    check("llama_rope_linear");
}

#[test]
fn llama3_rope_scaling() {
    check("llama_rope_llama3");
}

#[test]
fn yarn_rope_scaling() {
    check("llama_rope_yarn");
}

#[test]
fn sharded_checkpoint() {
    check("llama_sharded");
}

/// Every llama model of the golden folder is in the list above.
#[test]
fn no_model_is_forgotten() {
    let folders = std::fs::read_dir(golden::path("tiny")).expect("golden folder tiny");
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("llama_")).count(), 10);
}

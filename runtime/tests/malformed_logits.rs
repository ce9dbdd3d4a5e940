//! Section 6 of the numerical contract: logits that are no numbers end a request, or are masked and
//! counted if the request says so.

#![allow(clippy::unwrap_used)]

mod models;

use format::{Header, Layout};
use models::{STRICT, finish, greedy, open, run};
use protocol::abi::FINISH_NUMERICAL_COLLAPSE;
use protocol::{Stage, TrResult};
use runtime::sampler::{Malformed, Settings};
use runtime::tiny::Recipe;
use runtime::{Engine, Request, RuntimeError};

const PROMPT: [u32; 5] = [3, 14, 15, 9, 26];

fn code<T: std::fmt::Debug>(result: Result<T, RuntimeError>) -> TrResult {
    result.unwrap_err().code()
}

/// `QUANTIZED` with a float head of which one row gives infinite logits.
fn with_infinite_logit(token: u32) -> (Header, Vec<u8>) {
    let recipe = Recipe {
        head: Some(Layout::F32),
        ..Recipe::QUANTIZED
    };
    let (header, mut file) = recipe.file().unwrap();
    let start = header.tensor("head").unwrap().range.start as usize + token as usize * 32 * 4;
    for weight in file[start..start + 32 * 4].as_chunks_mut::<4>().0 {
        let sign = f32::from_le_bytes(*weight).signum();
        *weight = (sign * f32::MAX).to_le_bytes();
    }
    (header, file)
}

#[test]
fn infinite_logits_end_the_request_and_commit_nothing() {
    let (header, file) = with_infinite_logit(7);
    let mut model = open(&header, &file, STRICT, Engine::default());
    let request = greedy(&model, &PROMPT, 4);
    model.begin(request).unwrap();
    let error = finish(&mut model).unwrap_err();
    assert_eq!(error.code(), TrResult::NumericalFailure);
    assert_eq!((error.stage(), error.0.at), (Stage::Sample, 4));
    assert!(model.logits().is_empty());
    assert_eq!(code(model.step()), TrResult::IllegalState);
    model.begin(request).unwrap();
    assert_eq!(model.step().unwrap().reused, 0);
    model.stop();
    model
        .begin(Request {
            max_new: 0,
            ..request
        })
        .unwrap();
    assert_eq!(code(finish(&mut model)), TrResult::NumericalFailure);
}

#[test]
fn infinite_logits_are_masked_and_counted_on_request() {
    let (header, file) = with_infinite_logit(7);
    let mut model = open(&header, &file, STRICT, Engine::default());
    let request = greedy(&model, &PROMPT, 4);
    let sampling = Settings {
        malformed: Malformed::Mask,
        ..request.sampling
    };
    let outcome = run(
        &mut model,
        Request {
            sampling,
            ..request
        },
    );
    assert_eq!(outcome.ids.len(), 4);
    assert!(!outcome.ids.contains(&7));
    assert_eq!(model.malformed_logits(), 4);
    assert_eq!(model.logits()[7], f32::NEG_INFINITY);
    // If the only token that may be drawn is malformed, nothing is left.
    let (header, file) = with_infinite_logit(0);
    let mut model = open(&header, &file, STRICT, Engine::default());
    let sampling = Settings {
        vocab: 1,
        ..sampling
    };
    let outcome = run(
        &mut model,
        Request {
            sampling,
            ..request
        },
    );
    assert_eq!(outcome.last.finish, FINISH_NUMERICAL_COLLAPSE);
    assert_eq!((outcome.last.has_token, outcome.ids.len()), (0, 0));
}

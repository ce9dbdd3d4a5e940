//! What does not fit, and what helps. Wanted values: the plans of the single ways, and that what is
//! advised runs.
#![allow(clippy::unwrap_used)]

mod calls;
#[path = "../../e2e/src/sized.rs"]
mod sized;

use calls::{code_and_words, convert, converted, program, shared_golden, text};
use serde_json::{Value, json};

/// The answer in JSON, the exit code, and what stands on standard error.
fn fit(model: &str, arguments: &[&str]) -> (Value, i32, String) {
    let output = program(&[&["fit", model, "--json"][..], arguments].concat(), "");
    let told = serde_json::from_slice(&output.stdout).unwrap();
    (told, output.status.code().unwrap(), text(&output.stderr))
}

fn total(model: &str, arguments: &[&str]) -> u64 {
    let (told, code, words) = fit(model, arguments);
    assert_eq!((&told["fits"], code), (&json!(true), 0), "{words}");
    told["plan"]["total"].as_u64().unwrap()
}

fn megabytes(bytes: u64) -> String {
    (bytes as f64 / 1e6).to_string()
}

/// A model that does not fit names what helps, and what helps gives the same logits.
#[test]
fn fit_says_what_helps_and_that_changes_no_logit() {
    let folder = tempfile::tempdir().unwrap();
    let (model, expected) = converted("llama_mha", folder.path());
    let little = megabytes(total(&model, &[]) - 1);
    let (told, code, words) = fit(&model, &["--memory-limit", &little]);
    assert_eq!((&told["fits"], code), (&json!(false), 3), "{words}");
    assert_eq!(told["over"]["region"], "the keys and values");
    assert!(words.contains("the keys and values need"), "{words}");
    let (paged, ..) = fit(&model, &["--residency", "paged", "--prefill-tile", "1"]);
    assert!(paged["plan"]["streamed"].as_u64().unwrap() > 0);

    let ids = &expected["sequences"][0]["input_ids"];
    let line = json!({"id": 1, "ids": ids, "max_new": 8, "ignore_eos": true}).to_string() + "\n";
    let digest = |residency: &str| {
        let output = program(&["eval", &model, "--residency", residency], &line);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        reply["logits_sha256"].clone()
    };
    let full = digest("full");
    assert!(full.is_string(), "{full}");
    assert_eq!(digest("hybrid"), full);
    assert_eq!(digest("paged"), full);
}

/// Where no single option helps, those that help together are named, and the call that is advised
/// keeps within the limit.
#[test]
fn what_helps_only_together_is_advised() {
    let folder = tempfile::tempdir().unwrap();
    // Nearly all of it is a vocabulary of 10 MB, which only the paged way leaves on the disk.
    let source = sized::sized_source(&shared_golden(), folder.path(), 40_000, 1).unwrap();
    let model = convert(&source, folder.path());
    let both = ["--residency", "paged", "--kv", "int8"];
    let least = total(&model, &both);
    assert!(least < total(&model, &both[..2]) && least < total(&model, &both[2..]));
    let limit = megabytes(least);
    let (told, code, words) = fit(&model, &["--memory-limit", &limit]);
    assert_eq!(code, 3, "{words}");
    let ways = told["levers"].as_array().unwrap();
    assert_eq!(ways.len(), 1, "{told}");
    assert_eq!(ways[0]["total"], least);
    assert!(
        words.contains("Call it with --residency paged --kv int8."),
        "{words}"
    );
    let (code, words) = code_and_words(&["fit", &model, "--memory-limit", &limit], "");
    assert_eq!(code, 3, "{words}");
    assert!(
        words.contains("Call it with --residency paged --kv int8."),
        "{words}"
    );

    let line = json!({"ids": [1, 2, 3], "max_new": 2}).to_string();
    let eval = ["eval", &model, "--memory-limit", &limit];
    let (code, words) = code_and_words(&[&eval[..], &both].concat(), &line);
    assert_eq!(code, 0, "{words}");
    // Without them it is refused in words, and the advice is named.
    let (code, words) = code_and_words(&eval, &line);
    assert_eq!(code, 1, "{words}");
    assert!(
        words.contains("the weights need") && words.contains("tinyrustlm fit"),
        "{words}"
    );

    let nothing = megabytes(least - 1);
    let (told, code, words) = fit(&model, &["--memory-limit", &nothing]);
    assert_eq!((code, told["levers"].as_array().unwrap().len()), (3, 0));
    assert!(words.contains("smaller model"), "{words}");
}

//! The program as a person or a script calls it: exit codes, words, JSON.
//!
//! Expected tokens and logits are PyTorch's (`shared/golden/README.md`).

#![allow(clippy::unwrap_used)]

mod calls;

use std::path::Path;

use calls::{code_and_words, converted, golden, program, text};
use serde_json::{Value, json};

#[test]
fn eval_gives_the_reference_continuations() {
    let folder = tempfile::tempdir().unwrap();
    let (model, expected) = converted("llama_gqa_tied", folder.path());
    let sequences = expected["sequences"].as_array().unwrap();
    let lines: Vec<String> = sequences
        .iter()
        .enumerate()
        .map(|(id, sequence)| {
            let ids = &sequence["input_ids"];
            json!({
                "id": id, "ids": ids, "max_new": 24,
                "ignore_eos": true, "logits": true, "argmax": true,
            })
            .to_string()
        })
        .collect();
    let input = lines.join("\n");
    let mut digests = Vec::new();
    for extra in [
        &["--threads", "1"][..],
        &["--threads", "3", "--prefill-tile", "7"],
    ] {
        let args = [&["eval", &model, "--mode", "strict-f32-v1"][..], extra].concat();
        let output = program(&args, &input);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let replies: Vec<Value> = text(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(replies.len(), sequences.len());
        for (reply, sequence) in replies.iter().zip(sequences) {
            assert_eq!(reply["prompt_ids"], sequence["input_ids"]);
            assert_eq!(reply["ids"], sequence["greedy"]);
            assert_eq!(reply["argmax"], sequence["argmax"]);
            assert_eq!(reply["finish"], "length");
            let found = reply["last_logits"].as_array().unwrap();
            let wanted = sequence["last_logits"].as_array().unwrap();
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                let error = found.as_f64().unwrap() - wanted.as_f64().unwrap();
                assert!(error.abs() <= 1.3e-4, "{found} is not {wanted}");
            }
        }
        digests.push(
            replies
                .iter()
                .map(|r| r["logits_sha256"].clone())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(digests[0], digests[1], "threads and tiles change no bit");
}

#[test]
fn a_refused_line_leaves_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (model, _) = converted("llama_mha", folder.path());
    let lines = [
        r#"{"id": 1, "ids": [1, 2, 3], "max_new": 2}"#,
        r#"{"id": 2, "ids": [1], "text": "both"}"#,
        r#"{"id": 3, "ids": []}"#,
        r#"{"id": 4, "ids": [999999]}"#,
        r#"{"id": 5, "messages": [{"role": "user", "content": "no tokenizer here"}]}"#,
        r#"{"id": 6, "surprise": 1}"#,
        "not JSON",
        r#"{"id": "seven", "ids": [4], "max_new": 1}"#,
    ];
    let output = program(&["eval", &model], &lines.join("\n"));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("6 lines were refused"));
    let replies: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&Value> = replies.iter().map(|reply| &reply["id"]).collect();
    let null = Value::Null;
    let wanted = [
        &json!(1),
        &json!(2),
        &json!(3),
        &json!(4),
        &json!(5),
        &json!(6),
        &null,
        &json!("seven"),
    ];
    assert_eq!(ids, wanted);
    let refused: Vec<bool> = replies.iter().map(|r| r["error"].is_string()).collect();
    assert_eq!(refused, [false, true, true, true, true, true, true, false]);
    assert_eq!(replies[7]["ids"].as_array().unwrap().len(), 1);
}

#[test]
fn exit_codes_tell_usage_refusal_and_machine_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(
        path("page.gguf"),
        "<!DOCTYPE html><html><body>404</body></html>",
    )
    .unwrap();
    std::fs::write(
        path("page.slm"),
        "<!DOCTYPE html><html><body>404</body></html>",
    )
    .unwrap();
    let out = path("out.slm");

    let check = |args: &[&str], code: i32, word: &str| {
        let (found, words) = code_and_words(args, "");
        assert_eq!(found, code, "{args:?}: {words}");
        assert!(words.contains(word), "{args:?}: {words}");
    };
    check(&[], 2, "Usage");
    check(&["frobnicate"], 2, "frobnicate");
    check(&["eval", "x.slm", "--mode", "fast"], 2, "strict-f32-v1");
    check(
        &["run", &path("missing.slm"), "--prompt", "x"],
        2,
        "missing.slm",
    );
    check(
        &["convert", &path("missing.gguf"), "-o", &out],
        2,
        "missing.gguf",
    );
    check(&["convert", &path("page.gguf"), "-o", &out], 3, "HTML");
    check(&["inspect", &path("page.slm")], 3, "page.slm");
    check(&["serve", "--app", &path("no-app")], 2, "index.html");
    assert!(!Path::new(&out).exists(), "a refusal leaves nothing");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    // A folder that is not there cannot be written to.
    let nowhere = path("no/such/folder/out.slm");
    check(
        &[
            "convert",
            golden("llama_mha").to_str().unwrap(),
            "-o",
            &nowhere,
        ],
        2,
        "out.slm",
    );
}

/// Under whatever name: nothing that is read is written over.
#[test]
fn an_input_is_never_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    for entry in std::fs::read_dir(golden("llama_mha")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), source.join(entry.file_name())).unwrap();
    }
    let weights = source.join("model.safetensors");
    let before = std::fs::read(&weights).unwrap();
    let other_name = source.join("..").join("source").join("model.safetensors");
    for output in [&weights, &other_name, &source] {
        let args = [Path::new("convert"), &source, Path::new("-o"), output];
        let args = args.map(|arg| arg.to_str().unwrap());
        assert_eq!(code_and_words(&args, "").0, 2, "{args:?}");
    }
    assert_eq!(std::fs::read(&weights).unwrap(), before);

    let (model, _) = converted("llama_mha", folder.path());
    let before = std::fs::read(&model).unwrap();
    assert_eq!(code_and_words(&["torrent", &model, "-o", &model], "").0, 2);
    assert_eq!(std::fs::read(&model).unwrap(), before);
}

#[test]
fn help_names_every_command() {
    let output = program(&["--help"], "");
    assert_eq!(output.status.code(), Some(0));
    let words = text(&output.stdout);
    for command in [
        "convert", "inspect", "fit", "run", "eval", "tokenize", "bench", "serve",
    ] {
        assert!(words.contains(command), "{command}");
        let help = program(&[command, "--help"], "");
        assert_eq!(help.status.code(), Some(0), "{command}");
        assert!(
            text(&help.stdout).contains("Usage: tinyrustlm"),
            "{command}"
        );
    }
}

#[test]
fn bench_writes_all_figures_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let (model, _) = converted("llama_mha", folder.path());
    let small = ["--json", "--runs", "3", "--prompt", "20", "--decode", "5"];
    let output = program(&[&["bench", &model][..], &small].concat(), "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let bundle: protocol::BenchBundle = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(bundle.schema, protocol::BENCH_SCHEMA);
    let protocol::BenchOutcome::Complete(figures) = bundle.outcome else {
        panic!("{bundle:?}");
    };
    let tokens = |runs: &[protocol::BenchRun]| runs.iter().map(|r| r.tokens).collect::<Vec<_>>();
    assert_eq!(tokens(&figures.prefill), [20; 3]);
    assert_eq!(tokens(&figures.decode), [4; 3]);
    assert_eq!(figures.cancel_ms.len(), 3);
    assert_eq!(figures.engine.mode, protocol::Mode::Int8V1);

    std::fs::write(&model, b"no model").unwrap();
    let output = program(&[&["bench", &model][..], &small].concat(), "");
    assert_eq!(output.status.code(), Some(3));
    let bundle: protocol::BenchBundle = serde_json::from_slice(&output.stdout).unwrap();
    let protocol::BenchOutcome::Refused(reasons) = bundle.outcome else {
        panic!("{bundle:?}");
    };
    assert_eq!(reasons[0].part, protocol::BenchPart::Load);
}

#[test]
fn inspect_finds_one_damaged_scale() {
    let folder = tempfile::tempdir().unwrap();
    let (model, _) = converted("llama_mha", folder.path());
    let output = program(&["inspect", &model, "--json", "--tensors"], "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["kind"], "bare");
    assert_eq!(
        report["architecture"]["layers"].as_array().unwrap().len(),
        3
    );
    let down = report["tensors"].as_array().unwrap().last().unwrap();
    assert_eq!(down["name"], "layers.2.down");

    let mut bytes = std::fs::read(&model).unwrap();
    let at = down["start"].as_u64().unwrap() as usize;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&model, &bytes).unwrap();
    let (code, words) = code_and_words(&["inspect", &model], "");
    assert_eq!(code, 3, "{words}");
    assert!(words.contains("layers.2.down"), "{words}");
    let (code, words) = code_and_words(&["eval", &model], r#"{"ids": [1]}"#);
    assert_eq!(code, 3, "{words}");
    assert!(words.contains("layers.2.down"), "{words}");

    bytes.truncate(bytes.len() - 1);
    std::fs::write(&model, &bytes).unwrap();
    let (code, words) = code_and_words(&["inspect", &model], "");
    assert_eq!(code, 3, "{words}");
}

//! Calls that are wrong, and files that are not what they should be: each is named as what it is.
#![allow(clippy::unwrap_used)]

mod calls;
#[path = "../../convert/tests/gguf_writer/mod.rs"]
mod gguf_writer;

use std::path::Path;

use calls::{code_and_words, converted, golden, program, text};
use serde_json::{Value, json};

/// A value that no model could take is the call's fault, and no model is read for it.
#[test]
fn a_value_out_of_range_is_wrong_usage() {
    for (option, value) in [
        ("--threads", "0"),
        ("--threads", "65"),
        ("--threads", "200"),
        ("--temperature", "-1"),
        ("--temperature", "NaN"),
        ("--temperature", "inf"),
        ("--top-p", "1.5"),
        ("--top-p", "-0.1"),
        ("--context", "0"),
        ("--max-new", "0"),
        ("--prefill-tile", "513"),
        ("--memory-limit", "0"),
        ("--memory-limit", "-5"),
    ] {
        let value = format!("{option}={value}");
        let (code, words) = code_and_words(&["run", "no.slm", "--prompt", "x", &value], "");
        assert_eq!(code, 2, "{value}: {words}");
        assert!(
            words.contains(option) && !words.contains("no.slm:"),
            "{words}"
        );
    }
    for call in [
        ["fit", "no.slm", "--threads", "65"],
        ["bench", "no.slm", "--decode", "1"],
        ["bench", "no.slm", "--prompt", "0"],
        ["inspect", "no.slm", "--root", "abc"],
    ] {
        let (code, words) = code_and_words(&call, "");
        assert_eq!(code, 2, "{call:?}: {words}");
        assert!(words.contains(call[2]), "{words}");
    }
}

#[test]
fn more_context_than_the_model_has_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let (model, expected) = converted("llama_mha", folder.path());
    let most = expected["config"]["max_position_embeddings"].as_u64();
    let most = most.unwrap_or_else(|| context(&model));
    let more = (most + 1).to_string();
    for command in ["fit", "eval", "bench"] {
        let (code, words) = code_and_words(&[command, &model, "--context", &more], "");
        assert_eq!(code, 2, "{command}: {words}");
        let wanted = format!("--context {more} is more than the {most} positions");
        assert!(
            words.contains(&wanted) && !words.contains("raise"),
            "{words}"
        );
    }
    // A prompt that is too long is another matter.
    let line = json!({"ids": vec![1; 9], "max_new": 1}).to_string();
    let output = program(&["eval", &model, "--context", "8"], &line);
    assert_eq!(output.status.code(), Some(3));
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = reply["error"].as_str().unwrap();
    assert!(
        error.contains("9 tokens") && error.contains("room for 8"),
        "{error}"
    );
}

fn context(model: &str) -> u64 {
    let output = program(&["inspect", model, "--json"], "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["architecture"]["context"].as_u64().unwrap()
}

/// Also what is refused last, when everything was written.
#[test]
fn a_conversion_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = golden("llama_mha");
    let output = format!("{}/new/", folder.path().display());
    let args = ["convert", source.to_str().unwrap(), "-o", &output];
    let (code, words) = code_and_words(&args, "");
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("folder"), "{words}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The file that is being written has a name of its own, which can be that of the input.
#[test]
fn the_unfinished_output_is_not_the_input_either() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("model.slm.part");
    std::fs::write(&input, b"GGUF").unwrap();
    let output = folder.path().join("model.slm");
    let args = [Path::new("convert"), &input, Path::new("-o"), &output];
    let args = args.map(|arg| arg.to_str().unwrap());
    let (code, _) = code_and_words(&args, "");
    assert_ne!(code, 0);
    assert_eq!(std::fs::read(&input).unwrap(), b"GGUF");
}

#[test]
fn a_conversion_that_quantizes_nothing_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let gguf = folder.path().join("small.gguf");
    std::fs::write(&gguf, gguf_writer::Gguf::small().write()).unwrap();
    let output = folder.path().join("out.slm");
    let convert = |more: &[&str]| {
        let args = [gguf.to_str().unwrap(), "-o", output.to_str().unwrap()];
        let args = [&["convert"][..], &args, &["--quantize", "q4_0"], more].concat();
        let ended = program(&args, "");
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        text(&ended.stdout)
    };
    let words = convert(&[]);
    assert!(words.contains("--requantize"), "{words}");
    let words = convert(&["--requantize"]);
    assert!(!words.contains("--requantize"), "{words}");
}

/// A flipped bit of the weights is seen by whoever knows the root, and by nobody else.
#[test]
fn inspect_says_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (model, _) = converted("llama_mha", folder.path());
    let inspect = |more: &[&str]| {
        let output = program(&[&["inspect", &model][..], more].concat(), "");
        let words = text(&output.stdout) + &text(&output.stderr);
        (output.status.code().unwrap(), words)
    };
    let (code, words) = inspect(&[]);
    assert_eq!(code, 0, "{words}");
    assert!(
        words.contains("well-formed") && !words.contains("intact"),
        "{words}"
    );
    let (_, told) = inspect(&["--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let root = told["root"].as_str().unwrap();
    assert_eq!(told["checked"]["root_by"], Value::Null);

    let (code, words) = inspect(&["--root", root]);
    assert_eq!(code, 0, "{words}");
    assert!(
        words.contains("intact") && words.contains("every byte, by --root"),
        "{words}"
    );
    assert_eq!(code_and_words(&["torrent", &model], "").0, 0);
    let (code, words) = inspect(&[]);
    assert_eq!(code, 0, "{words}");
    assert!(
        words.contains("intact") && words.contains(".slm.torrent"),
        "{words}"
    );

    // The lowest bit of a mantissa: still a number.
    let mut bytes = std::fs::read(&model).unwrap();
    *bytes.iter_mut().nth_back(3).unwrap() ^= 1;
    std::fs::write(&model, &bytes).unwrap();
    let (code, words) = inspect(&[]);
    assert_eq!(code, 3, "{words}");
    assert!(words.contains(root) && words.contains("damaged"), "{words}");
    assert_eq!(inspect(&["--root", root]).0, 3);
    std::fs::remove_file(format!("{model}.torrent")).unwrap();
    let (code, words) = inspect(&[]);
    assert_eq!(code, 0, "{words}");
    assert!(
        words.contains("not whether a bit of the weights flipped"),
        "{words}"
    );
    // Hashes of the pieces, as a server has them beside the file, name the place.
    std::fs::write(format!("{model}.pieces"), [0; 32]).unwrap();
    let (code, words) = inspect(&[]);
    assert_eq!(code, 3, "{words}");
    assert!(words.contains("bytes from 0 on"), "{words}");
}

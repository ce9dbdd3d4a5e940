//! Calls of the program, and models to call it with.
#![allow(clippy::unwrap_used)]
// Each test file uses a part of this.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub fn program(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tinyrustlm"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its model ends before it reads its input.
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => panic!("{error}"),
        _ => {}
    }
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn shared_golden() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden");
    assert!(path.is_dir(), "the golden folder lies beside the checkout");
    path
}

pub fn golden(name: &str) -> PathBuf {
    shared_golden().join("tiny").join(name)
}

/// A model of a folder, with the folder's name.
pub fn convert(source: &Path, folder: &Path) -> String {
    let name = source.file_name().unwrap().to_str().unwrap();
    let model = folder.join(format!("{name}.slm"));
    let model = model.to_str().unwrap().to_owned();
    let args = ["convert", source.to_str().unwrap(), "-o", &model, "--json"];
    let output = program(&args, "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["length"], std::fs::metadata(&model).unwrap().len());
    model
}

/// A converted tiny model, its path as text, and what PyTorch says of it.
pub fn converted(name: &str, folder: &Path) -> (String, Value) {
    let source = golden(name);
    let model = convert(&source, folder);
    let expected = std::fs::read_to_string(source.join("expected.json")).unwrap();
    (model, serde_json::from_str(&expected).unwrap())
}

pub fn code_and_words(args: &[&str], input: &str) -> (i32, String) {
    let output = program(args, input);
    (output.status.code().unwrap(), text(&output.stderr))
}

//! Checkpoints of the golden folder and the real model, converted to `.slm` in memory.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use convert::{Converter, Options, SourceFile, drive};
use format::{Header, header_len};
use serde_json::Value;

const REAL_MODEL: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/golden")
        .join(name)
}

pub fn json(name: &str) -> Value {
    let path = path(name);
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("golden file {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

pub fn ids(value: &Value) -> Vec<u32> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|n| n.as_u64().unwrap() as u32).collect()
}

pub fn numbers(value: &Value) -> Vec<f64> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|n| n.as_f64().unwrap()).collect()
}

/// Exact: the file has enough digits for every float32.
pub fn floats(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|n| n as f32).collect()
}

/// A golden folder with a Hugging Face checkpoint.
pub fn folder(name: &str) -> (Header, Vec<u8>) {
    let folder = path(name);
    let listing = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("golden folder {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listing.map(|entry| entry.unwrap().path()).collect();
    // What is ours, and the same model in an older spelling.
    paths.retain(|path| !path.ends_with("expected.json") && !path.ends_with("config.legacy.json"));
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let sources = paths.iter().zip(&files).map(|(path, bytes)| SourceFile {
        name: path.file_name().unwrap().to_str().unwrap().into(),
        len: bytes.len() as u64,
    });
    let converter = Converter::folder(name, sources.collect(), Options::default()).unwrap();
    convert(converter, &files)
}

/// The real model, from the place where `./test` puts it.
pub fn real_model() -> (Header, Vec<u8>) {
    let home = || PathBuf::from(std::env::var("HOME").unwrap()).join(".cache/tinyrustlm/models");
    let models = std::env::var("TINYRUSTLM_MODELS").map_or_else(|_| home(), PathBuf::from);
    let Ok(file) = fs::read(models.join(REAL_MODEL)) else {
        panic!("{REAL_MODEL} is missing: run ./test, which fetches the model");
    };
    let converter = Converter::gguf(REAL_MODEL, file.len() as u64, Options::default()).unwrap();
    convert(converter, &[file])
}

fn convert(mut converter: Converter, files: &[Vec<u8>]) -> (Header, Vec<u8>) {
    let mut out = Vec::new();
    drive(
        &mut converter,
        |need, into| {
            let start = need.at as usize;
            into.copy_from_slice(&files[need.source as usize][start..start + into.len()]);
            Ok::<(), ()>(())
        },
        |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        },
        |_| {},
    )
    .unwrap();
    let file_len = out.len() as u64;
    let len = header_len(*out.first_chunk().unwrap(), file_len).unwrap();
    let header = Header::parse(&out[..len as usize], file_len).unwrap();
    (header, out)
}

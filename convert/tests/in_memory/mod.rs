//! Conversions of files that lie in memory or in a folder, for tests.
#![allow(dead_code)]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use convert::{ConvertError, Converter, DriveError, Need, Options, Outcome, SourceFile, drive};

/// What a conversion makes.
#[derive(Debug, PartialEq)]
pub struct Made {
    pub bytes: Vec<u8>,
    pub outcome: Outcome,
}

/// Runs a converter over sources that can be cut out of slices.
fn run(mut converter: Converter, sources: &[&[u8]]) -> Result<Made, ConvertError> {
    let mut bytes = Vec::new();
    let read = |need: Need, into: &mut [u8]| {
        let at = need.at as usize;
        into.copy_from_slice(&sources[need.source as usize][at..at + into.len()]);
        Ok(())
    };
    let write = |portion: &[u8]| {
        bytes.extend_from_slice(portion);
        Ok(())
    };
    match drive(&mut converter, read, write, |_| {}) {
        Ok(outcome) => Ok(Made { bytes, outcome }),
        Err(DriveError::Convert(error)) => Err(error),
        Err(DriveError::Read(()) | DriveError::Write(())) => unreachable!(),
    }
}

pub fn gguf(source: &[u8]) -> Result<Made, ConvertError> {
    gguf_with(source, Options::default())
}

pub fn gguf_with(source: &[u8], options: Options) -> Result<Made, ConvertError> {
    run(
        Converter::gguf("small.gguf", source.len() as u64, options)?,
        &[source],
    )
}

/// Converts files given as name and content.
pub fn folder(files: &[(&str, &[u8])], options: Options) -> Result<Made, ConvertError> {
    let list = files.iter().map(|(name, bytes)| SourceFile {
        name: (*name).into(),
        len: bytes.len() as u64,
    });
    let converter = Converter::folder("a folder", list.collect(), options)?;
    let contents: Vec<&[u8]> = files.iter().map(|(_, bytes)| *bytes).collect();
    run(converter, &contents)
}

/// Converts a GGUF file from disk and hands the output on, so that neither is held.
pub fn gguf_file(path: &Path, write: impl FnMut(&[u8])) -> Result<Outcome, ConvertError> {
    let mut file = File::open(path).expect("the model file");
    let len = file.metadata().expect("its length").len();
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    let mut converter = Converter::gguf(name, len, Options::default())?;
    let read = |need: Need, into: &mut [u8]| {
        file.seek(SeekFrom::Start(need.at))?;
        file.read_exact(into)
    };
    let mut write = write;
    let write = |portion: &[u8]| {
        write(portion);
        Ok(())
    };
    match drive(&mut converter, read, write, |_| {}) {
        Ok(outcome) => Ok(outcome),
        Err(DriveError::Convert(error)) => Err(error),
        Err(DriveError::Read(error) | DriveError::Write(error)) => panic!("{error}"),
    }
}

/// The header of a finished file.
pub fn header(bytes: &[u8]) -> format::Header {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    let file_len = bytes.len() as u64;
    let len = format::header_len(first, file_len).expect("a header length") as usize;
    format::Header::parse(&bytes[..len], file_len).expect("a header")
}

/// A row of a tensor of a finished file.
pub fn row(bytes: &[u8], tensor: &format::Tensor, row: u32) -> Vec<f32> {
    let range = tensor.range.start as usize..tensor.range.end as usize;
    let mut out = vec![0.0; tensor.shape.cols as usize];
    format::unpack_row(tensor.layout, &bytes[range], row, &mut out).expect("a row");
    out
}

/// A golden file; it must be there.
pub fn golden(path: &str) -> Vec<u8> {
    let path = format!("{}/../../shared/golden/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("golden file {path}: {error}"))
}

/// The real model, which `./test` fetches.
pub fn real_model() -> PathBuf {
    let folder = std::env::var_os("TINYRUSTLM_MODELS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("a home folder");
        Path::new(&home).join(".cache/tinyrustlm/models")
    });
    let path = folder.join("SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(path.exists(), "run ./test, which fetches the model");
    path
}

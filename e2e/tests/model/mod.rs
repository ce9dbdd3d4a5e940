//! Sound models for transfers, no two pieces of which are alike.

#![allow(dead_code)]

use std::path::PathBuf;

use format::{Hasher, Header};
use runtime::tiny::Recipe;
use tempfile::TempDir;

pub struct Model {
    pub path: PathBuf,
    pub root: String,
    pub length: u64,
    _folder: TempDir,
}

pub fn of_six_mebibytes() -> Model {
    of_rows(48_000)
}

/// An embedding of many rows of 128 bytes; it computes something, and has no words.
pub fn of_rows(rows: u32) -> Model {
    let (header, _) = Recipe::FLOAT.file().unwrap();
    let mut manifest = header.manifest;
    manifest.name = "six".into();
    manifest.licence = Some("MIT".into());
    manifest.architecture.vocab = rows;
    manifest.tensors.get_mut("embed").unwrap().shape.rows = rows;
    let header = Header::layout(manifest).unwrap();
    let mut file = header.to_bytes();
    file.resize(header.file_len as usize, 0);
    let embed = header.tensor("embed").unwrap().range.clone();
    let embed = &mut file[embed.start as usize..embed.end as usize];
    for (index, four) in embed.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let weight = (index.wrapping_mul(2_654_435_761) % 10_007) as f32 / 100_070.0;
        *four = weight.to_le_bytes();
    }
    let mut hasher = Hasher::default();
    hasher.update(&file);
    let id = hasher.finish().id;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("six.slm");
    std::fs::write(&path, &file).unwrap();
    Model {
        path,
        root: id.root.to_string(),
        length: id.length,
        _folder: folder,
    }
}

//! Ctrl-C in the middle of a conversion.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod calls;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use calls::golden;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

const COLUMNS: usize = 64;
/// 128 MB of embeddings: long enough to be ended in the middle.
const ROWS: usize = 500_000;
/// A conversion begins to write, and sees the key, long before.
const SOON: Duration = Duration::from_secs(30);

/// The smallest golden checkpoint with a very large vocabulary.
fn large_source(folder: &Path) {
    let golden = golden("llama_gqa_tied");
    std::fs::create_dir(folder).unwrap();
    let config = std::fs::read_to_string(golden.join("config.json")).unwrap();
    let larger = config.replace("\"vocab_size\": 288", &format!("\"vocab_size\": {ROWS}"));
    assert_ne!(config, larger);
    std::fs::write(folder.join("config.json"), larger).unwrap();
    let bytes = std::fs::read(golden.join("model.safetensors")).unwrap();
    let embeddings = 0.25f32.to_le_bytes().repeat(ROWS * COLUMNS);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = tensors.iter().map(|(name, view)| {
        let view = match name.contains("embed_tokens") {
            true => TensorView::new(view.dtype(), vec![ROWS, COLUMNS], &embeddings).unwrap(),
            false => view,
        };
        (name, view)
    });
    let whole = safetensors::serialize(tensors, None).unwrap();
    std::fs::write(folder.join("model.safetensors"), whole).unwrap();
}

#[test]
fn an_interrupted_conversion_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    large_source(&source);
    let output = folder.path().join("out.slm");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tinyrustlm"))
        .args([Path::new("convert"), &source, Path::new("-o"), &output])
        .args(["--quantize", "q8_0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let part = folder.path().join("out.slm.part");
    let start = Instant::now();
    while !part.exists() {
        assert!(start.elapsed() < SOON, "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(130), "128 and the signal's number");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the source: {left:?}");
}

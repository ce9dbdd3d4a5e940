//! A sound model of any size that knows nothing: for what moves models and does not run them.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

const COLUMNS: usize = 64;

/// Writes the folder of a checkpoint below `folder`: the smallest golden one, with a vocabulary of
/// `rows` tokens whose vectors are noise. Each row is 256 bytes of the model.
pub fn sized_source(golden: &Path, folder: &Path, rows: usize, seed: u64) -> Result<PathBuf> {
    let golden = golden.join("tiny/llama_gqa_tied");
    let source = folder.join(format!("source-{seed}"));
    std::fs::create_dir_all(&source)?;
    let config = std::fs::read_to_string(golden.join("config.json"))?;
    let config = config.replace("\"vocab_size\": 288", &format!("\"vocab_size\": {rows}"));
    std::fs::write(source.join("config.json"), config)?;

    let bytes = std::fs::read(golden.join("model.safetensors"))?;
    let golden = SafeTensors::deserialize(&bytes).map_err(Error::other)?;
    let noise = noise(rows * COLUMNS, seed);
    let mut tensors = Vec::new();
    for (name, view) in golden.tensors() {
        let view = match name.contains("embed_tokens") {
            true => TensorView::new(view.dtype(), vec![rows, COLUMNS], &noise),
            false => Ok(view),
        };
        tensors.push((name, view.map_err(Error::other)?));
    }
    let made = safetensors::serialize(tensors, None).map_err(Error::other)?;
    std::fs::write(source.join("model.safetensors"), made)?;
    Ok(source)
}

/// Numbers between -0.5 and 0.5 as f32, little endian (Knuth's linear congruential generator).
fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(count * 4);
    for _ in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let number = (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5;
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

//! Valid files, cut off anywhere and changed anywhere: always an answer, never a panic.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod gguf_writer;
mod in_memory;

use convert::{ConvertError, Options};
use gguf_writer::Gguf;
use in_memory::{folder, gguf, golden};
use proptest::prelude::*;

/// G20 of the catalogue. The last tensor ends the file, so that every cut loses something.
#[test]
fn a_file_cut_off_at_any_byte_is_refused() {
    let source = Gguf::small().write();
    gguf(&source).expect("the whole file");
    for len in 0..source.len() {
        let error = gguf(&source[..len]).expect_err("a cut file");
        let missing = (source.len() - len) as u64;
        match error {
            ConvertError::Truncated { missing: told, .. } => {
                assert!((1..=missing).contains(&told), "{len}: {told} of {missing}");
            }
            ConvertError::NotThisFormat { .. } => assert!(len < 4, "{len}"),
            error => panic!("{len}: {error:?}"),
        }
    }
}

#[test]
fn a_cut_in_the_data_says_how_many_bytes_are_missing() {
    let source = Gguf::small().write();
    let error = gguf(&source[..source.len() - 77]).expect_err("a cut file");
    assert!(matches!(error, ConvertError::Truncated { missing: 77, .. }));
}

#[test]
fn a_shard_cut_off_anywhere_is_refused() {
    let config = golden("tiny/llama_gqa_tied/config.json");
    let weights = golden("tiny/llama_gqa_tied/model.safetensors");
    let header = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let convert = |weights: &[u8]| {
        let files = [("config.json", &config[..]), ("model.safetensors", weights)];
        folder(&files, Options::default())
    };
    convert(&weights).expect("the whole file");
    // Every cut of the header, and then some of the data.
    let cuts = (0..header + 8).chain((header + 8..weights.len()).step_by(997));
    for len in cuts.chain([weights.len() - 1]) {
        let error = convert(&weights[..len]).expect_err("a cut file");
        let told = matches!(error, ConvertError::Truncated { .. });
        let empty = matches!(error, ConvertError::NotThisFormat { .. }) && len == 0;
        assert!(told || empty, "{len}: {error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn changed_bytes_of_a_gguf_file_never_panic(
        changes in prop::collection::vec((0usize..4096, any::<u8>()), 1..8),
        everywhere in any::<bool>(),
    ) {
        let mut source = Gguf::small().write();
        // Most of the file is weights; half of the cases change the header only.
        let span = if everywhere { source.len() } else { 2048 };
        for (at, byte) in changes {
            let at = at * 31 % span;
            source[at] = byte;
        }
        if let Ok(made) = gguf(&source) {
            in_memory::header(&made.bytes);
        }
    }

    #[test]
    fn changed_lengths_of_a_gguf_file_never_panic(
        at in 0usize..2048,
        value in prop_oneof![
            any::<u64>(),
            0u64..100,
            Just(u64::MAX),
            (0u32..64).prop_map(|bit| 1 << bit),
        ],
    ) {
        let mut source = Gguf::small().write();
        source[at..at + 8].copy_from_slice(&value.to_le_bytes());
        if let Ok(made) = gguf(&source) {
            in_memory::header(&made.bytes);
        }
    }

    #[test]
    fn changed_bytes_of_a_folder_never_panic(
        changes in prop::collection::vec((0usize..4000, any::<u8>()), 1..4),
        which in 0usize..2,
    ) {
        let mut files = [
            ("config.json", golden("tiny/llama_gqa_tied/config.json")),
            ("model.safetensors", golden("tiny/llama_gqa_tied/model.safetensors")),
        ];
        let len = files[which].1.len().min(4000);
        for (at, byte) in changes {
            files[which].1[at % len] = byte;
        }
        let files = [(files[0].0, &files[0].1[..]), (files[1].0, &files[1].1[..])];
        if let Ok(made) = folder(&files, Options::default()) {
            in_memory::header(&made.bytes);
        }
    }
}

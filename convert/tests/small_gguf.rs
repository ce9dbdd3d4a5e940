//! A small GGUF file made here, converted: every weight comes out as it went in.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod gguf_writer;
mod in_memory;

use format::{Codec, Kind, Layout, RopePairing, RopeScaling};
use gguf_writer::{F32, Gguf};
use in_memory::{gguf, gguf_with, header, row};

/// The rows of a tensor as the format crate reads the blocks of the source. That reader is checked
/// against ggml's own in `format`.
fn source_row(file: &mut Gguf, name: &str, row: usize) -> Vec<f32> {
    let tensor = file.tensor(name);
    let columns = tensor.dims[0] as usize;
    let codec = match tensor.kind {
        0 => {
            let floats = tensor.data.as_chunks::<4>().0.iter();
            return floats.map(|b| f32::from_le_bytes(*b)).collect();
        }
        gguf_writer::Q8_0 => Codec::Q8_0,
        _ => Codec::Q4_1,
    };
    let bytes = columns / 32 * codec.block_bytes().unwrap() as usize;
    let mut out = vec![0.0; columns];
    format::dequantize(codec, &tensor.data[row * bytes..][..bytes], &mut out).unwrap();
    out
}

#[test]
fn every_weight_comes_out_as_it_went_in() {
    let mut source = Gguf::small();
    let made = gguf(&source.write()).unwrap();
    let header = header(&made.bytes);
    assert_eq!(made.outcome.file_len, made.bytes.len() as u64);
    assert_eq!(header.manifest.kind, Kind::Model);
    assert_eq!(
        header.manifest.architecture.rope.pairing,
        RopePairing::Interleaved
    );
    assert!(header.manifest.architecture.tied_head);
    for (canonical, name, layout) in [
        ("embed", "token_embd.weight", Layout::Q8_0R4),
        ("norm", "output_norm.weight", Layout::F32),
        ("layers.0.attn_norm", "blk.0.attn_norm.weight", Layout::F32),
        ("layers.0.q", "blk.0.attn_q.weight", Layout::Q4_1R4),
        ("layers.0.k", "blk.0.attn_k.weight", Layout::Q4_1R4),
        ("layers.0.v", "blk.0.attn_v.weight", Layout::Q4_1R4),
        ("layers.0.o", "blk.0.attn_output.weight", Layout::Q4_1R4),
        ("layers.0.ffn_norm", "blk.0.ffn_norm.weight", Layout::F32),
        ("layers.0.gate", "blk.0.ffn_gate.weight", Layout::Q4_1R4),
        ("layers.0.up", "blk.0.ffn_up.weight", Layout::Q4_1R4),
        ("layers.0.down", "blk.0.ffn_down.weight", Layout::Q4_1R4),
    ] {
        let tensor = header.tensor(canonical).unwrap();
        assert_eq!(tensor.layout, layout, "{canonical}");
        for index in 0..tensor.shape.rows {
            let expected = source_row(&mut source, name, index as usize);
            let found = row(&made.bytes, tensor, index);
            let same = expected
                .iter()
                .zip(&found)
                .all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{canonical} row {index}");
        }
    }
}

#[test]
fn conversion_is_deterministic_and_hashes_its_source() {
    let source = Gguf::small().write();
    let made = gguf(&source).unwrap();
    assert_eq!(made, gguf(&source).unwrap());
    let manifest = header(&made.bytes).manifest;
    assert_eq!(manifest.source.sha256, format::sha256(&source));
    assert_eq!(manifest.name, "small", "the file is small.gguf");
    assert_eq!(manifest.licence.as_deref(), Some("mit"));
}

#[test]
fn padding_rows_of_a_group_are_zero() {
    // Six rows of the embedding make two groups; the last two rows are not there.
    let made = gguf(&Gguf::small().write()).unwrap();
    let header = header(&made.bytes);
    let tensor = header.tensor("embed").unwrap();
    for index in [6, 7] {
        assert_eq!(row(&made.bytes, tensor, index), [0.0; 32]);
    }
}

#[test]
fn harmless_oddities_are_accepted() {
    type Change = fn(&mut Gguf);
    let rows: [(&str, Change); 9] = [
        ("a vocabulary size that only the tokens give", |file| {
            file.unset("llama.vocab_size");
        }),
        ("a vocabulary size that is out of date", |file| {
            file.set_u32("llama.vocab_size", 5);
        }),
        ("version 2", |file| file.version = 2),
        ("a greater alignment", |file| {
            file.alignment = 4096;
            file.set_u32("general.alignment", 4096);
        }),
        ("a key of another family", |file| {
            file.set_u32("clip.block_count", 7);
        }),
        ("a single part", |file| {
            file.set("split.count", 2, vec![1, 0]);
            file.set("split.no", 2, vec![0, 0]);
        }),
        ("a licence with an end mark", |file| {
            file.set_text("general.license", "mit\0");
        }),
        ("scaling that does nothing", |file| {
            file.set_text("llama.rope.scaling.type", "linear");
            file.set_f32("llama.rope.scaling.factor", 1.0);
        }),
        ("divisors of one", |file| {
            let ones = [1.0_f32; 8].iter().flat_map(|x| x.to_le_bytes()).collect();
            file.add("rope_freqs.weight", &[8], 0, ones);
        }),
    ];
    for (what, change) in rows {
        let mut file = Gguf::small();
        change(&mut file);
        let made = gguf(&file.write()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let manifest = header(&made.bytes).manifest;
        assert_eq!(manifest.architecture.vocab, 6, "{what}");
        assert_eq!(manifest.licence.as_deref(), Some("mit"), "{what}");
        assert_eq!(
            manifest.architecture.rope.scaling,
            RopeScaling::None,
            "{what}"
        );
    }
}

#[test]
fn holes_and_trailing_bytes_are_accepted_and_change_no_weight() {
    let expected = gguf(&Gguf::small().write()).unwrap();
    let mut file = Gguf::small();
    // The embedding, alone after a hole; then bytes that belong to nobody.
    let moved = file.tensors.remove(0);
    file.tensors.push(moved);
    file.tensor("blk.0.ffn_norm.weight")
        .data
        .extend([0xff; 4096]);
    let mut source = file.write();
    source.extend([0xff; 1000]);
    let made = gguf(&source).unwrap();
    let (old, new) = (header(&expected.bytes), header(&made.bytes));
    let data = |bytes: &[u8], header: &format::Header| bytes[header.data_start as usize..].to_vec();
    assert_eq!(data(&made.bytes, &new), data(&expected.bytes, &old));
}

#[test]
fn biases_and_a_head_of_its_own_are_found_by_their_tensors() {
    let mut file = Gguf::bare();
    let zeros = |count: usize| vec![0; count * 4];
    for (part, rows) in [
        ("attn_q", 32),
        ("attn_k", 16),
        ("attn_v", 16),
        ("attn_output", 32),
    ] {
        let name = format!("blk.0.{part}.bias");
        file.add(&name, &[rows], 0, zeros(rows as usize));
    }
    let head = file.tensor("token_embd.weight").data.clone();
    file.add("output.weight", &[32, 6], gguf_writer::Q8_0, head);
    let made = gguf(&file.write()).unwrap();
    let header = header(&made.bytes);
    let architecture = &header.manifest.architecture;
    assert_eq!(header.manifest.kind, Kind::Bare);
    assert!(architecture.qkv_bias && architecture.o_bias);
    assert!(!architecture.ffn_bias && !architecture.tied_head);
    assert_eq!(
        row(&made.bytes, header.tensor("layers.0.k_bias").unwrap(), 0),
        [0.0; 16]
    );
}

#[test]
fn yarn_keys_become_the_parameters_of_transformers() {
    let mut file = Gguf::bare();
    file.set_text("llama.rope.scaling.type", "yarn");
    file.set_f32("llama.rope.scaling.factor", 4.0);
    file.set_u32("llama.rope.scaling.original_context_length", 16);
    let made = gguf(&file.write()).unwrap();
    let expected = RopeScaling::Yarn {
        factor: 4.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        original_context: 16,
        // 0.1 * ln(4) + 1, as `golden/ops/rope_scaling.json` has it.
        attention_factor: 1.138_629_436_111_989,
        truncate: true,
    };
    assert_eq!(
        header(&made.bytes).manifest.architecture.rope.scaling,
        expected
    );
}

#[test]
fn requantizing_changes_float_matrices_only_and_says_by_how_much() {
    let mut file = Gguf::bare();
    // A ramp of 2048 weights as f32, whose blocks need every code.
    let weights: Vec<f32> = (0..2048).map(|i| (i as f32 * 0.37).sin()).collect();
    let tensor = file.tensor("blk.0.ffn_gate.weight");
    (tensor.kind, tensor.data) = (0, weights.iter().flat_map(|w| w.to_le_bytes()).collect());
    for (codec, bound) in [
        (Codec::Q8_0, 0.003),
        (Codec::Q4_0, 0.06),
        (Codec::Q4_1, 0.04),
    ] {
        let options = convert::Options {
            quantize: Some(codec),
            ..Default::default()
        };
        let made = gguf_with(&file.write(), options).unwrap();
        let header = header(&made.bytes);
        let tensor = header.tensor("layers.0.gate").unwrap();
        assert_eq!(tensor.layout.codec(), codec);
        let stored = (0..64).flat_map(|index| row(&made.bytes, tensor, index));
        let errors = weights
            .iter()
            .zip(stored)
            .map(|(a, b)| f64::from(b) - f64::from(*a));
        let rms = (errors.map(|e| e * e).sum::<f64>() / 2048.0).sqrt();
        let quantized = made.outcome.quantized.unwrap();
        assert!((quantized.error_rms / rms - 1.0).abs() < 1e-9);
        assert!(rms > 0.0 && rms < bound, "{codec:?}: {rms}");
        assert_eq!((quantized.matrices, quantized.kept), (1, 7));
    }
}

/// The expected weights are those of the source's own blocks, within half a step of 8 bits.
#[test]
fn requantizing_all_reads_the_weights_that_the_blocks_stand_for() {
    let file = Gguf::bare().write();
    let plain = gguf_with(&file, convert::Options::default()).unwrap();
    let options = convert::Options {
        quantize: Some(Codec::Q8_0),
        scope: convert::Scope::All,
    };
    let made = gguf_with(&file, options).unwrap();
    let (before, after) = (header(&plain.bytes), header(&made.bytes));
    let mut changed = 0;
    for tensor in after.tensors.iter().filter(|tensor| tensor.shape.rows > 1) {
        assert_eq!(tensor.layout.codec(), Codec::Q8_0, "{}", tensor.name);
        let source = before.tensor(&tensor.name).unwrap();
        changed += u32::from(source.layout.codec() != Codec::Q8_0);
        for index in 0..tensor.shape.rows {
            let (want, found) = (
                row(&plain.bytes, source, index),
                row(&made.bytes, tensor, index),
            );
            for (want, found) in want.chunks(32).zip(found.chunks(32)) {
                let largest = want.iter().fold(0.0, |m: f32, w| m.max(w.abs()));
                for (want, found) in want.iter().zip(found) {
                    // The scale is a half float, which adds a little to half a step.
                    assert!(
                        (want - found).abs() <= largest / 127.0 * 0.57,
                        "{}",
                        tensor.name
                    );
                }
            }
        }
    }
    assert!(changed > 0);
    let quantized = made.outcome.quantized.unwrap();
    assert_eq!(quantized.matrices, changed);
}

#[test]
fn sampling_defaults_and_stop_tokens_are_kept() {
    let mut file = Gguf::small();
    file.set("general.sampling.temp", F32, 0.5_f32.to_le_bytes().into());
    file.set_u32("general.sampling.top_k", 40);
    file.set_u32("tokenizer.ggml.bos_token_id", 1);
    file.set_u32("tokenizer.ggml.eot_token_id", 5);
    file.set_u32("tokenizer.ggml.padding_token_id", 0);
    file.set("tokenizer.ggml.add_bos_token", 7, vec![1]);
    file.set_text("tokenizer.chat_template", "{{ messages }}");
    let manifest = header(&gguf(&file.write()).unwrap().bytes).manifest;
    assert_eq!(manifest.generation.temperature, Some(0.5));
    assert_eq!(manifest.generation.top_k, Some(40));
    let special = manifest.special;
    assert_eq!(
        (special.bos, special.eos, special.pad),
        (Some(1), Some(0), None)
    );
    assert_eq!((special.stop, special.add_bos), (vec![0, 5], true));
    assert_eq!(manifest.chat_template.as_deref(), Some("{{ messages }}"));
}

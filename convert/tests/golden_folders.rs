//! The golden llama folders, under both of their configurations.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod in_memory;

use std::collections::BTreeMap;

use convert::Options;
use format::{Codec, Kind, Layout, RopePairing, RopeScaling};
use in_memory::{Made, folder, golden, header, row};

const FOLDERS: [&str; 10] = [
    "llama_bf16",
    "llama_bias",
    "llama_f16",
    "llama_gqa_headdim",
    "llama_gqa_tied",
    "llama_mha",
    "llama_rope_linear",
    "llama_rope_llama3",
    "llama_rope_yarn",
    "llama_sharded",
];

const SHARDS: usize = 5;
const INDEX: &str = "model.safetensors.index.json";

/// Name and content of the files of a folder; the configuration is one of the two.
fn files(name: &str, config: &str) -> Vec<(String, Vec<u8>)> {
    let read = |file: &str| golden(&format!("tiny/{name}/{file}"));
    let mut files = vec![("config.json".to_string(), read(config))];
    if name == "llama_sharded" {
        for shard in 1..=SHARDS {
            let file = format!("model-{shard:05}-of-{SHARDS:05}.safetensors");
            files.push((file.clone(), read(&file)));
        }
        files.push((INDEX.into(), read(INDEX)));
    } else {
        files.push(("model.safetensors".into(), read("model.safetensors")));
    }
    files
}

fn convert(files: &[(String, Vec<u8>)], options: Options) -> Made {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), &b[..])).collect();
    folder(&files, options).unwrap_or_else(|error| panic!("{error}"))
}

/// A tensor of a safetensors file: rows of values, and its dtype.
struct Expected {
    dtype: String,
    cols: usize,
    values: Vec<f32>,
}

/// Every tensor of the source files, read by the test itself.
fn expected(files: &[(String, Vec<u8>)]) -> BTreeMap<String, Expected> {
    let mut tensors = BTreeMap::new();
    for (_, bytes) in files
        .iter()
        .filter(|(name, _)| name.ends_with(".safetensors"))
    {
        let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
        for (name, entry) in json.as_object().unwrap() {
            if name == "__metadata__" {
                continue;
            }
            let offset = |index: usize| entry["data_offsets"][index].as_u64().unwrap() as usize;
            let data = &bytes[8 + len..][offset(0)..offset(1)];
            let dtype = entry["dtype"].as_str().unwrap().to_string();
            let halves = data
                .as_chunks::<2>()
                .0
                .iter()
                .map(|b| u16::from_le_bytes(*b));
            let values = match dtype.as_str() {
                "F32" => data
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|b| f32::from_le_bytes(*b))
                    .collect(),
                "F16" => halves.map(format::float::f16_to_f32).collect(),
                _ => halves.map(format::float::bf16_to_f32).collect(),
            };
            let shape = entry["shape"].as_array().unwrap();
            let cols = shape.last().unwrap().as_u64().unwrap() as usize;
            tensors.insert(
                name.clone(),
                Expected {
                    dtype,
                    cols,
                    values,
                },
            );
        }
    }
    tensors
}

/// The canonical name of a Hugging Face tensor, by replacing words.
fn canonical(name: &str) -> String {
    let rules = [
        ("model.embed_tokens.weight", "embed"),
        ("model.norm.weight", "norm"),
        ("lm_head.weight", "head"),
        ("model.layers", "layers"),
        ("input_layernorm.weight", "attn_norm"),
        ("post_attention_layernorm.weight", "ffn_norm"),
        ("self_attn.", ""),
        ("mlp.", ""),
        ("_proj.weight", ""),
        ("_proj.bias", "_bias"),
    ];
    rules
        .iter()
        .fold(name.to_string(), |name, (from, to)| name.replace(from, to))
}

#[test]
fn every_folder_converts_alike_under_both_configurations() {
    for name in FOLDERS {
        let new = convert(&files(name, "config.json"), Options::default());
        let old = convert(&files(name, "config.legacy.json"), Options::default());
        let (new_header, old_header) = (header(&new.bytes), header(&old.bytes));
        let (new_manifest, old_manifest) = (&new_header.manifest, &old_header.manifest);
        assert_eq!(
            new_manifest.architecture, old_manifest.architecture,
            "{name}"
        );
        assert_eq!(new_manifest.special, old_manifest.special, "{name}");
        assert_ne!(
            new_manifest.source.sha256, old_manifest.source.sha256,
            "{name}"
        );
        let data = |made: &Made, header: &format::Header| {
            made.bytes[header.data_start as usize..].to_vec()
        };
        assert_eq!(data(&new, &new_header), data(&old, &old_header), "{name}");
        assert_eq!(new_manifest.kind, Kind::Bare);
        assert_eq!(new_manifest.special.bos, Some(1));
        assert_eq!(new_manifest.special.stop, [2]);
    }
}

#[test]
fn every_weight_of_every_folder_comes_out_bit_for_bit() {
    for name in FOLDERS {
        let files = files(name, "config.json");
        let made = convert(&files, Options::default());
        let header = header(&made.bytes);
        let expected = expected(&files);
        assert_eq!(header.tensors.len(), expected.len(), "{name}");
        for (source, tensor) in expected {
            let place = header.tensor(&canonical(&source)).expect(&source);
            let vector = tensor.values.len() == tensor.cols;
            let layout = match tensor.dtype.as_str() {
                "F16" if !vector => Layout::F16,
                "BF16" if !vector => Layout::Bf16,
                _ => Layout::F32,
            };
            assert_eq!(place.layout, layout, "{name} {source}");
            for (index, values) in tensor.values.chunks(tensor.cols).enumerate() {
                let found = row(&made.bytes, place, index as u32);
                let same = values
                    .iter()
                    .zip(&found)
                    .all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(
                    same && values.len() == found.len(),
                    "{name} {source} row {index}"
                );
            }
        }
    }
}

/// Every field that the golden configurations vary, as `golden/README.md` describes them.
#[test]
fn configurations_say_what_the_golden_readme_says() {
    let of = |name: &str| {
        let made = convert(&files(name, "config.json"), Options::default());
        header(&made.bytes).manifest.architecture
    };
    let mha = of("llama_mha");
    assert_eq!((mha.heads, mha.kv_heads, mha.tied_head), (4, 4, false));
    assert_eq!(
        (mha.hidden, mha.ffn, mha.vocab, mha.context),
        (64, 112, 320, 256)
    );
    assert_eq!((mha.rope.base, mha.rope.dim), (12345.0, 16));
    assert_eq!((mha.rope.pairing, mha.norm.eps), (RopePairing::Half, 0.001));
    assert_eq!(mha.layers.len(), 3);
    let tied = of("llama_gqa_tied");
    assert_eq!((tied.heads, tied.kv_heads, tied.head_dim), (8, 2, 8));
    assert!(tied.tied_head);
    let wide = of("llama_gqa_headdim");
    assert_eq!((wide.kv_heads, wide.head_dim), (1, 24));
    let bias = of("llama_bias");
    assert!(bias.qkv_bias && bias.o_bias && bias.ffn_bias);
    let linear = RopeScaling::Linear { factor: 4.0 };
    assert_eq!(of("llama_rope_linear").rope.scaling, linear);
    let llama3 = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 64,
    };
    assert_eq!(of("llama_rope_llama3").rope.scaling, llama3);
    let yarn = RopeScaling::Yarn {
        factor: 4.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        original_context: 64,
        // 0.1 * ln(4) + 1.
        attention_factor: 1.138_629_436_111_989,
        truncate: true,
    };
    assert_eq!(of("llama_rope_yarn").rope.scaling, yarn);
}

#[test]
fn rows_that_are_no_whole_blocks_keep_their_floats_when_requantizing() {
    let options = Options {
        quantize: Some(Codec::Q8_0),
        ..Default::default()
    };
    let made = convert(&files("llama_mha", "config.json"), options);
    let header = header(&made.bytes);
    // 64 columns are two blocks; the 112 of `down` are three and a half.
    assert_eq!(header.tensor("layers.0.up").unwrap().layout, Layout::Q8_0R4);
    assert_eq!(header.tensor("layers.0.down").unwrap().layout, Layout::F32);
    let quantized = made.outcome.quantized.unwrap();
    assert_eq!((quantized.matrices, quantized.kept), (2 + 3 * 6, 3));
    // A code of 8 bits is within 1/254 of the block's largest weight.
    assert!(quantized.error_rms > 0.0);
    assert!(quantized.error_rms < quantized.weight_rms / 64.0);
}

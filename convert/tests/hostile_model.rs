//! Files whose container is right and whose model is not one that can be run: keys, tensors,
//! weights and tokenizers that are refused by name. G and X numbers are those of the catalogue.

mod gguf_writer;
mod refusal;

use convert::ConvertError::*;
use format::{Codec, FormatError, Shape};
use gguf_writer::{ARRAY, Gguf, I32, Q8_0, TEXT, array, text, texts};
use refusal::Row;

fn file(change: impl FnOnce(&mut Gguf)) -> Vec<u8> {
    let mut file = Gguf::small();
    change(&mut file);
    file.write()
}

#[test]
fn every_model_that_cannot_be_run_is_refused_by_name() {
    refusal::check(&families());
    refusal::check(&dimensions());
    refusal::check(&numbers());
    refusal::check(&tensors());
    refusal::check(&weights());
    refusal::check(&tokenizers());
    refusal::check(&vocabularies());
}

fn families() -> Vec<Row> {
    let set = |key: &'static str, value: u32| file(|f| f.set_u32(key, value));
    vec![
        refused!(
            "an image encoder",
            word("general.architecture", "clip"),
            Unsupported { key, found, supported: "llama" }
                if key == "general.architecture" && found == "clip"
        ),
        refused!(
            "no family",
            file(|f| f.unset("general.architecture")),
            MissingKey { .. }
        ),
        refused!(
            "an adapter",
            word("general.type", "adapter"),
            Unsupported { .. }
        ),
        refused!(
            "experts",
            set("llama.expert_count", 8),
            Unsupported { key, .. } if key == "llama.expert_count"
        ),
        refused!(
            "a window",
            set("llama.attention.sliding_window", 512),
            Unsupported { .. }
        ),
        refused!(
            "an unknown key of the family",
            file(|f| f.set_f32("llama.logit_scale", 2.0)),
            Unsupported { key, .. } if key == "llama.logit_scale"
        ),
        refused!(
            "not causal",
            file(|f| f.set("llama.attention.causal", 7, vec![0])),
            Unsupported { .. }
        ),
        refused!(
            "unknown scaling",
            word("llama.rope.scaling.type", "longrope"),
            Unsupported { found, .. } if found == "longrope"
        ),
        refused!(
            "yarn without a factor",
            word("llama.rope.scaling.type", "yarn"),
            MissingKey { .. }
        ),
        refused!(
            "old blocks",
            set("general.quantization_version", 1),
            Unsupported { .. }
        ),
        refused!(
            "G21 a part of several",
            file(|f| {
                f.set("split.no", 2, vec![1, 0]);
                f.set("split.count", 2, vec![3, 0]);
                f.tensors.clear();
            }),
            SplitFile {
                number: 1,
                count: 3
            }
        ),
    ]
}

fn dimensions() -> Vec<Row> {
    let set = |key: &'static str, value: u32| file(|f| f.set_u32(key, value));
    vec![
        refused!(
            "G10 513 layers",
            set("llama.block_count", 513),
            Limit { what: "layers", .. }
        ),
        refused!(
            "G10 2^32-1 layers",
            set("llama.block_count", u32::MAX),
            Limit { .. }
        ),
        refused!(
            "G10 no layers",
            set("llama.block_count", 0),
            Format(FormatError::Dimension {
                field: "layers",
                ..
            })
        ),
        refused!(
            "G10 no heads",
            set("llama.attention.head_count", 0),
            BadValue { .. }
        ),
        refused!(
            "G10 no key heads",
            set("llama.attention.head_count_kv", 0),
            Format(FormatError::Dimension {
                field: "kv_heads",
                ..
            })
        ),
        refused!(
            "heads that do not divide",
            set("llama.attention.head_count", 7),
            BadValue { .. }
        ),
        refused!(
            "values narrower than keys",
            file(|f| {
                f.set_u32("llama.attention.key_length", 16);
                f.set_u32("llama.attention.value_length", 8);
            }),
            Unsupported { key, .. } if key == "llama.attention.value_length"
        ),
    ]
}

fn numbers() -> Vec<Row> {
    let set = |key: &'static str, value: u32| file(|f| f.set_u32(key, value));
    vec![
        refused!(
            "an odd rotation",
            set("llama.rope.dimension_count", 7),
            Format(FormatError::RopeDim { .. })
        ),
        refused!(
            "no epsilon",
            file(|f| f.unset("llama.attention.layer_norm_rms_epsilon")),
            MissingKey {
                key: "llama.attention.layer_norm_rms_epsilon"
            }
        ),
        refused!(
            "an epsilon that is no number",
            file(|f| f.set_f32("llama.attention.layer_norm_rms_epsilon", f32::NAN)),
            BadValue { .. }
        ),
        refused!(
            "a base of 2^128",
            file(|f| f.set_f32("llama.rope.freq_base", f32::INFINITY)),
            BadValue { .. }
        ),
        refused!(
            "no context",
            file(|f| f.unset("llama.context_length")),
            MissingKey { .. }
        ),
    ]
}

fn tensors() -> Vec<Row> {
    let name = "blk.0.attn_k.weight";
    vec![
        refused!(
            "a missing tensor",
            file(|f| f.tensors.retain(|t| t.name != name.as_bytes())),
            MissingTensor { tensor } if tensor == "blk.0.attn_k.weight"
        ),
        refused!(
            "a tensor too many",
            file(|f| f.add("blk.0.attn_rot_embd", &[8], 0, vec![0; 32])),
            UnexpectedTensor { tensor } if tensor == "blk.0.attn_rot_embd"
        ),
        refused!(
            "a bias alone",
            file(|f| f.add("blk.0.attn_q.bias", &[32], 0, vec![0; 128])),
            MissingTensor { tensor } if tensor == "blk.0.attn_k.bias"
        ),
        refused!(
            "a wrong shape",
            file(|f| f.tensor("blk.0.attn_k.weight").dims = vec![32, 15]),
            WrongShape {
                expected: Shape { rows: 16, cols: 32 },
                ..
            }
        ),
        refused!(
            "a vector of blocks",
            file(|f| {
                let norm = f.tensor("output_norm.weight");
                (norm.kind, norm.data) = (Q8_0, vec![0; 34]);
            }),
            VectorType {
                codec: Codec::Q8_0,
                ..
            }
        ),
        refused!(
            "unknown rotary factors",
            file(|f| {
                let factors = (0..8).flat_map(|i| (1.0 + i as f32).to_le_bytes());
                f.add("rope_freqs.weight", &[8], 0, factors.collect());
            }),
            RopeFactors { .. }
        ),
        refused!(
            "rotary factors for another head",
            file(|f| f.add("rope_freqs.weight", &[9], 0, vec![0; 36])),
            RopeFactors { .. }
        ),
    ]
}

fn weights() -> Vec<Row> {
    /// Puts bytes into the data of a tensor.
    fn damaged(name: &str, at: usize, bytes: &[u8]) -> Vec<u8> {
        file(|f| f.tensor(name).data[at..at + bytes.len()].copy_from_slice(bytes))
    }
    // Row 5 of a matrix of one block of 20 bytes a row; row 3 of one of 34.
    let (q4, q8) = (5 * 20, 3 * 34);
    vec![
        refused!(
            "a scale of infinity",
            damaged("blk.0.attn_q.weight", q4, &[0x00, 0x7c]),
            NotFinite { first_row: 4, tensor } if tensor == "blk.0.attn_q.weight"
        ),
        refused!(
            "a minimum that is no number",
            damaged("blk.0.attn_q.weight", q4 + 2, &[0x01, 0xfe]),
            NotFinite { first_row: 4, .. }
        ),
        refused!(
            "a scale that is no number",
            damaged("token_embd.weight", q8, &[0xff, 0x7f]),
            NotFinite { first_row: 0, .. }
        ),
        refused!(
            "a code of -128",
            damaged("token_embd.weight", q8 + 2 + 31, &[0x80]),
            ForbiddenCode { first_row: 0, .. }
        ),
        refused!(
            "a norm of infinity",
            damaged("output_norm.weight", 124, &f32::INFINITY.to_le_bytes()),
            NotFinite { .. }
        ),
    ]
}

fn word(key: &str, value: &str) -> Vec<u8> {
    file(|f| f.set_text(key, value))
}

fn list(key: &str, value: Vec<u8>) -> Vec<u8> {
    file(|f| f.set(key, ARRAY, value))
}

fn types(kinds: &[i32]) -> Vec<u8> {
    let kinds: Vec<Vec<u8>> = kinds.iter().map(|k| k.to_le_bytes().to_vec()).collect();
    list("tokenizer.ggml.token_type", array(I32, &kinds))
}

fn tokenizers() -> Vec<Row> {
    let unset = |key: &'static str| file(|f| f.unset(key));
    vec![
        refused!(
            "G14 sentence pieces",
            word("tokenizer.ggml.model", "llama"),
            Unsupported { key, found, .. } if key == "tokenizer.ggml.model" && found == "llama"
        ),
        refused!(
            "X5 an unknown way of cutting",
            word("tokenizer.ggml.pre", "gpt-4o"),
            Unsupported { found, .. } if found == "gpt-4o"
        ),
        refused!(
            "X4 no way of cutting",
            unset("tokenizer.ggml.pre"),
            MissingKey {
                key: "tokenizer.ggml.pre"
            }
        ),
        refused!(
            "X7 no merges",
            unset("tokenizer.ggml.merges"),
            MissingKey {
                key: "tokenizer.ggml.merges"
            }
        ),
        refused!(
            "no types",
            unset("tokenizer.ggml.token_type"),
            MissingKey { .. }
        ),
        refused!("no model", unset("tokenizer.ggml.model"), MissingKey { .. }),
        refused!(
            "no tokens",
            unset("tokenizer.ggml.tokens"),
            MissingKey { .. }
        ),
        refused!(
            "a template of 2 MiB",
            file(|f| f.set("tokenizer.chat_template", TEXT, text(&"x".repeat(2 << 20)))),
            Limit { .. }
        ),
    ]
}

fn vocabularies() -> Vec<Row> {
    vec![
        refused!(
            "G9 types as u8",
            list("tokenizer.ggml.token_type", array(0, &vec![vec![1]; 6])),
            WrongType { found: "u8", .. }
        ),
        refused!(
            "tokens as numbers",
            list("tokenizer.ggml.tokens", array(I32, &vec![vec![0; 4]; 6])),
            WrongType { .. }
        ),
        refused!(
            "fewer types",
            types(&[1; 5]),
            TokenCount {
                expected: 6,
                found: 5,
                ..
            }
        ),
        refused!(
            "type 7",
            types(&[1, 1, 1, 1, 1, 7]),
            TokenType { token: 5, found: 7 }
        ),
        refused!(
            "type -1",
            types(&[-1; 6]),
            TokenType {
                token: 0,
                found: -1
            }
        ),
        refused!(
            "two of one text",
            list(
                "tokenizer.ggml.tokens",
                texts(&["x", "a", "b", "c", "ab", "a"])
            ),
            DuplicateToken {
                first: 1,
                second: 5
            }
        ),
        refused!(
            "a merge of one",
            list("tokenizer.ggml.merges", texts(&["ab"])),
            BadMerge { .. }
        ),
        refused!(
            "a merge to nothing",
            list("tokenizer.ggml.merges", texts(&["a b", "b c"])),
            MergeOutsideVocabulary { merge: 1 }
        ),
        refused!(
            "an end that is no token",
            file(|f| f.set_u32("tokenizer.ggml.eos_token_id", 6)),
            Format(FormatError::TokenIdRange { .. })
        ),
        refused!(
            "a token of 1 MiB",
            list(
                "tokenizer.ggml.tokens",
                texts(&["x".repeat(1 << 20).as_str()])
            ),
            Limit { .. }
        ),
    ]
}

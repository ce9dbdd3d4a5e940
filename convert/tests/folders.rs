//! Small folders made here: what is read of them, and what is refused by name.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod folder_writer;
mod in_memory;

use convert::ConvertError::{self, *};
use convert::{Lead, Options};
use folder_writer::Folder;
use format::{FormatError, Kind, RopeScaling};
use in_memory::Made;
use serde_json::{Value, json};

fn convert(files: &[(String, Vec<u8>)]) -> Result<Made, ConvertError> {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), &b[..])).collect();
    in_memory::folder(&files, Options::default())
}

fn manifest(change: impl FnOnce(&mut Folder)) -> format::Manifest {
    let mut folder = Folder::small();
    change(&mut folder);
    let made = convert(&folder.write()).unwrap_or_else(|error| panic!("{error}"));
    in_memory::header(&made.bytes).manifest
}

fn refusal(change: impl FnOnce(&mut Folder)) -> ConvertError {
    let mut folder = Folder::small();
    change(&mut folder);
    convert(&folder.write()).expect_err("a refusal")
}

/// The error of a folder with one key of its configuration changed.
fn set(key: &str, value: Value) -> ConvertError {
    refusal(|folder| folder.config[key] = value)
}

fn tokenizer(post_processor: Value) -> Value {
    let token = json!({"id": 1, "content": "<s>", "special": true});
    let vocab = json!({"a": 0, "<s>": 1, "b": 2, "ab": 4});
    json!({
        "version": "1.0",
        "added_tokens": [token],
        "post_processor": post_processor,
        "model": {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]]},
    })
}

#[test]
fn configurations_are_refused_by_their_keys() {
    let unsupported = |error: ConvertError, wanted: &str| match error {
        Unsupported { key, .. } => assert_eq!(key, wanted),
        error => panic!("{wanted}: {error:?}"),
    };
    unsupported(set("model_type", json!("gemma3_text")), "model_type");
    unsupported(set("hidden_act", json!("gelu")), "hidden_act");
    unsupported(set("logits_scaling", json!(8.0)), "logits_scaling");
    unsupported(
        set("quantization_config", json!({"bits": 4})),
        "quantization_config",
    );
    unsupported(set("rope_interleaved", json!(true)), "rope_interleaved");
    unsupported(
        set("partial_rotary_factor", json!(0.5)),
        "partial_rotary_factor",
    );
    let dynamic = json!({"type": "dynamic", "factor": 2.0});
    unsupported(set("rope_scaling", dynamic), "rope_type");
    let strange = json!({"rope_type": "yarn", "factor": 2.0, "extrapolation_factor": 1});
    unsupported(set("rope_parameters", strange), "extrapolation_factor");
    let both = refusal(|folder| {
        folder.config["rope_parameters"] = json!({"rope_theta": 5e5});
        folder.config["rope_scaling"] = json!({"type": "linear", "factor": 2.0});
    });
    unsupported(both, "rope_scaling");

    let gone = set("hidden_size", Value::Null);
    assert!(
        matches!(gone, MissingKey { key: "hidden_size" }),
        "{gone:?}"
    );
    let linear = set("rope_scaling", json!({"type": "linear"}));
    assert!(matches!(linear, MissingKey { key: "factor" }), "{linear:?}");
    let heads = set("num_attention_heads", json!(0));
    assert!(matches!(heads, BadValue { .. }), "{heads:?}");
    let layers = set("num_hidden_layers", json!(u32::MAX));
    assert!(matches!(layers, Limit { what: "layers", .. }), "{layers:?}");
    let text = set("hidden_size", json!("32"));
    assert!(matches!(text, WrongType { .. }), "{text:?}");
    let eps = set("rms_norm_eps", json!(0.0));
    assert!(matches!(eps, Format(FormatError::Number { .. })), "{eps:?}");
    let eos = set("eos_token_id", json!(6));
    assert!(
        matches!(eos, Format(FormatError::TokenIdRange { .. })),
        "{eos:?}"
    );
}

#[test]
fn configurations_that_are_no_objects_are_refused() {
    let with = |content: &[u8]| {
        let mut files = Folder::small().write();
        files.retain(|(name, _)| name != "config.json");
        files.push(("config.json".into(), content.into()));
        convert(&files).expect_err("a refusal")
    };
    for content in [
        &b""[..],
        b"[]",
        b"{\"a\":",
        b"{\"a\":1e999}",
        b"\xff\xfe",
        &[b'['; 4000],
    ] {
        let error = with(content);
        assert!(matches!(error, BadJson { .. }), "{error:?}");
    }
    let twice = with(b"{\"model_type\":\"llama\",\"model_type\":\"llama\"}");
    assert!(matches!(twice, DuplicateKey { key } if key == "model_type"));
    let large = with(&vec![b' '; 2 << 20]);
    assert!(matches!(large, Limit { what: "bytes", .. }));
}

#[test]
fn tensors_are_refused_by_their_names() {
    let norm = "model.norm.weight";
    let untied = set("tie_word_embeddings", json!(false));
    assert!(matches!(untied, MissingTensor { tensor } if tensor == "lm_head.weight"));
    let bias = set("attention_bias", json!(true));
    let first = "model.layers.0.self_attn.q_proj.bias";
    assert!(matches!(bias, MissingTensor { tensor } if tensor == first));
    let extra = refusal(|folder| folder.add("model.layers.0.self_attn.q_norm.weight", &[16]));
    assert!(matches!(extra, UnexpectedTensor { tensor } if tensor.ends_with("q_norm.weight")));
    let shape = refusal(|folder| folder.tensor(norm).2 = vec![4, 8]);
    assert!(matches!(shape, WrongShape { tensor, .. } if tensor == norm));
    let dtype = refusal(|folder| folder.tensor(norm).1 = "I32");
    assert!(matches!(dtype, TensorDtype { dtype, .. } if dtype == "I32"));
    let short = refusal(|folder| folder.tensor(norm).2 = vec![33]);
    assert!(matches!(
        short,
        ByteLength {
            expected: 132,
            found: 128,
            ..
        }
    ));
    let deep = refusal(|folder| folder.tensor(norm).2 = vec![2, 2, 8]);
    assert!(matches!(deep, BadDimensions { .. }));
    let none = refusal(|folder| folder.tensor(norm).2 = vec![0, 1 << 40]);
    assert!(matches!(none, BadDimensions { .. }));
    let infinite = refusal(|folder| {
        let at = 4 * (32 * 3 + 5);
        let data = &mut folder.tensor("model.embed_tokens.weight").3;
        data[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    assert!(
        matches!(infinite, NotFinite { first_row: 3, .. }),
        "{infinite:?}"
    );
}

#[test]
fn folders_with_missing_or_false_files_are_refused() {
    let without = |gone: &str| {
        let mut files = Folder::small().write();
        files.retain(|(name, _)| name != gone);
        convert(&files).expect_err("a refusal")
    };
    for name in ["config.json", "model.safetensors"] {
        assert!(matches!(without(name), MissingFile { file } if file == name));
    }
}

#[test]
fn sharded_folders_must_agree_with_their_index() {
    let folder = Folder::small();
    let mlp = |name: &str| name.contains(".mlp.");
    let (one, two) = (
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    );
    let build = |change: fn(&mut serde_json::Map<String, Value>)| {
        let map = folder.tensors.iter().map(|tensor| {
            let file = if mlp(&tensor.0) { two } else { one };
            (tensor.0.clone(), json!(file))
        });
        let mut map: serde_json::Map<String, Value> = map.collect();
        change(&mut map);
        let index = json!({"metadata": {}, "weight_map": map});
        vec![
            (
                "config.json".to_string(),
                folder.config.to_string().into_bytes(),
            ),
            (
                "model.safetensors.index.json".into(),
                index.to_string().into(),
            ),
            (one.into(), folder.shard(|name| !mlp(name))),
            (two.into(), folder.shard(mlp)),
        ]
    };
    let whole = build(|_| ());
    let made = convert(&whole).unwrap();
    // The same tensors as from one file.
    let single = convert(&folder.write()).unwrap();
    let data = |made: &Made| {
        let header = in_memory::header(&made.bytes);
        made.bytes[header.data_start as usize..].to_vec()
    };
    assert_eq!(data(&made), data(&single));

    let gone = convert(&whole[..3]).expect_err("a refusal");
    assert!(matches!(gone, MissingFile { file } if file == two));
    let moved = build(|map| {
        map["model.norm.weight"] = json!("model-00002-of-00002.safetensors");
    });
    let moved = convert(&moved).expect_err("a refusal");
    assert!(matches!(moved, IndexMismatch { tensor, .. } if tensor == "model.norm.weight"));
    let more = build(|map| {
        map.insert("a".into(), json!("model-00001-of-00002.safetensors"));
    });
    let more = convert(&more).expect_err("a refusal");
    assert!(matches!(more, IndexMismatch { tensor, .. } if tensor == "a"));
    let mut page = whole.clone();
    page[2].1 = b"<!DOCTYPE html><html><head><title>404</title></head><body></body></html>".into();
    let page = convert(&page).expect_err("a refusal");
    assert!(matches!(
        page,
        NotThisFormat {
            found: Lead::Html,
            ..
        }
    ));
    let mut twice = whole.clone();
    twice.push(whole[3].clone());
    let twice = convert(&twice).expect_err("a refusal");
    assert!(matches!(twice, DuplicateFile { .. }));
}

#[test]
fn tensors_that_say_nothing_are_passed_over() {
    let plain = manifest(|_| ());
    let with = manifest(|folder| {
        folder.add("lm_head.weight", &[6, 32]);
        folder.add("model.layers.0.self_attn.rotary_emb.inv_freq", &[8]);
    });
    assert_eq!(plain.tensors, with.tensors);
    assert_eq!(plain.kind, Kind::Bare);
}

#[test]
fn words_come_from_the_files_that_transformers_reads() {
    let template = json!([
        {"name": "tool_use", "template": "no"},
        {"name": "default", "template": "{{ messages }}"},
    ]);
    let processor = json!({
        "type": "Sequence",
        "processors": [
            {"type": "ByteLevel"},
            {"type": "TemplateProcessing", "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ]},
        ],
    });
    let manifest = manifest(|folder| {
        folder.put("tokenizer.json", tokenizer(processor));
        let bos = json!({"content": "<s>"});
        folder.put(
            "tokenizer_config.json",
            json!({"bos_token": bos, "chat_template": template}),
        );
        let ids = json!([4, 2, 4]);
        let defaults = json!({"eos_token_id": ids, "temperature": 0.6, "top_p": 0.9});
        folder.put("generation_config.json", defaults);
        folder.config["pad_token_id"] = json!(-1);
    });
    assert_eq!(manifest.kind, Kind::Model);
    assert_eq!(manifest.tokenizer.as_ref().map(|t| t.tokens), Some(5));
    assert_eq!(manifest.chat_template.as_deref(), Some("{{ messages }}"));
    assert_eq!(manifest.special.stop, [2, 4]);
    assert_eq!(
        (manifest.special.eos, manifest.special.pad),
        (Some(4), None)
    );
    assert!(manifest.special.add_bos);
    assert_eq!(manifest.generation.temperature, Some(0.6));
    assert_eq!(
        (manifest.generation.top_p, manifest.generation.top_k),
        (Some(0.9), None)
    );
}

#[test]
fn a_template_file_rules_and_a_plain_tokenizer_adds_nothing() {
    let manifest = manifest(|folder| {
        folder.put("tokenizer.json", tokenizer(Value::Null));
        folder.put("tokenizer_config.json", json!({"chat_template": "old"}));
        folder
            .files
            .push(("chat_template.jinja".into(), b"new".into()));
    });
    assert_eq!(manifest.chat_template.as_deref(), Some("new"));
    assert!(!manifest.special.add_bos);
}

#[test]
fn tokenizers_that_do_not_fit_are_refused() {
    let put = |value: Value| refusal(|folder| folder.put("tokenizer.json", value));
    assert!(matches!(put(json!([])), BadJson { .. }));
    assert!(matches!(put(json!({"model": {}})), BadJson { .. }));
    let large = json!({"model": {"vocab": {"a": 6}}});
    assert!(matches!(put(large), BadValue { .. }));
    let scored = manifest(|folder| {
        let vocab = json!([["a", 0.0], ["b", -1.5], ["c", -2.0]]);
        folder.put("tokenizer.json", json!({"model": {"vocab": vocab}}));
    });
    assert_eq!(scored.tokenizer.map(|t| t.tokens), Some(3));
}

#[test]
fn yarn_follows_the_rules_of_transformers() {
    let scaling = |own: Value| {
        let made = manifest(|folder| folder.config["rope_parameters"] = own);
        match made.architecture.rope.scaling {
            RopeScaling::Yarn {
                factor,
                original_context,
                attention_factor,
                truncate,
                ..
            } => (factor, original_context, attention_factor, truncate),
            other => panic!("{other:?}"),
        }
    };
    // The factor on its own: 0.1 * ln(4) + 1.
    let four = 1.138_629_436_111_989;
    let plain = json!({"rope_type": "yarn", "factor": 4.0});
    assert_eq!(scaling(plain), (4.0, 64, four, true));
    // Without one it is the ratio of the contexts.
    let ratio = json!({"rope_type": "yarn", "original_max_position_embeddings": 16});
    assert_eq!(scaling(ratio), (4.0, 16, four, true));
    let given = json!({"type": "yarn", "factor": 4, "attention_factor": 1.5, "truncate": false});
    assert_eq!(scaling(given), (4.0, 64, 1.5, false));
    // Equal scales cancel.
    let equal = json!({"type": "yarn", "factor": 4, "mscale": 0.7, "mscale_all_dim": 0.7});
    assert_eq!(scaling(equal).2, 1.0);
}

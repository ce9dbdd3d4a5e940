//! A small Hugging Face folder, right or wrong: one layer, 32 wide, 6 tokens, tied head.
#![allow(dead_code)]

use serde_json::{Value, json};

#[derive(Clone)]
pub struct Folder {
    pub config: Value,
    /// Name, dtype, shape, data.
    pub tensors: Vec<(String, &'static str, Vec<u64>, Vec<u8>)>,
    /// Other files.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Folder {
    pub fn small() -> Folder {
        let config = json!({
            "model_type": "llama",
            "vocab_size": 6,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 64,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": true,
            "bos_token_id": 1,
            "eos_token_id": 2,
        });
        let mut folder = Folder {
            config,
            tensors: Vec::new(),
            files: Vec::new(),
        };
        folder.add("model.embed_tokens.weight", &[6, 32]);
        folder.add("model.norm.weight", &[32]);
        for (part, shape) in [
            ("input_layernorm", &[32][..]),
            ("self_attn.q_proj", &[32, 32]),
            ("self_attn.k_proj", &[16, 32]),
            ("self_attn.v_proj", &[16, 32]),
            ("self_attn.o_proj", &[32, 32]),
            ("post_attention_layernorm", &[32]),
            ("mlp.gate_proj", &[64, 32]),
            ("mlp.up_proj", &[64, 32]),
            ("mlp.down_proj", &[32, 64]),
        ] {
            folder.add(&format!("model.layers.0.{part}.weight"), shape);
        }
        folder
    }

    /// A tensor of ones.
    pub fn add(&mut self, name: &str, shape: &[u64]) {
        let count = shape.iter().product::<u64>() as usize;
        let data = 1.0_f32.to_le_bytes().repeat(count);
        self.tensors.push((name.into(), "F32", shape.into(), data));
    }

    pub fn tensor(&mut self, name: &str) -> &mut (String, &'static str, Vec<u64>, Vec<u8>) {
        let found = self.tensors.iter_mut().find(|tensor| tensor.0 == name);
        found.expect("no such tensor")
    }

    /// Adds a file of JSON.
    pub fn put(&mut self, name: &str, value: Value) {
        self.files.push((name.into(), value.to_string().into()));
    }

    /// The files, with all tensors in `model.safetensors`.
    pub fn write(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = self.files.clone();
        files.push(("config.json".into(), self.config.to_string().into()));
        files.push(("model.safetensors".into(), self.shard(|_| true)));
        files
    }

    /// A safetensors file of the tensors whose name is wanted.
    pub fn shard(&self, wanted: impl Fn(&str) -> bool) -> Vec<u8> {
        let mut map = serde_json::Map::new();
        map.insert("__metadata__".into(), json!({"format": "pt"}));
        let mut data: Vec<u8> = Vec::new();
        for (name, dtype, shape, bytes) in self.tensors.iter().filter(|t| wanted(&t.0)) {
            let offsets = [data.len(), data.len() + bytes.len()];
            let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": offsets});
            map.insert(name.clone(), entry);
            data.extend(bytes);
        }
        let mut json = Value::Object(map).to_string();
        while !json.len().is_multiple_of(8) {
            json.push(' ');
        }
        let len = (json.len() as u64).to_le_bytes();
        [&len, json.as_bytes(), &data].concat()
    }
}

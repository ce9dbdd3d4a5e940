//! A tiny writer of GGUF files, right or wrong: nothing it is told is checked.
#![allow(dead_code)]

/// Value types and tensor types by their GGUF numbers.
pub const U32: u32 = 4;
pub const I32: u32 = 5;
pub const F32: u32 = 6;
pub const TEXT: u32 = 8;
pub const ARRAY: u32 = 9;
pub const Q4_1: u32 = 3;
pub const Q8_0: u32 = 8;

/// One file. Every part can be changed before it is written.
#[derive(Clone)]
pub struct Gguf {
    pub magic: [u8; 4],
    pub version: u32,
    /// Instead of the number of keys and of tensors.
    pub key_count: Option<u64>,
    pub tensor_count: Option<u64>,
    /// Key, value type, value.
    pub keys: Vec<(Vec<u8>, u32, Vec<u8>)>,
    pub tensors: Vec<Tensor>,
    /// To which the data and every tensor are padded.
    pub alignment: usize,
}

#[derive(Clone)]
pub struct Tensor {
    pub name: Vec<u8>,
    /// Columns first.
    pub dims: Vec<u64>,
    /// Instead of the length of `dims`.
    pub rank: Option<u32>,
    pub kind: u32,
    /// Instead of the next free place.
    pub offset: Option<u64>,
    pub data: Vec<u8>,
}

pub fn text(value: &str) -> Vec<u8> {
    bytes(value.as_bytes())
}

/// A text that need not be UTF-8.
pub fn bytes(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes(), value].concat()
}

pub fn array(kind: u32, elements: &[Vec<u8>]) -> Vec<u8> {
    let head = [
        kind.to_le_bytes().to_vec(),
        (elements.len() as u64).to_le_bytes().to_vec(),
    ];
    [head.concat(), elements.concat()].concat()
}

pub fn texts(values: &[&str]) -> Vec<u8> {
    array(TEXT, &values.iter().map(|v| text(v)).collect::<Vec<_>>())
}

impl Gguf {
    pub fn set(&mut self, key: &str, kind: u32, value: Vec<u8>) {
        self.unset(key);
        self.keys.push((key.into(), kind, value));
    }

    pub fn unset(&mut self, key: &str) {
        self.keys.retain(|(name, ..)| name != key.as_bytes());
    }

    pub fn set_u32(&mut self, key: &str, value: u32) {
        self.set(key, U32, value.to_le_bytes().into());
    }

    pub fn set_text(&mut self, key: &str, value: &str) {
        self.set(key, TEXT, text(value));
    }

    pub fn set_f32(&mut self, key: &str, value: f32) {
        self.set(key, F32, value.to_le_bytes().into());
    }

    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        let found = self.tensors.iter_mut().find(|t| t.name == name.as_bytes());
        found.expect("no such tensor")
    }

    pub fn add(&mut self, name: &str, dims: &[u64], kind: u32, data: Vec<u8>) {
        self.tensors.push(Tensor {
            name: name.into(),
            dims: dims.into(),
            rank: None,
            kind,
            offset: None,
            data,
        });
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        out.extend(self.version.to_le_bytes());
        let tensors = self.tensor_count.unwrap_or(self.tensors.len() as u64);
        out.extend(tensors.to_le_bytes());
        let keys = self.key_count.unwrap_or(self.keys.len() as u64);
        out.extend(keys.to_le_bytes());
        for (key, kind, value) in &self.keys {
            out.extend(bytes(key));
            out.extend(kind.to_le_bytes());
            out.extend(value);
        }
        let mut data: Vec<u8> = Vec::new();
        for tensor in &self.tensors {
            data.resize(data.len().next_multiple_of(self.alignment), 0);
            out.extend(bytes(&tensor.name));
            let rank = tensor.rank.unwrap_or(tensor.dims.len() as u32);
            out.extend(rank.to_le_bytes());
            tensor.dims.iter().for_each(|d| out.extend(d.to_le_bytes()));
            out.extend(tensor.kind.to_le_bytes());
            let offset = tensor.offset.unwrap_or(data.len() as u64);
            out.extend(offset.to_le_bytes());
            data.extend(&tensor.data);
        }
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        out.extend(data);
        out
    }

    /// A whole small model without a tokenizer: one layer, 32 wide, 6 tokens, tied head.
    pub fn bare() -> Gguf {
        let mut file = Gguf {
            magic: *b"GGUF",
            version: 3,
            key_count: None,
            tensor_count: None,
            keys: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
        };
        file.set_text("general.architecture", "llama");
        file.set_text("general.name", "Small");
        file.set_text("general.license", "mit");
        for (key, value) in [
            ("llama.block_count", 1),
            ("llama.context_length", 64),
            ("llama.embedding_length", 32),
            ("llama.feed_forward_length", 64),
            ("llama.vocab_size", 6),
            ("llama.attention.head_count", 2),
            ("llama.attention.head_count_kv", 1),
        ] {
            file.set_u32(key, value);
        }
        file.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5);
        let mut seed = 1;
        file.add(
            "token_embd.weight",
            &[32, 6],
            Q8_0,
            blocks(Q8_0, 6, &mut seed),
        );
        file.add("output_norm.weight", &[32], 0, floats(32, &mut seed));
        for (part, columns, rows) in [
            ("attn_q", 32, 32),
            ("attn_k", 32, 16),
            ("attn_v", 32, 16),
            ("attn_output", 32, 32),
            ("ffn_gate", 32, 64),
            ("ffn_up", 32, 64),
            ("ffn_down", 64, 32),
        ] {
            let data = blocks(Q4_1, columns / 32 * rows, &mut seed);
            let dims = [columns as u64, rows as u64];
            file.add(&format!("blk.0.{part}.weight"), &dims, Q4_1, data);
        }
        for part in ["attn_norm", "ffn_norm"] {
            let data = floats(32, &mut seed);
            file.add(&format!("blk.0.{part}.weight"), &[32], 0, data);
        }
        file
    }

    /// The same with a byte-level tokenizer of six tokens.
    pub fn small() -> Gguf {
        let mut file = Gguf::bare();
        file.set_text("tokenizer.ggml.model", "gpt2");
        file.set_text("tokenizer.ggml.pre", "gpt-2");
        let tokens = ["<|end|>", "a", "b", "c", "ab", "abc"];
        file.set("tokenizer.ggml.tokens", ARRAY, texts(&tokens));
        let types = [3, 1, 1, 1, 1, 1].map(|t: i32| t.to_le_bytes().to_vec());
        file.set("tokenizer.ggml.token_type", ARRAY, array(I32, &types));
        let merges = texts(&["a b", "ab c"]);
        file.set("tokenizer.ggml.merges", ARRAY, merges);
        file.set_u32("tokenizer.ggml.eos_token_id", 0);
        file
    }
}

/// `count` blocks of ordinary numbers.
fn blocks(kind: u32, count: usize, seed: &mut u32) -> Vec<u8> {
    let (head, codes) = match kind {
        Q8_0 => (1, 32),
        _ => (2, 16),
    };
    let mut out = Vec::new();
    for _ in 0..count {
        for _ in 0..head {
            // An f16 between 1/16 and 1/8.
            out.extend((0x2c00 | (next(seed) & 0x3ff) as u16).to_le_bytes());
        }
        // Codes of q8_0 run from -127 to 127.
        out.extend((0..codes).map(|_| match next(seed) as u8 {
            0x80 => 0,
            code => code,
        }));
    }
    out
}

fn floats(count: usize, seed: &mut u32) -> Vec<u8> {
    (0..count)
        .flat_map(|_| (1.0 + next(seed) as f32 / 65536.0).to_le_bytes())
        .collect()
}

/// Sixteen bits of a linear congruential generator.
fn next(seed: &mut u32) -> u32 {
    *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *seed >> 16
}

//! Which keys are kept, and as what.

use std::collections::BTreeMap;

use super::texts::Texts;
use crate::ConvertError;
use crate::error::shown;

/// What a key of a GGUF file may hold for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Text,
    /// Any unsigned integer type, or a signed one that is not negative.
    Count,
    /// `u32`, nothing else.
    U32,
    /// Any float type.
    Real,
    Flag,
    /// An array of texts, at most so many.
    Texts(u64),
    /// An array of `i32` or `u32` that fit a byte, at most so many.
    Codes(u64),
    /// Known to change nothing here.
    Nothing,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Count(u64),
    Real(f64),
    Flag(bool),
    Texts(Texts),
    Codes(Vec<u8>),
}

/// The only family read so far; its keys begin with this word.
pub(crate) const FAMILY: &str = "llama";

/// Keys that are understood. Others under `llama.` are refused, others elsewhere passed over.
const KEYS: &[(&str, Keep)] = &[
    ("general.architecture", Keep::Text),
    ("general.type", Keep::Text),
    ("general.name", Keep::Text),
    ("general.license", Keep::Text),
    ("general.alignment", Keep::U32),
    ("general.quantization_version", Keep::Count),
    ("general.sampling.temp", Keep::Real),
    ("general.sampling.top_k", Keep::Count),
    ("general.sampling.top_p", Keep::Real),
    ("general.sampling.min_p", Keep::Real),
    ("general.sampling.penalty_repeat", Keep::Real),
    ("split.no", Keep::Count),
    ("split.count", Keep::Count),
    ("split.tensors.count", Keep::Count),
    ("llama.block_count", Keep::Count),
    ("llama.context_length", Keep::Count),
    ("llama.embedding_length", Keep::Count),
    ("llama.feed_forward_length", Keep::Count),
    ("llama.vocab_size", Keep::Count),
    ("llama.expert_count", Keep::Count),
    ("llama.expert_used_count", Keep::Count),
    ("llama.attention.head_count", Keep::Count),
    ("llama.attention.head_count_kv", Keep::Count),
    ("llama.attention.key_length", Keep::Count),
    ("llama.attention.value_length", Keep::Count),
    ("llama.attention.sliding_window", Keep::Count),
    ("llama.attention.layer_norm_rms_epsilon", Keep::Real),
    ("llama.attention.causal", Keep::Flag),
    ("llama.rope.dimension_count", Keep::Count),
    ("llama.rope.freq_base", Keep::Real),
    ("llama.rope.scale_linear", Keep::Real),
    ("llama.rope.scaling.type", Keep::Text),
    ("llama.rope.scaling.factor", Keep::Real),
    ("llama.rope.scaling.attn_factor", Keep::Real),
    ("llama.rope.scaling.yarn_beta_fast", Keep::Real),
    ("llama.rope.scaling.yarn_beta_slow", Keep::Real),
    ("llama.rope.scaling.original_context_length", Keep::Count),
    // A note for people: whether the model was trained with its scaling.
    ("llama.rope.scaling.finetuned", Keep::Nothing),
    // How the converter that made the file laid the tensors out; no longer written.
    ("llama.tensor_data_layout", Keep::Nothing),
    // The epsilon of a LayerNorm, which the family does not have.
    ("llama.attention.layer_norm_epsilon", Keep::Nothing),
    ("tokenizer.chat_template", Keep::Text),
    ("tokenizer.ggml.model", Keep::Text),
    ("tokenizer.ggml.pre", Keep::Text),
    (
        "tokenizer.ggml.tokens",
        Keep::Texts(crate::limits::TOKENS_MAX),
    ),
    (
        "tokenizer.ggml.token_type",
        Keep::Codes(crate::limits::TOKENS_MAX),
    ),
    (
        "tokenizer.ggml.merges",
        Keep::Texts(crate::limits::MERGES_MAX),
    ),
    ("tokenizer.ggml.bos_token_id", Keep::U32),
    ("tokenizer.ggml.eos_token_id", Keep::U32),
    ("tokenizer.ggml.eot_token_id", Keep::U32),
    ("tokenizer.ggml.eom_token_id", Keep::U32),
    ("tokenizer.ggml.padding_token_id", Keep::U32),
    ("tokenizer.ggml.add_bos_token", Keep::Flag),
    ("tokenizer.ggml.add_space_prefix", Keep::Flag),
];

/// The kept keys of one file.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    values: BTreeMap<&'static str, Value>,
    /// The first key under `llama.` that nobody understands.
    strange: Option<String>,
}

/// What to do with a key that begins.
pub(crate) fn keep(key: &str) -> Option<(&'static str, Keep)> {
    KEYS.iter().find(|(name, _)| *name == key).copied()
}

impl Keys {
    pub fn insert(&mut self, key: &'static str, value: Value) {
        self.values.insert(key, value);
    }

    /// Notes a key that is not in the table.
    pub fn pass_over(&mut self, key: &str) {
        let ours = key
            .strip_prefix(FAMILY)
            .is_some_and(|rest| rest.starts_with('.'));
        if ours && self.strange.is_none() {
            self.strange = Some(shown(key));
        }
    }

    pub fn strange(&self) -> Option<&str> {
        self.strange.as_deref()
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn count(&self, key: &str) -> Option<u64> {
        match self.values.get(key) {
            Some(Value::Count(count)) => Some(*count),
            _ => None,
        }
    }

    pub fn real(&self, key: &str) -> Option<f64> {
        match self.values.get(key) {
            Some(Value::Real(real)) => Some(*real),
            _ => None,
        }
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.values.get(key) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub fn take_texts(&mut self, key: &str) -> Option<Texts> {
        match self.values.remove(key) {
            Some(Value::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    pub fn take_codes(&mut self, key: &str) -> Option<Vec<u8>> {
        match self.values.remove(key) {
            Some(Value::Codes(codes)) => Some(codes),
            _ => None,
        }
    }

    pub fn need_count(&self, key: &'static str) -> Result<u64, ConvertError> {
        self.count(key).ok_or(ConvertError::MissingKey { key })
    }

    /// A count that must fit 32 bits.
    pub fn need_u32(&self, key: &'static str) -> Result<u32, ConvertError> {
        let count = self.need_count(key)?;
        u32::try_from(count).map_err(|_| ConvertError::BadValue {
            key: key.into(),
            found: count.to_string(),
            expected: "a number below 2^32",
        })
    }

    /// An optional count that must fit 32 bits.
    pub fn find_u32(&self, key: &'static str) -> Result<Option<u32>, ConvertError> {
        match self.count(key) {
            Some(_) => self.need_u32(key).map(Some),
            None => Ok(None),
        }
    }
}

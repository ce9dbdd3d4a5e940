//! The manifest: what a `.slm` file says of itself, schema `tinyrustlm.model.v2`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Architecture, Digest, Layout, Shape};

/// Name of the tensor that holds the tokenizer payload.
pub const TOKENIZER_TENSOR: &str = "tokenizer";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always `tinyrustlm.model.v2`.
    pub schema: String,
    pub kind: Kind,
    pub name: String,
    /// Licence as the source states it (an SPDX id where it has one).
    pub licence: Option<String>,
    pub source: Source,
    pub architecture: Architecture,
    /// Every tensor except fillers, by name.
    pub tensors: BTreeMap<String, TensorEntry>,
    /// Absent exactly in kind `bare`.
    pub tokenizer: Option<TokenizerRef>,
    /// Jinja text of the chat template, as the source has it.
    pub chat_template: Option<String>,
    pub special: SpecialTokens,
    pub generation: Generation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A model with its tokenizer.
    Model,
    /// Weights without a tokenizer: token ids in, token ids out.
    Bare,
    /// A LoRA adapter for a model given by its root.
    Adapter,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// For people: file name and format.
    pub description: String,
    /// SHA-256 of the source file; for several files, of their digests in name order.
    pub sha256: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorEntry {
    pub shape: Shape,
    pub layout: Layout,
}

/// The tokenizer payload: a Hugging Face `tokenizer.json`, stored as the first tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerRef {
    /// Name of the tensor, always `tokenizer`.
    pub tensor: String,
    pub sha256: Digest,
    /// Ids the tokenizer knows; at most `architecture.vocab`.
    pub tokens: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecialTokens {
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub pad: Option<u32>,
    /// Generation finishes after any of these; in ascending order, without repeats.
    pub stop: Vec<u32>,
    /// Whether plain text is preceded by `bos` (chat templates say so themselves).
    pub add_bos: bool,
}

/// What the source recommends for sampling; absent means the program's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
}

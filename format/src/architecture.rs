//! The closed architecture descriptor: everything the engine must know to run a model, and the
//! list of tensors that follows from it.
//!
//! Converters lower a checkpoint to this; the engine never guesses from tensor names.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    pub family: Family,
    /// Rows of the embedding, which may exceed the tokenizer's vocabulary by padding.
    pub vocab: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key/value heads; divides `heads`.
    pub kv_heads: u32,
    /// Width of one head; `heads * head_dim` need not equal `hidden`.
    pub head_dim: u32,
    /// Width of the gated feed-forward network.
    pub ffn: u32,
    pub activation: Activation,
    pub norm: Norm,
    pub rope: Rope,
    /// Biases on the query, key and value projections.
    pub qkv_bias: bool,
    /// Bias on the attention output projection.
    pub o_bias: bool,
    /// Biases on gate, up and down.
    pub ffn_bias: bool,
    /// The output head is the embedding, transposed.
    pub tied_head: bool,
    /// Positions the model was made for.
    pub context: u32,
    /// Layer kinds, first layer first.
    pub layers: Vec<Layer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Llama,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    Silu,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Norm {
    pub kind: NormKind,
    pub eps: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormKind {
    Rms,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rope {
    pub base: f64,
    /// Which elements of a head rotate together.
    pub pairing: RopePairing,
    /// Leading elements of a head that rotate; even, at most `head_dim`.
    pub dim: u32,
    pub scaling: RopeScaling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopePairing {
    /// Element `i` with `i + dim / 2` (Hugging Face order).
    Half,
    /// Element `2i` with `2i + 1` (GGUF order of the llama family).
    Interleaved,
}

/// Context scaling of the rotary frequencies, with the parameters as published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RopeScaling {
    None,
    Linear {
        factor: f64,
    },
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        original_context: u32,
    },
    Yarn {
        factor: f64,
        beta_fast: f64,
        beta_slow: f64,
        original_context: u32,
        /// Multiplies cosine and sine; the converter has already applied the default rule.
        attention_factor: f64,
        /// Whether the correction range is rounded outward to whole dimensions.
        truncate: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    pub mixer: Mixer,
    pub ffn: Ffn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mixer {
    /// Causal attention over every earlier position.
    Attention,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ffn {
    /// Gated: `down(activation(gate(x)) * up(x))`.
    Dense,
}

/// Logical shape; a vector is one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub rows: u32,
    pub cols: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorRole {
    /// Enters a matrix product or a row look-up; any layout.
    Matrix,
    /// Norm weights and biases; always `f32`.
    Vector,
}

/// A tensor that the architecture asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    pub name: String,
    pub shape: Shape,
    pub role: TensorRole,
}

//! The closed architecture descriptor: everything the engine must know to run a model, and the
//! list of tensors that follows from it.
//!
//! Converters lower a checkpoint to this; the engine never guesses from tensor names.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::FormatError;

/// Several times the deepest models that a browser could hold (about 130 layers).
pub const LAYERS_MAX: u32 = 512;
/// Four times the largest vocabulary in use (262,144).
pub const VOCAB_MAX: u32 = 1 << 20;
/// Four times the widest published models (16,384).
pub const HIDDEN_MAX: u32 = 1 << 16;
/// Several times the widest published feed-forward networks (53,248).
pub const FFN_MAX: u32 = 1 << 18;
/// With [`HEAD_DIM_MAX`] this keeps `heads * head_dim` within 20 bits.
pub const HEADS_MAX: u32 = 1024;
/// Twice the widest heads in use (512).
pub const HEAD_DIM_MAX: u32 = 1024;
/// Above the longest published contexts (10 million positions).
pub const CONTEXT_MAX: u32 = 1 << 24;
/// Smallest f32 setting above zero, far below any in use. Of all positive f32 only 7.038531e-26
/// changes when its shortest decimal is read through f64 (every one was tried), so with this limit
/// the number that is written is the number that is read.
pub const SETTING_MIN: f32 = 1e-20;

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
    /// The same over the last `window` positions, its own included.
    Sliding { window: u32 },
}

impl Mixer {
    /// Positions that one sees, if there is such a limit.
    pub const fn window(self) -> Option<u32> {
        match self {
            Mixer::Attention => None,
            Mixer::Sliding { window } => Some(window),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ffn {
    /// Gated: `down(activation(gate(x)) * up(x))`.
    Dense,
}

/// Logical shape; a vector is one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

impl Shape {
    /// The shape of a vector: one row.
    pub const fn row(cols: u32) -> Shape {
        Shape { rows: 1, cols }
    }
}

impl Architecture {
    /// Checks every dimension and number against its limits and against each other.
    pub fn check(&self) -> Result<(), FormatError> {
        dimension("vocab", self.vocab, VOCAB_MAX)?;
        dimension("hidden", self.hidden, HIDDEN_MAX)?;
        dimension("heads", self.heads, HEADS_MAX)?;
        dimension("kv_heads", self.kv_heads, HEADS_MAX)?;
        dimension("head_dim", self.head_dim, HEAD_DIM_MAX)?;
        dimension("ffn", self.ffn, FFN_MAX)?;
        dimension("context", self.context, CONTEXT_MAX)?;
        dimension(
            "layers",
            u32::try_from(self.layers.len()).unwrap_or(u32::MAX),
            LAYERS_MAX,
        )?;
        for window in self.layers.iter().filter_map(|layer| layer.mixer.window()) {
            dimension("window", window, CONTEXT_MAX)?;
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let (heads, kv_heads) = (self.heads, self.kv_heads);
            return Err(FormatError::HeadsNotDivisible { heads, kv_heads });
        }
        let eps = self.norm.eps;
        // Zero would divide a row of zeros by zero.
        number(
            "norm.eps",
            f64::from(eps),
            (SETTING_MIN..=1.0).contains(&eps),
        )?;
        self.rope.check(self.head_dim)
    }

    /// The tensors of this architecture in file order, the tokenizer left out.
    ///
    /// Call it on a checked architecture; on any other the shapes are cut to 32 bits.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let mut list = Vec::new();
        list.push(matrix(String::from("embed"), self.vocab, self.hidden));
        list.push(vector(String::from("norm"), self.hidden));
        if !self.tied_head {
            list.push(matrix(String::from("head"), self.vocab, self.hidden));
        }
        for (index, layer) in self.layers.iter().enumerate() {
            match layer.mixer {
                Mixer::Attention | Mixer::Sliding { .. } => self.attention(index, &mut list),
            }
            match layer.ffn {
                Ffn::Dense => self.dense(index, &mut list),
            }
        }
        list
    }

    fn attention(&self, index: usize, list: &mut Vec<TensorSpec>) {
        let q = self.heads.saturating_mul(self.head_dim);
        let kv = self.kv_heads.saturating_mul(self.head_dim);
        list.push(vector(format!("layers.{index}.attn_norm"), self.hidden));
        for (name, rows) in [("q", q), ("k", kv), ("v", kv)] {
            projection(list, index, name, [rows, self.hidden], self.qkv_bias);
        }
        projection(list, index, "o", [self.hidden, q], self.o_bias);
    }

    fn dense(&self, index: usize, list: &mut Vec<TensorSpec>) {
        list.push(vector(format!("layers.{index}.ffn_norm"), self.hidden));
        for name in ["gate", "up"] {
            projection(list, index, name, [self.ffn, self.hidden], self.ffn_bias);
        }
        projection(list, index, "down", [self.hidden, self.ffn], self.ffn_bias);
    }
}

impl Rope {
    fn check(&self, head_dim: u32) -> Result<(), FormatError> {
        // Yarn divides by the logarithm of the base.
        number("rope.base", self.base, self.base > 1.0)?;
        if self.dim == 0 || !self.dim.is_multiple_of(2) || self.dim > head_dim {
            return Err(FormatError::RopeDim {
                dim: self.dim,
                head_dim,
            });
        }
        self.scaling.check()
    }
}

impl RopeScaling {
    fn check(&self) -> Result<(), FormatError> {
        match *self {
            RopeScaling::None => Ok(()),
            RopeScaling::Linear { factor } => number("rope.scaling.factor", factor, factor >= 1.0),
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_context,
            } => {
                number("rope.scaling.factor", factor, factor >= 1.0)?;
                let (low, high) = (low_freq_factor, high_freq_factor);
                number("rope.scaling.low_freq_factor", low, low > 0.0)?;
                number("rope.scaling.high_freq_factor", high, high > low)?;
                dimension(
                    "rope.scaling.original_context",
                    original_context,
                    CONTEXT_MAX,
                )
            }
            RopeScaling::Yarn {
                factor,
                beta_fast,
                beta_slow,
                original_context,
                attention_factor,
                truncate: _,
            } => {
                number("rope.scaling.factor", factor, factor >= 1.0)?;
                number("rope.scaling.beta_slow", beta_slow, beta_slow > 0.0)?;
                number("rope.scaling.beta_fast", beta_fast, beta_fast >= beta_slow)?;
                number(
                    "rope.scaling.attention_factor",
                    attention_factor,
                    attention_factor > 0.0,
                )?;
                dimension(
                    "rope.scaling.original_context",
                    original_context,
                    CONTEXT_MAX,
                )
            }
        }
    }
}

fn dimension(field: &'static str, found: u32, max: u32) -> Result<(), FormatError> {
    match (1..=max).contains(&found) {
        true => Ok(()),
        false => {
            let (found, max) = (u64::from(found), u64::from(max));
            Err(FormatError::Dimension {
                field,
                found,
                min: 1,
                max,
            })
        }
    }
}

/// `holds` is a comparison of `value`, and so false for NaN.
pub(crate) fn number(field: &'static str, value: f64, holds: bool) -> Result<(), FormatError> {
    match holds && value.is_finite() {
        true => Ok(()),
        false => Err(FormatError::Number {
            field,
            bits: value.to_bits(),
        }),
    }
}

fn matrix(name: String, rows: u32, cols: u32) -> TensorSpec {
    TensorSpec {
        name,
        shape: Shape { rows, cols },
        role: TensorRole::Matrix,
    }
}

fn vector(name: String, cols: u32) -> TensorSpec {
    TensorSpec {
        name,
        shape: Shape::row(cols),
        role: TensorRole::Vector,
    }
}

/// A matrix and, right after it, its bias if there is one.
fn projection(list: &mut Vec<TensorSpec>, index: usize, name: &str, shape: [u32; 2], bias: bool) {
    let [rows, cols] = shape;
    list.push(matrix(format!("layers.{index}.{name}"), rows, cols));
    if bias {
        list.push(vector(format!("layers.{index}.{name}_bias"), rows));
    }
}

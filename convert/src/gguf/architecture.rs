//! Keys of the llama family to the closed descriptor.

use format::{
    Activation, Architecture, Family, Ffn, LAYERS_MAX, Layer, Mixer, Norm, NormKind, Rope,
    RopePairing, RopeScaling,
};

use super::directory::Directory;
use super::keys::Keys;
use crate::error::{ConvertError, shown};
use crate::rope::yarn_mscale;

const HEADS: &str = "llama.attention.head_count";
const EPSILON: &str = "llama.attention.layer_norm_rms_epsilon";
const SCALING: &str = "llama.rope.scaling.type";
const SCALING_FACTOR: &str = "llama.rope.scaling.factor";

/// Everything but the rotary factors of a `rope_freqs.weight`. `tokens` is the length of the
/// vocabulary, if there is one.
pub(crate) fn lower(
    keys: &Keys,
    directory: &Directory,
    tokens: Option<u32>,
) -> Result<Architecture, ConvertError> {
    let layers = keys.need_u32("llama.block_count")?;
    if layers > LAYERS_MAX {
        return Err(ConvertError::Limit {
            what: "layers",
            place: "llama.block_count".into(),
            found: layers.into(),
            max: LAYERS_MAX.into(),
        });
    }
    let hidden = keys.need_u32("llama.embedding_length")?;
    let heads = keys.need_u32(HEADS)?;
    let kv_heads = keys.find_u32("llama.attention.head_count_kv")?;
    let head_dim = head_dim(keys, hidden, heads)?;
    let context = keys.need_u32("llama.context_length")?;
    let eps = keys
        .real(EPSILON)
        .ok_or(ConvertError::MissingKey { key: EPSILON })?;
    let first = |part: &str| directory.has(&format!("blk.0.{part}.bias"));
    let architecture = Architecture {
        family: Family::Llama,
        vocab: vocab(keys, directory, tokens)?,
        hidden,
        heads,
        kv_heads: kv_heads.unwrap_or(heads),
        head_dim,
        ffn: keys.need_u32("llama.feed_forward_length")?,
        activation: Activation::Silu,
        norm: Norm {
            kind: NormKind::Rms,
            eps: eps as f32,
        },
        rope: Rope {
            base: keys.real("llama.rope.freq_base").unwrap_or(10_000.0),
            // The writers of GGUF reorder the query and key rows of this family.
            pairing: RopePairing::Interleaved,
            dim: keys
                .find_u32("llama.rope.dimension_count")?
                .unwrap_or(head_dim),
            scaling: scaling(keys, context)?,
        },
        qkv_bias: first("attn_q"),
        o_bias: first("attn_output"),
        ffn_bias: first("ffn_gate"),
        tied_head: !directory.has("output.weight"),
        context,
        layers: vec![
            Layer {
                mixer: Mixer::Attention,
                ffn: Ffn::Dense,
            };
            layers as usize
        ],
    };
    architecture.check()?;
    Ok(architecture)
}

fn head_dim(keys: &Keys, hidden: u32, heads: u32) -> Result<u32, ConvertError> {
    let key = "llama.attention.key_length";
    let width = keys.find_u32(key)?;
    let value = "llama.attention.value_length";
    if let Some(found) = keys.find_u32(value)?
        && found != width.unwrap_or(found)
    {
        return Err(ConvertError::Unsupported {
            key: value.into(),
            found: found.to_string(),
            supported: "values as wide as keys",
        });
    }
    if let Some(width) = width {
        return Ok(width);
    }
    if heads == 0 || !hidden.is_multiple_of(heads) {
        return Err(ConvertError::BadValue {
            key: HEADS.into(),
            found: heads.to_string(),
            expected: "a divisor of llama.embedding_length",
        });
    }
    Ok(hidden / heads)
}

/// Rows of the embedding. The key may be missing or out of date; then the tokens decide, as they
/// do in llama.cpp. What the tensor really has is checked with all other shapes.
fn vocab(keys: &Keys, directory: &Directory, tokens: Option<u32>) -> Result<u32, ConvertError> {
    let key = "llama.vocab_size";
    let stated = keys.find_u32(key)?;
    let rows = directory
        .find("token_embd.weight")
        .map(|tensor| tensor.shape.rows);
    match (stated, tokens) {
        (_, Some(tokens)) if Some(tokens) == rows => Ok(tokens),
        (Some(stated), _) => Ok(stated),
        (None, Some(tokens)) => Ok(tokens),
        (None, None) => Err(ConvertError::MissingKey { key }),
    }
}

fn scaling(keys: &Keys, context: u32) -> Result<RopeScaling, ConvertError> {
    let factor = keys
        .real(SCALING_FACTOR)
        .or(keys.real("llama.rope.scale_linear"))
        // Zero means "not set" in old files.
        .filter(|factor| *factor != 0.0);
    match keys.text(SCALING) {
        Some("none") => Ok(RopeScaling::None),
        None | Some("linear") => Ok(match factor {
            None | Some(1.0) => RopeScaling::None,
            Some(factor) => RopeScaling::Linear { factor },
        }),
        Some("yarn") => {
            let factor = factor.ok_or(ConvertError::MissingKey {
                key: SCALING_FACTOR,
            })?;
            let own = keys.real("llama.rope.scaling.attn_factor").unwrap_or(1.0);
            let beta = |key| keys.real(key);
            Ok(RopeScaling::Yarn {
                factor,
                beta_fast: beta("llama.rope.scaling.yarn_beta_fast").unwrap_or(32.0),
                beta_slow: beta("llama.rope.scaling.yarn_beta_slow").unwrap_or(1.0),
                original_context: keys
                    .find_u32("llama.rope.scaling.original_context_length")?
                    .unwrap_or(context),
                attention_factor: own * yarn_mscale(factor, 1.0),
                truncate: true,
            })
        }
        Some(other) => Err(ConvertError::Unsupported {
            key: SCALING.into(),
            found: shown(other),
            supported: "none, linear, yarn",
        }),
    }
}

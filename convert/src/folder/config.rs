//! `config.json` to the closed descriptor.
//!
//! `mistral` is `llama` whose layers may see a window of the last positions.
//!
//! Both layouts are read: `rope_parameters` as transformers 5 writes it, and `rope_theta` with
//! `rope_scaling` as older checkpoints have it. Defaults are those of transformers' `LlamaConfig`.

use format::{
    Activation, Architecture, Family, Ffn, LAYERS_MAX, Layer, Mixer, Norm, NormKind, Rope,
    RopePairing, RopeScaling,
};

use super::fields::Fields;
use crate::error::{ConvertError, shown};
use crate::rope::yarn_mscale;

/// Keys that are understood here.
const UNDERSTOOD: &[&str] = &[
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "max_position_embeddings",
    "rms_norm_eps",
    "attention_bias",
    "mlp_bias",
    "tie_word_embeddings",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rope_interleaved",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    WINDOW,
];
/// The window that every layer of `mistral` sees; `null` is none.
const WINDOW: &str = "sliding_window";

/// Keys that change no number of a forward pass.
const HARMLESS: &[&str] = &[
    "_attn_implementation_autoset",
    // Often a path on the author's machine.
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "dtype",
    "initializer_range",
    "is_llama_config",
    "max_sequence_length",
    "output_attentions",
    "output_hidden_states",
    // How linear layers were cut up for training; the products are the same.
    "pretraining_tp",
    "return_dict",
    "tokenizer_class",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
];

/// Keys of the rotary settings, beside the kind.
const ROPE: &[&str] = &[
    "rope_type",
    "type",
    "rope_theta",
    "partial_rotary_factor",
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "attention_factor",
    "mscale",
    "mscale_all_dim",
    "truncate",
];

/// What `config.json` says.
pub(crate) struct Config {
    pub architecture: Architecture,
    pub bos: Vec<u32>,
    pub eos: Vec<u32>,
    pub pad: Vec<u32>,
}

impl Config {
    pub fn parse(bytes: &[u8]) -> Result<Config, ConvertError> {
        let fields = Fields::parse(super::CONFIG, bytes)?;
        admit(&fields)?;
        let architecture = architecture(&fields)?;
        architecture.check()?;
        Ok(Config {
            architecture,
            bos: fields.ids("bos_token_id")?,
            eos: fields.ids("eos_token_id")?,
            pad: fields.ids("pad_token_id")?,
        })
    }
}

/// Refuses other families, and keys that nobody here understands.
fn admit(fields: &Fields) -> Result<(), ConvertError> {
    let key = "model_type";
    match fields.text(key)? {
        Some("llama") if fields.get(WINDOW).is_some() => {
            let found = "set in the family llama".into();
            return Err(unsupported(WINDOW, found, "the family mistral"));
        }
        Some("llama") => {}
        // Without the key transformers takes 4096, so it has to be there, if only as null.
        Some("mistral") if !fields.has(WINDOW) => {
            return Err(ConvertError::MissingKey { key: WINDOW });
        }
        Some("mistral") => {}
        Some(other) => return Err(unsupported(key, shown(other), "llama, mistral")),
        None => return Err(ConvertError::MissingKey { key }),
    }
    let known = |key: &str| UNDERSTOOD.contains(&key) || HARMLESS.contains(&key);
    if let Some((key, value)) = fields.set().find(|(key, _)| !known(key)) {
        let found = shown(&value.to_string());
        return Err(unsupported(key, found, "configurations without this key"));
    }
    if let Some(found) = fields.text("hidden_act")?
        && found != "silu"
    {
        return Err(unsupported("hidden_act", shown(found), "silu"));
    }
    if fields.flag("rope_interleaved")? == Some(true) {
        return Err(unsupported("rope_interleaved", "true".into(), "false"));
    }
    Ok(())
}

fn unsupported(key: &str, found: String, supported: &'static str) -> ConvertError {
    ConvertError::Unsupported {
        key: shown(key),
        found,
        supported,
    }
}

fn architecture(fields: &Fields) -> Result<Architecture, ConvertError> {
    let layers = fields.need_count("num_hidden_layers")?;
    if layers > LAYERS_MAX {
        return Err(ConvertError::Limit {
            what: "layers",
            place: "num_hidden_layers".into(),
            found: layers.into(),
            max: LAYERS_MAX.into(),
        });
    }
    let hidden = fields.need_count("hidden_size")?;
    let heads = fields.need_count("num_attention_heads")?;
    let head_dim = match fields.count("head_dim")? {
        Some(width) => width,
        None if heads > 0 && hidden.is_multiple_of(heads) => hidden / heads,
        None => {
            return Err(ConvertError::BadValue {
                key: "num_attention_heads".into(),
                found: heads.to_string(),
                expected: "a divisor of hidden_size",
            });
        }
    };
    let context = fields.need_count("max_position_embeddings")?;
    let (base, scaling) = rope(fields, context)?;
    let mixer = match fields.count(WINDOW)? {
        None => Mixer::Attention,
        Some(window) => Mixer::Sliding { window },
    };
    // In this family the one key stands for the biases of q, k, v and o.
    let attention_bias = fields.flag("attention_bias")?.unwrap_or(false);
    Ok(Architecture {
        family: Family::Llama,
        vocab: fields.need_count("vocab_size")?,
        hidden,
        heads,
        kv_heads: fields.count("num_key_value_heads")?.unwrap_or(heads),
        head_dim,
        ffn: fields.need_count("intermediate_size")?,
        activation: Activation::Silu,
        norm: Norm {
            kind: NormKind::Rms,
            eps: fields.real("rms_norm_eps")?.unwrap_or(1e-6) as f32,
        },
        rope: Rope {
            base,
            pairing: RopePairing::Half,
            dim: head_dim,
            scaling,
        },
        qkv_bias: attention_bias,
        o_bias: attention_bias,
        ffn_bias: fields.flag("mlp_bias")?.unwrap_or(false),
        tied_head: fields.flag("tie_word_embeddings")?.unwrap_or(false),
        context,
        layers: vec![
            Layer {
                mixer,
                ffn: Ffn::Dense,
            };
            layers as usize
        ],
    })
}

/// Base and scaling of the rotary positions.
fn rope(fields: &Fields, context: u32) -> Result<(f64, RopeScaling), ConvertError> {
    let (new, old) = (
        fields.object("rope_parameters")?,
        fields.object("rope_scaling")?,
    );
    if new.is_some() && old.is_some() {
        let both = "set beside rope_parameters".into();
        return Err(unsupported("rope_scaling", both, "one of the two"));
    }
    let Some(own) = new.or(old) else {
        full_rotation(fields)?;
        let base = fields.real("rope_theta")?.unwrap_or(10_000.0);
        return Ok((base, RopeScaling::None));
    };
    if let Some((key, _)) = own.set().find(|(key, _)| !ROPE.contains(key)) {
        let supported = "rotary settings without this key";
        return Err(unsupported(key, "set".into(), supported));
    }
    full_rotation(fields)?;
    full_rotation(&own)?;
    let base = match own.real("rope_theta")? {
        Some(base) => base,
        None => fields.real("rope_theta")?.unwrap_or(10_000.0),
    };
    let original = match own.count("original_max_position_embeddings")? {
        Some(original) => Some(original),
        None => fields.count("original_max_position_embeddings")?,
    };
    let kind = match own.text("rope_type")? {
        Some(kind) => Some(kind),
        None => own.text("type")?,
    };
    let scaling = match kind {
        None | Some("default") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear {
            factor: own.need_real("factor")?,
        },
        Some("llama3") => RopeScaling::Llama3 {
            factor: own.need_real("factor")?,
            low_freq_factor: own.need_real("low_freq_factor")?,
            high_freq_factor: own.need_real("high_freq_factor")?,
            original_context: original.ok_or(ConvertError::MissingKey {
                key: "original_max_position_embeddings",
            })?,
        },
        Some("yarn") => yarn(&own, original.unwrap_or(context), context)?,
        Some(other) => {
            let supported = "default, linear, llama3, yarn";
            return Err(unsupported("rope_type", shown(other), supported));
        }
    };
    Ok((base, scaling))
}

/// Transformers' llama model cannot rotate a part of a head.
fn full_rotation(fields: &Fields) -> Result<(), ConvertError> {
    let key = "partial_rotary_factor";
    match fields.real(key)? {
        None | Some(1.0) => Ok(()),
        Some(part) => Err(unsupported(key, part.to_string(), "1.0")),
    }
}

/// The rules of transformers' `_compute_yarn_parameters`.
fn yarn(own: &Fields, original_context: u32, context: u32) -> Result<RopeScaling, ConvertError> {
    let factor = match own.real("factor")? {
        Some(factor) => factor,
        None => f64::from(context) / f64::from(original_context.max(1)),
    };
    // Zero counts as "not given" there.
    let given = |key| Ok::<_, ConvertError>(own.real(key)?.filter(|value| *value != 0.0));
    let attention_factor = match own.real("attention_factor")? {
        Some(own) => own,
        None => match (given("mscale")?, given("mscale_all_dim")?) {
            (Some(one), Some(all)) => yarn_mscale(factor, one) / yarn_mscale(factor, all),
            _ => yarn_mscale(factor, 1.0),
        },
    };
    Ok(RopeScaling::Yarn {
        factor,
        beta_fast: given("beta_fast")?.unwrap_or(32.0),
        beta_slow: given("beta_slow")?.unwrap_or(1.0),
        original_context,
        attention_factor,
        truncate: own.flag("truncate")?.unwrap_or(true),
    })
}

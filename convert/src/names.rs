//! What the same tensor is called in each world.

/// Canonical, GGUF and Hugging Face names of the tensors outside the layers.
const OUTER: [[&str; 3]; 3] = [
    ["embed", "token_embd.weight", "model.embed_tokens.weight"],
    ["norm", "output_norm.weight", "model.norm.weight"],
    ["head", "output.weight", "lm_head.weight"],
];

/// The same inside a layer. Names stand without `.weight`; those with a bias end in `.bias` there
/// and in `_bias` here.
const INNER: [[&str; 3]; 9] = [
    ["attn_norm", "attn_norm", "input_layernorm"],
    ["q", "attn_q", "self_attn.q_proj"],
    ["k", "attn_k", "self_attn.k_proj"],
    ["v", "attn_v", "self_attn.v_proj"],
    ["o", "attn_output", "self_attn.o_proj"],
    ["ffn_norm", "ffn_norm", "post_attention_layernorm"],
    ["gate", "ffn_gate", "mlp.gate_proj"],
    ["up", "ffn_up", "mlp.up_proj"],
    ["down", "ffn_down", "mlp.down_proj"],
];

/// The GGUF name of a canonical tensor.
pub(crate) fn gguf(canonical: &str) -> String {
    translate(canonical, 1, "blk")
}

/// The Hugging Face name of a canonical tensor.
pub(crate) fn hugging_face(canonical: &str) -> String {
    translate(canonical, 2, "model.layers")
}

/// A name without a translation stays as it is, and is then reported missing under it.
fn translate(canonical: &str, column: usize, layers: &str) -> String {
    if let Some(row) = OUTER.iter().find(|row| row[0] == canonical) {
        return row[column].into();
    }
    let inner = canonical
        .strip_prefix("layers.")
        .and_then(|rest| rest.split_once('.'));
    let Some((layer, part)) = inner else {
        return canonical.into();
    };
    let (part, kind) = match part.strip_suffix("_bias") {
        Some(part) => (part, "bias"),
        None => (part, "weight"),
    };
    match INNER.iter().find(|row| row[0] == part) {
        Some(row) => format!("{layers}.{layer}.{}.{kind}", row[column]),
        None => canonical.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_canonical_tensor_has_two_other_names() {
        // The outer names are those of ggml's and transformers' llama models.
        let rows = [
            ["embed", "token_embd.weight", "model.embed_tokens.weight"],
            [
                "layers.11.o",
                "blk.11.attn_output.weight",
                "model.layers.11.self_attn.o_proj.weight",
            ],
            [
                "layers.0.down_bias",
                "blk.0.ffn_down.bias",
                "model.layers.0.mlp.down_proj.bias",
            ],
        ];
        for [canonical, in_gguf, in_hugging_face] in rows {
            assert_eq!(gguf(canonical), in_gguf);
            assert_eq!(hugging_face(canonical), in_hugging_face);
        }
    }
}

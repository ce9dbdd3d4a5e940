//! Every way the manifest's text can be wrong, each by its own bytes. `refused_architectures` has
//! the architecture and its tensors, `refused_tokens` the tokenizer and the special ids.

#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{Draft, model, refuse, refuse_value};
use format::FormatError::*;
use format::*;

const TEXT: JsonText = JsonText::Manifest;

fn unknown(path: &str, found: &str) -> FormatError {
    UnknownValue {
        text: TEXT,
        path: path.into(),
        found: found.into(),
    }
}

fn wrong(path: &str) -> FormatError {
    WrongValue {
        text: TEXT,
        path: path.into(),
    }
}

#[test]
fn the_unchanged_manifest_is_accepted() {
    let draft = Draft::new(model());
    assert_eq!(
        draft.parse_manifest(&draft.manifest).unwrap().manifest,
        model()
    );
}

#[test]
fn not_json() {
    let draft = Draft::new(model());
    let place = |line, column| {
        Err(NotJson {
            text: TEXT,
            line,
            column,
        })
    };
    assert_eq!(draft.parse_manifest(""), place(1, 0));
    assert_eq!(draft.parse_manifest("{\n]"), place(2, 1));
    assert_eq!(draft.parse_manifest("{} {}"), place(1, 4));
    assert_eq!(draft.parse_manifest("[]"), Err(wrong("")));
    assert_eq!(draft.parse_manifest("null"), Err(wrong("")));
}

#[test]
fn duplicate_keys_at_every_level() {
    let twice = |key: &str| DuplicateKey {
        text: TEXT,
        key: key.into(),
    };
    refuse("{\"schema\":", "{\"schema\":0,\"schema\":", twice("schema"));
    refuse("\"vocab\":", "\"vocab\":1,\"vocab\":", twice("vocab"));
    refuse("\"eps\":", "\"\\u0065ps\":1,\"eps\":", twice("eps"));
    refuse(
        "\"norm\":{\"shape\"",
        "\"norm\":0,\"norm\":{\"shape\"",
        twice("norm"),
    );
    refuse("[{\"mixer\"", "[{\"mixer\":0,\"mixer\"", twice("mixer"));
}

#[test]
fn schema_and_kind() {
    let found = "tinyrustlm.model.v3";
    refuse(
        "tinyrustlm.model.v2",
        found,
        UnknownSchema {
            found: found.into(),
        },
    );
    refuse(
        "\"kind\":\"model\"",
        "\"kind\":\"adapter\"",
        AdapterUnsupported,
    );
    refuse(
        "\"kind\":\"model\"",
        "\"kind\":\"merge\"",
        unknown("kind", "merge"),
    );
    refuse_value(|m| m.kind = Kind::Adapter, AdapterUnsupported);
    refuse_value(|m| m.kind = Kind::Bare, TokenizerPresence { wanted: false });
}

#[test]
fn words_outside_the_closed_lists() {
    let at = |path: &str, found: &str| unknown(&format!("architecture.{path}"), found);
    refuse("\"llama\"", "\"mystery\"", at("family", "mystery"));
    refuse("\"silu\"", "\"relu\"", at("activation", "relu"));
    refuse("\"rms\"", "\"layer\"", at("norm.kind", "layer"));
    refuse("\"half\"", "\"quarter\"", at("rope.pairing", "quarter"));
    refuse(
        "\"scaling\":\"none\"",
        "\"scaling\":\"ntk\"",
        at("rope.scaling", "ntk"),
    );
    refuse(
        "\"scaling\":\"none\"",
        "\"scaling\":{\"ntk\":{}}",
        at("rope.scaling", "ntk"),
    );
    refuse("\"attention\"", "\"mamba\"", at("layers.0.mixer", "mamba"));
    refuse("\"dense\"", "\"experts\"", at("layers.0.ffn", "experts"));
    let q = "\"layers.0.q\":{\"shape\":{\"rows\":36,\"cols\":32},\"layout\":\"";
    let layout = unknown("tensors.layers.0.q.layout", "q5_k.r4");
    refuse(&format!("{q}q4_1.r4\""), &format!("{q}q5_k.r4\""), layout);
    // A long word is not repeated whole.
    let long = "z".repeat(5000);
    refuse(
        "\"llama\"",
        &format!("\"{long}\""),
        at("family", &long[..256]),
    );
}

#[test]
fn unknown_and_missing_fields() {
    let field = |path: &str| UnknownField {
        text: TEXT,
        path: path.into(),
    };
    let missing = |path: &str| MissingField {
        text: TEXT,
        path: path.into(),
    };
    refuse("{\"schema\"", "{\"flash\":true,\"schema\"", field("flash"));
    refuse(
        "\"vocab\"",
        "\"qk_norm\":true,\"vocab\"",
        field("architecture.qk_norm"),
    );
    refuse(
        "\"eps\"",
        "\"bias\":0,\"eps\"",
        field("architecture.norm.bias"),
    );
    refuse(
        "\"base\"",
        "\"theta\":1,\"base\"",
        field("architecture.rope.theta"),
    );
    refuse(
        "[{\"mixer\"",
        "[{\"window\":4,\"mixer\"",
        field("architecture.layers.0.window"),
    );
    let shape = "\"norm\":{\"shape\":{";
    refuse(
        shape,
        &format!("{shape}\"depth\":1,"),
        field("tensors.norm.shape.depth"),
    );
    refuse(
        "\"description\"",
        "\"path\":1,\"description\"",
        field("source.path"),
    );
    refuse("\"add_bos\"", "\"unk\":1,\"add_bos\"", field("special.unk"));
    refuse(
        "\"top_k\"",
        "\"typical\":1,\"top_k\"",
        field("generation.typical"),
    );
    refuse("\"vocab\":40,", "", missing("architecture.vocab"));
    refuse(",\"eps\":0.00001", "", missing("architecture.norm.eps"));
    refuse("\"tokens\":39", "\"count\":39", field("tokenizer.count"));
    let yarn = "\"scaling\":{\"yarn\":{\"factor\":2.0}}";
    refuse(
        "\"scaling\":\"none\"",
        yarn,
        missing("architecture.rope.scaling.yarn.beta_fast"),
    );
}

#[test]
fn values_of_the_wrong_type_or_range() {
    let at = |path: &str| wrong(&format!("architecture.{path}"));
    for bad in ["-1", "4294967296", "1.5", "\"40\"", "null", "true", "[40]"] {
        refuse("\"vocab\":40", &format!("\"vocab\":{bad}"), at("vocab"));
    }
    refuse("\"tied_head\":false", "\"tied_head\":0", at("tied_head"));
    refuse("\"layers\":[{", "\"layers\":[3,{", at("layers.0"));
    refuse("\"scaling\":\"none\"", "\"scaling\":{}", at("rope.scaling"));
    refuse(
        "\"scaling\":\"none\"",
        "\"scaling\":\"yarn\"",
        at("rope.scaling"),
    );
    refuse(
        "\"add_bos\":true",
        "\"add_bos\":1",
        wrong("special.add_bos"),
    );
    refuse("\"stop\":[2,7]", "\"stop\":[2,-7]", wrong("special.stop.1"));
    refuse("\"stop\":[2,7]", "\"stop\":2", wrong("special.stop"));
    let digest = model().source.sha256.to_string();
    refuse(&digest, &digest[1..], wrong("source.sha256"));
    refuse(
        &digest,
        &digest.replace(&digest[..1], "g"),
        wrong("source.sha256"),
    );
    // A struct is not a list of its fields.
    let norm = "\"norm\":{\"kind\":\"rms\",\"eps\":0.00001}";
    refuse(norm, "\"norm\":[\"rms\",0.00001]", at("norm"));
}

#[test]
fn names() {
    for name in ["", "a\u{0}b", "two\nlines", "\u{9b}31m", &"x".repeat(257)] {
        let found = if name.len() > 256 {
            name[..256].to_string()
        } else {
            name.to_string()
        };
        refuse_value(|m| m.name = name.into(), BadName { found });
    }
}

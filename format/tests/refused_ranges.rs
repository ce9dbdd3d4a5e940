//! Tensors that do not cover the file exactly, or not in the way the manifest says.

#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{Draft, model};
use format::FormatError::*;
use format::*;

/// The valid header with `from` (which occurs once) replaced by `to`.
#[track_caller]
fn refuse(from: &str, to: &str, expected: FormatError) {
    let draft = Draft::new(model());
    let json = fixture::replace_once(&draft.json, from, to);
    assert_eq!(draft.parse(&json), Err(expected), "{from} -> {to}");
}

/// The range rules, on the entry of `norm`: `norm` has 128 bytes and lies between others.
#[test]
fn ranges() {
    let draft = Draft::new(model());
    let norm = draft.entry("norm");
    let (start, end) = draft.offsets("norm");
    let tensor = || String::from("norm");
    let put = |from: u64, to: u64, cols: u64, expected: FormatError| {
        let text = format!(
            "\"norm\":{{\"dtype\":\"F32\",\"shape\":[1,{cols}],\"data_offsets\":[{from},{to}]}}"
        );
        refuse(&norm, &text, expected);
    };
    put(end, start, 32, OffsetsReversed { tensor: tensor() });
    let (expected, found) = (draft.offsets("embed").1, start - 64);
    put(
        found,
        end,
        48,
        Overlap {
            tensor: tensor(),
            expected,
            found,
        },
    );
    let expected = start;
    put(
        start + 64,
        end,
        16,
        Hole {
            tensor: tensor(),
            expected,
            found: start + 64,
        },
    );
    put(
        start,
        end + 64,
        48,
        Overlap {
            tensor: String::from("head"),
            expected: end + 64,
            found: end,
        },
    );
    put(
        start,
        end - 64,
        16,
        Hole {
            tensor: String::from("head"),
            expected: end - 64,
            found: end,
        },
    );
}

/// As above: beyond the end, and lengths that the shape does not make up.
#[test]
fn lengths() {
    let draft = Draft::new(model());
    let norm = draft.entry("norm");
    let (start, end) = draft.offsets("norm");
    let tensor = || String::from("norm");
    let put = |from: u64, to: u64, cols: u64, expected: FormatError| {
        let text = format!(
            "\"norm\":{{\"dtype\":\"F32\",\"shape\":[1,{cols}],\"data_offsets\":[{from},{to}]}}"
        );
        refuse(&norm, &text, expected);
    };
    let file_len = draft.file_len;
    let far = file_len - draft.data_start + 1;
    put(
        start,
        far,
        32,
        BeyondEnd {
            tensor: tensor(),
            end: file_len + 1,
            file_len,
        },
    );
    put(start, u64::MAX, 32, Overflow { tensor: tensor() });
    put(
        start,
        end,
        33,
        ByteLength {
            tensor: tensor(),
            expected: 132,
            found: 128,
        },
    );
    put(start, end, 1 << 63, Overflow { tensor: tensor() });
    let text = norm.replace("[1,32]", "[1,1,1,1,32]");
    refuse(
        &norm,
        &text,
        RankTooHigh {
            tensor: tensor(),
            rank: 5,
        },
    );
}

#[test]
fn the_end_of_the_file() {
    let draft = Draft::new(model());
    let region = fixture::region(&draft.json);
    let file_len = draft.file_len;
    for more in [1, 64] {
        let error = TrailingBytes {
            data_end: file_len,
            file_len: file_len + more,
        };
        assert_eq!(Header::parse(&region, file_len + more), Err(error));
    }
    let last = String::from("layers.0.down_bias");
    let error = BeyondEnd {
        tensor: last,
        end: file_len,
        file_len: file_len - 1,
    };
    assert_eq!(Header::parse(&region, file_len - 1), Err(error));
}

/// A tensor without the filler before it: everything is contiguous, but not aligned.
#[test]
fn misaligned() {
    let draft = Draft::new(model());
    let (from, to) = draft.offsets("__pad.0");
    let filler = draft.entry("__pad.0") + ",";
    let json = fixture::replace_once(&draft.json, &filler, "");
    let hole = Hole {
        tensor: "embed".into(),
        expected: from,
        found: to,
    };
    assert_eq!(draft.parse(&json), Err(hole));
    // The tokenizer swallows the filler: no hole, but not what the manifest says.
    let (_, end) = draft.offsets("tokenizer");
    let (old, new) = (format!("\"shape\":[{end}],\"data_offsets\":[0,{end}]"), to);
    let new = format!("\"shape\":[{new}],\"data_offsets\":[0,{new}]");
    let wide = fixture::replace_once(&json, &old, &new);
    assert_eq!(
        draft.parse(&wide),
        Err(MissingTensor {
            tensor: "__pad.0".into()
        })
    );
    // Everything after the tokenizer moves forward to close the hole.
    let moved = draft.moved_back(to - from, &json);
    let error = Misaligned {
        tensor: "embed".into(),
        at: from,
    };
    assert_eq!(
        Header::parse(&fixture::region(&moved), draft.file_len - (to - from)),
        Err(error)
    );
}

#[test]
fn other_tensors_than_the_manifest() {
    refuse(
        "\"norm\":{",
        "\"morn\":{",
        MissingTensor {
            tensor: "norm".into(),
        },
    );
    let draft = Draft::new(model());
    let (_, end) = draft.offsets("layers.0.down_bias");
    // An extra tensor, even of no bytes, and an extra filler at the end.
    for name in ["extra", "__pad.99"] {
        let extra = format!(
            "{},\"{name}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[{end},{end}]}}}}",
            &draft.json[..draft.json.len() - 1]
        );
        let error = UnexpectedTensor {
            tensor: name.into(),
        };
        assert_eq!(draft.parse(&extra), Err(error));
    }
}

/// `gate` and `up` have the same size; so do two fillers.
#[test]
fn out_of_order() {
    let draft = Draft::new(model());
    for (one, other) in [("layers.0.gate", "layers.0.up"), ("__pad.0", "__pad.1")] {
        let json = draft.json.replace(&format!("\"{one}\":"), "\"swap\":");
        let json = json.replace(&format!("\"{other}\":"), &format!("\"{one}\":"));
        let json = json.replace("\"swap\":", &format!("\"{other}\":"));
        assert_ne!(json, draft.json);
        let error = OutOfOrder {
            expected: one.into(),
            found: other.into(),
        };
        assert_eq!(draft.parse(&json), Err(error));
    }
}

#[test]
fn stored_otherwise_than_the_manifest_says() {
    let stored = |tensor: &str| StoredAs {
        tensor: tensor.into(),
    };
    let norm = Draft::new(model()).entry("norm");
    let transposed = fixture::replace_once(&norm, "[1,32]", "[32,1]");
    refuse(&norm, &transposed, stored("norm"));
    let flat = fixture::replace_once(&norm, "[1,32]", "[32]");
    refuse(&norm, &flat, stored("norm"));
    let bytes = fixture::replace_once(&norm, "\"F32\",\"shape\":[1,32]", "\"U8\",\"shape\":[128]");
    refuse(&norm, &bytes, stored("norm"));
    let half = fixture::replace_once(
        &norm,
        "\"F32\",\"shape\":[1,32]",
        "\"F16\",\"shape\":[1,64]",
    );
    refuse(&norm, &half, stored("norm"));
}

/// A header that says the same in fewer bytes than the canonical spelling has, with no padding
/// left: it could not be written again at the same place.
#[test]
fn no_room_for_the_canonical_spelling() {
    for extra in 0..64 {
        let mut manifest = model();
        manifest.name.push_str(&"x".repeat(extra));
        let draft = Draft::new(manifest);
        let needed = 8 + draft.json.len() as u64;
        if needed % 64 != 1 {
            continue;
        }
        let short = fixture::replace_once(&draft.json, "10000.0", "10000");
        let found = 8 + short.len() as u64;
        assert_eq!(
            draft.parse(&short),
            Err(HeaderTooTight {
                needed,
                found: found.next_multiple_of(64)
            })
        );
        return;
    }
    panic!("no name gave the length this needs");
}

//! Files whose container lies: the rows of the hostile catalogue that concern magic, counts,
//! lengths, types and ranges. G numbers are those of the catalogue; most are public bug reports of
//! other readers.

mod gguf_writer;
mod refusal;

use convert::ConvertError::*;
use convert::Lead;
use gguf_writer::{ARRAY, Gguf, I32, TEXT, U32, array, bytes, text, texts};
use refusal::Row;

/// A small valid file with a change.
fn file(change: impl FnOnce(&mut Gguf)) -> Vec<u8> {
    let mut file = Gguf::bare();
    change(&mut file);
    file.write()
}

#[test]
fn every_hostile_container_ends_in_its_error() {
    refusal::check(&beginnings());
    refusal::check(&versions());
    refusal::check(&counts());
    refusal::check(&lengths());
    refusal::check(&types());
    refusal::check(&values());
    refusal::check(&alignments());
}

fn beginnings() -> Vec<Row> {
    let lead = |content: &[u8]| content.to_vec();
    vec![
        refused!(
            "empty",
            lead(b""),
            NotThisFormat {
                found: Lead::Empty,
                ..
            }
        ),
        refused!(
            "D8 a web page",
            lead(b"\n <!DOCTYPE html><html><body>404</body></html>"),
            NotThisFormat {
                found: Lead::Html,
                ..
            }
        ),
        refused!(
            "an error message",
            lead(b"{\"error\":\"not found\"}"),
            NotThisFormat {
                found: Lead::Json,
                ..
            }
        ),
        refused!(
            "a pointer",
            lead(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"),
            NotThisFormat {
                found: Lead::GitLfsPointer,
                ..
            }
        ),
        refused!(
            "an archive",
            lead(b"PK\x03\x04\x00\x00\x00\x00"),
            NotThisFormat {
                found: Lead::Zip,
                ..
            }
        ),
        refused!(
            "safetensors",
            lead(b"\x40\0\0\0\0\0\0\0{\"a\":{}}"),
            NotThisFormat {
                found: Lead::Safetensors,
                ..
            }
        ),
        refused!(
            "noise",
            vec![0xa5; 100],
            NotThisFormat {
                found: Lead::Bytes(_),
                ..
            }
        ),
        refused!("cut in the magic", lead(b"GG"), NotThisFormat { .. }),
        refused!("only a magic", lead(b"GGUF"), Truncated { missing: 4, .. }),
    ]
}

fn versions() -> Vec<Row> {
    vec![
        refused!(
            "G17 version 0",
            file(|f| f.version = 0),
            UnknownVersion { version: 0 }
        ),
        refused!(
            "G17 version 1",
            file(|f| f.version = 1),
            OldFormat { version: 1 }
        ),
        refused!(
            "G17 version 4",
            file(|f| f.version = 4),
            UnknownVersion { version: 4 }
        ),
        refused!("G17 swapped magic", file(|f| f.magic = *b"FUGG"), BigEndian),
        refused!(
            "before GGUF",
            file(|f| f.magic = *b"tjgg"),
            OldFormat { version: 0 }
        ),
        refused!("G18 big-endian", file(|f| f.version = 3 << 24), BigEndian),
    ]
}

fn counts() -> Vec<Row> {
    let huge = |what: &'static str| {
        move |f: &mut Gguf| match what {
            "keys" => f.key_count = Some(u64::MAX),
            _ => f.tensor_count = Some(u64::MAX),
        }
    };
    vec![
        refused!(
            "G1 all tensors",
            file(huge("tensors")),
            Limit {
                what: "tensor count",
                ..
            }
        ),
        refused!(
            "G1 all keys",
            file(huge("keys")),
            Limit {
                what: "key count",
                ..
            }
        ),
        refused!(
            "G1 wrapping count",
            file(|f| f.tensor_count = Some(u64::MAX / 56 + 2)),
            Limit { .. }
        ),
        refused!(
            "G1 more tensors than there are",
            file(|f| f.tensor_count = Some(65_536)),
            // The data is read as descriptions, and does not last.
            Truncated { .. } | Limit { .. } | BadDimensions { .. } | NotUtf8 { .. }
        ),
        refused!(
            "G1 one key too many",
            file(|f| f.key_count = Some(65_536)),
            _
        ),
        refused!(
            "no keys",
            file(|f| f.key_count = Some(0)),
            MissingKey { .. }
        ),
    ]
}

/// Kind and count of an array, without its elements.
fn claim(kind: u32, count: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat()
}

fn lengths() -> Vec<Row> {
    let value = |kind: u32, value: Vec<u8>| file(|f| f.set("x.y", kind, value));
    let tokens = |count: u64| file(|f| f.set("tokenizer.ggml.tokens", ARRAY, claim(TEXT, count)));
    // Nothing but one text that claims a length: 41 bytes.
    let short = |len: u64| {
        let mut file = Gguf::bare();
        (file.keys, file.tensors) = (Vec::new(), Vec::new());
        file.set("x", TEXT, len.to_le_bytes().into());
        file.write()
    };
    vec![
        refused!("G6 1 GiB text", short(1 << 30), Limit { .. }),
        refused!("G6 text of 2^64-1", short(u64::MAX), Limit { .. }),
        refused!(
            "G6 16 MiB not there",
            short(1 << 24),
            Truncated {
                missing: 16_777_000..,
                ..
            }
        ),
        refused!(
            "array too long",
            value(ARRAY, claim(0, 1 << 40)),
            Limit { .. }
        ),
        refused!(
            "array not there",
            value(ARRAY, claim(0, 2_000_000)),
            Truncated { .. }
        ),
        refused!(
            "texts not there",
            value(ARRAY, claim(TEXT, 2_000_000)),
            Truncated { .. }
        ),
        refused!("tokens not there", tokens(500_000), Truncated { .. }),
        refused!(
            "more tokens than any model has",
            tokens(600_000),
            Limit { .. }
        ),
    ]
}

fn types() -> Vec<Row> {
    let value = |kind: u32, value: Vec<u8>| file(|f| f.set("x.y", kind, value));
    let raw_key = |key: Vec<u8>| file(|f| f.keys.push((key, U32, vec![0; 4])));
    vec![
        refused!("G11 empty key", raw_key(vec![]), EmptyKey { .. }),
        refused!(
            "key too long",
            raw_key(vec![b'k'; 65_536]),
            Limit {
                what: "key bytes",
                ..
            }
        ),
        refused!(
            "G24 key is no text",
            raw_key(vec![0xff, 0xfe]),
            NotUtf8 { .. }
        ),
        refused!(
            "G11 type 13",
            value(13, vec![]),
            UnknownValueType { id: 13, .. }
        ),
        refused!(
            "G11 type 2^32-1",
            value(u32::MAX, vec![]),
            UnknownValueType { .. }
        ),
        refused!(
            "G11 array of arrays",
            value(ARRAY, array(ARRAY, &[texts(&["a"])])),
            NestedArray { .. }
        ),
        refused!(
            "array of type 99",
            value(ARRAY, claim(99, 1)),
            UnknownValueType { .. }
        ),
    ]
}

fn values() -> Vec<Row> {
    let raw_key = |key: Vec<u8>| file(|f| f.keys.push((key, U32, vec![0; 4])));
    let set = |key: &'static str, kind: u32, value: Vec<u8>| file(|f| f.set(key, kind, value));
    vec![
        refused!(
            "G12 a key twice",
            raw_key(b"llama.block_count".into()),
            DuplicateKey { key } if key == "llama.block_count"
        ),
        refused!(
            "G24 kept text is no text",
            set("general.name", TEXT, bytes(&[0xc3, 0x28])),
            NotUtf8 { .. }
        ),
        refused!(
            "a count that is a text",
            set("llama.block_count", TEXT, text("1")),
            WrongType {
                found: "a text",
                ..
            }
        ),
        refused!(
            "a count for each layer",
            set(
                "llama.attention.head_count",
                ARRAY,
                array(U32, &[vec![2, 0, 0, 0]])
            ),
            WrongType {
                found: "an array",
                ..
            }
        ),
        refused!(
            "a text that is a count",
            set("general.architecture", U32, vec![0; 4]),
            WrongType { found: "u32", .. }
        ),
        refused!(
            "a count below zero",
            set("llama.block_count", I32, (-1_i32).to_le_bytes().into()),
            BadValue { .. }
        ),
        refused!(
            "a flag of 2",
            set("tokenizer.ggml.add_bos_token", 7, vec![2]),
            BadValue { .. }
        ),
    ]
}

fn alignments() -> Vec<Row> {
    let alignment = |value: u32| file(|f| f.set_u32("general.alignment", value));
    let as_i32 = file(|f| f.set("general.alignment", I32, vec![64, 0, 0, 0]));
    vec![
        refused!("G7 alignment 0", alignment(0), BadValue { .. }),
        refused!("G7 alignment 13", alignment(13), BadValue { .. }),
        refused!("G7 alignment 2^21", alignment(1 << 21), BadValue { .. }),
        refused!("G7 alignment 2^30", alignment(1 << 30), BadValue { .. }),
        refused!("G7 alignment 2^31", alignment(1 << 31), BadValue { .. }),
        refused!(
            "G7 alignment as i32",
            as_i32,
            WrongType {
                expected: "u32",
                found: "i32",
                ..
            }
        ),
    ]
}

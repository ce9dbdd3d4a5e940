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

/// With the first tensor changed.
fn first(change: impl FnOnce(&mut gguf_writer::Tensor)) -> Vec<u8> {
    file(|file| change(&mut file.tensors[0]))
}

#[test]
fn every_hostile_container_ends_in_its_error() {
    refusal::check(&beginnings());
    refusal::check(&counts());
    refusal::check(&keys());
    refusal::check(&tensors());
    refusal::check(&ranges());
    full_limits_stay_within_bounds();
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

fn keys() -> Vec<Row> {
    let value = |kind: u32, value: Vec<u8>| file(|f| f.set("x.y", kind, value));
    let raw_key = |key: Vec<u8>| file(|f| f.keys.push((key, U32, vec![0; 4])));
    let claim = |kind: u32, count: u64| {
        [kind.to_le_bytes().to_vec(), count.to_le_bytes().to_vec()].concat()
    };
    let short = |kind: u32, value: Vec<u8>| {
        let mut file = Gguf::bare();
        (file.keys, file.tensors) = (Vec::new(), Vec::new());
        file.set("x", kind, value);
        file.write()
    };
    vec![
        refused!(
            "G6 1 GiB text",
            short(TEXT, (1u64 << 30).to_le_bytes().into()),
            Limit { .. }
        ),
        refused!(
            "G6 16 MiB text that is not there",
            short(TEXT, (16u64 << 20).to_le_bytes().into()),
            Truncated {
                missing: 16_777_000..,
                ..
            }
        ),
        refused!(
            "G6 text of all bytes",
            short(TEXT, vec![0xff; 8]),
            Limit { .. }
        ),
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
            UnknownValueType { id: 99, .. }
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
        refused!(
            "tokens not there",
            file(|f| f.set("tokenizer.ggml.tokens", ARRAY, claim(TEXT, 500_000))),
            Truncated { .. }
        ),
        refused!(
            "more tokens than any model has",
            file(|f| f.set("tokenizer.ggml.tokens", ARRAY, claim(TEXT, 600_000))),
            Limit { .. }
        ),
        refused!(
            "G12 a key twice",
            file(|f| f.keys.push((b"llama.block_count".into(), U32, vec![2, 0, 0, 0]))),
            DuplicateKey { key } if key == "llama.block_count"
        ),
        refused!(
            "G24 kept text is no text",
            file(|f| f.set("general.name", TEXT, bytes(&[0xc3, 0x28]))),
            NotUtf8 { .. }
        ),
        refused!(
            "a count that is a text",
            file(|f| f.set("llama.block_count", TEXT, text("1"))),
            WrongType { .. }
        ),
        refused!(
            "a text that is a count",
            file(|f| f.set("general.architecture", U32, vec![0; 4])),
            WrongType { .. }
        ),
        refused!(
            "G7 alignment 0",
            file(|f| f.set_u32("general.alignment", 0)),
            BadValue { .. }
        ),
        refused!(
            "G7 alignment 13",
            file(|f| f.set_u32("general.alignment", 13)),
            BadValue { .. }
        ),
        refused!(
            "G7 alignment 2^30",
            file(|f| f.set_u32("general.alignment", 1 << 30)),
            BadValue { .. }
        ),
        refused!(
            "G7 alignment 2^31",
            file(|f| f.set_u32("general.alignment", 1 << 31)),
            BadValue { .. }
        ),
        refused!(
            "G7 alignment as i32",
            file(|f| f.set("general.alignment", I32, 64_i32.to_le_bytes().into())),
            WrongType {
                expected: "u32",
                found: "i32",
                ..
            }
        ),
    ]
}

fn tensors() -> Vec<Row> {
    vec![
        refused!(
            "G3 2^42+1",
            first(|t| t.dims[0] = (1 << 42) + 1),
            Limit { .. }
        ),
        refused!(
            "rows beyond 2^32",
            first(|t| t.dims[1] = 1 << 32),
            Limit { .. }
        ),
        refused!(
            "G4 no columns",
            first(|t| t.dims[0] = 0),
            BadDimensions { .. }
        ),
        refused!("G4 no rows", first(|t| t.dims[1] = 0), BadDimensions { .. }),
        refused!(
            "G5 rank 10^6",
            first(|t| t.rank = Some(1_000_000)),
            BadDimensions { .. }
        ),
        refused!(
            "G5 rank 2^32-1",
            first(|t| t.rank = Some(u32::MAX)),
            BadDimensions { .. }
        ),
        refused!("rank 0", first(|t| t.dims = vec![]), BadDimensions { .. }),
        refused!(
            "rank 3",
            first(|t| t.dims = vec![32, 6, 2]),
            BadDimensions { .. }
        ),
        refused!(
            "G23 10^38 weights",
            first(|t| t.dims = vec![1 << 63; 2]),
            Limit { .. }
        ),
        refused!(
            "G13 65 bytes",
            first(|t| t.name = vec![b'n'; 65]),
            Limit { .. }
        ),
        refused!(
            "name of all bytes",
            first(|t| t.name = vec![0xff; 8]),
            NotUtf8 { .. }
        ),
        refused!(
            "type 12",
            first(|t| t.kind = 12),
            TensorType { id: 12, name: "Q4_K", tensor } if tensor == "token_embd.weight"
        ),
        refused!("type 4", first(|t| t.kind = 4), TensorType { id: 4, .. }),
        refused!(
            "type 77",
            first(|t| t.kind = 77),
            TensorType {
                name: "unknown",
                ..
            }
        ),
        refused!(
            "half a block",
            first(|t| t.dims[0] = 33),
            PartialBlock { columns: 33, .. }
        ),
    ]
}

fn ranges() -> Vec<Row> {
    vec![
        refused!(
            "G2 sizes beyond 64 bits",
            file(|f| {
                for (index, tensor) in f.tensors.iter_mut().take(2).enumerate() {
                    (tensor.kind, tensor.dims) = (0, vec![1 << 18, (1 << 32) - 1]);
                    tensor.offset = Some(u64::MAX - 31 - ((1 << 52) * (1 - index as u64)));
                }
            }),
            Overlap { .. } | Truncated { .. }
        ),
        refused!(
            "G8 behind the end",
            first(|t| t.offset = Some(1 << 40)),
            Truncated { .. }
        ),
        refused!(
            "G8 at 2^64-32",
            first(|t| t.offset = Some(u64::MAX - 31)),
            Truncated { .. }
        ),
        refused!(
            "G8 larger than the file",
            first(|t| t.dims[1] = 1 << 31),
            Overlap { .. } | Truncated { .. }
        ),
        refused!(
            "not aligned",
            first(|t| t.offset = Some(8)),
            MisalignedTensor {
                offset: 8,
                alignment: 32,
                ..
            }
        ),
        refused!(
            "the same bytes twice",
            file(|f| f.tensors[1].offset = Some(0)),
            Overlap { .. }
        ),
        refused!(
            "one inside another",
            file(|f| f.tensors[1].offset = Some(32)),
            Overlap { .. }
        ),
        refused!(
            "G12 a tensor twice",
            file(|f| {
                let copy = f.tensors[1].clone();
                f.tensors.push(copy);
            }),
            DuplicateTensor { tensor } if tensor == "output_norm.weight"
        ),
        refused!(
            "data written for another alignment",
            file(|f| {
                f.alignment = 64;
                f.set_u32("general.alignment", 4096);
            }),
            MisalignedTensor { .. } | Truncated { .. }
        ),
    ]
}

/// As many keys, tensors and tokens as are allowed at all. Each step that were quadratic would
/// show here as a test that does not end.
fn full_limits_stay_within_bounds() {
    let mut file = Gguf::bare();
    for index in file.keys.len()..65_536 {
        file.keys
            .push((format!("x.{index:0>500}").into(), U32, vec![0; 4]));
    }
    for index in file.tensors.len()..65_536 {
        let name = format!("x{index:0>60}");
        file.add(&name, &[8], 0, vec![0; 32]);
    }
    let tensors = file.write();

    let mut file = Gguf::small();
    // All numbers of up to six digits, each joined from one with a digit less.
    let tokens: Vec<Vec<u8>> = (0..1 << 19).map(|i| text(&i.to_string())).collect();
    let types = vec![vec![1, 0, 0, 0]; 1 << 19];
    let joined = |i: u32| text(&format!("{} {}", i / 10, i % 10));
    let numbers = (10..1 << 19).cycle().take((1 << 20) - 1);
    let mut merges: Vec<Vec<u8>> = numbers.map(joined).collect();
    merges.push(text("a b"));
    file.set("tokenizer.ggml.tokens", ARRAY, array(TEXT, &tokens));
    file.set("tokenizer.ggml.token_type", ARRAY, array(I32, &types));
    file.set("tokenizer.ggml.merges", ARRAY, array(TEXT, &merges));
    let vocabulary = file.write();

    refusal::check(&[
        refused!("full directory", tensors, UnexpectedTensor { .. }),
        refused!(
            "full vocabulary",
            vocabulary,
            MergeOutsideVocabulary { merge: 1_048_575 }
        ),
    ]);
}

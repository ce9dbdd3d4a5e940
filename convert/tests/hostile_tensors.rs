//! Files whose list of tensors lies: the rows of the hostile catalogue that concern dimensions,
//! types and byte ranges, and files at the limits of what is allowed.

mod gguf_writer;
mod refusal;

use convert::ConvertError::*;
use gguf_writer::{ARRAY, Gguf, I32, TEXT, U32, array, text};
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
fn every_hostile_directory_ends_in_its_error() {
    refusal::check(&tensors());
    refusal::check(&ranges());
    full_limits_stay_within_bounds();
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

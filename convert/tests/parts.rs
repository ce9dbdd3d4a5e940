//! Models split over several GGUF files, as `gguf-split` of llama.cpp writes them: `split.no` from
//! 0 (u16), `split.count` (u16) and `split.tensors.count` (i32) in every part, the model's keys in
//! the first alone.

#![allow(clippy::unwrap_used)]

mod gguf_writer;

use convert::{ConvertError, Converter, Options, SourceFile, Step};
use gguf_writer::{Gguf, I32};

/// The small model in three parts, in order.
fn parts() -> Vec<Vec<u8>> {
    let whole = Gguf::small();
    let total = whole.tensors.len() as i32;
    let per_part = whole.tensors.len().div_ceil(3);
    let part = |number: usize| {
        let mut part = whole.clone();
        if number > 0 {
            part.keys.clear();
        }
        part.tensors = whole
            .tensors
            .iter()
            .skip(number * per_part)
            .take(per_part)
            .cloned()
            .collect();
        for tensor in &mut part.tensors {
            tensor.offset = None;
        }
        part.set("split.no", 2, (number as u16).to_le_bytes().to_vec());
        part.set("split.count", 2, 3_u16.to_le_bytes().to_vec());
        part.set("split.tensors.count", I32, total.to_le_bytes().to_vec());
        part.write()
    };
    (0..3).map(part).collect()
}

fn convert(files: &[(&str, &[u8])]) -> Result<Vec<u8>, ConvertError> {
    let list = files.iter().map(|(name, bytes)| SourceFile {
        name: (*name).into(),
        len: bytes.len() as u64,
    });
    let mut converter = Converter::gguf_parts(list.collect(), Options::default())?;
    let mut out = Vec::new();
    loop {
        match converter.poll()? {
            Step::Need(need) => {
                let bytes = files[need.source as usize].1;
                let at = need.at as usize;
                converter.feed(need.at, &bytes[at..at + need.len as usize])?;
            }
            Step::Write(bytes) => out.extend_from_slice(bytes),
            Step::Done(_) => return Ok(out),
        }
    }
}

fn header(file: &[u8]) -> format::Header {
    let len = format::header_len(*file.first_chunk().unwrap(), file.len() as u64).unwrap();
    format::Header::parse(&file[..len as usize], file.len() as u64).unwrap()
}

/// D24: names and order of arrival say nothing; the weights are those of the whole file.
#[test]
fn parts_in_any_order_are_the_whole_model() {
    let whole = Gguf::small().write();
    let whole = convert(&[("tiny.gguf", &whole)]).unwrap();
    let parts = parts();
    let orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0]];
    let mut made = Vec::new();
    for order in orders {
        let named = |at: usize| ["tiny-00001-of-00003.gguf", "b.gguf", "a.gguf"][at];
        let files = order.map(|at| (named(at), parts[at].as_slice()));
        made.push(convert(&files).unwrap());
    }
    assert!(
        made.iter().all(|file| *file == made[0]),
        "the order says nothing"
    );
    let (split, whole_header) = (header(&made[0]), header(&whole));
    assert_eq!(split.manifest.name, "tiny");
    assert_eq!(split.manifest.tensors, whole_header.manifest.tensors);
    for (one, other) in split.tensors.iter().zip(&whole_header.tensors) {
        let range = |range: &std::ops::Range<u64>| range.start as usize..range.end as usize;
        assert_eq!(
            made[0][range(&one.range)],
            whole[range(&other.range)],
            "{}",
            one.name
        );
    }
}

/// D25: what is missing is named before anything is written.
#[test]
fn what_is_missing_or_wrong_is_named() {
    let parts = parts();
    let [a, b, c] = [&parts[0], &parts[1], &parts[2]].map(Vec::as_slice);
    let refused = |files: &[(&str, &[u8])]| convert(files).unwrap_err();
    let error = refused(&[("c", c), ("a", a)]);
    let missing = vec![1];
    assert_eq!(error, ConvertError::MissingParts { missing, count: 3 });
    assert_eq!(error.to_string(), "missing: part 2 of 3");
    let error = refused(&[("b", b), ("c", c)]);
    assert_eq!(error.to_string(), "missing: part 1 of 3");
    assert_eq!(
        refused(&[("a", a), ("a", a)]),
        ConvertError::PartTwice { number: 0 }
    );
    let whole = Gguf::small().write();
    let file = "whole.gguf".to_owned();
    let error = refused(&[("a", a), ("whole.gguf", &whole)]);
    assert_eq!(error, ConvertError::OtherPart { file });
    assert_eq!(
        refused(&[("b", b)]),
        ConvertError::SplitFile {
            number: 1,
            count: 3
        }
    );
}

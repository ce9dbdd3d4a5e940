//! The sentences of [`ConvertError`], by subject.

use std::fmt::{Formatter, Result};

use crate::ConvertError;
use ConvertError::*;

pub(crate) fn write(error: &ConvertError, f: &mut Formatter<'_>) -> Result {
    match error {
        NotThisFormat {
            file,
            wanted,
            found,
        } => {
            write!(f, "{file:?} is not {wanted}: it looks like {found}")
        }
        OldFormat { version: 0 } => f.write_str("a container older than GGUF"),
        OldFormat { version } => write!(f, "GGUF version {version} is too old"),
        UnknownVersion { version } => write!(f, "GGUF version {version} is not known"),
        BigEndian => f.write_str("a big-endian GGUF file"),
        Truncated {
            file,
            missing,
            place,
        } => {
            write!(
                f,
                "{file:?} is cut off: at least {missing} bytes are missing ({place})"
            )
        }
        SplitFile { number, count } => {
            let part = number + 1;
            write!(f, "this is part {part} of a model split over {count} files")
        }
        MissingParts { missing, count } => {
            let numbers: Vec<String> = missing.iter().map(|no| (no + 1).to_string()).collect();
            let parts = ["part", "parts"][usize::from(numbers.len() > 1)];
            write!(f, "missing: {parts} {} of {count}", numbers.join(", "))
        }
        PartTwice { number } => write!(f, "part {} of the model is there twice", number + 1),
        OtherPart { file } => write!(f, "{file:?} is no part of the model that the others are of"),
        Limit {
            what,
            place,
            found,
            max,
        } => {
            write!(
                f,
                "{what} of {place}: {found} claimed, at most {max} allowed"
            )
        }
        MissingFile { file } => write!(f, "the file {file:?} is missing"),
        DuplicateFile { file } => write!(f, "there are two files called {file:?}"),
        BadJson { file, line, column } => {
            write!(
                f,
                "{file:?} is not the JSON expected, at line {line}, column {column}"
            )
        }
        IndexMismatch { tensor, file } => {
            write!(f, "the index and {file:?} disagree about tensor {tensor:?}")
        }
        SourceChanged { file } => write!(f, "{file:?} changed while it was read"),
        NotAQuantization { codec } => write!(f, "{codec:?} is not a quantization"),
        NotAsked { source, at, len } => {
            write!(
                f,
                "{len} bytes at {at} of source {source} were not asked for"
            )
        }
        Format(error) => write!(f, "{error}"),
        _ => keys(error, f),
    }
}

fn keys(error: &ConvertError, f: &mut Formatter<'_>) -> Result {
    match error {
        NotUtf8 { place } => write!(f, "{place} is not UTF-8 text"),
        EmptyKey { index } => write!(f, "key number {index} is empty"),
        DuplicateKey { key } => write!(f, "the key {key:?} stands twice"),
        UnknownValueType { key, id } => write!(f, "{key:?} has a value of unknown type {id}"),
        NestedArray { key } => write!(f, "{key:?} is an array of arrays"),
        WrongType {
            key,
            expected,
            found,
        } => {
            write!(f, "{key:?} should be {expected}, but is {found}")
        }
        MissingKey { key } => write!(f, "{key:?} is missing"),
        BadValue {
            key,
            found,
            expected,
        } => {
            write!(f, "{key:?} is {found}; expected is {expected}")
        }
        Unsupported {
            key,
            found,
            supported,
        } => {
            write!(
                f,
                "{key:?} is {found}, which is not supported; supported: {supported}"
            )
        }
        DuplicateToken { first, second } => {
            write!(f, "the tokens {first} and {second} have the same text")
        }
        TokenType { token, found } => write!(f, "token {token} has the unknown type {found}"),
        BadMerge { merge } => write!(f, "merge {merge} is not two texts with a space between"),
        MergeOutsideVocabulary { merge } => {
            write!(f, "merge {merge} joins or makes something that is no token")
        }
        TokenCount {
            key,
            expected,
            found,
        } => {
            write!(
                f,
                "{key:?} counts {found} where the vocabulary has {expected}"
            )
        }
        _ => tensors(error, f),
    }
}

fn tensors(error: &ConvertError, f: &mut Formatter<'_>) -> Result {
    match error {
        DuplicateTensor { tensor } => write!(f, "the tensor {tensor:?} stands twice"),
        TensorType { tensor, id, name } => {
            write!(
                f,
                "tensor {tensor:?} has type {id} ({name}), which is not supported"
            )
        }
        TensorDtype { tensor, dtype } => {
            write!(
                f,
                "tensor {tensor:?} has dtype {dtype:?}, which is not supported"
            )
        }
        VectorType { tensor, codec } => {
            write!(
                f,
                "the vector {tensor:?} is stored as {codec:?}; it must be F32, F16 or BF16"
            )
        }
        BadDimensions { tensor } => {
            write!(
                f,
                "tensor {tensor:?} has a zero dimension or a wrong number of dimensions"
            )
        }
        PartialBlock { tensor, columns } => {
            write!(
                f,
                "tensor {tensor:?}: {columns} columns are not whole blocks of 32"
            )
        }
        MisalignedTensor {
            tensor,
            offset,
            alignment,
        } => {
            write!(
                f,
                "tensor {tensor:?} at offset {offset} is not aligned to {alignment}"
            )
        }
        Overlap { first, second } => {
            write!(
                f,
                "the tensors {first:?} and {second:?} claim the same bytes"
            )
        }
        ByteLength {
            tensor,
            expected,
            found,
        } => {
            write!(
                f,
                "tensor {tensor:?} has {found} bytes; its shape needs {expected}"
            )
        }
        MissingTensor { tensor } => write!(f, "tensor {tensor:?} is missing"),
        UnexpectedTensor { tensor } => {
            write!(f, "tensor {tensor:?} does not belong to this kind of model")
        }
        _ => weights(error, f),
    }
}

fn weights(error: &ConvertError, f: &mut Formatter<'_>) -> Result {
    match error {
        WrongShape {
            tensor,
            expected,
            found,
        } => write!(
            f,
            "tensor {tensor:?} is {} x {}; the model needs {} x {}",
            found.rows, found.cols, expected.rows, expected.cols
        ),
        NotFinite { tensor, first_row } => {
            write!(
                f,
                "tensor {tensor:?} has NaN or infinity in or after row {first_row}"
            )
        }
        ForbiddenCode { tensor, first_row } => {
            write!(
                f,
                "tensor {tensor:?} has the code -128 in or after row {first_row}"
            )
        }
        RopeFactors { tensor } => {
            write!(
                f,
                "the rotary factors in {tensor:?} belong to no supported scaling"
            )
        }
        _ => f.write_str("the source is refused"),
    }
}

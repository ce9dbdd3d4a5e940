//! Refusals in words, for logs and people who know what a tensor is.

use core::fmt;

use crate::{FormatError, JsonText};

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonText::Header => "header",
            JsonText::Manifest => "manifest",
        })
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FormatError::*;
        match self {
            HeaderTooLarge { found, max } => {
                write!(
                    f,
                    "the header claims {found} bytes; at most {max} are allowed"
                )
            }
            HeaderBeyondEnd {
                header_end,
                file_len,
            } => {
                write!(
                    f,
                    "the header ends at byte {header_end} of a file of {file_len} bytes"
                )
            }
            HeaderMisaligned { header_len } => {
                write!(
                    f,
                    "the header region of {header_len} bytes is not a multiple of 64"
                )
            }
            HeaderLength { expected, found } => {
                write!(f, "{expected} header bytes expected, {found} given")
            }
            HeaderNotUtf8 { at } => write!(f, "the header is not UTF-8 at byte {at}"),
            HeaderPadding => f.write_str("the header is not one JSON object padded with spaces"),
            HeaderTooTight { needed, found } => {
                write!(
                    f,
                    "the header region has {found} bytes; its content needs {needed}"
                )
            }
            NotJson { text, line, column } => {
                write!(f, "the {text} is not JSON at line {line}, column {column}")
            }
            JsonTooManyValues { text, max } => {
                write!(f, "the {text} has more than {max} JSON values")
            }
            DuplicateKey { text, key } => write!(f, "the {text} has the key {key:?} twice"),
            _ => self.fmt_manifest(f),
        }
    }
}

impl FormatError {
    fn fmt_manifest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FormatError::*;
        match self {
            NoManifest => f.write_str("no slm.manifest in the metadata: not a .slm file"),
            UnknownSchema { found } => write!(f, "unknown manifest schema {found:?}"),
            AdapterUnsupported => f.write_str("adapters are not supported by this build"),
            UnknownField { text, path } => write!(f, "unknown field {path:?} in the {text}"),
            MissingField { text, path } => write!(f, "field {path:?} is missing in the {text}"),
            UnknownValue { text, path, found } => {
                write!(f, "unknown value {found:?} of {path:?} in the {text}")
            }
            WrongValue { text, path } => {
                write!(
                    f,
                    "{path:?} in the {text} has the wrong type, length or range"
                )
            }
            BadName { found } => {
                write!(
                    f,
                    "{found:?} is no name: empty, too long or with control characters"
                )
            }
            Dimension {
                field,
                found,
                min,
                max,
            } => {
                write!(f, "{field} is {found}; {min} to {max} are supported")
            }
            Number { field, bits } => {
                write!(
                    f,
                    "{field} is {}, outside its limits",
                    f64::from_bits(*bits)
                )
            }
            HeadsNotDivisible { heads, kv_heads } => {
                write!(
                    f,
                    "{heads} query heads do not divide among {kv_heads} key heads"
                )
            }
            RopeDim { dim, head_dim } => {
                write!(f, "rope dim {dim}: odd, or above head_dim {head_dim}")
            }
            TokenizerPresence { wanted: true } => f.write_str("the model has no tokenizer"),
            TokenizerPresence { wanted: false } => f.write_str("a bare model has a tokenizer"),
            TokenizerName { found } => write!(f, "the tokenizer tensor is called {found:?}"),
            TokenizerHash => f.write_str("the tokenizer does not have the promised SHA-256"),
            TokenizerLength { expected, found } => {
                write!(f, "the tokenizer has {found} bytes instead of {expected}")
            }
            TokenIdRange { field, id, tokens } => {
                write!(
                    f,
                    "{field} is token {id}, but there are only {tokens} tokens"
                )
            }
            TokenIdsCollide { field, id } => {
                write!(f, "the padding token {id} is also {field}")
            }
            StopOrder { index } => write!(f, "stop id {index} is not above the one before"),
            NoBosToAdd => f.write_str("add_bos is set, but there is no bos token"),
            _ => self.fmt_tensor(f),
        }
    }

    fn fmt_tensor(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FormatError::*;
        match self {
            TooManyTensors { max } => write!(f, "more than {max} tensors"),
            MissingTensor { tensor } => write!(f, "tensor {tensor:?} is missing"),
            UnexpectedTensor { tensor } => {
                write!(f, "the architecture has no tensor {tensor:?}")
            }
            TensorShape {
                tensor,
                expected,
                found,
            } => write!(
                f,
                "tensor {tensor:?} is {} x {}; the architecture wants {} x {}",
                found.rows, found.cols, expected.rows, expected.cols
            ),
            LayoutRefused { tensor, layout } => {
                write!(f, "tensor {tensor:?} cannot have layout {}", layout.name())
            }
            PartialBlock { tensor, cols } => {
                write!(
                    f,
                    "tensor {tensor:?}: {cols} columns are not whole blocks of 32"
                )
            }
            RankTooHigh { tensor, rank } => write!(f, "tensor {tensor:?} has rank {rank}"),
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
            StoredAs { tensor } => {
                write!(
                    f,
                    "tensor {tensor:?}: dtype or shape differ from the manifest"
                )
            }
            _ => self.fmt_range(f),
        }
    }

    fn fmt_range(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FormatError::*;
        match self {
            OffsetsReversed { tensor } => write!(f, "tensor {tensor:?} ends before it starts"),
            Overlap {
                tensor,
                expected,
                found,
            } => {
                write!(
                    f,
                    "tensor {tensor:?} starts at {found}, inside the one before ({expected})"
                )
            }
            Hole {
                tensor,
                expected,
                found,
            } => {
                write!(
                    f,
                    "no tensor owns the bytes {expected} to {found} before {tensor:?}"
                )
            }
            BeyondEnd {
                tensor,
                end,
                file_len,
            } => {
                write!(
                    f,
                    "tensor {tensor:?} ends at byte {end} of a file of {file_len} bytes"
                )
            }
            Misaligned { tensor, at } => {
                write!(f, "tensor {tensor:?} starts at {at}, not a multiple of 64")
            }
            OutOfOrder { expected, found } => {
                write!(f, "tensor {found:?} stands where {expected:?} belongs")
            }
            TrailingBytes { data_end, file_len } => {
                write!(
                    f,
                    "the tensors end at byte {data_end} of a file of {file_len} bytes"
                )
            }
            Overflow { tensor } => write!(f, "the size of {tensor:?} does not fit 64 bits"),
            _ => self.fmt_bytes(f),
        }
    }

    fn fmt_bytes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FormatError::*;
        match self {
            NonFinite { at } => write!(f, "NaN or infinity at byte {at}"),
            CodeRefused { at } => write!(f, "q8_0 code -128 at byte {at}"),
            FillerNotZero { at } => write!(f, "a filler byte that is not zero at byte {at}"),
            PartialRun { layout, len } => {
                write!(
                    f,
                    "{len} bytes are not whole elements of layout {}",
                    layout.name()
                )
            }
            BufferLength { expected, found } => {
                write!(
                    f,
                    "a buffer of {found} bytes or elements where {expected} are needed"
                )
            }
            LayoutUnsupported { layout } => {
                write!(f, "layout {} does not allow this", layout.name())
            }
            PieceLayerRoot => f.write_str("the piece hashes do not belong to the model's root"),
            PieceLayerLength { expected, found } => {
                write!(
                    f,
                    "{found} bytes of piece hashes where {expected} are needed"
                )
            }
            _ => f.write_str("the model file is wrong"),
        }
    }
}

impl core::error::Error for FormatError {}

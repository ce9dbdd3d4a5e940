//! Every way a source can be refused, and what a person can do about it.

use std::fmt;

use format::{Codec, FormatError, Shape};

/// A refusal, with its place. Texts taken from the source are cut and stripped of control
/// characters by [`shown`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConvertError {
    /// The file does not begin like the format asked for; `found` says what it looks like.
    NotThisFormat {
        file: String,
        wanted: &'static str,
        found: Lead,
    },
    /// GGUF version 1, or an older container of the same line.
    OldFormat {
        version: u32,
    },
    /// A version newer than any known.
    UnknownVersion {
        version: u32,
    },
    BigEndian,
    /// The file ends too early; at least `missing` bytes are gone.
    Truncated {
        file: String,
        missing: u64,
        place: String,
    },
    /// One part of a model split over several GGUF files.
    SplitFile {
        number: u64,
        count: u64,
    },
    /// Some of several GGUF files are not there; numbers count from 0, and not all are listed.
    MissingParts {
        missing: Vec<u64>,
        count: u64,
    },
    PartTwice {
        number: u64,
    },
    /// A file that is no part of the model that the others are parts of.
    OtherPart {
        file: String,
    },
    /// A claim above one of the constants in `limits`.
    Limit {
        what: &'static str,
        place: String,
        found: u64,
        max: u64,
    },

    NotUtf8 {
        place: String,
    },
    EmptyKey {
        index: u64,
    },
    DuplicateKey {
        key: String,
    },
    DuplicateTensor {
        tensor: String,
    },
    UnknownValueType {
        key: String,
        id: u32,
    },
    NestedArray {
        key: String,
    },
    WrongType {
        key: String,
        expected: &'static str,
        found: &'static str,
    },
    MissingKey {
        key: &'static str,
    },
    /// A value outside what is possible.
    BadValue {
        key: String,
        found: String,
        expected: &'static str,
    },
    /// A meaning this program does not implement.
    Unsupported {
        key: String,
        found: String,
        supported: &'static str,
    },

    /// No tensor type of this number exists, or none that is supported; `name` if it is known.
    TensorType {
        tensor: String,
        id: u32,
        name: &'static str,
    },
    /// A safetensors dtype that is not supported.
    TensorDtype {
        tensor: String,
        dtype: String,
    },
    /// A vector (norm, bias) that is not stored as floats.
    VectorType {
        tensor: String,
        codec: Codec,
    },
    /// Rank zero, rank above four, or a dimension of zero.
    BadDimensions {
        tensor: String,
    },
    /// Columns that are no whole blocks of 32.
    PartialBlock {
        tensor: String,
        columns: u64,
    },
    MisalignedTensor {
        tensor: String,
        offset: u64,
        alignment: u64,
    },
    /// Bytes that two tensors claim.
    Overlap {
        first: String,
        second: String,
    },
    /// Shape and byte range disagree.
    ByteLength {
        tensor: String,
        expected: u64,
        found: u64,
    },
    MissingTensor {
        tensor: String,
    },
    UnexpectedTensor {
        tensor: String,
    },
    WrongShape {
        tensor: String,
        expected: Shape,
        found: Shape,
    },
    /// NaN or infinity in a weight or a scale.
    NotFinite {
        tensor: String,
        first_row: u64,
    },
    /// A `q8_0` code of -128.
    ForbiddenCode {
        tensor: String,
        first_row: u64,
    },
    /// Rotary factors that no supported scaling gives.
    RopeFactors {
        tensor: String,
    },

    DuplicateToken {
        first: u32,
        second: u32,
    },
    TokenType {
        token: u32,
        found: i64,
    },
    /// A merge that is not two texts with a space between.
    BadMerge {
        merge: u32,
    },
    /// A merge whose parts or result are no tokens.
    MergeOutsideVocabulary {
        merge: u32,
    },
    /// A count that should equal the number of tokens.
    TokenCount {
        key: &'static str,
        expected: u64,
        found: u64,
    },

    MissingFile {
        file: String,
    },
    DuplicateFile {
        file: String,
    },
    BadJson {
        file: String,
        line: u64,
        column: u64,
    },
    /// The index sends a tensor to a shard that does not have it, or not at all.
    IndexMismatch {
        tensor: String,
        file: String,
    },
    /// Bytes differ from those hashed before.
    SourceChanged {
        file: String,
    },

    NotAQuantization {
        codec: Codec,
    },
    /// Bytes that were not asked for.
    NotAsked {
        source: u32,
        at: u64,
        len: u64,
    },
    /// The checks of the `.slm` format itself.
    Format(FormatError),
}

/// What the first bytes of a file look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lead {
    Empty,
    Html,
    Json,
    GitLfsPointer,
    Zip,
    Gguf,
    Safetensors,
    /// Up to 16 bytes of something else.
    Bytes(Vec<u8>),
}

/// At most 80 characters of a text from the source, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(80)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}

impl From<FormatError> for ConvertError {
    fn from(error: FormatError) -> ConvertError {
        ConvertError::Format(error)
    }
}

impl Lead {
    /// Judges up to 64 first bytes of a file.
    pub(crate) fn of(bytes: &[u8]) -> Lead {
        let text = bytes.trim_ascii_start();
        let json_length = bytes.len() > 8 && bytes[8] == b'{' && bytes[3..8] == [0; 5];
        match bytes {
            [] => Lead::Empty,
            _ if bytes.starts_with(b"GGUF") => Lead::Gguf,
            _ if bytes.starts_with(b"version https://git-lfs") => Lead::GitLfsPointer,
            _ if bytes.starts_with(b"PK\x03\x04") => Lead::Zip,
            _ if json_length => Lead::Safetensors,
            _ if text.starts_with(b"<") => Lead::Html,
            _ if text.starts_with(b"{") || text.starts_with(b"[") => Lead::Json,
            _ => Lead::Bytes(bytes[..bytes.len().min(16)].to_vec()),
        }
    }
}

impl fmt::Display for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lead::Empty => f.write_str("an empty file"),
            Lead::Html => f.write_str("a web page (HTML), probably an error page of the server"),
            Lead::Json => f.write_str("JSON text, perhaps an error message of the server"),
            Lead::GitLfsPointer => f.write_str("a Git LFS pointer, not the file it points to"),
            Lead::Zip => f.write_str("a ZIP archive (PyTorch saves its files so)"),
            Lead::Gguf => f.write_str("a GGUF file"),
            Lead::Safetensors => f.write_str("a safetensors file"),
            Lead::Bytes(bytes) => {
                f.write_str("a file that begins with the bytes")?;
                bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
        }
    }
}

impl ConvertError {
    /// What to do next, for a person.
    pub fn remedy(&self) -> &'static str {
        use ConvertError::*;
        match self {
            NotThisFormat {
                found: Lead::Html | Lead::Json | Lead::GitLfsPointer,
                ..
            } => "Download the model again; the server sent something else in its place.",
            NotThisFormat { .. } => "Choose a GGUF file or a folder with safetensors files.",
            OldFormat { .. } | UnknownVersion { .. } | BigEndian => {
                "Get the model as a current GGUF file (version 3, little-endian)."
            }
            Truncated { .. } | SourceChanged { .. } => {
                "Download the file again; it is incomplete or was changed."
            }
            SplitFile { .. } | MissingParts { .. } | PartTwice { .. } => {
                "Choose all parts of the model together."
            }
            OtherPart { .. } => "Choose the parts of one model together, and nothing else.",
            TensorType { .. } | TensorDtype { .. } | VectorType { .. } | PartialBlock { .. } => {
                "Get the model with F32, F16, BF16, Q8_0, Q4_0 or Q4_1 weights."
            }
            Unsupported { .. } | RopeFactors { .. } | UnexpectedTensor { .. } => {
                "This model needs something this program does not have; choose another model."
            }
            NotFinite { .. } | ForbiddenCode { .. } => {
                "The weights are damaged; get the model from another source."
            }
            MissingFile { .. } | DuplicateFile { .. } | IndexMismatch { .. } => {
                "Choose the whole folder of the model, with every file it lists."
            }
            NotAQuantization { .. } => "Ask for q8_0, q4_0 or q4_1.",
            NotAsked { .. } => "Report this as a fault of the program.",
            _ => "The file is damaged or was made wrongly; get the model from another source.",
        }
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::error_text::write(self, f)
    }
}

impl std::error::Error for ConvertError {}

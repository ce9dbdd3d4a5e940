//! Every way a `.slm` file, or a part of one, can be wrong.

use alloc::string::String;

use crate::{Layout, Shape};

/// A refusal, with its place. Texts taken from the file are cut to 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The length field promises more than [`HEADER_BYTES_MAX`](crate::HEADER_BYTES_MAX).
    HeaderTooLarge {
        found: u64,
        max: u64,
    },
    /// The header does not end within the file, or the file is too short to have one.
    HeaderBeyondEnd {
        header_end: u64,
        file_len: u64,
    },
    /// Length field and JSON together are not a multiple of 64 bytes.
    HeaderMisaligned {
        header_len: u64,
    },
    /// The caller handed over another number of bytes than the length field says.
    HeaderLength {
        expected: u64,
        found: u64,
    },
    HeaderNotUtf8 {
        at: u64,
    },
    /// The JSON does not begin with `{` at once, or something else than spaces follows its `}`.
    HeaderPadding,
    /// The header region has no room for the canonical spelling of its own content.
    HeaderTooTight {
        needed: u64,
        found: u64,
    },
    NotJson {
        text: JsonText,
        line: u64,
        column: u64,
    },
    /// More values than any valid text has.
    JsonTooManyValues {
        text: JsonText,
        max: u32,
    },
    DuplicateKey {
        text: JsonText,
        key: String,
    },

    /// No `slm.manifest` in `__metadata__`: a safetensors file, but not a `.slm` file.
    NoManifest,
    UnknownSchema {
        found: String,
    },
    AdapterUnsupported,
    UnknownField {
        text: JsonText,
        path: String,
    },
    MissingField {
        text: JsonText,
        path: String,
    },
    /// A word outside a closed list: dtype, layout, family, kind, layer kind.
    UnknownValue {
        text: JsonText,
        path: String,
        found: String,
    },
    /// A value of the wrong type, length or range.
    WrongValue {
        text: JsonText,
        path: String,
    },
    /// Empty, longer than [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX), or with control characters.
    BadName {
        found: String,
    },

    /// A dimension outside its limits.
    Dimension {
        field: &'static str,
        found: u64,
        min: u64,
        max: u64,
    },
    /// A real number outside its limits; `bits` are those of the f64.
    Number {
        field: &'static str,
        bits: u64,
    },
    HeadsNotDivisible {
        heads: u32,
        kv_heads: u32,
    },
    RopeDim {
        dim: u32,
        head_dim: u32,
    },

    TooManyTensors {
        max: u32,
    },
    MissingTensor {
        tensor: String,
    },
    /// The architecture has no such tensor.
    UnexpectedTensor {
        tensor: String,
    },
    TensorShape {
        tensor: String,
        expected: Shape,
        found: Shape,
    },
    /// Vectors are `f32`; matrices are not `bytes`; the tokenizer is.
    LayoutRefused {
        tensor: String,
        layout: Layout,
    },
    /// Columns are not a whole number of blocks.
    PartialBlock {
        tensor: String,
        cols: u32,
    },
    RankTooHigh {
        tensor: String,
        rank: u32,
    },
    /// Stored shape and dtype do not make up the bytes of the range.
    ByteLength {
        tensor: String,
        expected: u64,
        found: u64,
    },
    /// Dtype or stored shape differ from what the manifest's layout and shape ask for.
    StoredAs {
        tensor: String,
    },
    OffsetsReversed {
        tensor: String,
    },
    /// Bytes that belong to two tensors. Offsets count from the start of data.
    Overlap {
        tensor: String,
        expected: u64,
        found: u64,
    },
    /// Bytes that belong to no tensor. Offsets count from the start of data.
    Hole {
        tensor: String,
        expected: u64,
        found: u64,
    },
    BeyondEnd {
        tensor: String,
        end: u64,
        file_len: u64,
    },
    /// A tensor that does not start at a multiple of 64.
    Misaligned {
        tensor: String,
        at: u64,
    },
    /// Tensors are not in canonical order, or a filler is missing or in the wrong place.
    OutOfOrder {
        expected: String,
        found: String,
    },
    TrailingBytes {
        data_end: u64,
        file_len: u64,
    },
    /// Sizes that do not fit 64 bits.
    Overflow {
        tensor: String,
    },

    /// Kind `model` without a tokenizer, or kind `bare` with one.
    TokenizerPresence {
        wanted: bool,
    },
    TokenizerName {
        found: String,
    },
    TokenizerHash,
    TokenizerLength {
        expected: u64,
        found: u64,
    },
    /// A special id that is no token.
    TokenIdRange {
        field: &'static str,
        id: u32,
        tokens: u32,
    },
    /// The padding token is also another special token.
    TokenIdsCollide {
        field: &'static str,
        id: u32,
    },
    /// Stop ids are not strictly ascending.
    StopOrder {
        index: u32,
    },
    /// `add_bos` without a `bos`.
    NoBosToAdd,

    /// NaN or infinity at this byte.
    NonFinite {
        at: u64,
    },
    /// A `q8_0` code of -128, which cannot be negated, at this byte.
    CodeRefused {
        at: u64,
    },
    /// A filler byte that is not zero.
    FillerNotZero {
        at: u64,
    },
    /// A run of bytes that is not a whole number of elements or blocks.
    PartialRun {
        layout: Layout,
        len: u64,
    },
    /// A buffer of another length than its rows and columns ask for.
    BufferLength {
        expected: u64,
        found: u64,
    },
    /// This operation does not exist for this layout.
    LayoutUnsupported {
        layout: Layout,
    },

    /// A piece layer that does not hash to the root.
    PieceLayerRoot,
    PieceLayerLength {
        expected: u64,
        found: u64,
    },
}

/// Which JSON text of the file an error is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonText {
    Header,
    Manifest,
}

/// At most 256 bytes of a text from outside, for an error.
pub(crate) fn excerpt(text: &str) -> String {
    let mut end = text.len().min(256);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    String::from(&text[..end])
}

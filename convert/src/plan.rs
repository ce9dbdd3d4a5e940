//! What a source amounts to, once its descriptions are read: a manifest, and for every tensor of
//! it the place of its bytes.

use std::collections::BTreeMap;

use format::{Architecture, BLOCK, Codec, Layout, Shape, TensorEntry, TensorRole};

use crate::error::{ConvertError, shown};
use crate::gguf::TokenizerText;
use crate::step::{Options, Scope};

/// One tensor as it lies in a source file, rows one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceTensor {
    /// The name the source gives it, for errors.
    pub name: String,
    /// Index of the file.
    pub source: u32,
    /// Offset of the first byte in that file.
    pub at: u64,
    pub codec: Codec,
    pub shape: Shape,
}

impl SourceTensor {
    /// Bytes of one row. The directories have checked that rows are whole blocks.
    pub fn row_bytes(&self) -> u64 {
        let cols = u64::from(self.shape.cols);
        match self.codec.block_bytes() {
            Some(block) => cols / u64::from(BLOCK) * u64::from(block),
            None => cols * element_bytes(self.codec),
        }
    }
}

/// Where the bytes of the tokenizer payload come from.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Written from a GGUF vocabulary.
    Text(Box<TokenizerText>),
    /// A whole source file, as it is.
    File { source: u32 },
}

/// Everything that the rest of the conversion needs.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Complete but for the digest of the source.
    pub manifest: format::Manifest,
    pub payload: Option<Payload>,
    /// By canonical name; exactly the tensors of the architecture.
    pub tensors: BTreeMap<String, SourceTensor>,
    /// Indices of the source files that count for the digest, in the order of their names.
    pub hashed: Vec<u32>,
}

/// Bytes of one element of a codec without blocks.
pub(crate) fn element_bytes(codec: Codec) -> u64 {
    match codec {
        Codec::F32 => 4,
        Codec::F16 | Codec::Bf16 => 2,
        Codec::Q8_0 | Codec::Q4_0 | Codec::Q4_1 | Codec::Bytes => 1,
    }
}

/// Every tensor the architecture asks for, by canonical name: what it becomes and what it was.
#[derive(Default)]
pub(crate) struct Matched {
    pub entries: BTreeMap<String, TensorEntry>,
    pub sources: BTreeMap<String, SourceTensor>,
}

/// Finds every tensor the architecture asks for, and decides the layout of each.
pub(crate) fn match_tensors(
    architecture: &Architecture,
    options: &Options,
    mut find: impl FnMut(&str) -> Result<SourceTensor, ConvertError>,
) -> Result<Matched, ConvertError> {
    let mut matched = Matched::default();
    for spec in architecture.tensors() {
        let source = find(&spec.name)?;
        if source.shape != spec.shape {
            return Err(ConvertError::WrongShape {
                tensor: source.name,
                expected: spec.shape,
                found: source.shape,
            });
        }
        let layout = layout(&source, spec.role, options)?;
        let shape = spec.shape;
        let entry = TensorEntry { shape, layout };
        matched.entries.insert(spec.name.clone(), entry);
        matched.sources.insert(spec.name, source);
    }
    Ok(matched)
}

fn layout(
    source: &SourceTensor,
    role: TensorRole,
    options: &Options,
) -> Result<Layout, ConvertError> {
    if role == TensorRole::Vector {
        return match source.codec {
            Codec::F32 | Codec::F16 | Codec::Bf16 => Ok(Layout::F32),
            codec => {
                let tensor = source.name.clone();
                Err(ConvertError::VectorType { tensor, codec })
            }
        };
    }
    let wanted = options.scope == Scope::All || source.codec.block_bytes().is_none();
    let target = match options.quantize {
        Some(codec) if wanted && source.shape.cols.is_multiple_of(BLOCK) => codec,
        _ => source.codec,
    };
    Ok(match target {
        Codec::F32 => Layout::F32,
        Codec::F16 => Layout::F16,
        Codec::Bf16 => Layout::Bf16,
        Codec::Q8_0 => Layout::Q8_0R4,
        Codec::Q4_0 => Layout::Q4_0R4,
        Codec::Q4_1 => Layout::Q4_1R4,
        Codec::Bytes => Layout::Bytes,
    })
}

/// Name and entry of the tokenizer tensor.
pub(crate) fn tokenizer_entry(len: u64) -> Result<(String, TensorEntry), ConvertError> {
    let cols = u32::try_from(len).map_err(|_| ConvertError::Limit {
        what: "tokenizer bytes",
        place: "tokenizer.json".into(),
        found: len,
        max: u32::MAX.into(),
    })?;
    let entry = TensorEntry {
        shape: Shape::row(cols),
        layout: Layout::Bytes,
    };
    Ok((format::TOKENIZER_TENSOR.into(), entry))
}

/// A name that a manifest takes: no control characters, at most 256 bytes, not empty.
pub(crate) fn clean_name(wanted: &str) -> String {
    let mut name: String = wanted.chars().filter(|c| !c.is_control()).collect();
    let mut end = name.len().min(format::NAME_BYTES_MAX as usize);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    let name = name.trim();
    match name.is_empty() {
        true => "model".into(),
        false => name.into(),
    }
}

/// Special ids as a manifest wants them: a padding token that is also another one says nothing,
/// and stop ids stand in order without repeats.
pub(crate) fn special_tokens(
    bos: Option<u32>,
    eos: Option<u32>,
    pad: Option<u32>,
    mut stop: Vec<u32>,
    add_bos: bool,
) -> format::SpecialTokens {
    stop.sort_unstable();
    stop.dedup();
    let taken = |id: &u32| bos == Some(*id) || eos == Some(*id) || stop.contains(id);
    let pad = pad.filter(|id| !taken(id));
    format::SpecialTokens {
        bos,
        eos,
        pad,
        stop,
        add_bos: add_bos && bos.is_some(),
    }
}

/// Refuses ranges that share a byte. Each is `start..end`, not empty, with a name.
pub(crate) fn check_overlap(mut ranges: Vec<(u64, u64, &str)>) -> Result<(), ConvertError> {
    ranges.sort_unstable();
    match ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        Some(pair) => Err(ConvertError::Overlap {
            first: shown(pair[0].2),
            second: shown(pair[1].2),
        }),
        None => Ok(()),
    }
}

//! The checked header of a `.slm` file, and the writer of new ones.
//!
//! Parsing lays out what the manifest says and compares it with what the tensor map says, so
//! there is one description of a valid file and not two.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::directory::{self, ALIGNMENT};
use crate::error::JsonText;
use crate::json::Node;
use crate::schema::read;
use crate::{FormatError, Layout, Manifest, Shape, TOKENIZER_TENSOR, sha256};

/// A header larger than this is refused before it is read.
pub const HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of the length field.
const FIELD: u64 = 8;

/// A whole, valid description of a `.slm` file. Making one is the check.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub manifest: Manifest,
    /// In file order: tokenizer, `embed`, `norm`, `head`, then layer by layer. Fillers left out.
    pub tensors: Vec<Tensor>,
    /// First byte of tensor data; the header lies before it.
    pub data_start: u64,
    /// Length of the whole file in bytes.
    pub file_len: u64,
}

/// One tensor and where its bytes lie in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub shape: Shape,
    pub layout: Layout,
    /// Byte range within the file; the start is a multiple of 64.
    pub range: Range<u64>,
}

/// Length in bytes of the header region (length field and JSON), from the file's first 8 bytes.
pub fn header_len(first: [u8; 8], file_len: u64) -> Result<u64, FormatError> {
    let (found, max) = (u64::from_le_bytes(first), HEADER_BYTES_MAX);
    if found > max {
        return Err(FormatError::HeaderTooLarge { found, max });
    }
    let header_len = FIELD + found;
    if header_len > file_len {
        return Err(FormatError::HeaderBeyondEnd {
            header_end: header_len,
            file_len,
        });
    }
    match header_len.is_multiple_of(ALIGNMENT) {
        true => Ok(header_len),
        false => Err(FormatError::HeaderMisaligned { header_len }),
    }
}

impl Header {
    /// Parses `bytes` (the header region of [`header_len`] bytes) of a file `file_len` bytes long.
    pub fn parse(bytes: &[u8], file_len: u64) -> Result<Header, FormatError> {
        let found = bytes.len() as u64;
        let Some((first, text)) = bytes.split_first_chunk::<8>() else {
            return Err(FormatError::HeaderLength {
                expected: FIELD,
                found,
            });
        };
        let data_start = header_len(*first, file_len)?;
        if found != data_start {
            return Err(FormatError::HeaderLength {
                expected: data_start,
                found,
            });
        }
        let text = core::str::from_utf8(text).map_err(|error| FormatError::HeaderNotUtf8 {
            at: FIELD + error.valid_up_to() as u64,
        })?;
        let json = text.trim_end_matches(' ');
        if !json.starts_with('{') || !json.ends_with('}') {
            return Err(FormatError::HeaderPadding);
        }

        let (manifest, mut entries) = directory::read_map(json)?;
        let manifest = Node::parse(&manifest, JsonText::Manifest)?;
        let manifest: Manifest = read(&manifest, JsonText::Manifest, "")?;
        manifest.check()?;
        directory::check_ranges(&mut entries, data_start, file_len)?;

        let tensors = place(&manifest, data_start)?;
        directory::check_same(&directory::entries(&tensors, data_start), &entries)?;
        let header = Header {
            manifest,
            tensors,
            data_start,
            file_len,
        };
        let needed = FIELD + header.spell().len() as u64;
        match needed <= data_start {
            true => Ok(header),
            false => Err(FormatError::HeaderTooTight {
                needed,
                found: data_start,
            }),
        }
    }

    /// Lays out a new file: the tensors the manifest names, in canonical order.
    pub fn layout(manifest: Manifest) -> Result<Header, FormatError> {
        manifest.check()?;
        let tensors = place(&manifest, 0)?;
        let mut header = Header {
            manifest,
            tensors,
            data_start: 0,
            file_len: 0,
        };
        // Offsets in the text count from the start of data, so its length does not depend on it.
        header.data_start = (FIELD + header.spell().len() as u64).next_multiple_of(ALIGNMENT);
        if header.data_start > FIELD + HEADER_BYTES_MAX {
            let (found, max) = (header.data_start - FIELD, HEADER_BYTES_MAX);
            return Err(FormatError::HeaderTooLarge { found, max });
        }
        for tensor in &mut header.tensors {
            tensor.range.start += header.data_start;
            tensor.range.end += header.data_start;
        }
        header.file_len = header.tensors.last().map_or(0, |tensor| tensor.range.end);
        Ok(header)
    }

    /// The header region's bytes. `Header::parse` of them gives this header back.
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = self.spell();
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(self.data_start - FIELD).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        while (bytes.len() as u64) < self.data_start {
            bytes.push(b' ');
        }
        bytes
    }

    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Byte ranges of the fillers within the file, in file order.
    pub fn fillers(&self) -> impl Iterator<Item = Range<u64>> {
        let ends = self.tensors.iter().map(|tensor| tensor.range.end);
        let starts = self.tensors.iter().skip(1).map(|tensor| tensor.range.start);
        ends.zip(starts)
            .map(|(end, start)| end..start)
            .filter(|gap| !gap.is_empty())
    }

    /// Checks the tokenizer payload against its promised length and SHA-256.
    pub fn check_tokenizer(&self, payload: &[u8]) -> Result<(), FormatError> {
        let (Some(tokenizer), Some(tensor)) =
            (&self.manifest.tokenizer, self.tensor(TOKENIZER_TENSOR))
        else {
            return Err(FormatError::TokenizerPresence { wanted: false });
        };
        let (expected, found) = (tensor.range.end - tensor.range.start, payload.len() as u64);
        if found != expected {
            return Err(FormatError::TokenizerLength { expected, found });
        }
        match sha256(payload) == tokenizer.sha256 {
            true => Ok(()),
            false => Err(FormatError::TokenizerHash),
        }
    }

    fn spell(&self) -> String {
        // The tree has string keys only, and checked numbers: it cannot fail to be written.
        let manifest = serde_json::to_string(&self.manifest).unwrap_or_default();
        directory::spell(
            &manifest,
            &directory::entries(&self.tensors, self.data_start),
        )
    }
}

/// Tensors in file order with aligned ranges from `data_start` on. The manifest is checked.
fn place(manifest: &Manifest, data_start: u64) -> Result<Vec<Tensor>, FormatError> {
    let specs = manifest.architecture.tensors();
    let tokenizer = manifest.tokenizer.iter().map(|_| TOKENIZER_TENSOR);
    let names = tokenizer.chain(specs.iter().map(|spec| spec.name.as_str()));
    let mut tensors: Vec<Tensor> = Vec::with_capacity(specs.len() + 1);
    let mut at = data_start;
    for name in names {
        let tensor = || String::from(name);
        let Some(&entry) = manifest.tensors.get(name) else {
            return Err(FormatError::MissingTensor { tensor: tensor() });
        };
        let Shape { rows, cols } = entry.shape;
        let bytes = entry.layout.tensor_bytes(u64::from(rows), u64::from(cols));
        let bytes = bytes.ok_or_else(|| FormatError::PartialBlock {
            tensor: tensor(),
            cols,
        })?;
        let start = at.checked_next_multiple_of(ALIGNMENT);
        let end = start.and_then(|start| start.checked_add(bytes));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(FormatError::Overflow { tensor: tensor() });
        };
        let (shape, layout) = (entry.shape, entry.layout);
        tensors.push(Tensor {
            name: tensor(),
            shape,
            layout,
            range: start..end,
        });
        at = end;
    }
    Ok(tensors)
}

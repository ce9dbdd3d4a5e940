//! The checked header of a `.slm` file, and the writer of new ones.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::{FormatError, Layout, Manifest, Shape};

/// A header larger than this is refused before it is read.
pub const HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;

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
    let _ = (first, file_len);
    todo!()
}

impl Header {
    /// Parses `bytes` (the header region of [`header_len`] bytes) of a file `file_len` bytes long.
    pub fn parse(bytes: &[u8], file_len: u64) -> Result<Header, FormatError> {
        let _ = (bytes, file_len);
        todo!()
    }

    /// Lays out a new file: the tensors the manifest names, in canonical order.
    pub fn layout(manifest: Manifest) -> Result<Header, FormatError> {
        let _ = manifest;
        todo!()
    }

    /// The header region's bytes. `Header::parse` of them gives this header back.
    pub fn to_bytes(&self) -> Vec<u8> {
        todo!()
    }

    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

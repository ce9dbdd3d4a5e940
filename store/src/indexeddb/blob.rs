//! One stored chunk.

use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, FileReaderSync};

use super::refused::exception;
use crate::chunked::{CHUNK_BYTES, Chunk};
use crate::{Operation, StoreError};

/// A stored chunk.
#[derive(Clone)]
pub struct BlobChunk {
    blob: Blob,
    reader: FileReaderSync,
}

/// What a chunk is stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Blobs,
    Bytes,
}

impl Form {
    pub fn value(self, content: &[u8]) -> Result<JsValue, JsValue> {
        let bytes = Uint8Array::from(content);
        match self {
            Form::Bytes => Ok(bytes.into()),
            Form::Blobs => {
                Blob::new_with_buffer_source_sequence(&Array::of1(&bytes)).map(Into::into)
            }
        }
    }
}
impl BlobChunk {
    /// From what the database gave.
    pub fn new(value: &JsValue, reader: FileReaderSync) -> Result<BlobChunk, JsValue> {
        let blob = match value.dyn_ref::<Blob>() {
            Some(blob) => blob.clone(),
            None => Blob::new_with_buffer_source_sequence(&Array::of1(value))?,
        };
        Ok(BlobChunk { blob, reader })
    }

    pub fn blob(&self) -> &Blob {
        &self.blob
    }
}

impl Chunk for BlobChunk {
    fn len(&self) -> usize {
        (self.blob.size() as usize).min(CHUNK_BYTES)
    }

    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), StoreError> {
        let refused = |error: JsValue| StoreError::Browser {
            operation: Operation::Read,
            exception: exception(&error),
        };
        let (from, to) = (at as f64, (at + into.len()) as f64);
        let slice = self
            .blob
            .slice_with_f64_and_f64(from, to)
            .map_err(refused)?;
        let bytes = self.reader.read_as_array_buffer(&slice).map_err(refused)?;
        let bytes = Uint8Array::new(&bytes);
        if bytes.length() as usize != into.len() {
            let (want, got) = (into.len() as u64, u64::from(bytes.length()));
            let at = at as u64;
            return Err(StoreError::ShortRead { at, want, got });
        }
        bytes.copy_to(into);
        Ok(())
    }
}

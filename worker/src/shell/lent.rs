//! A person's own file as a disk that can only be read.

use js_sys::Uint8Array;
use store::{Disk, Operation, StoreError};
use web_sys::{Blob, File, FileReaderSync};

pub struct LentFile {
    file: File,
    reader: FileReaderSync,
}

impl LentFile {
    pub fn open(file: File) -> Result<LentFile, StoreError> {
        let operation = Operation::Open;
        let reader = FileReaderSync::new().map_err(|_| StoreError::Unsupported { operation })?;
        Ok(LentFile { file, reader })
    }

    /// These bytes, as the browser gives them. A file that was moved or changed cannot be read.
    pub fn bytes(&self, at: u64, len: u32) -> Result<Uint8Array, StoreError> {
        let gone = |_| StoreError::NotFound {
            name: "the file that was chosen".into(),
        };
        let end = at + u64::from(len);
        let part: Blob = self
            .file
            .slice_with_f64_and_f64(at as f64, end as f64)
            .map_err(gone)?;
        let bytes = self.reader.read_as_array_buffer(&part).map_err(gone)?;
        let bytes = Uint8Array::new(&bytes);
        match bytes.length() == len {
            true => Ok(bytes),
            false => Err(StoreError::ShortRead {
                at,
                want: len.into(),
                got: bytes.length().into(),
            }),
        }
    }

    fn refuse(operation: Operation) -> StoreError {
        StoreError::Denied { operation }
    }
}

impl Disk for LentFile {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        if !into.is_empty() {
            self.bytes(at, into.len() as u32)?.copy_to(into);
        }
        Ok(())
    }

    fn write_at(&mut self, _: u64, _: &[u8]) -> Result<(), StoreError> {
        Err(LentFile::refuse(Operation::Write))
    }

    fn len(&self) -> Result<u64, StoreError> {
        Ok(self.file.size() as u64)
    }

    fn set_len(&mut self, _: u64) -> Result<(), StoreError> {
        Err(LentFile::refuse(Operation::SetLen))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

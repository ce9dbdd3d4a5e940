//! The two doors to the outside: one open file, and the directory it lives in.

use crate::StoreError;

/// One open file, held by nobody else. All calls return when they are done.
///
/// Dropping the last value of a handle closes it, so no error path keeps a file locked.
/// After `close` every call but `close` is refused with [`StoreError::Closed`].
pub trait Disk {
    /// Fills `into` from byte `at` on, or fails; [`StoreError::ShortRead`] if the file ends first.
    /// An empty `into` is filled anywhere.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError>;

    /// Writes all of `bytes`. A write past the end extends the file, with zeros in between;
    /// no bytes extend nothing.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError>;

    /// Length of the file in bytes.
    fn len(&self) -> Result<u64, StoreError>;

    fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file, or extends it with zeros. Extending reserves room where the system can.
    fn set_len(&mut self, len: u64) -> Result<(), StoreError>;

    /// Returns when everything written is on the medium.
    fn flush(&mut self) -> Result<(), StoreError>;

    /// Gives the file back. Does not flush.
    fn close(&mut self) -> Result<(), StoreError>;
}

/// One file of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// In bytes; `None` if the system would not say. One bad file never spoils the list.
    pub len: Option<u64>,
}

/// A flat directory for backends that answer at once. The browser's opens asynchronously and has
/// the same five calls in `opfs`.
pub trait Catalog {
    type Disk: Disk;

    /// All files, ordered by name.
    fn list(&self) -> Result<Vec<Entry>, StoreError>;

    /// Opens a file that exists. [`StoreError::Busy`] if a handle on it is open.
    fn open(&self, name: &str) -> Result<Self::Disk, StoreError>;

    /// Makes an empty file and opens it. [`StoreError::Exists`] if there is one: nothing that was
    /// downloaded once is lost to a mistake.
    fn create(&self, name: &str) -> Result<Self::Disk, StoreError>;

    /// Gives a closed file another name; a closed file of that name is replaced in one step.
    fn rename(&self, from: &str, to: &str) -> Result<(), StoreError>;

    /// Removes a closed file.
    fn remove(&self, name: &str) -> Result<(), StoreError>;
}

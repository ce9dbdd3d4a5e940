//! Files in memory: for tests, and for browsers that allow no storage at all.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Catalog, Disk, Entry, StoreError};

/// A directory whose clones are the same directory. Nothing stays after the last one is dropped.
#[derive(Clone, Default)]
pub struct MemoryCatalog {
    files: Arc<Mutex<BTreeMap<String, Arc<Content>>>>,
}

/// One open file of a [`MemoryCatalog`].
pub struct MemoryDisk {
    content: Option<Arc<Content>>,
}

#[derive(Default)]
struct Content {
    bytes: Mutex<Vec<u8>>,
    open: AtomicBool,
}

impl MemoryCatalog {
    /// Puts a closed file there, replacing one of the same name.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let content = Content {
            bytes: Mutex::new(bytes),
            open: AtomicBool::new(false),
        };
        lock(&self.files).insert(name.into(), Arc::new(content));
    }

    /// A copy of a file's bytes, open or not.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let content = lock(&self.files).get(name)?.clone();
        Some(lock(&content.bytes).clone())
    }
}

impl Catalog for MemoryCatalog {
    type Disk = MemoryDisk;

    fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let entry = |(name, content): (&String, &Arc<Content>)| Entry {
            name: name.clone(),
            len: Some(lock(&content.bytes).len() as u64),
        };
        Ok(lock(&self.files).iter().map(entry).collect())
    }

    fn open(&self, name: &str) -> Result<MemoryDisk, StoreError> {
        let files = lock(&self.files);
        let content = files.get(name).ok_or_else(|| not_found(name))?;
        if content.open.swap(true, Ordering::Relaxed) {
            return Err(StoreError::Busy { name: name.into() });
        }
        Ok(MemoryDisk {
            content: Some(content.clone()),
        })
    }

    fn create(&self, name: &str) -> Result<MemoryDisk, StoreError> {
        let mut files = lock(&self.files);
        if files.contains_key(name) {
            return Err(StoreError::Exists { name: name.into() });
        }
        let content = Arc::new(Content {
            bytes: Mutex::default(),
            open: AtomicBool::new(true),
        });
        files.insert(name.into(), content.clone());
        Ok(MemoryDisk {
            content: Some(content),
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let mut files = lock(&self.files);
        must_be_closed(&files, from)?;
        if files.contains_key(to) {
            must_be_closed(&files, to)?;
        }
        if let Some(content) = files.remove(from) {
            files.insert(to.into(), content);
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let mut files = lock(&self.files);
        must_be_closed(&files, name)?;
        files.remove(name);
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let bytes = lock(&self.content()?.bytes);
        let want = into.len() as u64;
        if want == 0 {
            return Ok(());
        }
        let Some(found) = span(at, want)
            .ok()
            .and_then(|range| bytes.get(range))
            .filter(|found| found.len() == into.len())
        else {
            let got = (bytes.len() as u64).saturating_sub(at).min(want);
            return Err(StoreError::ShortRead { at, want, got });
        };
        into.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut content = lock(&self.content()?.bytes);
        if bytes.is_empty() {
            return Ok(());
        }
        let range = span(at, bytes.len() as u64)?;
        if content.len() < range.end {
            resize(&mut content, range.end)?;
        }
        content[range].copy_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> Result<u64, StoreError> {
        Ok(lock(&self.content()?.bytes).len() as u64)
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        let mut content = lock(&self.content()?.bytes);
        resize(&mut content, span(len, 0)?.end)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.content().map(drop)
    }

    fn close(&mut self) -> Result<(), StoreError> {
        if let Some(content) = self.content.take() {
            content.open.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl MemoryDisk {
    fn content(&self) -> Result<&Content, StoreError> {
        self.content.as_deref().ok_or(StoreError::Closed)
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        if let Some(content) = self.content.take() {
            content.open.store(false, Ordering::Relaxed);
        }
    }
}

fn must_be_closed(files: &BTreeMap<String, Arc<Content>>, name: &str) -> Result<(), StoreError> {
    let content = files.get(name).ok_or_else(|| not_found(name))?;
    if content.open.load(Ordering::Relaxed) {
        return Err(StoreError::Busy { name: name.into() });
    }
    Ok(())
}

fn not_found(name: &str) -> StoreError {
    StoreError::NotFound { name: name.into() }
}

fn span(at: u64, len: u64) -> Result<Range<usize>, StoreError> {
    let end = at
        .checked_add(len)
        .and_then(|end| usize::try_from(end).ok());
    let end = end.ok_or(StoreError::Bounds { at, len })?;
    Ok(end - len as usize..end)
}

fn resize(bytes: &mut Vec<u8>, len: usize) -> Result<(), StoreError> {
    let more = len.saturating_sub(bytes.len());
    // Exact, because a model is reserved once and half a gigabyte of slack is not free.
    let reserved = bytes.try_reserve_exact(more);
    reserved.map_err(|_| StoreError::Quota {
        needed: more as u64,
    })?;
    bytes.resize(len, 0);
    Ok(())
}

/// A panic while a lock was held cannot leave these values half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The tier below the private file system: files as chunks in IndexedDB, in a dedicated worker.
//!
//! `chunked` makes files of chunks that answer at once; here are the transactions. Stored chunks
//! are blobs: handles that cost nothing until they are read, and a worker may read them at once
//! (`FileReaderSync`). Private windows of some browsers store no blobs; there the chunks are plain
//! bytes, and opening a file hands them to the browser as blobs, which takes its size in memory.

mod blob;
mod refused;
mod tables;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::{Array, Function, Promise};
use rexie::TransactionMode;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::Blob;

use crate::chunked::{ChunkedDisk, ChunkedFiles, FileId};
use crate::later::LaterCatalog;
use crate::{Disk, Entry, Operation, StoreError, names};
use blob::BlobChunk;
use refused::{end, refusal};
use tables::{FILES, LENS, TRIAL, Tables, forget, number};

/// More than this on its way to the database, and whoever writes should wait.
const BEHIND_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Clone)]
pub struct IndexedDbCatalog {
    shared: Rc<Shared>,
}

pub struct IndexedDbDisk {
    disk: ChunkedDisk<BlobChunk>,
    shared: Rc<Shared>,
}

struct Shared {
    tables: Tables,
    files: ChunkedFiles<BlobChunk>,
    is_storing: Cell<bool>,
    /// Who waits for the end of a transaction.
    waiting: RefCell<Vec<Function>>,
}

impl IndexedDbCatalog {
    /// The database of all models. [`StoreError::Unsupported`] where the browser has none.
    pub async fn models() -> Result<IndexedDbCatalog, StoreError> {
        IndexedDbCatalog::at(&format!("tinyrustlm-{}", names::DIRECTORY)).await
    }

    /// As `models`, with another name.
    pub async fn at(name: &str) -> Result<IndexedDbCatalog, StoreError> {
        let shared = Shared {
            tables: Tables::open(name).await?,
            files: ChunkedFiles::default(),
            is_storing: Cell::new(false),
            waiting: RefCell::default(),
        };
        let shared = Rc::new(shared);
        Ok(IndexedDbCatalog { shared })
    }

    /// The file as it is stored now, to be read elsewhere. Of a model no chunk is missing.
    pub async fn snapshot(&self, name: &str) -> Result<Blob, StoreError> {
        self.shared.settle().await?;
        let operation = Operation::Open;
        let found = self.shared.tables.find(name).await;
        let found = found.map_err(|error| refusal(&error, operation))?;
        let (_, _, chunks) = found.ok_or_else(|| StoreError::NotFound { name: name.into() })?;
        let parts: Array = chunks.values().map(BlobChunk::blob).collect();
        let unsupported = |_| StoreError::Unsupported { operation };
        Blob::new_with_blob_sequence(&parts).map_err(unsupported)
    }

    /// Whether chunks are stored as blobs, which is the better form.
    pub fn stores_blobs(&self) -> bool {
        self.shared.tables.stores_blobs()
    }
}

impl LaterCatalog for IndexedDbCatalog {
    type Disk = IndexedDbDisk;

    async fn list(&self) -> Result<Vec<Entry>, StoreError> {
        self.shared.settle().await?;
        let found = async {
            let transaction = self.shared.tables.begin(TransactionMode::ReadOnly)?;
            let (files, lens) = (transaction.store(FILES)?, transaction.store(LENS)?);
            let mut entries = Vec::new();
            for (name, file) in files.scan(None, None, None, None).await? {
                let len = lens.get(file).await?;
                entries.push(Entry {
                    name: name.as_string().unwrap_or_default(),
                    len: len.and_then(|len| len.as_f64()).map(|len| len as u64),
                });
            }
            Ok(entries)
        };
        let mut entries = found
            .await
            .map_err(|error| refusal(&error, Operation::List))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    async fn open(&self, name: &str) -> Result<IndexedDbDisk, StoreError> {
        self.shared.settle().await?;
        self.shared.files.must_be_closed(name)?;
        let found = self.shared.tables.find(name).await;
        let found = found.map_err(|error| refusal(&error, Operation::Open))?;
        let Some((id, len, chunks)) = found else {
            return Err(StoreError::NotFound { name: name.into() });
        };
        let disk = self.shared.files.open(name, id, len, chunks)?;
        let shared = Rc::clone(&self.shared);
        Ok(IndexedDbDisk { disk, shared })
    }

    async fn create(&self, name: &str) -> Result<IndexedDbDisk, StoreError> {
        self.shared.settle().await?;
        let made = async {
            let transaction = self.shared.tables.begin(TransactionMode::ReadWrite)?;
            let (files, lens) = (transaction.store(FILES)?, transaction.store(LENS)?);
            if files.key_exists(name.into()).await? {
                return Ok(None);
            }
            let taken = lens.get_all_keys(None, None).await?;
            let taken = taken.iter().filter_map(JsValue::as_f64);
            let id = taken.fold(f64::from(TRIAL.0), f64::max) + 1.0;
            files.put(&id.into(), Some(&name.into())).await?;
            lens.put(&0.into(), Some(&id.into())).await?;
            end(transaction).await.map(|()| Some(FileId(id as u32)))
        };
        let made = made.await.map_err(|error| error.told(Operation::Create))?;
        let id = made.ok_or(StoreError::Exists { name: name.into() })?;
        let disk = self.shared.files.open(name, id, 0, BTreeMap::new())?;
        let shared = Rc::clone(&self.shared);
        Ok(IndexedDbDisk { disk, shared })
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.shared.settle().await?;
        self.shared.files.must_be_closed(from)?;
        self.shared.files.must_be_closed(to)?;
        let renamed = async {
            let transaction = self.shared.tables.begin(TransactionMode::ReadWrite)?;
            let files = transaction.store(FILES)?;
            let Some(id) = files.get(from.into()).await? else {
                return Ok(false);
            };
            if let Some(replaced) = files.get(to.into()).await? {
                forget(&transaction, number(&replaced)).await?;
            }
            files.put(&id, Some(&to.into())).await?;
            files.delete(from.into()).await?;
            end(transaction).await.map(|()| true)
        };
        match renamed.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::NotFound { name: from.into() }),
            Err(error) => Err(error.told(Operation::Rename)),
        }
    }

    async fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.shared.settle().await?;
        self.shared.files.must_be_closed(name)?;
        let removed = async {
            let transaction = self.shared.tables.begin(TransactionMode::ReadWrite)?;
            let files = transaction.store(FILES)?;
            let Some(id) = files.get(name.into()).await? else {
                return Ok(false);
            };
            forget(&transaction, number(&id)).await?;
            files.delete(name.into()).await?;
            end(transaction).await.map(|()| true)
        };
        match removed.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::NotFound { name: name.into() }),
            Err(error) => Err(error.told(Operation::Remove)),
        }
    }

    async fn room(&self) {
        while self.shared.files.behind() > BEHIND_BYTES_MAX {
            self.shared.transaction_end().await;
        }
    }
}

impl Shared {
    /// Stores batches until there are none.
    fn go_on(self: &Rc<Self>) {
        if self.is_storing.replace(true) {
            return;
        }
        let shared = Rc::clone(self);
        spawn_local(async move {
            while let Some(batch) = shared.files.take_batch() {
                match shared.tables.store(&batch).await {
                    Ok(stored) => shared.files.committed(stored),
                    Err(error) => shared.files.refused(&error),
                }
                shared.tell();
            }
            shared.is_storing.set(false);
            shared.tell();
        });
    }

    /// Returns when everything written is stored; tells, once, if something was not.
    async fn settle(&self) -> Result<(), StoreError> {
        while !self.files.is_settled() {
            self.transaction_end().await;
        }
        self.files.take_failure()
    }

    async fn transaction_end(&self) {
        let ended = Promise::new(&mut |resolve, _| self.waiting.borrow_mut().push(resolve));
        // Nobody rejects it.
        JsFuture::from(ended).await.ok();
    }

    fn tell(&self) {
        for waiting in self.waiting.take() {
            // A promise's own function cannot fail.
            waiting.call0(&JsValue::NULL).ok();
        }
    }
}

impl Disk for IndexedDbDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.disk.read_at(at, into)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.disk.write_at(at, bytes);
        self.shared.go_on();
        written
    }

    fn len(&self) -> Result<u64, StoreError> {
        self.disk.len()
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        let set = self.disk.set_len(len);
        self.shared.go_on();
        set
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.disk.flush()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.disk.close()
    }
}

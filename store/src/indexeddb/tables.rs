//! What the database's tables hold, and the transactions on them.

use std::collections::BTreeMap;

use rexie::{KeyRange, ObjectStore, Rexie, Store, Transaction, TransactionMode};
use wasm_bindgen::prelude::*;
use web_sys::FileReaderSync;

use super::blob::{BlobChunk, Form};
use super::refused::{Refused, end};
use crate::chunked::{Batch, Chunk, ChunkKey, FileId};
use crate::{Operation, StoreError};

/// Name of a file to its number.
pub const FILES: &str = "files";
/// Number of a file to its length.
pub const LENS: &str = "lens";
/// Number of a file times [`CHUNKS_MAX`] plus the index to the content.
const CHUNKS: &str = "chunks";
/// Chunks that a file can have: 1 TiB, and every key is an exact number.
const CHUNKS_MAX: f64 = 1_048_576.0;
/// Chunks asked for at a time when a file is opened: handles are small, bytes are not.
const CHUNKS_AT_ONCE: u32 = 64;
/// The file number that no file has: where the start tries what can be stored.
pub const TRIAL: FileId = FileId(0);
/// The open database.
pub struct Tables {
    database: Rexie,
    form: Form,
    reader: FileReaderSync,
}

impl Tables {
    pub async fn open(name: &str) -> Result<Tables, StoreError> {
        let operation = Operation::Directory;
        let unsupported = |_| StoreError::Unsupported { operation };
        let reader = FileReaderSync::new().map_err(unsupported)?;
        let database = Rexie::builder(name)
            .version(1)
            .add_object_store(ObjectStore::new(FILES))
            .add_object_store(ObjectStore::new(LENS))
            .add_object_store(ObjectStore::new(CHUNKS))
            .build()
            .await
            .map_err(|_| StoreError::Unsupported { operation })?;
        let form = Form::Blobs;
        let mut tables = Tables {
            database,
            form,
            reader,
        };
        if tables.try_out().await.is_err() {
            tables.form = Form::Bytes;
            tables.try_out().await?;
        }
        Ok(tables)
    }

    pub fn stores_blobs(&self) -> bool {
        self.form == Form::Blobs
    }

    pub fn begin(&self, mode: TransactionMode) -> rexie::Result<Transaction> {
        self.database.transaction(&[FILES, LENS, CHUNKS], mode)
    }

    /// Whether a chunk of this form comes back as it went in.
    async fn try_out(&self) -> Result<(), StoreError> {
        let key = ChunkKey {
            file: TRIAL,
            index: 0,
        };
        let mut batch = Batch::default();
        batch.chunks.insert(key, Some(b"trial".to_vec()));
        let operation = Operation::Directory;
        let stored = self.store(&batch).await?;
        let mut found = [0; 5];
        match stored.first() {
            Some((_, chunk)) if chunk.len() == 5 => chunk.read(0, &mut found)?,
            _ => return Err(StoreError::Unsupported { operation }),
        }
        batch.chunks.insert(key, None);
        self.store(&batch).await?;
        match &found {
            b"trial" => Ok(()),
            _ => Err(StoreError::Unsupported { operation }),
        }
    }

    /// One transaction. Gives handles on what it stored.
    pub async fn store(&self, batch: &Batch) -> Result<Vec<(ChunkKey, BlobChunk)>, StoreError> {
        let needed = batch.bytes() as u64;
        let stored = async {
            let transaction = self.begin(TransactionMode::ReadWrite)?;
            let (lens, chunks) = (transaction.store(LENS)?, transaction.store(CHUNKS)?);
            let lens_of = batch.lens.iter().map(|(file, len)| {
                let len = JsValue::from(*len as f64);
                (len, Some(JsValue::from(f64::from(file.0))))
            });
            lens.put_all(lens_of).await?;
            for (key, content) in &batch.chunks {
                match content {
                    Some(content) => {
                        let content = self.form.value(content)?;
                        chunks.put(&content, Some(&chunk_key(*key))).await?;
                    }
                    None => chunks.delete(chunk_key(*key)).await?,
                };
            }
            end(transaction).await?;
            // Read anew, so that the bytes are the database's and no longer the worker's.
            let transaction = self.begin(TransactionMode::ReadOnly)?;
            let chunks = transaction.store(CHUNKS)?;
            let mut stored = Vec::new();
            for key in batch.chunks.keys() {
                if let Some(value) = chunks.get(chunk_key(*key)).await? {
                    stored.push((*key, self.chunk(&value)?));
                }
            }
            Ok(stored)
        };
        stored.await.map_err(|error: Refused| match error {
            Refused::Aborted => StoreError::Quota { needed },
            refused => match refused.told(Operation::Write) {
                StoreError::Quota { .. } => StoreError::Quota { needed },
                told => told,
            },
        })
    }

    /// Number, length and chunks of a file.
    pub async fn find(&self, name: &str) -> rexie::Result<Option<Found>> {
        let transaction = self.begin(TransactionMode::ReadOnly)?;
        let Some(id) = transaction.store(FILES)?.get(name.into()).await? else {
            return Ok(None);
        };
        let len = transaction.store(LENS)?.get(id.clone()).await?;
        let len = len.and_then(|len| len.as_f64()).unwrap_or_default();
        let file = number(&id);
        let store = transaction.store(CHUNKS)?;
        let mut chunks = BTreeMap::new();
        let mut from = f64::from(file.0) * CHUNKS_MAX;
        let to = from + CHUNKS_MAX - 1.0;
        let at_once = match self.form {
            Form::Blobs => CHUNKS_AT_ONCE,
            Form::Bytes => 1,
        };
        while from <= to {
            let range = || KeyRange::bound(&from.into(), &to.into(), None, None);
            let keys = store.get_all_keys(Some(range()?), Some(at_once)).await?;
            let values = store.get_all(Some(range()?), Some(at_once)).await?;
            for (key, value) in keys.iter().zip(&values) {
                let index = key.as_f64().unwrap_or_default() % CHUNKS_MAX;
                if let Ok(chunk) = self.chunk(value) {
                    chunks.insert(index as u32, chunk);
                }
            }
            match keys.last().and_then(JsValue::as_f64) {
                Some(last) if keys.len() == at_once as usize => from = last + 1.0,
                _ => break,
            }
        }
        Ok(Some((file, len as u64, chunks)))
    }

    fn chunk(&self, value: &JsValue) -> Result<BlobChunk, JsValue> {
        BlobChunk::new(value, self.reader.clone())
    }
}

/// Number, length and chunks of a file.
pub type Found = (FileId, u64, BTreeMap<u32, BlobChunk>);

/// Removes everything of a file but its name.
pub async fn forget(transaction: &Transaction, file: FileId) -> rexie::Result<()> {
    let lens: Store = transaction.store(LENS)?;
    lens.delete(f64::from(file.0).into()).await?;
    let from = f64::from(file.0) * CHUNKS_MAX;
    let range = KeyRange::bound(&from.into(), &(from + CHUNKS_MAX - 1.0).into(), None, None)?;
    transaction.store(CHUNKS)?.delete(range.into()).await
}

pub fn number(id: &JsValue) -> FileId {
    FileId(id.as_f64().unwrap_or_default() as u32)
}

fn chunk_key(key: ChunkKey) -> JsValue {
    (f64::from(key.file.0) * CHUNKS_MAX + f64::from(key.index)).into()
}

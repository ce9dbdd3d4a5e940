//! A database as browsers have one, in memory: transactions that arrive later, in order, each as a
//! whole, until the power goes. The newest of them may be lost with it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use store::faulty::Seeded;
use store::{
    Batch, Catalog, Chunk, ChunkKey, ChunkedDisk, ChunkedFiles, Disk, Entry, FileId, StoreError,
};

/// What the database holds. Copies are cheap: chunks are shared.
#[derive(Clone, Default)]
pub struct Tables {
    names: BTreeMap<String, FileId>,
    lens: BTreeMap<FileId, u64>,
    chunks: BTreeMap<ChunkKey, Bytes>,
}

#[derive(Clone)]
pub struct Bytes(Rc<Vec<u8>>);

/// What shall go wrong; transactions are counted from 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The machine stops at this transaction.
    pub crash_at: Option<u64>,
    /// This transaction is refused because the disk is full.
    pub full_at: Option<u64>,
}

#[derive(Clone)]
pub struct Database {
    files: ChunkedFiles<Bytes>,
    inner: Rc<RefCell<Inner>>,
}

struct Inner {
    tables: Tables,
    /// As they were before each of the newest transactions.
    before: Vec<Tables>,
    random: Seeded,
    transactions: u64,
    faults: Faults,
    stopped: bool,
    /// A transaction was begun and has not ended yet.
    under_way: Option<Rc<Batch>>,
}

pub struct DatabaseDisk {
    disk: ChunkedDisk<Bytes>,
    database: Database,
}

impl Chunk for Bytes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), StoreError> {
        into.copy_from_slice(&self.0[at..at + into.len()]);
        Ok(())
    }
}

impl Database {
    pub fn new(tables: Tables, seed: u64, faults: Faults) -> Database {
        let inner = Inner {
            tables,
            before: Vec::new(),
            random: Seeded(seed),
            transactions: 0,
            faults,
            stopped: false,
            under_way: None,
        };
        Database {
            files: ChunkedFiles::default(),
            inner: Rc::new(RefCell::new(inner)),
        }
    }

    pub fn has_stopped(&self) -> bool {
        self.inner.borrow().stopped
    }

    pub fn behind(&self) -> usize {
        self.files.behind()
    }

    /// What the next start finds: all that arrived, less up to `lost` transactions.
    pub fn crash(&self, lost: u64) -> Tables {
        let mut inner = self.inner.borrow_mut();
        inner.stopped = true;
        let most = lost.min(inner.before.len() as u64);
        match inner.random.below(most + 1) as usize {
            0 => inner.tables.clone(),
            lost => inner.before[inner.before.len() - lost].clone(),
        }
    }

    /// The stored bytes of a file, without what is still on its way.
    pub fn stored(tables: &Tables, name: &str) -> Option<Vec<u8>> {
        let file = *tables.names.get(name)?;
        let mut bytes = vec![0; tables.lens[&file] as usize];
        for (key, chunk) in tables.chunks.iter().filter(|(key, _)| key.file == file) {
            let at = key.index as usize * store::CHUNK_BYTES;
            bytes[at..at + chunk.0.len()].copy_from_slice(&chunk.0);
        }
        Some(bytes)
    }

    /// The database does some of its work, or none.
    fn breathe(&self) {
        for _ in 0..2 {
            if self.inner.borrow_mut().random.below(3) == 0 {
                self.step();
            }
        }
    }

    /// Begins a transaction, or ends the one that was begun.
    fn step(&self) {
        let begun = self.inner.borrow_mut().under_way.take();
        let Some(batch) = begun else {
            self.inner.borrow_mut().under_way = self.files.take_batch();
            return;
        };
        match self.transaction(|tables| tables.apply(&batch)) {
            Ok(stored) => self.files.committed(stored),
            Err(error) => self.files.refused(&error),
        }
    }

    /// Everything that was written arrives.
    fn settle(&self) -> Result<(), StoreError> {
        while !self.files.is_settled() {
            self.step();
        }
        self.files.take_failure()
    }

    fn transaction<T>(&self, work: impl FnOnce(&mut Tables) -> T) -> Result<T, StoreError> {
        let mut inner = self.inner.borrow_mut();
        let number = inner.transactions;
        inner.transactions += 1;
        if inner.faults.crash_at == Some(number) {
            inner.stopped = true;
        }
        if inner.stopped {
            return Err(StoreError::Closed);
        }
        if inner.faults.full_at == Some(number) {
            return Err(StoreError::Quota { needed: 1 });
        }
        let before = inner.tables.clone();
        inner.before.push(before);
        Ok(work(&mut inner.tables))
    }

    fn file(&self, name: &str) -> Result<FileId, StoreError> {
        let found = self.inner.borrow().tables.names.get(name).copied();
        found.ok_or(StoreError::NotFound { name: name.into() })
    }
}

impl Tables {
    fn apply(&mut self, batch: &Batch) -> Vec<(ChunkKey, Bytes)> {
        let mut stored = Vec::new();
        for (key, content) in &batch.chunks {
            match content {
                Some(content) => {
                    let bytes = Bytes(Rc::new(content.clone()));
                    self.chunks.insert(*key, bytes.clone());
                    stored.push((*key, bytes));
                }
                None => drop(self.chunks.remove(key)),
            }
        }
        self.lens.extend(&batch.lens);
        stored
    }

    fn remove(&mut self, file: FileId) {
        self.lens.remove(&file);
        self.chunks.retain(|key, _| key.file != file);
    }
}

impl Catalog for Database {
    type Disk = DatabaseDisk;

    fn list(&self) -> Result<Vec<Entry>, StoreError> {
        self.settle()?;
        let inner = self.inner.borrow();
        let entry = |(name, file): (&String, &FileId)| Entry {
            name: name.clone(),
            len: inner.tables.lens.get(file).copied(),
        };
        Ok(inner.tables.names.iter().map(entry).collect())
    }

    fn open(&self, name: &str) -> Result<DatabaseDisk, StoreError> {
        self.settle()?;
        let file = self.file(name)?;
        let (len, chunks) = {
            let tables = &self.inner.borrow().tables;
            let ours = tables.chunks.iter().filter(|(key, _)| key.file == file);
            let chunks = ours.map(|(key, chunk)| (key.index, chunk.clone()));
            (tables.lens[&file], chunks.collect())
        };
        let disk = self.files.open(name, file, len, chunks)?;
        let database = self.clone();
        Ok(DatabaseDisk { disk, database })
    }

    fn create(&self, name: &str) -> Result<DatabaseDisk, StoreError> {
        self.settle()?;
        if self.file(name).is_ok() {
            return Err(StoreError::Exists { name: name.into() });
        }
        self.transaction(|tables| {
            let next = tables.lens.keys().last().map_or(1, |file| file.0 + 1);
            tables.names.insert(name.into(), FileId(next));
            tables.lens.insert(FileId(next), 0);
        })?;
        self.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.settle()?;
        let file = self.file(from)?;
        self.files.must_be_closed(from)?;
        self.files.must_be_closed(to)?;
        self.transaction(|tables| {
            tables.names.remove(from);
            if let Some(replaced) = tables.names.insert(to.into(), file) {
                tables.remove(replaced);
            }
        })
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.settle()?;
        let file = self.file(name)?;
        self.files.must_be_closed(name)?;
        self.transaction(|tables| {
            tables.names.remove(name);
            tables.remove(file);
        })
    }
}

impl Disk for DatabaseDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.disk.read_at(at, into)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.disk.write_at(at, bytes);
        self.database.breathe();
        written
    }

    fn len(&self) -> Result<u64, StoreError> {
        self.disk.len()
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        let set = self.disk.set_len(len);
        self.database.breathe();
        set
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.disk.flush()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.disk.close()
    }
}

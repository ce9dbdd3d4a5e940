//! Storage in a browser: the origin's private file system, IndexedDB where there is none, and
//! memory where there is neither.

use format::PIECE_BYTES;
use js_sys::{Array, Uint8Array};
use protocol::StorageKind;
use store::indexeddb::{IndexedDbCatalog, IndexedDbDisk};
use store::later::LaterCatalog;
use store::opfs::{OpfsCatalog, OpfsDisk, estimate};
use store::{Catalog, Disk, Estimate, MemoryCatalog, MemoryDisk, Operation, StoreError, names};
use web_sys::{Blob, FileSystemFileHandle, FileSystemReadWriteOptions};

use super::lent::LentFile;
use crate::engine::module::ReadIntoView;
use crate::session::{FileAnswer, FileOp};

/// Names that the start tries the storage with; left behind, they count as strays.
const TRIAL: [u64; 2] = [u64::MAX, u64::MAX - 1];
/// What a file in memory is copied through.
const COPY_BYTES: u32 = 64 * 1024;

pub enum Directory {
    Opfs(OpfsCatalog),
    IndexedDb(IndexedDbCatalog),
    Memory(MemoryCatalog),
}

pub enum BrowserDisk {
    Opfs(OpfsDisk),
    IndexedDb(IndexedDbDisk),
    Memory(MemoryDisk),
    Lent(LentFile),
}

impl Directory {
    /// The private file system if this browser has one and allows it, else IndexedDB, else memory;
    /// `forced` names one of the latter two to begin with.
    ///
    /// A file that another tab holds is no reason for another tier: models would seem to be gone.
    pub async fn open(forced: Option<&str>) -> Directory {
        if forced.is_none()
            && let Ok(directory) = OpfsCatalog::models().await
            && try_out(&directory).await.is_ok()
        {
            return Directory::Opfs(directory);
        }
        if forced != Some("memory")
            && let Ok(directory) = IndexedDbCatalog::models().await
        {
            return Directory::IndexedDb(directory);
        }
        Directory::Memory(MemoryCatalog::default())
    }

    pub fn kind(&self) -> StorageKind {
        match self {
            Directory::Opfs(_) => StorageKind::Opfs,
            Directory::IndexedDb(_) => StorageKind::IndexedDb,
            Directory::Memory(_) => StorageKind::Memory,
        }
    }

    /// Returns when what is on its way to the storage has left room for more.
    pub async fn room(&self) {
        if let Directory::IndexedDb(directory) = self {
            directory.room().await;
        }
    }

    /// A stored file for whoever takes it elsewhere; a handle, except where files are in memory.
    pub async fn file(&self, name: &str) -> Result<Blob, StoreError> {
        match self {
            Directory::Opfs(directory) => directory.snapshot(name).await,
            Directory::IndexedDb(directory) => directory.snapshot(name).await,
            Directory::Memory(directory) => {
                let bytes = directory.get(name);
                let bytes = bytes.ok_or_else(|| StoreError::NotFound { name: name.into() })?;
                let parts = Array::of1(&Uint8Array::from(bytes.as_slice()));
                let operation = Operation::Open;
                let refused = |_| StoreError::Unsupported { operation };
                Blob::new_with_buffer_source_sequence(&parts).map_err(refused)
            }
        }
    }

    pub async fn run(&self, op: FileOp) -> Result<FileAnswer<BrowserDisk>, StoreError> {
        match self {
            Directory::Opfs(directory) => later(directory, op, BrowserDisk::Opfs).await,
            Directory::IndexedDb(directory) => later(directory, op, BrowserDisk::IndexedDb).await,
            Directory::Memory(directory) => in_memory(directory, op),
        }
    }
}

async fn later<C: LaterCatalog>(
    directory: &C,
    op: FileOp,
    disk: impl FnOnce(C::Disk) -> BrowserDisk,
) -> Result<FileAnswer<BrowserDisk>, StoreError> {
    match op {
        FileOp::List => directory.list().await.map(FileAnswer::Listed),
        FileOp::Estimate => Ok(FileAnswer::Estimate(estimate().await)),
        // Of no directory.
        FileOp::Lend(_) => Err(StoreError::Closed),
        FileOp::Open(name) => {
            let opened = directory.open(&name).await;
            opened.map(|opened| FileAnswer::Opened(disk(opened)))
        }
        FileOp::Create(name) => {
            let created = directory.create(&name).await;
            created.map(|created| FileAnswer::Opened(disk(created)))
        }
        FileOp::Rename { from, to } => {
            let renamed = directory.rename(&from, &to).await;
            renamed.map(|()| FileAnswer::Done)
        }
        FileOp::Remove(name) => directory.remove(&name).await.map(|()| FileAnswer::Done),
    }
}

fn in_memory(directory: &MemoryCatalog, op: FileOp) -> Result<FileAnswer<BrowserDisk>, StoreError> {
    let opened = |disk| FileAnswer::Opened(BrowserDisk::Memory(disk));
    match op {
        FileOp::List => directory.list().map(FileAnswer::Listed),
        FileOp::Estimate => Ok(FileAnswer::Estimate(Estimate::default())),
        FileOp::Lend(_) => Err(StoreError::Closed),
        FileOp::Open(name) => directory.open(&name).map(opened),
        FileOp::Create(name) => directory.create(&name).map(opened),
        FileOp::Rename { from, to } => directory.rename(&from, &to).map(|()| FileAnswer::Done),
        FileOp::Remove(name) => directory.remove(&name).map(|()| FileAnswer::Done),
    }
}

/// Makes, renames and removes a file. Only what says that there is no such storage counts.
async fn try_out(directory: &OpfsCatalog) -> Result<(), StoreError> {
    let [first, second] = TRIAL.map(names::incoming);
    let tried = async {
        drop(directory.create(&first).await?);
        directory.rename(&first, &second).await?;
        directory.remove(&second).await
    };
    match tried.await {
        Err(error @ (StoreError::Unsupported { .. } | StoreError::Denied { .. })) => Err(error),
        _ => Ok(()),
    }
}

/// One call of whichever disk it is.
macro_rules! either {
    ($this:expr, $disk:ident => $call:expr) => {
        match $this {
            BrowserDisk::Opfs($disk) => $call,
            BrowserDisk::IndexedDb($disk) => $call,
            BrowserDisk::Memory($disk) => $call,
            BrowserDisk::Lent($disk) => $call,
        }
    };
}

impl Disk for BrowserDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        either!(self, disk => disk.read_at(at, into))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        either!(self, disk => disk.write_at(at, bytes))
    }

    fn len(&self) -> Result<u64, StoreError> {
        either!(self, disk => disk.len())
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        either!(self, disk => disk.set_len(len))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        either!(self, disk => disk.flush())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        either!(self, disk => disk.close())
    }
}

impl ReadIntoView for BrowserDisk {
    fn read_into_view(&self, at: u64, view: &Uint8Array) -> bool {
        match self {
            BrowserDisk::Opfs(disk) => opfs_into_view(disk, at, view),
            BrowserDisk::IndexedDb(disk) => copied_into_view(disk, PIECE_BYTES, at, view),
            BrowserDisk::Memory(disk) => copied_into_view(disk, COPY_BYTES, at, view),
            BrowserDisk::Lent(disk) => {
                let bytes = disk.bytes(at, view.length());
                bytes.map(|bytes| view.set(&bytes, 0)).is_ok()
            }
        }
    }

    /// Blobs are read many times slower than by a handle, and than a layer is computed.
    fn lent(&self) -> Option<FileSystemFileHandle> {
        match self {
            BrowserDisk::Opfs(disk) => disk.file().cloned(),
            BrowserDisk::Lent(_) | BrowserDisk::IndexedDb(_) | BrowserDisk::Memory(_) => None,
        }
    }
}

/// Straight from the file into the other module's memory.
fn opfs_into_view(disk: &OpfsDisk, at: u64, view: &Uint8Array) -> bool {
    let len = view.length();
    let mut got = 0;
    while got < len {
        let options = FileSystemReadWriteOptions::new();
        options.set_at_f64((at + u64::from(got)) as f64);
        let rest = view.subarray(got, len);
        let read = disk
            .handle()
            .read_with_js_u8_array_and_options(&rest, &options);
        match read {
            Ok(read) if read >= 1.0 => got += read as u32,
            _ => return false,
        }
    }
    true
}

/// Through `most` bytes of this module's memory at a time.
fn copied_into_view<D: Disk>(disk: &D, most: u32, at: u64, view: &Uint8Array) -> bool {
    let mut bytes = vec![0; most.min(view.length()) as usize];
    let mut got = 0;
    while got < view.length() {
        let len = (view.length() - got).min(most);
        let bytes = &mut bytes[..len as usize];
        if disk.read_at(at + u64::from(got), bytes).is_err() {
            return false;
        }
        view.subarray(got, got + len).copy_from(bytes);
        got += len;
    }
    true
}

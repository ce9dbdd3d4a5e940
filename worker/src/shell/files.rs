//! Storage in a browser: the origin's private file system, or memory where there is none.

use js_sys::Uint8Array;
use protocol::StorageKind;
use store::opfs::{OpfsCatalog, OpfsDisk, estimate};
use store::{Catalog, Disk, Estimate, MemoryCatalog, MemoryDisk, StoreError, names};
use web_sys::FileSystemReadWriteOptions;

use crate::engine::module::ReadIntoView;
use crate::session::{FileAnswer, FileOp};

/// Names that the start tries the storage with; left behind, they count as strays.
const TRIAL: [u64; 2] = [u64::MAX, u64::MAX - 1];
/// What a file in memory is copied through.
const COPY_BYTES: usize = 64 * 1024;

pub enum Directory {
    Opfs(OpfsCatalog),
    Memory(MemoryCatalog),
}

pub enum BrowserDisk {
    Opfs(OpfsDisk),
    Memory(MemoryDisk),
}

impl Directory {
    /// The private file system if this browser has one and allows it, else memory.
    ///
    /// A file that another tab holds is no reason for memory: models would seem to be gone.
    pub async fn open() -> Directory {
        let opened = match OpfsCatalog::models().await {
            Ok(directory) => try_out(&directory).await.map(|()| directory),
            Err(error) => Err(error),
        };
        match opened {
            Ok(directory) => Directory::Opfs(directory),
            Err(_) => Directory::Memory(MemoryCatalog::default()),
        }
    }

    pub fn kind(&self) -> StorageKind {
        match self {
            Directory::Opfs(_) => StorageKind::Opfs,
            Directory::Memory(_) => StorageKind::Memory,
        }
    }

    pub async fn run(&self, op: FileOp) -> Result<FileAnswer<BrowserDisk>, StoreError> {
        match self {
            Directory::Opfs(directory) => in_opfs(directory, op).await,
            Directory::Memory(directory) => in_memory(directory, op),
        }
    }
}

async fn in_opfs(
    directory: &OpfsCatalog,
    op: FileOp,
) -> Result<FileAnswer<BrowserDisk>, StoreError> {
    let opened = |disk| FileAnswer::Opened(BrowserDisk::Opfs(disk));
    match op {
        FileOp::List => directory.list().await.map(FileAnswer::Listed),
        FileOp::Estimate => Ok(FileAnswer::Estimate(estimate().await)),
        FileOp::Open(name) => directory.open(&name).await.map(opened),
        FileOp::Create(name) => directory.create(&name).await.map(opened),
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

impl Disk for BrowserDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        match self {
            BrowserDisk::Opfs(disk) => disk.read_at(at, into),
            BrowserDisk::Memory(disk) => disk.read_at(at, into),
        }
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        match self {
            BrowserDisk::Opfs(disk) => disk.write_at(at, bytes),
            BrowserDisk::Memory(disk) => disk.write_at(at, bytes),
        }
    }

    fn len(&self) -> Result<u64, StoreError> {
        match self {
            BrowserDisk::Opfs(disk) => disk.len(),
            BrowserDisk::Memory(disk) => disk.len(),
        }
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        match self {
            BrowserDisk::Opfs(disk) => disk.set_len(len),
            BrowserDisk::Memory(disk) => disk.set_len(len),
        }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        match self {
            BrowserDisk::Opfs(disk) => disk.flush(),
            BrowserDisk::Memory(disk) => disk.flush(),
        }
    }

    fn close(&mut self) -> Result<(), StoreError> {
        match self {
            BrowserDisk::Opfs(disk) => disk.close(),
            BrowserDisk::Memory(disk) => disk.close(),
        }
    }
}

impl ReadIntoView for BrowserDisk {
    fn read_into_view(&self, at: u64, view: &Uint8Array) -> bool {
        match self {
            BrowserDisk::Opfs(disk) => opfs_into_view(disk, at, view),
            BrowserDisk::Memory(disk) => memory_into_view(disk, at, view),
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

fn memory_into_view(disk: &MemoryDisk, at: u64, view: &Uint8Array) -> bool {
    let mut bytes = vec![0; COPY_BYTES.min(view.length() as usize)];
    let mut got = 0;
    while got < view.length() {
        let len = (view.length() - got).min(COPY_BYTES as u32);
        let bytes = &mut bytes[..len as usize];
        if disk.read_at(at + u64::from(got), bytes).is_err() {
            return false;
        }
        view.subarray(got, got + len).copy_from(bytes);
        got += len;
    }
    true
}

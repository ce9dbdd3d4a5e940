//! Files in a folder of the system, one exclusive handle each, as the browser has it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Catalog, Disk, Entry, Operation, StoreError};

pub struct FolderCatalog {
    path: PathBuf,
}

/// One open file, locked against every other handle, also those of other programs of ours.
pub struct FolderDisk {
    file: Option<File>,
}

impl FolderCatalog {
    /// Makes the folder if it is missing.
    pub fn new(path: &Path) -> Result<FolderCatalog, StoreError> {
        let made = fs::create_dir_all(path);
        made.map_err(|error| refusal(&error, Operation::Directory, "", 0))?;
        Ok(FolderCatalog { path: path.into() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Only plain names: nothing outside the folder can be meant.
    fn place(&self, name: &str) -> Result<PathBuf, StoreError> {
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(StoreError::NotFound { name: name.into() });
        }
        Ok(self.path.join(name))
    }

    fn lock(&self, name: &str, operation: Operation) -> Result<File, StoreError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = options.open(self.place(name)?);
        let file = file.map_err(|error| refusal(&error, operation, name, 0))?;
        exclusive(&file, operation, name)?;
        Ok(file)
    }

    /// Names survive a power cut only once their folder was flushed.
    fn flush_names(&self, operation: Operation, name: &str) -> Result<(), StoreError> {
        if cfg!(unix) {
            let flushed = File::open(&self.path).and_then(|folder| folder.sync_all());
            flushed.map_err(|error| refusal(&error, operation, name, 0))?;
        }
        Ok(())
    }
}

impl Catalog for FolderCatalog {
    type Disk = FolderDisk;

    fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let failed = |error: &io::Error| refusal(error, Operation::List, "", 0);
        let mut entries = Vec::new();
        for found in fs::read_dir(&self.path).map_err(|error| failed(&error))? {
            let found = found.map_err(|error| failed(&error))?;
            // Folders and names that are not Unicode cannot be ours.
            let is_folder = found.file_type().is_ok_and(|kind| kind.is_dir());
            if let (false, Ok(name)) = (is_folder, found.file_name().into_string()) {
                let len = fs::metadata(found.path()).ok().map(|found| found.len());
                entries.push(Entry { name, len });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn open(&self, name: &str) -> Result<FolderDisk, StoreError> {
        let file = self.lock(name, Operation::Open)?;
        Ok(FolderDisk { file: Some(file) })
    }

    fn create(&self, name: &str) -> Result<FolderDisk, StoreError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.open(self.place(name)?);
        let file = file.map_err(|error| refusal(&error, Operation::Create, name, 0))?;
        exclusive(&file, Operation::Create, name)?;
        self.flush_names(Operation::Create, name)?;
        Ok(FolderDisk { file: Some(file) })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        // Both locks are held until the new name stands.
        let source = self.lock(from, Operation::Rename)?;
        let target = match self.lock(to, Operation::Rename) {
            Err(StoreError::NotFound { .. }) => None,
            locked => Some(locked?),
        };
        let renamed = fs::rename(self.place(from)?, self.place(to)?);
        renamed.map_err(|error| refusal(&error, Operation::Rename, from, 0))?;
        drop((source, target));
        self.flush_names(Operation::Rename, to)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let locked = self.lock(name, Operation::Remove)?;
        let removed = fs::remove_file(self.place(name)?);
        removed.map_err(|error| refusal(&error, Operation::Remove, name, 0))?;
        drop(locked);
        self.flush_names(Operation::Remove, name)
    }
}

impl Disk for FolderDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut file = self.file()?;
        let want = into.len() as u64;
        let failed = |error: &io::Error| refusal(error, Operation::Read, "", 0);
        let reached = file.seek(SeekFrom::Start(at));
        reached.map_err(|_| StoreError::Bounds { at, len: want })?;
        let mut got = 0;
        while got < into.len() {
            match file.read(&mut into[got..]) {
                Ok(0) => {
                    let got = got as u64;
                    return Err(StoreError::ShortRead { at, want, got });
                }
                Ok(read) => got += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = self.file()?;
        let len = bytes.len() as u64;
        let reached = file.seek(SeekFrom::Start(at));
        reached.map_err(|_| StoreError::Bounds { at, len })?;
        let written = file.write_all(bytes);
        written.map_err(|error| refusal(&error, Operation::Write, "", len))
    }

    fn len(&self) -> Result<u64, StoreError> {
        let found = self.file()?.metadata();
        let found = found.map_err(|error| refusal(&error, Operation::Len, "", 0))?;
        Ok(found.len())
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        let set = self.file()?.set_len(len);
        set.map_err(|error| refusal(&error, Operation::SetLen, "", len))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let flushed = self.file()?.sync_data();
        flushed.map_err(|error| refusal(&error, Operation::Flush, "", 0))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.file = None;
        Ok(())
    }
}

impl FolderDisk {
    fn file(&self) -> Result<&File, StoreError> {
        self.file.as_ref().ok_or(StoreError::Closed)
    }
}

fn exclusive(file: &File, operation: Operation, name: &str) -> Result<(), StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy { name: name.into() }),
        // Some network file systems have no locks; one program at a time is still the rule.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(refusal(&error, operation, name, 0)),
    }
}

fn refusal(error: &io::Error, operation: Operation, name: &str, needed: u64) -> StoreError {
    let name = name.into();
    match error.kind() {
        ErrorKind::NotFound => StoreError::NotFound { name },
        ErrorKind::AlreadyExists => StoreError::Exists { name },
        ErrorKind::ResourceBusy => StoreError::Busy { name },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            StoreError::Quota { needed }
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            StoreError::Denied { operation }
        }
        kind => StoreError::Io { operation, kind },
    }
}

//! A disk that fails on purpose, for tests: the memory disk, with a second copy of everything that
//! only a flush moves forward, and a seed that decides what a crash leaves.
//!
//! What a crash does: every change of bytes or length since a file's last flush is kept, lost or
//! (a write) torn by 512-byte sectors, each change and each sector on its own, so also out of
//! order. Changes of names are lost from the newest backwards; any flush makes all earlier ones
//! durable, as journalling file systems do. With `lying_flush` the newest flush of each file is as
//! doubtful as no flush.

mod medium;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub use medium::Seeded;
use medium::{Change, Medium, NameChange};

use crate::memory::lock;
use crate::{Catalog, Disk, Entry, MemoryCatalog, MemoryDisk, StoreError};

/// What shall go wrong. All counts start at 0 and run over the whole directory.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// This write fails and changes nothing.
    pub fail_write: Option<(u64, StoreError)>,
    /// This write leaves a part of itself and fails.
    pub tear_write: Option<(u64, StoreError)>,
    /// This flush fails, and what it should have saved is lost for good although it can be read.
    pub fail_flush: Option<(u64, StoreError)>,
    /// This read finds only half of what was asked for.
    pub short_read: Option<u64>,
    /// Most bytes that all files together may have.
    pub quota: Option<u64>,
    /// The machine stops at this change (of bytes, lengths, names, or a flush).
    pub crash_at: Option<u64>,
    /// The newest flush of each file did not reach the medium.
    pub lying_flush: bool,
}

/// A directory of faulty files. Clones are the same directory.
#[derive(Clone)]
pub struct FaultyCatalog {
    memory: MemoryCatalog,
    world: Arc<Mutex<World>>,
}

pub struct FaultyDisk {
    disk: MemoryDisk,
    file: usize,
    world: Arc<Mutex<World>>,
}

struct World {
    faults: Faults,
    random: Seeded,
    writes: u64,
    reads: u64,
    flushes: u64,
    changes: u64,
    stopped: bool,
    /// Names now, and at the last flush.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    name_changes: Vec<NameChange>,
    files: Vec<Medium>,
}

impl FaultyCatalog {
    pub fn new(seed: u64, faults: Faults) -> FaultyCatalog {
        FaultyCatalog::with_files(Seeded(seed), faults, BTreeMap::new())
    }

    /// Changes made so far: where `crash_at` can strike.
    pub fn changes(&self) -> u64 {
        lock(&self.world).changes
    }

    pub fn has_stopped(&self) -> bool {
        lock(&self.world).stopped
    }

    /// Other faults from here on; the counts go on.
    pub fn set_faults(&self, faults: Faults) {
        lock(&self.world).faults = faults;
    }

    /// What programs would read now, past all locks.
    pub fn peek(&self, name: &str) -> Option<Vec<u8>> {
        self.memory.get(name)
    }

    /// Flips the lowest bit of a byte: storage that forgot what it was told.
    pub fn flip_bit(&self, name: &str, at: u64) {
        let mut world = lock(&self.world);
        let Some(&file) = world.names.get(name) else {
            return;
        };
        world.files[file].settle();
        if let Some(byte) = world.files[file].base.get_mut(at as usize) {
            *byte ^= 1;
            let bytes = world.files[file].base.clone();
            self.memory.put(name, bytes);
        }
    }

    /// The power goes and comes back: what the medium kept, under new faults. Handles that were
    /// open stay dead.
    pub fn crash(&self, faults: Faults) -> FaultyCatalog {
        let mut world = lock(&self.world);
        world.stopped = true;
        let World {
            random,
            durable_names,
            name_changes,
            files,
            faults: old,
            ..
        } = &mut *world;
        let kept = random.below(name_changes.len() as u64 + 1) as usize;
        let mut names = durable_names.clone();
        for change in &name_changes[..kept] {
            change.apply(&mut names);
        }
        let mut surviving = BTreeMap::new();
        for (name, file) in names {
            let bytes = files[file].clone().survive(random, old.lying_flush);
            surviving.insert(name, bytes);
        }
        FaultyCatalog::with_files(random.clone(), faults, surviving)
    }

    fn with_files(
        random: Seeded,
        faults: Faults,
        contents: BTreeMap<String, Vec<u8>>,
    ) -> FaultyCatalog {
        let memory = MemoryCatalog::default();
        let mut names = BTreeMap::new();
        let mut files = Vec::new();
        for (name, bytes) in contents {
            memory.put(&name, bytes.clone());
            names.insert(name, files.len());
            files.push(Medium::holding(bytes));
        }
        let world = World {
            faults,
            random,
            writes: 0,
            reads: 0,
            flushes: 0,
            changes: 0,
            stopped: false,
            durable_names: names.clone(),
            names,
            name_changes: Vec::new(),
            files,
        };
        FaultyCatalog {
            memory,
            world: Arc::new(Mutex::new(world)),
        }
    }

    fn rename_in_world(&self, change: NameChange) -> Result<(), StoreError> {
        let mut world = lock(&self.world);
        change.apply(&mut world.names);
        world.name_changes.push(change);
        world.after_change()
    }
}

impl Catalog for FaultyCatalog {
    type Disk = FaultyDisk;

    fn list(&self) -> Result<Vec<Entry>, StoreError> {
        drop(running(&self.world)?);
        self.memory.list()
    }

    fn open(&self, name: &str) -> Result<FaultyDisk, StoreError> {
        let world = running(&self.world)?;
        let disk = self.memory.open(name)?;
        let file = world.names.get(name).copied();
        let file = file.ok_or(StoreError::NotFound { name: name.into() })?;
        Ok(FaultyDisk {
            disk,
            file,
            world: self.world.clone(),
        })
    }

    fn create(&self, name: &str) -> Result<FaultyDisk, StoreError> {
        let file = running(&self.world)?.files.len();
        let disk = self.memory.create(name)?;
        lock(&self.world).files.push(Medium::default());
        self.rename_in_world(NameChange::Create(name.into(), file))?;
        Ok(FaultyDisk {
            disk,
            file,
            world: self.world.clone(),
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        drop(running(&self.world)?);
        self.memory.rename(from, to)?;
        self.rename_in_world(NameChange::Rename(from.into(), to.into()))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        drop(running(&self.world)?);
        self.memory.remove(name)?;
        self.rename_in_world(NameChange::Remove(name.into()))
    }
}

impl Disk for FaultyDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut world = running(&self.world)?;
        let number = count(&mut world.reads);
        if world.faults.short_read == Some(number) {
            let want = into.len() as u64;
            let got = want / 2;
            return Err(StoreError::ShortRead { at, want, got });
        }
        self.disk.read_at(at, into)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut world = running(&self.world)?;
        self.disk.len()?; // A closed handle is refused before anything is counted.
        let number = count(&mut world.writes);
        let chosen = |fault: &Option<(u64, StoreError)>| match fault {
            Some((chosen, error)) if *chosen == number => Some(error.clone()),
            _ => None,
        };
        if let Some(error) = chosen(&world.faults.fail_write) {
            return Err(error);
        }
        let torn = chosen(&world.faults.tear_write);
        let kept = match torn {
            Some(_) => world.random.below(bytes.len() as u64 + 1) as usize,
            None => bytes.len(),
        };
        let bytes = &bytes[..kept];
        if bytes.is_empty() {
            return torn.map_or(Ok(()), Err);
        }
        world.grow(self.file, at.saturating_add(bytes.len() as u64))?;
        self.disk.write_at(at, bytes)?;
        world.files[self.file].pending.push(Change::Write {
            at,
            bytes: bytes.into(),
        });
        world.after_change()?;
        torn.map_or(Ok(()), Err)
    }

    fn len(&self) -> Result<u64, StoreError> {
        drop(running(&self.world)?);
        self.disk.len()
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        let mut world = running(&self.world)?;
        self.disk.len()?;
        world.grow(self.file, len)?;
        self.disk.set_len(len)?;
        world.files[self.file].len = len;
        world.files[self.file].pending.push(Change::SetLen(len));
        world.after_change()
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let mut world = running(&self.world)?;
        self.disk.flush()?;
        // The machine may stop before the flush does anything.
        world.after_change()?;
        let number = count(&mut world.flushes);
        if let Some((chosen, error)) = world.faults.fail_flush.clone()
            && chosen == number
        {
            world.files[self.file].pending.clear();
            return Err(error);
        }
        world.name_changes.clear();
        world.durable_names = world.names.clone();
        world.files[self.file].flush();
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.disk.close()
    }
}

impl World {
    /// Counts a change and stops the machine if it is the chosen one.
    fn after_change(&mut self) -> Result<(), StoreError> {
        let number = count(&mut self.changes);
        self.stopped = self.faults.crash_at == Some(number);
        if self.stopped {
            return Err(StoreError::Closed);
        }
        Ok(())
    }

    fn grow(&mut self, file: usize, len: u64) -> Result<(), StoreError> {
        let more = len.saturating_sub(self.files[file].len);
        let used: u64 = self.names.values().map(|&file| self.files[file].len).sum();
        if more > 0 && self.faults.quota.is_some_and(|quota| used + more > quota) {
            return Err(StoreError::Quota { needed: more });
        }
        self.files[file].len += more;
        Ok(())
    }
}

fn running(world: &Mutex<World>) -> Result<MutexGuard<'_, World>, StoreError> {
    let world = lock(world);
    if world.stopped {
        return Err(StoreError::Closed);
    }
    Ok(world)
}

fn count(counter: &mut u64) -> u64 {
    *counter += 1;
    *counter - 1
}

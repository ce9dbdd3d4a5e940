//! What a crash leaves of one file and of the names.

use std::collections::BTreeMap;

const SECTOR_BYTES: u64 = 512;

/// SplitMix64 (Steele, Lea, Flood 2014): a number from a number.
#[derive(Clone, Debug)]
pub struct Seeded(pub u64);

/// One file as the medium has it.
#[derive(Clone, Default)]
pub(super) struct Medium {
    /// Everything but the newest flush.
    pub base: Vec<u8>,
    /// What the newest flush moved.
    flushed: Vec<Change>,
    pub pending: Vec<Change>,
    /// Length that programs see.
    pub len: u64,
}

#[derive(Clone)]
pub(super) enum Change {
    Write { at: u64, bytes: Vec<u8> },
    SetLen(u64),
}

#[derive(Clone)]
pub(super) enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl Seeded {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which must not be 0. The bias is of no importance for tests.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}

impl Medium {
    /// Bytes that are safely there.
    pub fn holding(bytes: Vec<u8>) -> Medium {
        Medium {
            len: bytes.len() as u64,
            base: bytes,
            ..Medium::default()
        }
    }

    pub fn flush(&mut self) {
        let older = std::mem::take(&mut self.flushed);
        older.iter().for_each(|change| change.apply(&mut self.base));
        self.flushed = std::mem::take(&mut self.pending);
    }

    /// Makes everything durable.
    pub fn settle(&mut self) {
        self.flush();
        self.flush();
    }

    /// The bytes after a crash.
    pub fn survive(mut self, random: &mut Seeded, lying_flush: bool) -> Vec<u8> {
        if lying_flush {
            self.flushed.append(&mut self.pending);
            self.pending = self.flushed;
        } else {
            self.flushed
                .iter()
                .for_each(|change| change.apply(&mut self.base));
        }
        for change in self.pending {
            match random.below(3) {
                0 => {}
                1 => change.apply(&mut self.base),
                _ => change.tear(&mut self.base, random),
            }
        }
        self.base
    }
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Change::SetLen(len) => file.resize(*len as usize, 0),
            Change::Write { bytes, .. } if bytes.is_empty() => {}
            Change::Write { at, bytes } => {
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[at..end].copy_from_slice(bytes);
            }
        }
    }

    /// Keeps some of the sectors that a write touches. A length is whole or not there.
    fn tear(&self, file: &mut Vec<u8>, random: &mut Seeded) {
        let Change::Write { at, bytes } = self else {
            return;
        };
        let mut from = 0;
        while from < bytes.len() {
            let room = SECTOR_BYTES - (at + from as u64) % SECTOR_BYTES;
            let to = bytes.len().min(from + room as usize);
            // Half of the sectors whole, a quarter cut anywhere: worse than disks are.
            let kept = match random.below(4) {
                0 => 0,
                1 => random.below((to - from) as u64) as usize,
                _ => to - from,
            };
            let sector = Change::Write {
                at: at + from as u64,
                bytes: bytes[from..from + kept].into(),
            };
            sector.apply(file);
            from = to;
        }
    }
}

impl NameChange {
    pub fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Create(name, file) => {
                names.insert(name.clone(), *file);
            }
            NameChange::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

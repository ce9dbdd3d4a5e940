//! What every backend must do, as data: a list of steps and the outcome of each.
//!
//! The steps on open files are run here; the five calls on a directory are run by whoever has the
//! directory, because the browser's answers later. `run` is the form for backends that answer at
//! once. Not proved here: that flushed bytes survive a power cut, and locks between processes.

use std::borrow::Cow;

use crate::{Catalog, Disk, Entry, StoreError};

/// One call. `slot` names an open file within the suite.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Create {
        slot: usize,
        name: &'static str,
    },
    Open {
        slot: usize,
        name: &'static str,
    },
    Rename {
        from: &'static str,
        to: &'static str,
    },
    Remove {
        name: &'static str,
    },
    List,
    File {
        slot: usize,
        call: Call,
    },
}

/// One call on an open file.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Write {
        at: u64,
        bytes: &'static [u8],
    },
    Read {
        at: u64,
        len: usize,
    },
    /// Writes `len` bytes of the pattern that starts at its own position `from`.
    WritePattern {
        at: u64,
        len: usize,
        from: usize,
    },
    /// Reads `len` bytes; `Done` if they are that pattern.
    ReadPattern {
        at: u64,
        len: usize,
        from: usize,
    },
    Len,
    SetLen(u64),
    Flush,
    Close,
    /// Lets go of the value without `close`.
    Drop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Bytes(Cow<'static, [u8]>),
    Len(u64),
    Files(Cow<'static, [(Cow<'static, str>, Option<u64>)]>),
    NotFound,
    Exists,
    Busy,
    Closed,
    /// This many bytes were there to read.
    Short(u64),
    WrongPattern,
    NotOpen,
    Refused(StoreError),
}

/// The step that went wrong. Steps are numbered from 0.
#[derive(Clone, Debug)]
pub struct Failure {
    pub step: usize,
    pub action: Action,
    pub expected: Outcome,
    pub found: Outcome,
}

/// The suite's open files.
pub struct Slots<D> {
    disks: [Option<D>; 2],
}

/// Runs the suite in an empty directory and leaves it empty.
pub fn run<C: Catalog>(catalog: &C) -> Result<(), Box<Failure>> {
    let mut slots = Slots::default();
    for (step, (action, _)) in STEPS.iter().enumerate() {
        let found = match *action {
            Action::Create { slot, name } => slots.fill(slot, catalog.create(name)),
            Action::Open { slot, name } => slots.fill(slot, catalog.open(name)),
            Action::Rename { from, to } => done(catalog.rename(from, to)),
            Action::Remove { name } => done(catalog.remove(name)),
            Action::List => files(catalog.list()),
            Action::File { slot, call } => slots.call(slot, call),
        };
        check(step, found)?;
    }
    Ok(())
}

/// Compares what a step did with what it must do.
pub fn check(step: usize, found: Outcome) -> Result<(), Box<Failure>> {
    let (action, expected) = STEPS[step].clone();
    if found == expected {
        return Ok(());
    }
    Err(Box::new(Failure {
        step,
        action,
        expected,
        found,
    }))
}

pub fn done(result: Result<(), StoreError>) -> Outcome {
    result.map_or_else(refused, |()| Outcome::Done)
}

pub fn files(result: Result<Vec<Entry>, StoreError>) -> Outcome {
    let pair = |entry: Entry| (Cow::Owned(entry.name), entry.len);
    match result {
        Ok(entries) => Outcome::Files(entries.into_iter().map(pair).collect()),
        Err(error) => refused(error),
    }
}

fn refused(error: StoreError) -> Outcome {
    match error {
        StoreError::NotFound { .. } => Outcome::NotFound,
        StoreError::Exists { .. } => Outcome::Exists,
        StoreError::Busy { .. } => Outcome::Busy,
        StoreError::Closed => Outcome::Closed,
        StoreError::ShortRead { got, .. } => Outcome::Short(got),
        other => Outcome::Refused(other),
    }
}

impl<D> Default for Slots<D> {
    fn default() -> Slots<D> {
        Slots {
            disks: [None, None],
        }
    }
}

impl<D: Disk> Slots<D> {
    /// Keeps a file that was opened, closing the slot's older one.
    pub fn fill(&mut self, slot: usize, opened: Result<D, StoreError>) -> Outcome {
        match opened {
            Ok(disk) => {
                self.disks[slot] = Some(disk);
                Outcome::Done
            }
            Err(error) => refused(error),
        }
    }

    pub fn call(&mut self, slot: usize, call: Call) -> Outcome {
        if let Call::Drop = call {
            self.disks[slot] = None;
            return Outcome::Done;
        }
        let Some(disk) = &mut self.disks[slot] else {
            return Outcome::NotOpen;
        };
        match call {
            Call::Write { at, bytes } => done(disk.write_at(at, bytes)),
            Call::WritePattern { at, len, from } => done(disk.write_at(at, &pattern(from, len))),
            Call::Read { at, len } => {
                let mut bytes = vec![0xee; len];
                let read = disk.read_at(at, &mut bytes);
                read.map_or_else(refused, |()| Outcome::Bytes(bytes.into()))
            }
            Call::ReadPattern { at, len, from } => {
                let mut bytes = vec![0xee; len];
                match disk.read_at(at, &mut bytes) {
                    Ok(()) if bytes == pattern(from, len) => Outcome::Done,
                    Ok(()) => Outcome::WrongPattern,
                    Err(error) => refused(error),
                }
            }
            Call::Len => disk.len().map_or_else(refused, Outcome::Len),
            Call::SetLen(len) => done(disk.set_len(len)),
            Call::Flush => done(disk.flush()),
            Call::Close => done(disk.close()),
            Call::Drop => Outcome::Done,
        }
    }
}

/// Bytes whose period, 251, divides no block size, so that a shift never goes unseen.
fn pattern(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|at| (at % 251) as u8).collect()
}

const fn bytes(bytes: &'static [u8]) -> Outcome {
    Outcome::Bytes(Cow::Borrowed(bytes))
}

const fn file(slot: usize, call: Call) -> Action {
    Action::File { slot, call }
}

const fn create(slot: usize, name: &'static str) -> Action {
    Action::Create { slot, name }
}

const fn open(slot: usize, name: &'static str) -> Action {
    Action::Open { slot, name }
}

const fn rename(from: &'static str, to: &'static str) -> Action {
    Action::Rename { from, to }
}

const fn remove(name: &'static str) -> Action {
    Action::Remove { name }
}

const fn write(at: u64, bytes: &'static [u8]) -> Call {
    Call::Write { at, bytes }
}

const fn read(at: u64, len: usize) -> Call {
    Call::Read { at, len }
}

const EMPTY: Outcome = Outcome::Files(Cow::Borrowed(&[]));
const ONE: Outcome = Outcome::Files(Cow::Borrowed(&[(Cow::Borrowed("b.part"), Some(3))]));
const TWO: Outcome = Outcome::Files(Cow::Borrowed(&[
    (Cow::Borrowed("a.part"), Some(8)),
    (Cow::Borrowed("b.part"), Some(3)),
]));
/// Three MiB and a bit, from an odd place: more than any backend moves at once.
const LONG: usize = 3 * 1024 * 1024 + 77;

#[rustfmt::skip]
pub const STEPS: &[(Action, Outcome)] = &[
    // An empty directory has nothing to open, rename or remove.
    (Action::List, EMPTY),
    (open(0, "a.part"), Outcome::NotFound),
    (rename("a.part", "b.part"), Outcome::NotFound),
    (remove("a.part"), Outcome::NotFound),
    // A new file is empty; writing extends it, with zeros in between.
    (create(0, "a.part"), Outcome::Done),
    (file(0, Call::Len), Outcome::Len(0)),
    (file(0, read(0, 0)), bytes(b"")),
    (file(0, read(0, 1)), Outcome::Short(0)),
    (file(0, write(2, b"abcd")), Outcome::Done),
    (file(0, Call::Len), Outcome::Len(6)),
    (file(0, read(0, 6)), bytes(b"\0\0abcd")),
    (file(0, write(3, b"XY")), Outcome::Done),
    (file(0, write(6, b"")), Outcome::Done),
    (file(0, read(1, 5)), bytes(b"\0aXYd")),
    // Reading past the end says how much was there.
    (file(0, read(4, 4)), Outcome::Short(2)),
    (file(0, read(6, 1)), Outcome::Short(0)),
    (file(0, read(600, 3)), Outcome::Short(0)),
    (file(0, read(600, 0)), bytes(b"")),
    (file(0, write(600, b"")), Outcome::Done),
    (file(0, Call::Len), Outcome::Len(6)),
    // Lengths: cut bytes do not come back.
    (file(0, Call::SetLen(3)), Outcome::Done),
    (file(0, Call::SetLen(8)), Outcome::Done),
    (file(0, Call::Len), Outcome::Len(8)),
    (file(0, read(0, 8)), bytes(b"\0\0a\0\0\0\0\0")),
    (file(0, Call::Flush), Outcome::Done),
    // An open file belongs to its handle.
    (open(1, "a.part"), Outcome::Busy),
    (create(1, "a.part"), Outcome::Exists),
    (rename("a.part", "c.part"), Outcome::Busy),
    (remove("a.part"), Outcome::Busy),
    (create(1, "b.part"), Outcome::Done),
    (file(1, write(0, b"new")), Outcome::Done),
    (Action::List, TWO),
    (file(1, Call::Flush), Outcome::Done),
    (file(1, Call::Close), Outcome::Done),
    (rename("b.part", "a.part"), Outcome::Busy),
    // A closed handle does nothing, twice.
    (file(0, Call::Close), Outcome::Done),
    (file(0, read(0, 1)), Outcome::Closed),
    (file(0, write(0, b"x")), Outcome::Closed),
    (file(0, Call::Len), Outcome::Closed),
    (file(0, Call::SetLen(1)), Outcome::Closed),
    (file(0, Call::Flush), Outcome::Closed),
    (file(0, Call::Close), Outcome::Done),
    // Content stays; nothing is made again over it.
    (create(0, "a.part"), Outcome::Exists),
    (open(0, "a.part"), Outcome::Done),
    (file(0, read(0, 8)), bytes(b"\0\0a\0\0\0\0\0")),
    // Letting go is as good as closing.
    (file(0, Call::Drop), Outcome::Done),
    (open(1, "a.part"), Outcome::Done),
    (file(1, Call::Close), Outcome::Done),
    // A rename replaces.
    (rename("b.part", "a.part"), Outcome::Done),
    (open(0, "b.part"), Outcome::NotFound),
    (open(0, "a.part"), Outcome::Done),
    (file(0, read(0, 3)), bytes(b"new")),
    (file(0, Call::Close), Outcome::Done),
    (rename("a.part", "b.part"), Outcome::Done),
    (Action::List, ONE),
    // Long transfers, at odd places.
    (open(0, "b.part"), Outcome::Done),
    (file(0, Call::WritePattern { at: 1_048_573, len: LONG, from: 5 }), Outcome::Done),
    (file(0, Call::Len), Outcome::Len(1_048_573 + LONG as u64)),
    (file(0, Call::ReadPattern { at: 1_048_573, len: LONG, from: 5 }), Outcome::Done),
    (file(0, Call::ReadPattern { at: 2_000_000, len: 1_100_003, from: 951_432 }), Outcome::Done),
    (file(0, read(0, 4)), bytes(b"new\0")),
    (file(0, read(1_048_572, 2)), bytes(b"\0\x05")),
    (file(0, Call::Close), Outcome::Done),
    (remove("b.part"), Outcome::Done),
    (Action::List, EMPTY),
];

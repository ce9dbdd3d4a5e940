//! Every backend that runs natively passes the suite that also runs in browsers.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use store::conformance::{self, Call, Outcome, Slots};
use store::faulty::{Faults, FaultyCatalog};
use store::{Catalog, Disk, FolderCatalog, MemoryCatalog, StoreError};

fn check<C: Catalog>(catalog: C) {
    if let Err(failure) = conformance::run(&catalog) {
        panic!("{failure:?}");
    }
}

#[test]
fn memory_conforms() {
    check(MemoryCatalog::default());
}

#[test]
fn folder_conforms() {
    let folder = tempfile::tempdir().unwrap();
    check(FolderCatalog::new(&folder.path().join("models")).unwrap());
}

#[test]
fn faulty_without_faults_conforms() {
    check(FaultyCatalog::new(1, Faults::default()));
}

/// The suite must be able to fail: a wrong outcome names its step.
#[test]
fn the_suite_notices_a_wrong_outcome() {
    let failure = conformance::check(1, Outcome::Done).unwrap_err();
    assert_eq!((failure.step, failure.expected), (1, Outcome::NotFound));
}

#[test]
fn names_cannot_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("outside"), b"x").unwrap();
    let catalog = FolderCatalog::new(&folder.path().join("models")).unwrap();
    for name in ["../outside", "..", ".", "", "a/b", "/etc/hostname"] {
        let not_found = StoreError::NotFound { name: name.into() };
        assert_eq!(catalog.open(name).err(), Some(not_found.clone()), "{name}");
        assert_eq!(
            catalog.create(name).err(),
            Some(not_found.clone()),
            "{name}"
        );
        assert_eq!(catalog.remove(name).err(), Some(not_found), "{name}");
    }
}

#[test]
fn another_process_cannot_take_an_open_file() {
    // A second catalogue on the same folder stands for another process: locks are per handle.
    let folder = tempfile::tempdir().unwrap();
    let one = FolderCatalog::new(folder.path()).unwrap();
    let two = FolderCatalog::new(folder.path()).unwrap();
    let mut disk = one.create("a.part").unwrap();
    let busy = StoreError::Busy {
        name: "a.part".into(),
    };
    assert_eq!(two.open("a.part").err(), Some(busy));
    disk.close().unwrap();
    assert!(two.open("a.part").is_ok());
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Read(u64, usize),
    SetLen(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..300, prop::collection::vec(any::<u8>(), 0..60))
            .prop_map(|(at, bytes)| Step::Write(at, bytes)),
        (0u64..400, 0usize..80).prop_map(|(at, len)| Step::Read(at, len)),
        (0u64..400).prop_map(Step::SetLen),
    ]
}

/// What a file is: a vector of bytes.
fn specified(file: &mut Vec<u8>, step: &Step) -> Outcome {
    match step {
        Step::Write(at, bytes) => {
            let (at, end) = (*at as usize, *at as usize + bytes.len());
            if !bytes.is_empty() {
                file.resize(file.len().max(end), 0);
                file[at..end].copy_from_slice(bytes);
            }
            Outcome::Done
        }
        Step::Read(_, 0) => Outcome::Bytes(b"".into()),
        Step::Read(at, len) => match file.get(*at as usize..*at as usize + len) {
            Some(found) => Outcome::Bytes(found.to_vec().into()),
            None => Outcome::Short(file.len().saturating_sub(*at as usize) as u64),
        },
        Step::SetLen(len) => {
            file.resize(*len as usize, 0);
            Outcome::Done
        }
    }
}

fn behaves_as_specified<C: Catalog>(catalog: C, steps: &[Step]) {
    let mut disk = catalog.create("a.part").unwrap();
    let mut file = Vec::new();
    for step in steps {
        let expected = specified(&mut file, step);
        let found = match step {
            Step::Write(at, bytes) => conformance::done(disk.write_at(*at, bytes)),
            Step::SetLen(len) => conformance::done(disk.set_len(*len)),
            Step::Read(at, len) => {
                // Through the suite, so that outcomes are told the same way.
                let mut slots = Slots::default();
                slots.fill(0, Ok(disk));
                let (at, len) = (*at, *len);
                let outcome = slots.call(0, Call::Read { at, len });
                drop(slots);
                disk = catalog.open("a.part").unwrap();
                outcome
            }
        };
        assert_eq!(found, expected, "{step:?}");
        assert_eq!(disk.len().unwrap(), file.len() as u64);
    }
}

proptest! {
    #[test]
    fn files_are_vectors_of_bytes(steps in prop::collection::vec(step(), 1..30)) {
        behaves_as_specified(MemoryCatalog::default(), &steps);
        behaves_as_specified(FaultyCatalog::new(2, Faults::default()), &steps);
        let folder = tempfile::tempdir().unwrap();
        behaves_as_specified(FolderCatalog::new(folder.path()).unwrap(), &steps);
    }
}

#[test]
fn faults_strike_where_they_are_told_to() {
    let quota = StoreError::Quota { needed: 4 };
    let faults = Faults {
        fail_write: Some((1, quota.clone())),
        short_read: Some(1),
        quota: Some(10),
        ..Faults::default()
    };
    let catalog = FaultyCatalog::new(3, faults);
    let mut disk = catalog.create("a.part").unwrap();
    disk.write_at(0, b"abcd").unwrap();
    assert_eq!(disk.write_at(4, b"efgh"), Err(quota));
    let mut bytes = [0; 4];
    disk.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"abcd");
    let short = StoreError::ShortRead {
        at: 0,
        want: 4,
        got: 2,
    };
    assert_eq!(disk.read_at(0, &mut bytes), Err(short));
    disk.set_len(10).unwrap();
    let over = StoreError::Quota { needed: 1 };
    assert_eq!(disk.write_at(7, b"wxyz"), Err(over));
}

#[test]
fn a_crash_keeps_what_was_flushed_and_only_that_for_certain() {
    let mut lost = 0;
    for seed in 0..50 {
        let catalog = FaultyCatalog::new(seed, Faults::default());
        let mut disk = catalog.create("a.part").unwrap();
        disk.write_at(0, &[1; 2048]).unwrap();
        disk.flush().unwrap();
        disk.write_at(2048, &[2; 2048]).unwrap();
        let after = catalog.crash(Faults::default());
        assert_eq!(disk.read_at(0, &mut [0]), Err(StoreError::Closed));
        let disk = after.open("a.part").unwrap();
        let mut bytes = [0; 2048];
        disk.read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, [1; 2048], "seed {seed}");
        lost += u32::from(disk.len().unwrap() < 4096);
    }
    assert!((5..45).contains(&lost), "both outcomes must occur: {lost}");
}

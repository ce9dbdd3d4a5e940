//! Files in a database that answers later: as any other disk, through power cuts too.
//!
//! `STORE_CRASH_SEEDS=10000` runs more seeds.
#![allow(clippy::unwrap_used)]

mod database;
mod model;

use database::{Database, Faults, Tables};
use format::PieceIndex;
use model::{crash_seeds, simulated};
use proptest::prelude::*;
use store::faulty::Seeded;
use store::{Bitfield, Catalog, Disk, Import, Library, StoreError, conformance, names};

const LIVES_MAX: u32 = 200;

fn piece(index: PieceIndex) -> &'static [u8] {
    let (at, len) = simulated().layer.id.piece_range(index);
    &simulated().bytes[at as usize..at as usize + len as usize]
}

/// The suite that IndexedDB passes in browsers, at every speed of the database.
#[test]
fn a_database_conforms() {
    for seed in 0..20 {
        let database = Database::new(Tables::default(), seed, Faults::default());
        if let Err(failure) = conformance::run(&database) {
            panic!("seed {seed}: {failure:?}");
        }
    }
}

/// One life of the machine, up to the power cut or to a stored model. Gives what was recorded.
fn live(database: &Database, random: &mut Seeded) -> Result<(), StoreError> {
    let root = simulated().layer.id.root;
    let library = Library::derive(&database.list()?);
    assert_eq!(library.damaged, []);
    for stray in &library.strays {
        database.remove(stray)?;
    }
    if !library.complete.is_empty() {
        return Ok(());
    }
    let open = |name: &str| match database.open(name) {
        Err(StoreError::NotFound { .. }) => database.create(name),
        opened => opened,
    };
    let (part, have) = (open(&names::part(root))?, open(&names::have(root))?);
    let mut import = Import::start(simulated().layer.clone(), part, have)?;
    // Transactions never overtake each other: no record can name a piece that is not there.
    assert_eq!(import.resumed().dropped, 0);
    let mut now_ms = 0;
    while !import.is_complete() {
        now_ms += random.below(1500);
        let index = PieceIndex(random.below(5) as u32);
        import.feed(now_ms, index, piece(index))?;
        import.tick(now_ms)?;
    }
    import.finish(now_ms)?;
    database.rename(&names::part(root), &names::done(root))?;
    database.remove(&names::have(root))
}

/// Whatever the record in the database names is there.
fn must_be_sound(tables: &Tables, seed: u64) -> Bitfield {
    let id = simulated().layer.id;
    let have = Database::stored(tables, &names::have(id.root));
    let record = have.and_then(|have| store::read_have(id.root, &have));
    let Some(record) = record else {
        return Bitfield::empty(id.pieces());
    };
    // The part is there under one of its names.
    let part = Database::stored(tables, &names::part(id.root));
    let part = part.or_else(|| Database::stored(tables, &names::done(id.root)));
    let part = part.unwrap();
    for index in record.have.iter() {
        let (at, len) = id.piece_range(index);
        let stored = &part[at as usize..at as usize + len as usize];
        assert!(stored == piece(index), "seed {seed}: piece {}", index.0);
    }
    record.have
}

#[test]
fn power_cuts_cost_at_most_the_newest_transactions() {
    let mut lives = 0;
    for seed in 0..crash_seeds() {
        let mut random = Seeded(seed);
        let mut tables = Tables::default();
        for life in 0.. {
            assert!(life < LIVES_MAX, "seed {seed}: no end");
            lives += 1;
            let faults = Faults {
                crash_at: Some(random.below(12)),
                full_at: None,
            };
            let database = Database::new(tables, random.draw(), faults);
            match live(&database, &mut random) {
                Ok(()) => {
                    let name = names::done(simulated().layer.id.root);
                    let stored = Database::stored(&database.crash(0), &name).unwrap();
                    assert!(stored == simulated().bytes, "seed {seed}: another file");
                    break;
                }
                Err(error) => assert_eq!(error, StoreError::Closed, "seed {seed}"),
            }
            assert!(database.has_stopped(), "seed {seed}");
            // Every other machine also loses what its database had not brought to the disk.
            tables = database.crash((seed % 2) * 2);
            must_be_sound(&tables, seed);
        }
    }
    assert!(lives > 2 * crash_seeds(), "{lives} lives");
}

/// A full disk in the middle: told by its name, and what was stored before it stays.
#[test]
fn a_full_disk_loses_nothing_that_was_stored() {
    let mut refused = 0;
    for seed in 0..crash_seeds() {
        let mut random = Seeded(seed);
        let faults = Faults {
            crash_at: None,
            full_at: Some(2 + random.below(12)),
        };
        let database = Database::new(Tables::default(), seed, faults);
        if let Err(error) = live(&database, &mut random) {
            assert_eq!(error, StoreError::Quota { needed: 1 }, "seed {seed}");
            refused += 1;
        }
        let tables = database.crash(0);
        must_be_sound(&tables, seed);
        // With room again the import goes on to its end.
        let database = Database::new(tables, seed, Faults::default());
        live(&database, &mut random).unwrap();
        assert_eq!(database.behind(), 0);
    }
    assert!(refused > 0);
}

proptest! {
    /// Against plain bytes, whatever is written, cut and read, at any speed of the database.
    #[test]
    fn a_file_is_what_was_written(
        seed: u64,
        calls in proptest::collection::vec((0u8..4, 0u64..3_000_000, 0usize..1_500_000), 1..24),
    ) {
        let database = Database::new(Tables::default(), seed, Faults::default());
        let mut disk = database.create("a.part").unwrap();
        let mut plain: Vec<u8> = Vec::new();
        for (number, (call, at, len)) in calls.into_iter().enumerate() {
            let place = at as usize;
            match call {
                0 | 1 => {
                    let bytes = vec![number as u8 + 1; len];
                    disk.write_at(at, &bytes).unwrap();
                    if len > 0 && plain.len() < place + len {
                        plain.resize(place + len, 0);
                    }
                    plain[..].iter_mut().skip(place).take(len).for_each(|byte| *byte = bytes[0]);
                }
                2 => {
                    disk.set_len(at).unwrap();
                    plain.resize(place, 0);
                }
                _ => {
                    drop(disk);
                    disk = database.open("a.part").unwrap();
                }
            }
            prop_assert_eq!(disk.len().unwrap(), plain.len() as u64);
            let mut found = vec![0xee; plain.len()];
            disk.read_at(0, &mut found).unwrap();
            prop_assert!(found == plain, "call {}", number);
        }
    }
}

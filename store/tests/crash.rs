//! An import on a machine that keeps losing its power.
//!
//! For each seed: pieces arrive in random order while the machine stops after a random change of
//! the disk and forgets, tears or keeps what was not flushed; then everything starts again from
//! what the directory holds, as the program does. `STORE_CRASH_SEEDS=10000` runs more seeds.
#![allow(clippy::unwrap_used)]

mod model;

use format::{PieceIndex, Root};
use model::{Model, crash_seeds, simulated};
use store::faulty::{Faults, FaultyCatalog, FaultyDisk, Seeded};
use store::{Bitfield, Catalog, Import, Library, StoreError, names};

/// More power cuts than this in one import would mean that it makes no progress.
const LIVES_MAX: u32 = 200;

/// What one machine goes through.
struct Life<'a> {
    model: &'a Model,
    seed: u64,
    random: Seeded,
    files: FaultyCatalog,
    now_ms: u64,
    /// Pieces that a record named whose writing came to an end, in any life.
    recorded: Bitfield,
    lives: u32,
    /// Recorded pieces that turned out to be wrong.
    dropped: u32,
    lying: bool,
}

impl Life<'_> {
    fn root(&self) -> Root {
        self.model.layer.id.root
    }

    fn faults(&mut self) -> Faults {
        Faults {
            crash_at: Some(self.random.below(20)),
            lying_flush: self.lying,
            ..Faults::default()
        }
    }

    /// One life of the machine, up to the crash or to a stored model.
    fn live(&mut self) -> Result<(), StoreError> {
        let root = self.root();
        self.look_around()?;
        if !Library::derive(&self.files.list()?).complete.is_empty() {
            return Ok(());
        }
        let part = self.open_or_create(&names::part(root))?;
        let have = self.open_or_create(&names::have(root))?;
        let mut import = Import::start(self.model.layer.clone(), part, have)?;
        self.must_have_kept(&import);
        while !import.is_complete() {
            self.fetch_one(&mut import)?;
        }
        import.finish(self.now_ms)?;
        self.files.rename(&names::part(root), &names::done(root))?;
        self.files.remove(&names::have(root))
    }

    /// Start-up: derive the state from the listing, remove strays. Must work after any crash.
    fn look_around(&mut self) -> Result<(), StoreError> {
        let library = Library::derive(&self.files.list()?);
        assert_eq!(library.damaged, [], "seed {}", self.seed);
        for stray in &library.strays {
            self.files.remove(stray)?;
        }
        Ok(())
    }

    fn open_or_create(&self, name: &str) -> Result<FaultyDisk, StoreError> {
        match self.files.open(name) {
            Err(StoreError::NotFound { .. }) => self.files.create(name),
            opened => opened,
        }
    }

    /// At most what came after the newest record is fetched again.
    fn must_have_kept(&mut self, import: &Import<FaultyDisk>) {
        let resumed = import.resumed();
        self.dropped += resumed.dropped;
        if !self.lying {
            let kept = |piece| import.have().contains(piece);
            assert!(self.recorded.iter().all(kept), "seed {}: lost", self.seed);
            assert_eq!(resumed.dropped, 0, "seed {}", self.seed);
        }
        // The files are open: the look goes past the locks.
        let stored = self.files.peek(&names::part(self.root())).unwrap();
        for piece in import.have().iter() {
            self.must_be_right(piece, &stored);
        }
        self.recorded = import.have().clone();
    }

    fn must_be_right(&self, piece: PieceIndex, stored: &[u8]) {
        let (at, len) = self.model.layer.id.piece_range(piece);
        let range = at as usize..at as usize + len as usize;
        assert!(
            stored[range.clone()] == self.model.bytes[range],
            "seed {}: piece {} is wrong and was believed",
            self.seed,
            piece.0
        );
    }

    fn fetch_one(&mut self, import: &mut Import<FaultyDisk>) -> Result<(), StoreError> {
        self.now_ms += self.random.below(1500);
        let pieces = self.model.layer.id.pieces();
        let piece = PieceIndex(self.random.below(u64::from(pieces)) as u32);
        let (at, len) = self.model.layer.id.piece_range(piece);
        let mut bytes = self.model.bytes[at as usize..at as usize + len as usize].to_vec();
        if self.random.below(8) == 0 {
            // A source that lies. What is here already is not looked at again.
            bytes[self.random.below(u64::from(len)) as usize] ^= 0x10;
            let had = import.have().contains(piece);
            let fed = import.feed(self.now_ms, piece, &bytes);
            let refused = matches!(fed, Err(StoreError::DigestMismatch { .. }));
            assert!(had || refused, "seed {}: {fed:?}", self.seed);
            return Ok(());
        }
        import.feed(self.now_ms, piece, &bytes)?;
        import.tick(self.now_ms)?;
        if let Some(record) = self.record() {
            self.recorded = record;
        }
        Ok(())
    }

    /// Pieces that the newest record names.
    fn record(&self) -> Option<Bitfield> {
        let bytes = self.files.peek(&names::have(self.root()))?;
        let record = store::read_have(self.root(), &bytes)?;
        Some(record.have)
    }
}

fn survive(seed: u64, lying: bool) -> Life<'static> {
    let mut random = Seeded(seed);
    let files = FaultyCatalog::new(random.draw(), Faults::default());
    let mut life = Life {
        model: simulated(),
        seed,
        random,
        files,
        now_ms: 0,
        recorded: Bitfield::empty(simulated().layer.id.pieces()),
        lives: 1,
        dropped: 0,
        lying,
    };
    let faults = life.faults();
    life.files.set_faults(faults);
    while let Err(error) = life.live() {
        // Nothing but the power cut may stop it.
        assert_eq!(error, StoreError::Closed, "seed {seed}");
        assert!(life.files.has_stopped(), "seed {seed}");
        assert!(life.lives < LIVES_MAX, "seed {seed}: no end");
        let faults = life.faults();
        life.files = life.files.crash(faults);
        life.lives += 1;
    }
    if !lying {
        let done = life.files.peek(&names::done(life.root())).unwrap();
        assert!(done == life.model.bytes, "seed {seed}: another file");
    }
    life
}

#[test]
fn power_cuts_cost_at_most_what_was_not_recorded() {
    let lives: u32 = (0..crash_seeds())
        .map(|seed| survive(seed, false).lives)
        .sum();
    // The machine must really have died, or this test proves nothing.
    assert!(u64::from(lives) > 2 * crash_seeds(), "{lives} lives");
}

/// Media that report a flush as done and forget it: the newest record is checked against the data.
#[test]
fn a_flush_that_lied_is_noticed() {
    let dropped: u32 = (0..crash_seeds())
        .map(|seed| survive(seed, true).dropped)
        .sum();
    assert!(dropped > 0, "no lie was ever told");
}

//! Blocks read ahead by a reader of their own: the same bits and the same failures as without one,
//! whatever the reader does.

#![allow(clippy::unwrap_used)]

mod models;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use format::Header;
use models::{INT8, InMemory, Outcome, STRICT, finish_from, greedy, load};
use protocol::abi::STEP_DONE;
use protocol::{Residency, TrResult};
use runtime::tiny::Recipe;
use runtime::{Engine, Model, Options, Reader, RuntimeError, Source, Surroundings, measure};

/// What the reader's file does from its third read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    Sound,
    /// Every second read fails half way.
    Flaky,
    /// It is gone.
    Dead,
    /// It takes its reader with it.
    Deadly,
}

/// The reader's own file, whose reads are counted.
struct Own {
    file: Arc<Vec<u8>>,
    disk: Disk,
    reads: Arc<AtomicU64>,
}

impl Source for Own {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        let nth = self.reads.fetch_add(1, Ordering::SeqCst);
        let fails = match self.disk {
            Disk::Sound => false,
            Disk::Flaky => nth % 2 == 1,
            Disk::Dead | Disk::Deadly => nth >= 2,
        };
        if !fails {
            return InMemory(&self.file).read_at(at, into);
        }
        assert!(self.disk != Disk::Deadly, "the reader's end");
        let half = into.len() / 2;
        into[..half].fill(0xa5);
        Err(RuntimeError::new(TrResult::HostRead, protocol::Stage::Load))
    }
}

fn open(header: &Header, file: &Arc<Vec<u8>>, options: Options, disk: Option<Disk>) -> Model {
    let reader = disk.map(|disk| {
        let reads = Arc::default();
        let file = Arc::clone(file);
        Reader::start(Own { file, disk, reads }).unwrap()
    });
    let engine = Engine {
        reader: reader.map(|reader| Box::new(reader) as _),
        ..Engine::default()
    };
    let mut model = Model::open_with(header.clone(), options, u64::MAX, engine).unwrap();
    load(&mut model, &mut InMemory(file)).unwrap();
    model.ready_from(&mut InMemory(file)).unwrap();
    model
}

/// A prompt of several tiles and an answer, then another that begins alike.
fn talk(model: &mut Model, file: &[u8]) -> [Outcome; 2] {
    let ids: Vec<u32> = (0..61).map(|i| i * 7 % 50).collect();
    let first = greedy(model, &ids, 9);
    model.begin(first).unwrap();
    let first = finish_from(model, &mut InMemory(file)).unwrap();
    let other: Vec<u32> = ids[..40].iter().copied().chain([3, 1, 4]).collect();
    let second = greedy(model, &other, 5);
    model.begin(second).unwrap();
    [first, finish_from(model, &mut InMemory(file)).unwrap()]
}

fn recipes() -> [Recipe; 3] {
    let untied = Recipe {
        head: Some(format::Layout::Q8_0R4),
        ..Recipe::FLOAT
    };
    [Recipe::QUANTIZED, Recipe::FLOAT, untied].map(|recipe| Recipe {
        layers: 5,
        ..recipe
    })
}

const WAYS: [(Residency, u32); 4] = [
    (Residency::Hybrid, 0),
    (Residency::Hybrid, 1),
    (Residency::Hybrid, 3),
    (Residency::Paged, 0),
];

#[test]
fn a_reader_changes_no_bit() {
    for recipe in recipes() {
        let (header, file) = recipe.file().unwrap();
        let file = Arc::new(file);
        for base in [STRICT, INT8] {
            let wanted = talk(&mut open(&header, &file, base, None), &file);
            for (residency, kept_layers) in WAYS {
                for prefill_tile in [0, 7] {
                    let options = Options {
                        residency,
                        kept_layers,
                        prefill_tile,
                        ..base
                    };
                    for disk in [Disk::Sound, Disk::Flaky, Disk::Dead, Disk::Deadly] {
                        let mut model = open(&header, &file, options, Some(disk));
                        let found = talk(&mut model, &file);
                        let place = format!("{residency:?} {kept_layers} {prefill_tile} {disk:?}");
                        for (found, wanted) in found.iter().zip(&wanted) {
                            assert_eq!((&found.ids, found.digest), (&wanted.ids, wanted.digest));
                        }
                        let streams = model.plan().streamed > 0;
                        assert_eq!(model.read_ahead() > 0, streams, "{place}");
                    }
                }
            }
        }
    }
}

/// While a token is decoded everything that is not kept was asked for in time, but for the row of
/// the embedding, which is known only when the token is.
#[test]
fn every_block_of_a_token_is_read_ahead() {
    let (header, file) = recipes()[0].file().unwrap();
    let file = Arc::new(file);
    // Five layers; the head of 50 rows of 32 halves is one part.
    for (residency, kept_layers, blocks) in [(Residency::Hybrid, 2, 3), (Residency::Paged, 0, 6)] {
        let options = Options {
            residency,
            kept_layers,
            ..INT8
        };
        let mut model = open(&header, &file, options, Some(Disk::Sound));
        let ids: Vec<u32> = (0..20).collect();
        let request = greedy(&model, &ids, 6);
        model.begin(request).unwrap();
        let mut counts = Vec::new();
        loop {
            let before = model.read_ahead();
            let step = model.step_from(&mut InMemory(&file)).unwrap();
            counts.push(model.read_ahead() - before);
            if step.status == STEP_DONE {
                break;
            }
        }
        let decoded = &counts[counts.len() - 5..];
        assert_eq!(decoded, [blocks; 5], "{residency:?}: {counts:?}");
    }
}

/// A reader needs one more window, which the plan says before it is taken.
#[test]
fn the_second_window_is_planned() {
    let (header, file) = recipes()[0].file().unwrap();
    let file = Arc::new(file);
    for (residency, kept_layers) in WAYS {
        let options = Options {
            residency,
            kept_layers,
            ..INT8
        };
        let around = |windows| Surroundings {
            windows,
            ..Surroundings::native(1)
        };
        let planned = |windows| {
            let around = around(windows);
            measure(&header, &options, &around, u64::MAX).unwrap().0
        };
        let model = open(&header, &file, options, Some(Disk::Sound));
        assert_eq!(*model.plan(), planned(2));
        assert_eq!(model.memory().weights, planned(2).weights);
        let more = planned(2).total - planned(1).total;
        match model.plan().streamed {
            0 => assert_eq!(more, 0),
            // One layer at least, and what alignment may cost.
            _ => assert!(more > 63 && planned(1).weights >= more, "{more}"),
        }
        // What does not fit with two windows is not opened with two.
        let engine = Engine {
            reader: Some(Box::new(
                Reader::start(Own {
                    file: Arc::clone(&file),
                    disk: Disk::Sound,
                    reads: Arc::default(),
                })
                .unwrap(),
            )),
            ..Engine::default()
        };
        let options = Options {
            kept_layers: kept_layers.max(1),
            ..options
        };
        let needed = measure(&header, &options, &around(2), u64::MAX).unwrap().0;
        let short = Model::open_with(header.clone(), options, needed.total - 1, engine);
        assert_eq!(short.err().unwrap().code(), TrResult::OutOfMemory);
    }
}

//! Memory is taken when a model is opened, as the plan said, and never by a step.
//!
//! The steps are those of one worker, which is what a lane has. A native team's thread pool
//! allocates a job for each meeting of its workers.
//!
//! A program without a test harness, whose threads allocate too: the counters are the whole
//! process's.

#![allow(clippy::unwrap_used)]

mod golden;
mod models;

use std::alloc::System;

use format::Header;
use models::{INT8, STRICT, greedy, load};
use protocol::abi::STEP_DONE;
use runtime::tiny::Recipe;
use runtime::{Kernels, KvFormat, Model, Options, Residency};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    for (recipe, options) in [
        (Recipe::QUANTIZED, STRICT),
        (Recipe::QUANTIZED, INT8),
        (Recipe::FLOAT, STRICT),
        (Recipe::SLIDING, INT8),
        (
            Recipe::QUANTIZED,
            Options {
                kv_format: KvFormat::Int8,
                ..INT8
            },
        ),
    ] {
        for residency in Residency::ALL {
            let options = Options {
                residency,
                kept_layers: 1,
                ..options
            };
            check(&recipe, options);
        }
    }
    for recipe in shapes() {
        for residency in Residency::ALL {
            for kv_format in KvFormat::ALL {
                let options = Options {
                    residency,
                    kept_layers: 3,
                    kv_format,
                    ..INT8
                };
                for workers in [1, 2] {
                    let (header, _) = recipe.file().unwrap();
                    taken_as_planned(header, options, workers);
                }
            }
        }
    }
    let (header, _) = golden::real_model();
    for context in [256, 2048, 8192] {
        for residency in Residency::ALL {
            for kv_format in KvFormat::ALL {
                let options = Options {
                    residency,
                    kv_format,
                    context,
                    ..INT8
                };
                for workers in [1, 2] {
                    taken_as_planned(header.clone(), options, workers);
                }
            }
        }
    }
    turns_keep_nothing();
}

/// Deep, shallow, long, short, with and without biases and a head of its own.
fn shapes() -> Vec<Recipe> {
    let mut shapes = Vec::new();
    for recipe in [Recipe::QUANTIZED, Recipe::FLOAT] {
        for (layers, context) in [(1, 32), (2, 4096), (24, 96), (7, 1000)] {
            shapes.push(Recipe {
                layers,
                context,
                ..recipe
            });
        }
    }
    shapes
}

/// The header's own bytes are counted by parsing it within the count.
fn taken_as_planned(header: Header, options: Options, workers: usize) -> Model {
    let bytes = header.to_bytes();
    let file_len = header.file_len;
    let engine = models::engine(Kernels::best(), workers);
    let before = Region::new(ALLOCATOR);
    let header = Header::parse(&bytes, file_len).unwrap();
    let model = Model::open_with(header, options, u64::MAX, engine).unwrap();
    let change = before.change();
    let truth = (change.bytes_allocated - change.bytes_deallocated) as i64;
    let (plan, told) = (*model.plan(), model.memory());
    for (whose, bytes) in [("planned", plan.total), ("told", told.total)] {
        let off = bytes as i64 - truth;
        assert!(
            off.abs() * 50 <= truth,
            "{truth} bytes taken, {bytes} {whose}: {plan:?} {told:?}"
        );
    }
    for ((region, planned), (_, told)) in plan.regions().into_iter().zip(told.regions()) {
        let off = planned.abs_diff(told);
        assert!(
            off * 50 <= planned,
            "region {region}: {planned} planned, {told} taken"
        );
    }
    model
}

fn check(recipe: &Recipe, options: Options) {
    let (header, file) = recipe.file().unwrap();
    let mut model = taken_as_planned(header, options, 1);
    let mut source = models::InMemory(&file);
    let before = Region::new(ALLOCATOR);
    load(&mut model, &mut source).unwrap();
    model.ready_from(&mut source).unwrap();
    // Bytes go from the source to where they stay; only hashes of leaves pass through the heap.
    let change = before.change();
    assert!(change.bytes_allocated < 64 * 1024, "{change:?}");
    let ids: Vec<u32> = (0..50).collect();
    let request = greedy(&model, &ids, 32);
    model.begin(request).unwrap();
    let before = Region::new(ALLOCATOR);
    while model.step_from(&mut source).unwrap().status != STEP_DONE {}
    let change = before.change();
    assert_eq!(change.allocations, 0, "{options:?}");
    assert_eq!(change.reallocations, 0, "{options:?}");
    assert_eq!(change.deallocations, 0, "{options:?}");
}

/// Two conversations of 100 turns each, in turns, each begun anew whenever the context is full:
/// what is held after the first turn is held after the last, and closing gives everything back.
fn turns_keep_nothing() {
    let recipe = Recipe {
        context: 160,
        ..Recipe::QUANTIZED
    };
    let (header, file) = recipe.file().unwrap();
    let (mut before, mut after) = (Vec::with_capacity(3), Vec::with_capacity(3));
    for residency in Residency::ALL {
        let options = Options { residency, ..INT8 };
        let held = Region::new(ALLOCATOR);
        let mut model = taken_as_planned(header.clone(), options, 1);
        let mut source = models::InMemory(&file);
        load(&mut model, &mut source).unwrap();
        model.ready_from(&mut source).unwrap();
        let mut talks: [Vec<u32>; 2] = [vec![1, 2, 3], vec![4, 5, 6]];
        talks.iter_mut().for_each(|ids| ids.reserve(400));
        for turn in 0..200 {
            let ids = &mut talks[turn as usize % 2];
            if ids.len() + 20 > 160 {
                ids.truncate(3);
            }
            ids.extend([turn % 50, 7, 9]);
            model.begin(greedy(&model, ids, 8)).unwrap();
            loop {
                let step = model.step_from(&mut source).unwrap();
                ids.extend((step.has_token == 1).then_some(step.token));
                if step.status == STEP_DONE {
                    break;
                }
            }
            let change = held.change();
            let bytes = change.bytes_allocated - change.bytes_deallocated;
            match turn {
                0 => before.push(bytes),
                199 => after.push(bytes),
                _ => {}
            }
        }
        drop((model, talks));
        let change = held.change();
        assert_eq!(
            change.bytes_allocated, change.bytes_deallocated,
            "{residency:?}"
        );
    }
    assert_eq!(before, after);
}

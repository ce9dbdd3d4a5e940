//! Memory is taken when a model is opened, as the plan said, and never by a step.
//!
//! The steps are those of one worker, which is what a lane has. A native team's thread pool
//! allocates a job for each meeting of its workers.
//!
//! One test only: the counters are the whole process's.

#![allow(clippy::unwrap_used)]

mod models;

use std::alloc::System;

use models::{INT8, STRICT, greedy, load};
use protocol::abi::STEP_DONE;
use runtime::tiny::Recipe;
use runtime::{Engine, Model, Options};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn steps_allocate_nothing_and_opening_takes_what_was_planned() {
    for (recipe, options) in [
        (Recipe::QUANTIZED, STRICT),
        (Recipe::QUANTIZED, INT8),
        (Recipe::FLOAT, STRICT),
    ] {
        check(&recipe, options);
    }
}

fn check(recipe: &Recipe, options: Options) {
    let (header, file) = recipe.file().unwrap();
    // Workers are the program's, not the model's.
    let engine = Engine::default();
    let before = Region::new(ALLOCATOR);
    let mut model = Model::open_with(header, options, u64::MAX, engine).unwrap();
    let change = before.change();
    let taken = change.bytes_allocated - change.bytes_deallocated;
    let planned = model.plan().total as usize;
    // The plan counts the header twice over, so it is a little more than what is taken.
    assert!(taken <= planned, "{taken} bytes taken, {planned} planned");
    assert!(
        planned - taken < 64 * 1024,
        "{taken} taken, {planned} planned"
    );

    load(&mut model, &mut models::InMemory(&file)).unwrap();
    model.ready().unwrap();
    let ids: Vec<u32> = (0..50).collect();
    let request = greedy(&model, &ids, 32);
    model.begin(request).unwrap();
    let before = Region::new(ALLOCATOR);
    while model.step().unwrap().status != STEP_DONE {}
    let change = before.change();
    assert_eq!(change.allocations, 0, "{options:?}");
    assert_eq!(change.reallocations, 0, "{options:?}");
    assert_eq!(change.deallocations, 0, "{options:?}");
}

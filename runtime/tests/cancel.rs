//! A request that is stopped through the stop word, anywhere in a long prefill, forgets only what
//! was not committed: asked again, it answers bit for bit as one that nobody disturbed.

#![allow(clippy::unwrap_used)]

mod models;

use std::sync::mpsc;
use std::thread;

use models::{INT8, Outcome, engine, finish, greedy, open, run};
use protocol::abi::{FINISH_CANCELLED, FINISH_LENGTH, STEP_DONE, Step};
use runtime::tiny::Recipe;
use runtime::{Engine, Kernels, Model, Options, Request};

const RECIPE: Recipe = Recipe {
    layers: 4,
    context: 400,
    ..Recipe::QUANTIZED
};
const PROMPT: u32 = 331;
const NEW: u32 = 6;
const TILE: u32 = 16;
/// Layers of a tile, and then the first token.
const STEPS: u64 = PROMPT.div_ceil(TILE) as u64 * 4 + 1;

fn prompt() -> Vec<u32> {
    (0..PROMPT).map(|at| (at * 37 + 11) % 50).collect()
}

fn model(engine: Engine) -> Model {
    let (header, file) = RECIPE.file().unwrap();
    let options = Options {
        prefill_tile: TILE,
        ..INT8
    };
    open(&header, &file, options, engine)
}

fn numbered<'a>(model: &Model, ids: &'a [u32], number: u32) -> Request<'a> {
    Request {
        number,
        ..greedy(model, ids, NEW)
    }
}

/// Steps at most `count` times; the last step if it ended the request.
fn steps(model: &mut Model, count: u64) -> Option<Step> {
    (0..count)
        .map(|_| model.step().unwrap())
        .find(|step| step.status == STEP_DONE)
}

fn same_answer(again: &Outcome, undisturbed: &Outcome, cancelled: &Step) {
    assert_eq!(again.ids, undisturbed.ids);
    assert_eq!(again.digest, undisturbed.digest);
    assert_eq!(again.last.finish, FINISH_LENGTH);
    // What was committed is not computed again, but for the last position.
    assert_eq!(again.last.reused, cancelled.prefilled.min(PROMPT - 1));
}

#[test]
fn stopped_between_steps() {
    let ids = prompt();
    for workers in [1, 3] {
        let engine = engine(Kernels::best(), workers);
        let stopper = engine.team.stopper();
        let mut model = model(engine);
        let whole = numbered(&model, &ids, 0);
        let undisturbed = run(&mut model, whole);
        for after in (0..=STEPS + 1).step_by(5) {
            let number = 1 + after as u32;
            let cold = Request {
                cold: true,
                ..numbered(&model, &ids, number)
            };
            model.begin(cold).unwrap();
            assert_eq!(steps(&mut model, after), None, "{after}");
            stopper.stop(number);
            let cancelled = steps(&mut model, 1).unwrap();
            assert_eq!(cancelled.finish, FINISH_CANCELLED);
            assert_eq!(cancelled.has_token, 0);
            let tiles = (after / 4) as u32;
            let committed = match after {
                STEPS.. => PROMPT,
                // The last tile waits for its logits.
                _ => tiles.min(PROMPT.div_ceil(TILE) - 1) * TILE,
            };
            assert_eq!(cancelled.prefilled, committed, "{after}");
            model.begin(numbered(&model, &ids, 0)).unwrap();
            same_answer(&finish(&mut model).unwrap(), &undisturbed, &cancelled);
        }
    }
}

/// The word changes while the workers compute, wherever they are.
#[test]
fn stopped_in_the_middle_of_steps() {
    let ids = prompt();
    let engine = engine(Kernels::best(), 2);
    let stopper = engine.team.stopper();
    let mut model = model(engine);
    let whole = numbered(&model, &ids, 0);
    let undisturbed = run(&mut model, whole);
    let (ask, asked) = mpsc::channel::<(u32, u64)>();
    let page = thread::spawn(move || {
        for (number, spins) in asked {
            (0..spins).for_each(|_| std::hint::spin_loop());
            stopper.stop(number);
        }
    });
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for number in 1..=40 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let cold = Request {
            cold: true,
            ..numbered(&model, &ids, number)
        };
        model.begin(cold).unwrap();
        assert_eq!(steps(&mut model, (random >> 33) % STEPS), None);
        ask.send((number, (random >> 20) % 4000)).unwrap();
        let cancelled = steps(&mut model, u64::MAX).unwrap();
        // A stop that comes too late finds the request finished.
        if cancelled.finish == FINISH_CANCELLED {
            model.begin(numbered(&model, &ids, 0)).unwrap();
            same_answer(&finish(&mut model).unwrap(), &undisturbed, &cancelled);
        }
    }
    drop(ask);
    page.join().unwrap();
}

#[test]
fn another_requests_stop_is_ignored() {
    let ids = prompt();
    let engine = engine(Kernels::best(), 2);
    let stopper = engine.team.stopper();
    let mut model = model(engine);
    stopper.stop(8);
    let request = numbered(&model, &ids, 9);
    assert_eq!(run(&mut model, request).last.finish, FINISH_LENGTH);
}

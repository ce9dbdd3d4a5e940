//! The promise of the numerical contract, section 1: for one model, request and mode the logits
//! have the same bits whatever computes them, and however the work was cut. Nothing here needs an
//! expected value: every way is compared with the plainest one.

#![allow(clippy::unwrap_used)]

mod models;

use models::{INT8, Outcome, STRICT, engine, finish, greedy, open, run, tiny};
use runtime::tiny::Recipe;
use runtime::{Kernels, KvFormat, Options};

const PROMPT: [u32; 24] = [
    3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43, 3, 8, 32, 7, 9, 5, 0, 28,
];
const NEW: u32 = 64;

/// Every recipe with every mode and cache format.
fn cases() -> Vec<(&'static str, Recipe, Options)> {
    let with = |options: Options, kv_format| Options {
        kv_format,
        ..options
    };
    let mut cases = Vec::new();
    for (name, recipe) in [("quantized", Recipe::QUANTIZED), ("float", Recipe::FLOAT)] {
        for mode in [STRICT, INT8] {
            for format in KvFormat::ALL {
                cases.push((name, recipe, with(mode, format)));
            }
        }
    }
    cases
}

/// Scalar kernels, one worker, one position at a time, nothing reused.
fn plainest(recipe: &Recipe, options: Options) -> Outcome {
    let (header, file) = recipe.file().unwrap();
    let options = Options {
        prefill_tile: 1,
        ..options
    };
    let mut model = open(&header, &file, options, engine(Kernels::SCALAR, 1));
    let request = greedy(&model, &PROMPT, NEW);
    run(&mut model, request)
}

#[test]
fn kernels_tiles_and_workers_change_no_bit() {
    for (name, recipe, options) in cases() {
        let plain = plainest(&recipe, options);
        assert_eq!(plain.ids.len(), NEW as usize);
        let (header, file) = recipe.file().unwrap();
        for kernels in [Kernels::SCALAR, Kernels::best()] {
            for prefill_tile in [1, 7, 32, 48] {
                for workers in [1, 2, 3] {
                    let options = Options {
                        prefill_tile,
                        ..options
                    };
                    let mut model = open(&header, &file, options, engine(kernels, workers));
                    let request = greedy(&model, &PROMPT, NEW);
                    let found = run(&mut model, request);
                    assert_eq!(found, plain, "{name} {options:?} {kernels:?} {workers}");
                }
            }
        }
    }
}

#[test]
fn the_modes_and_formats_are_really_different() {
    let mut digests: Vec<_> = cases()
        .iter()
        .map(|(_, recipe, options)| plainest(recipe, *options).digest)
        .collect();
    digests.sort();
    digests.dedup();
    // The float recipe has no quantized matrix, so its two modes are one.
    assert_eq!(digests.len(), 9);
}

/// Of the cache in 8 bits: the recipes and modes in order, as the scalar kernels on x86-64 give
/// them. The scales are checked by hand in the suite (`pages: scales of an int8 cache`).
const INT8_CACHE: [&str; 4] = [
    "3e2930323ba4db46a20e116447ea7814bfcef5cedb7d9cb3ed25abd7de998a6a",
    "4669edccb784c76752ac2f5094aa466928df3db224a152a627e4e8675227a93e",
    // No matrix of this recipe is quantized, so its two modes are one.
    "c1fdf1c8e4c3a776a73de67898aec371f16d05047bb055d5a22d73257824e33c",
    "c1fdf1c8e4c3a776a73de67898aec371f16d05047bb055d5a22d73257824e33c",
];

#[test]
fn a_cache_of_8_bits_gives_the_known_bits() {
    let cases = cases().into_iter();
    let found: Vec<_> = cases
        .filter(|(_, _, options)| options.kv_format == KvFormat::Int8)
        .map(|(_, recipe, options)| plainest(&recipe, options).digest.to_string())
        .collect();
    assert_eq!(found, INT8_CACHE);
}

#[test]
fn a_reused_prefix_changes_no_bit() {
    for (name, recipe, options) in cases() {
        let cold = plainest(&recipe, options);
        let mut model = tiny(&recipe, options);
        for split in 1..=PROMPT.len() {
            let first = greedy(&model, &PROMPT[..split], 0);
            run(
                &mut model,
                runtime::Request {
                    cold: true,
                    ..first
                },
            );
            let request = greedy(&model, &PROMPT, NEW);
            let warm = run(&mut model, request);
            // The last position is computed again for its logits.
            let reused = split.min(PROMPT.len() - 1) as u32;
            assert_eq!(warm.last.reused, reused, "{name} {options:?}");
            assert_eq!(warm.ids, cold.ids, "{name} {options:?} {split}");
            assert_eq!(warm.digest, cold.digest, "{name} {options:?} {split}");
        }
    }
}

#[test]
fn a_second_turn_builds_on_the_first() {
    let mut model = tiny(&Recipe::QUANTIZED, INT8);
    let request = greedy(&model, &PROMPT, 8);
    let first = run(&mut model, request);
    let turn = [&PROMPT[..], &first.ids, &[4, 5, 6]].concat();
    let request = greedy(&model, &turn, 8);
    let warm = run(&mut model, request);
    // The last token of the first turn was drawn, but never entered the model.
    assert_eq!(warm.last.reused as usize, PROMPT.len() + 7);
    let request = greedy(&model, &turn, 8);
    let cold = run(
        &mut model,
        runtime::Request {
            cold: true,
            ..request
        },
    );
    assert_eq!(cold.last.reused, 0);
    assert_eq!((warm.ids, warm.digest), (cold.ids, cold.digest));
}

#[test]
fn a_cancelled_prefill_leaves_whole_tiles_and_the_same_bits() {
    for options in [STRICT, INT8] {
        let options = Options {
            prefill_tile: 7,
            ..options
        };
        let plain = plainest(&Recipe::QUANTIZED, options);
        // Two layers a tile; the first new token is the ninth step.
        for steps in 0..=12 {
            let mut model = tiny(&Recipe::QUANTIZED, options);
            let request = greedy(&model, &PROMPT, NEW);
            model.begin(request).unwrap();
            for _ in 0..steps {
                model.step().unwrap();
            }
            model.stop();
            assert!(model.step().is_err(), "nothing is left to do");
            model.begin(request).unwrap();
            let again = finish(&mut model).unwrap();
            let whole_tiles = steps.min(7) / 2 * 7;
            let expected = if steps > 8 { 23 } else { whole_tiles };
            assert_eq!(again.last.reused, expected, "after {steps} steps");
            assert_eq!((&again.ids, again.digest), (&plain.ids, plain.digest));
        }
    }
}

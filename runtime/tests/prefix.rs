//! What was computed once is found again, and what is found again changes no bit: at every split
//! point of a prompt, in every format of the cache, with layers that see a window and without.
//! Every outcome is compared with that of a cold request.

#![allow(clippy::unwrap_used)]

mod golden;
mod models;

use format::Digest;
use models::{INT8, greedy, open, run, tiny};
use protocol::TrResult;
use runtime::tiny::Recipe;
use runtime::{Engine, KvFormat, Model, Options, Request};

const NEW: u32 = 12;

fn options(kv_format: KvFormat) -> Options {
    Options {
        kv_format,
        prefill_tile: 7,
        ..INT8
    }
}

/// Token ids of the tiny models, different for every seed.
fn prompt(seed: u32, len: u32) -> Vec<u32> {
    let id = |index: u32| (index * 7 + index * index * seed + 11 * seed) % 50;
    (0..len).map(id).collect()
}

/// Every recipe in every format, with room for several conversations.
fn cases() -> impl Iterator<Item = (Recipe, Options)> {
    [Recipe::QUANTIZED, Recipe::FLOAT, Recipe::SLIDING]
        .into_iter()
        .map(|recipe| Recipe {
            context: 320,
            ..recipe
        })
        .flat_map(|recipe| KvFormat::ALL.map(|format| (recipe, options(format))))
}

fn cold(model: &mut Model, ids: &[u32], max_new: u32) -> models::Outcome {
    let request = greedy(model, ids, max_new);
    run(
        model,
        Request {
            cold: true,
            ..request
        },
    )
}

fn warm(model: &mut Model, ids: &[u32], max_new: u32) -> models::Outcome {
    let request = greedy(model, ids, max_new);
    run(model, request)
}

#[test]
fn a_warm_prefix_of_any_length_changes_no_bit() {
    for (recipe, options) in cases() {
        let ids = prompt(1, 64);
        let mut model = tiny(&recipe, options);
        let expected = cold(&mut model, &ids, NEW);
        for split in 1..=ids.len() {
            cold(&mut model, &ids[..split], 0);
            let found = warm(&mut model, &ids, NEW);
            // The last position is computed again for its logits.
            let reused = split.min(ids.len() - 1);
            assert_eq!(found.last.reused as usize, reused, "{options:?} {split}");
            assert_eq!(found.ids, expected.ids, "{options:?} {split}");
            assert_eq!(found.digest, expected.digest, "{options:?} {split}");
        }
    }
}

/// Where a conversation leaves another one's way within a block, it goes on on a page of its own.
#[test]
fn conversations_part_at_any_position_and_both_stay() {
    for (recipe, options) in cases() {
        let mut model = tiny(&recipe, options);
        let mut other = tiny(&recipe, options);
        let first = prompt(1, 64);
        let expected = cold(&mut other, &first, NEW);
        for split in [1, 15, 31, 32, 33, 45, 63] {
            let second = [&first[..split], &prompt(2, 64 - split as u32)[..]].concat();
            let common = (0..64).take_while(|at| first[*at] == second[*at]).count();
            cold(&mut model, &first, NEW);
            let parted = warm(&mut model, &second, NEW);
            assert_eq!(parted.last.reused as usize, common.min(63), "{split}");
            assert_eq!(parted.digest, cold(&mut other, &second, NEW).digest);
            let back = warm(&mut model, &first, NEW);
            assert_eq!(back.last.reused, 63, "{options:?} {split}");
            assert_eq!(back.digest, expected.digest, "{options:?} {split}");
        }
    }
}

/// A conversation as a person has it: asked, gone on, asked again, an earlier message changed,
/// another conversation in between.
#[test]
fn only_what_changed_is_computed() {
    for (recipe, options) in cases() {
        let mut model = tiny(&recipe, options);
        let mut other = tiny(&recipe, options);
        let mut ask = |ids: &[u32], reused: usize| {
            let found = warm(&mut model, ids, 8);
            match recipe.window {
                // Two rings are not enough for all of these.
                Some(_) => assert!(found.last.reused as usize <= reused),
                None => assert_eq!(found.last.reused as usize, reused, "{options:?}"),
            }
            assert_eq!(found.digest, cold(&mut other, ids, 8).digest);
            found.ids
        };
        let first = prompt(3, 30);
        let answer = ask(&first, 0);
        let second = [&first[..], &answer, &[1, 2, 3]].concat();
        // The last token of the answer was drawn but never entered the model.
        ask(&second, 37);
        // The same again.
        ask(&second, 40);
        let elsewhere = prompt(4, 40);
        ask(&elsewhere, 0);
        ask(&[&second[..], &[7]].concat(), 41);
        // An earlier message is changed, and put back.
        let changed = [&first[..28], &[48, 49, 48]].concat();
        ask(&changed, 28);
        ask(&second, 40);
        ask(&[&elsewhere[..], &[5, 6]].concat(), 40);
    }
}

/// Three pages for two conversations: who comes back finds what there was room for.
#[test]
fn where_room_is_short_the_answers_are_the_same() {
    for (recipe, options) in cases() {
        let options = Options {
            context: 96,
            ..options
        };
        let mut model = tiny(&recipe, options);
        let mut other = tiny(&recipe, options);
        let prompts = [1, 2, 3].map(|seed| prompt(seed, 40 + 16 * seed));
        let expected: Vec<Digest> = prompts
            .iter()
            .map(|ids| cold(&mut other, ids, 8).digest)
            .collect();
        for turn in [0, 1, 0, 2, 1, 1, 0, 2, 2, 0, 1, 2] {
            let found = warm(&mut model, &prompts[turn], 8);
            assert_eq!(found.digest, expected[turn], "{options:?}");
        }
    }
}

#[test]
fn restored_pages_are_kept_pages() {
    for (recipe, options) in cases() {
        let ids = prompt(5, 75);
        let mut model = tiny(&recipe, options);
        let expected = cold(&mut model, &ids, NEW);
        let pages = copies(&mut model, &ids);
        for known in [1, 2, 3] {
            let mut again = tiny(&recipe, options);
            for (block, page) in pages[..known].iter().enumerate() {
                again.restore_page(&ids, block, page).unwrap();
            }
            assert_eq!(again.known(&ids).unwrap(), ids.len().min(32 * known));
            let found = warm(&mut again, &ids, NEW);
            let most = (32 * known).min(ids.len() - 1);
            match recipe.window {
                // A window that has left its pages cannot be restored before the last of them.
                Some(_) if known < 3 => assert!(found.last.reused as usize <= most),
                _ => assert_eq!(found.last.reused as usize, most, "{options:?}"),
            }
            assert_eq!(found.digest, expected.digest, "{options:?}");
            assert_eq!(copies(&mut again, &ids), pages, "{options:?}");
        }
    }
}

/// The pages of all blocks of `ids`.
fn copies(model: &mut Model, ids: &[u32]) -> Vec<Vec<u8>> {
    let mut page = vec![0; model.page_bytes().unwrap()];
    let blocks = 0..ids.len().div_ceil(32);
    let copy = |block| {
        let len = model.copy_page(ids, block, &mut page).unwrap();
        page[..len].to_vec()
    };
    blocks.map(copy).collect()
}

#[test]
fn what_does_not_fit_is_not_restored() {
    let ids = prompt(5, 75);
    let mut model = tiny(&Recipe::QUANTIZED, options(KvFormat::Int8));
    cold(&mut model, &ids, 0);
    let pages = copies(&mut model, &ids);
    let mut short = vec![0; pages[0].len() - 1];
    let code = |result: Result<usize, runtime::RuntimeError>| result.unwrap_err().code();
    assert_eq!(code(model.copy_page(&ids, 0, &mut short)), TrResult::Bounds);
    let mut page = pages[0].clone();
    assert_eq!(
        code(model.copy_page(&ids, 3, &mut page)),
        TrResult::InvalidArgument
    );
    let unknown = prompt(6, 40);
    assert_eq!(
        code(model.copy_page(&unknown, 0, &mut page)),
        TrResult::IllegalState
    );

    let mut again = tiny(&Recipe::QUANTIZED, options(KvFormat::Int8));
    let mut refused = |ids: &[u32], block, bytes: &[u8]| {
        let result = again.restore_page(ids, block, bytes);
        result.unwrap_err().code()
    };
    assert_eq!(refused(&ids, 1, &pages[1]), TrResult::IllegalState);
    assert_eq!(refused(&ids, 3, &pages[1]), TrResult::InvalidArgument);
    assert_eq!(refused(&ids, 0, &short), TrResult::InvalidArgument);
    assert_eq!(refused(&[50], 0, &pages[0]), TrResult::InvalidArgument);
    let long = vec![1; 97]; // more than the context
    assert_eq!(refused(&long, 0, &pages[0]), TrResult::InvalidArgument);
    let request = greedy(&again, &ids, 1);
    again.begin(request).unwrap();
    let running = again.restore_page(&ids, 0, &pages[0]);
    assert_eq!(running.unwrap_err().code(), TrResult::IllegalState);
    assert!(again.known(&ids).is_err());
}

/// Another format has other pages.
#[test]
fn a_page_of_another_format_is_refused() {
    let ids = prompt(5, 40);
    let mut model = tiny(&Recipe::QUANTIZED, options(KvFormat::F16));
    cold(&mut model, &ids, 0);
    let pages = copies(&mut model, &ids);
    for format in [KvFormat::F32, KvFormat::Int8] {
        let mut other = tiny(&Recipe::QUANTIZED, options(format));
        let refused = other.restore_page(&ids, 0, &pages[0]).unwrap_err();
        assert_eq!(refused.code(), TrResult::InvalidArgument);
    }
}

/// SmolLM2-135M-Instruct: the first 64 ids of a chat, at some split points and in every format.
#[test]
fn the_real_model_goes_on_from_any_prefix() {
    let (header, file) = golden::real_model();
    let ids: Vec<u32> = (0..64).map(|index| 400 + index * 37 % 900).collect();
    for kv_format in KvFormat::ALL {
        let options = Options {
            kv_format,
            context: 96,
            ..INT8
        };
        let mut model = open(&header, &file, options, Engine::default());
        let expected = cold(&mut model, &ids, 4);
        for split in [1, 17, 31, 32, 33, 63, 64] {
            cold(&mut model, &ids[..split], 0);
            let found = warm(&mut model, &ids, 4);
            assert_eq!(found.last.reused as usize, split.min(63));
            assert_eq!(
                (found.ids, found.digest),
                (expected.ids.clone(), expected.digest)
            );
        }
    }
}

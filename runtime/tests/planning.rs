//! What is planned before anything is allocated, and what a plan refuses.

#![allow(clippy::unwrap_used)]

mod models;

use models::{INT8, STRICT};
use protocol::TrResult;
use protocol::abi::{
    DETAIL_REGION, REGION_CONTROL, REGION_STACKS, REGION_TOKENIZER, REGION_TRANSFER,
};
use runtime::tiny::Recipe;
use runtime::{KvFormat, Model, Options, RuntimeError, Surroundings, measure, plan};

fn code<T: std::fmt::Debug>(result: Result<T, RuntimeError>) -> TrResult {
    result.unwrap_err().code()
}

#[test]
fn a_plan_names_the_first_region_that_does_not_fit() {
    let (header, _) = Recipe::QUANTIZED.file().unwrap();
    let whole = plan(&header, &STRICT, u64::MAX).unwrap();
    let mut before = 0;
    for (region, bytes) in whole.regions() {
        // Natively nothing surrounds a model, and no lane has a tokenizer.
        let around = [
            REGION_TOKENIZER,
            REGION_CONTROL,
            REGION_STACKS,
            REGION_TRANSFER,
        ];
        if around.contains(&region) {
            assert_eq!(bytes, 0, "region {region}");
            continue;
        }
        assert!(bytes > 0, "region {region}");
        let error = plan(&header, &STRICT, before + bytes - 1).unwrap_err();
        assert_eq!(error.code(), TrResult::OutOfMemory);
        assert_eq!((error.0.item, error.0.detail), (region, DETAIL_REGION));
        assert_eq!((error.0.expected, error.0.found), (bytes - 1, bytes));
        before += bytes;
    }
    assert_eq!(whole.total, before);
    // Exactly enough is enough, and opening asks for no more than planning.
    assert_eq!(plan(&header, &STRICT, before).unwrap().total, before);
    assert!(Model::open(header, STRICT, before).is_ok());
}

/// Two layers, two key/value heads of 8, 96 positions: the formula of the memory plan by hand. Each
/// page of 32 positions has 168 bytes for its tokens and its place in the tree.
#[test]
fn the_cache_is_planned_by_the_formula() {
    let (header, _) = Recipe::QUANTIZED.file().unwrap();
    let planned = |options| plan(&header, &options, u64::MAX).unwrap();
    assert_eq!(planned(STRICT).kv, 2 * 2 * 2 * 8 * 96 * 4 + 3 * 168);
    assert_eq!(planned(INT8).kv, 2 * 2 * 2 * 8 * 96 * 2 + 3 * 168);
    let options = Options {
        kv_format: KvFormat::Int8,
        ..INT8
    };
    assert_eq!(planned(options).kv, 2 * 2 * 2 * (8 + 4) * 96 + 3 * 168);
    // 33 positions need two blocks of 32.
    let options = Options {
        context: 33,
        ..INT8
    };
    assert_eq!(planned(options).kv, 2 * 2 * 2 * 8 * 64 * 2 + 2 * 168);
    // A tile is no longer than the context.
    assert_eq!(
        (planned(options).context, planned(options).prefill_tile),
        (33, 33)
    );
}

#[test]
fn a_tile_suits_the_model_and_the_workers() {
    let recipe = Recipe {
        context: 2048,
        ..Recipe::QUANTIZED
    };
    let tile = |hidden, ffn, workers| {
        let (mut header, _) = recipe.file().unwrap();
        header.manifest.architecture.hidden = hidden;
        header.manifest.architecture.ffn = ffn;
        let around = Surroundings::native(workers);
        let (plan, _) = measure(&header, &INT8, &around, u64::MAX).unwrap();
        plan.prefill_tile
    };
    // Multiply-adds of a layer for one position: about 6 thousand, 6 million, 50 million.
    assert_eq!(tile(32, 64, 1), 128);
    assert_eq!(tile(1024, 2048, 1), 64);
    assert_eq!(tile(2048, 8192, 1), 32);
    for (workers, positions) in [(2, 128), (3, 192), (4, 256), (8, 256)] {
        assert_eq!(tile(32, 64, workers), positions);
        assert_eq!(tile(2048, 8192, workers), positions);
    }
}

#[test]
fn a_longer_context_than_the_models_is_refused() {
    let (header, _) = Recipe::QUANTIZED.file().unwrap();
    let options = Options {
        context: 97,
        ..INT8
    };
    let error = plan(&header, &options, u64::MAX).unwrap_err();
    assert_eq!(error.code(), TrResult::ContextExceeded);
    assert_eq!((error.0.expected, error.0.found), (96, 97));
    let options = Options {
        prefill_tile: 513,
        ..INT8
    };
    assert_eq!(
        code(plan(&header, &options, u64::MAX)),
        TrResult::InvalidArgument
    );
}

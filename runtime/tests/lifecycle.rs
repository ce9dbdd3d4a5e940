//! What is refused, how requests end, and that a refusal or failure changes nothing committed.

#![allow(clippy::unwrap_used)]

mod models;

use format::PIECE_BYTES;
use models::{INT8, InMemory, STRICT, finish, greedy, load, open, run, tiny};
use protocol::abi::{
    DETAIL_BYTES, DETAIL_POSITIONS, DETAIL_TOKEN_ID, FINISH_LENGTH, FINISH_STOP, STEP_DONE,
    STEP_MORE, STEP_TOKEN,
};
use protocol::{Stage, TrResult};
use runtime::sampler::Settings;
use runtime::tiny::Recipe;
use runtime::{Engine, Model, Options, Request, RuntimeError, Source};

const PROMPT: [u32; 5] = [3, 14, 15, 9, 26];

fn code<T: std::fmt::Debug>(result: Result<T, RuntimeError>) -> TrResult {
    result.unwrap_err().code()
}

#[test]
fn calls_out_of_order_are_refused() {
    let (header, file) = Recipe::QUANTIZED.file().unwrap();
    let mut model = Model::open(header, INT8, u64::MAX).unwrap();
    let request = greedy(&model, &PROMPT, 4);
    assert_eq!(code(model.begin(request)), TrResult::IllegalState);
    assert_eq!(code(model.step()), TrResult::IllegalState);
    let error = model.ready().unwrap_err();
    assert_eq!(error.code(), TrResult::IllegalState);
    assert_eq!(error.0.at, 0, "the first missing byte");
    load(&mut model, &mut InMemory(&file)).unwrap();
    model.ready().unwrap();
    assert_eq!(code(model.ready()), TrResult::IllegalState);
    assert_eq!(
        code(load(&mut model, &mut InMemory(&file))),
        TrResult::IllegalState
    );
    model.begin(request).unwrap();
    assert_eq!(code(model.begin(request)), TrResult::IllegalState);
    // The refused call did not disturb the request.
    assert_eq!(finish(&mut model).unwrap().ids.len(), 4);
    assert_eq!(code(model.step()), TrResult::IllegalState);
}

#[test]
fn only_whole_pieces_of_the_region_are_loaded() {
    let (header, file) = Recipe::QUANTIZED.file().unwrap();
    let len = file.len() as u32;
    let mut model = Model::open(header, INT8, u64::MAX).unwrap();
    let mut source = InMemory(&file);
    for (at, wrong) in [
        (0, len - 1),
        (0, len + 1),
        (64, len - 64),
        (u64::from(len), 0),
    ] {
        assert_eq!(
            code(model.load(&mut source, at, wrong)),
            TrResult::Bounds,
            "{at} {wrong}"
        );
    }
    let error = model.load(&mut source, 0, 7).unwrap_err();
    assert_eq!(error.0.detail, DETAIL_BYTES);
    assert_eq!((error.0.expected, error.0.found), (u64::from(len), 7));
    let digest = model.load(&mut source, 0, len).unwrap();
    assert_eq!(digest, format::piece_hash(&file, u64::from(len)));
}

/// A source that fails once leaves the piece to be loaded again.
#[test]
fn a_failed_read_is_not_a_loaded_piece() {
    struct Broken;
    impl Source for Broken {
        fn read_at(&mut self, _: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
            into.fill(0x55);
            Err(RuntimeError::new(TrResult::HostRead, Stage::Load))
        }
    }
    let (header, file) = Recipe::QUANTIZED.file().unwrap();
    let mut model = Model::open(header, INT8, u64::MAX).unwrap();
    load(&mut model, &mut InMemory(&file)).unwrap();
    assert_eq!(code(load(&mut model, &mut Broken)), TrResult::HostRead);
    assert_eq!(code(model.ready()), TrResult::IllegalState);
    load(&mut model, &mut InMemory(&file)).unwrap();
    model.ready().unwrap();
}

#[test]
fn malformed_weights_are_refused_by_tensor_and_byte() {
    let (header, file) = Recipe::QUANTIZED.file().unwrap();
    let cases = [
        ("norm", 8, f32::NAN.to_le_bytes().to_vec()),
        (
            "layers.1.gate_bias",
            4,
            f32::INFINITY.to_le_bytes().to_vec(),
        ),
        ("embed", 128, 0x7e00_u16.to_le_bytes().to_vec()),
        ("embed", 5, vec![0x80]),
        ("head", 30, 0xfc00_u16.to_le_bytes().to_vec()),
        ("layers.0.down", 72, 0x7c00_u16.to_le_bytes().to_vec()),
    ];
    for (name, offset, bytes) in cases {
        let index = header.tensors.iter().position(|tensor| tensor.name == name);
        let at = header.tensor(name).unwrap().range.start as usize + offset;
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(&bytes);
        let mut model = Model::open(header.clone(), INT8, u64::MAX).unwrap();
        load(&mut model, &mut InMemory(&file)).unwrap();
        let error = model.ready().unwrap_err();
        assert_eq!(error.code(), TrResult::InvalidModel, "{name}");
        assert_eq!(Some(error.0.item as usize), index, "{name}");
        assert_eq!(error.0.at, at as u64, "{name}");
        let request = greedy(&model, &PROMPT, 4);
        assert_eq!(code(model.begin(request)), TrResult::IllegalState);
    }
}

#[test]
fn bad_requests_are_refused_and_change_nothing() {
    let mut model = tiny(&Recipe::QUANTIZED, INT8);
    let request = greedy(&model, &PROMPT, 4);
    let plain = run(&mut model, request);

    let error = model.begin(greedy(&model, &[], 4)).unwrap_err();
    assert_eq!(error.code(), TrResult::InvalidArgument);
    let error = model.begin(greedy(&model, &[3, 50], 4)).unwrap_err();
    assert_eq!(error.code(), TrResult::InvalidArgument);
    assert_eq!((error.0.detail, error.0.at), (DETAIL_TOKEN_ID, 1));
    assert_eq!((error.0.expected, error.0.found), (49, 50));
    let long = [1; 97];
    let error = model.begin(greedy(&model, &long, 4)).unwrap_err();
    assert_eq!(error.code(), TrResult::ContextExceeded);
    assert_eq!(error.0.detail, DETAIL_POSITIONS);
    assert_eq!((error.0.expected, error.0.found), (96, 97));
    for sampling in [
        Settings {
            temperature: f32::NAN,
            vocab: 50,
            ..Settings::GREEDY
        },
        Settings {
            repetition_penalty: 0.0,
            vocab: 50,
            ..Settings::GREEDY
        },
    ] {
        let request = Request {
            sampling,
            ..request
        };
        assert_eq!(code(model.begin(request)), TrResult::InvalidArgument);
    }

    let again = run(&mut model, request);
    assert_eq!(again.last.reused, PROMPT.len() as u32 - 1);
    assert_eq!((again.ids, again.digest), (plain.ids, plain.digest));
}

#[test]
fn steps_report_progress_and_the_end() {
    let mut model = tiny(
        &Recipe::QUANTIZED,
        Options {
            prefill_tile: 2,
            ..INT8
        },
    );
    let request = greedy(&model, &PROMPT, 2);
    model.begin(request).unwrap();
    assert!(model.logits().is_empty());
    let mut seen = Vec::new();
    loop {
        let step = model.step().unwrap();
        seen.push((step.status, step.prefilled, step.generated));
        assert_eq!((step.prompt, step.reused), (5, 0));
        if step.status == STEP_DONE {
            assert_eq!((step.has_token, step.finish), (1, FINISH_LENGTH));
            break;
        }
    }
    let expected = [
        // Two layers for each tile of two positions; a tile counts when its last layer is done.
        (STEP_MORE, 0, 0),
        (STEP_MORE, 2, 0),
        (STEP_MORE, 2, 0),
        (STEP_MORE, 4, 0),
        (STEP_MORE, 4, 0),
        // The last one counts with its logits.
        (STEP_MORE, 4, 0),
        (STEP_TOKEN, 5, 1),
        (STEP_DONE, 5, 2),
    ];
    assert_eq!(seen, expected);
    assert_eq!(model.logits().len(), 50);
}

#[test]
fn nothing_new_wanted_gives_logits_and_no_token() {
    let mut model = tiny(&Recipe::QUANTIZED, INT8);
    let request = greedy(&model, &PROMPT, 0);
    let outcome = run(&mut model, request);
    assert!(outcome.ids.is_empty());
    assert_eq!(
        (outcome.last.finish, outcome.last.has_token),
        (FINISH_LENGTH, 0)
    );
    assert_eq!(model.logits().len(), 50);
    let one = greedy(&model, &PROMPT, 1);
    // The digest covers the logits after the prompt in both.
    assert_eq!(run(&mut model, one).digest, outcome.digest);
}

#[test]
fn a_full_context_ends_with_length() {
    let options = Options { context: 8, ..INT8 };
    let mut model = tiny(&Recipe::QUANTIZED, options);
    let request = greedy(&model, &PROMPT, 100);
    let outcome = run(&mut model, request);
    // Positions 5, 6 and 7 hold the first three; the fourth is drawn from position 7's logits.
    assert_eq!(outcome.ids.len(), 4);
    assert_eq!(outcome.last.finish, FINISH_LENGTH);
    let request = greedy(&model, &[1; 8], 100);
    assert_eq!(run(&mut model, request).ids.len(), 1);
}

#[test]
fn a_stop_token_is_delivered_and_ends_the_request() {
    let mut model = tiny(&Recipe::QUANTIZED, INT8);
    let request = greedy(&model, &PROMPT, 64);
    let free = run(&mut model, request).ids;
    // The same model, with the third token as its only stop token.
    let (mut header, file) = Recipe::QUANTIZED.file().unwrap();
    header.manifest.special.stop = vec![free[2]];
    let mut model = open(&header, &file, INT8, Engine::default());
    let outcome = run(
        &mut model,
        Request {
            ignore_eos: false,
            ..request
        },
    );
    let first = free.iter().position(|id| *id == free[2]).unwrap();
    assert_eq!(outcome.ids, free[..=first]);
    assert_eq!(outcome.last.finish, FINISH_STOP);
    assert_eq!(run(&mut model, request).ids, free);
}

#[test]
fn the_best_token_of_every_prompt_position_on_demand() {
    let ids: Vec<u32> = (0..40).map(|index| index * 3 % 50).collect();
    let mut model = tiny(
        &Recipe::QUANTIZED,
        Options {
            prefill_tile: 7,
            ..INT8
        },
    );
    let plain = greedy(&model, &ids, 3);
    let expected = run(&mut model, plain);
    let ranked = run(
        &mut model,
        Request {
            argmax: true,
            ..plain
        },
    );
    assert_eq!((ranked.ids, ranked.digest), (expected.ids, expected.digest));
    assert_eq!(model.argmax().len(), ids.len());
    let argmax = model.argmax().to_vec();
    for (position, best) in argmax.into_iter().enumerate() {
        let request = greedy(&model, &ids[..=position], 1);
        assert_eq!(run(&mut model, request).ids, [best], "position {position}");
    }
    assert!(model.argmax().is_empty());
}

/// A file of more than one piece: every piece is read once, into its own place.
#[test]
fn pieces_of_a_larger_file_land_in_their_places() {
    let recipe = Recipe {
        layers: 70,
        ..Recipe::FLOAT
    };
    let (header, file) = recipe.file().unwrap();
    assert!(file.len() > PIECE_BYTES as usize, "{}", file.len());
    let mut model = Model::open(header.clone(), STRICT, u64::MAX).unwrap();
    let hashes = load(&mut model, &mut InMemory(&file)).unwrap();
    let mut hasher = format::Hasher::default();
    hasher.update(&file);
    assert_eq!(hashes, hasher.finish().hashes());
    model.ready().unwrap();
    let request = greedy(&model, &PROMPT, 4);
    let outcome = run(&mut model, request);
    let mut again = open(&header, &file, STRICT, Engine::default());
    assert_eq!(run(&mut again, request).digest, outcome.digest);
}

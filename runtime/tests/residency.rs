//! Weights in memory, partly or hardly in memory: the same bits, within what was planned.

#![allow(clippy::unwrap_used)]

mod models;

use format::{Header, PIECE_BYTES};
use models::{INT8, InMemory, Outcome, STRICT, finish_from, greedy};
use protocol::abi::STEP_DONE;
use protocol::{Residency, Stage, TrResult};
use runtime::tiny::Recipe;
use runtime::{
    Engine, Kernels, Model, Options, Request, RuntimeError, Source, Surroundings, Team, measure,
};

/// Counts what is read, and can be told to fail.
struct Watched<'a> {
    file: &'a [u8],
    bytes: u64,
    reads: u64,
    fail_at: Option<u64>,
}

impl<'a> Watched<'a> {
    fn new(file: &'a [u8]) -> Watched<'a> {
        Watched {
            file,
            bytes: 0,
            reads: 0,
            fail_at: None,
        }
    }
}

impl Source for Watched<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        if self.fail_at == Some(self.reads) {
            self.fail_at = None;
            // A disk that dies in the middle of a read leaves half of it.
            let half = into.len() / 2;
            into[..half].fill(0xa5);
            let mut error = RuntimeError::new(TrResult::HostRead, Stage::Load);
            error.0.at = at;
            return Err(error);
        }
        self.reads += 1;
        self.bytes += into.len() as u64;
        InMemory(self.file).read_at(at, into)
    }
}

fn open(header: &Header, source: &mut Watched<'_>, options: Options, limit: u64) -> Model {
    let engine = Engine::default();
    let mut model = Model::open_with(header.clone(), options, limit, engine).unwrap();
    models::load(&mut model, source).unwrap();
    model.ready_from(source).unwrap();
    model
}

fn run(model: &mut Model, source: &mut Watched<'_>, request: Request<'_>) -> Outcome {
    model.begin(request).unwrap();
    finish_from(model, source).unwrap()
}

/// Deep enough that some layers are kept and some are not.
fn recipes() -> [(&'static str, Recipe); 3] {
    let deep = |recipe: Recipe| Recipe {
        layers: 5,
        ..recipe
    };
    let untied = Recipe {
        head: Some(format::Layout::Q8_0R4),
        ..Recipe::FLOAT
    };
    [
        ("quantized", deep(Recipe::QUANTIZED)),
        ("float", deep(Recipe::FLOAT)),
        ("untied", deep(untied)),
    ]
}

fn modes() -> Vec<(Residency, u32)> {
    vec![
        (Residency::Full, 0),
        (Residency::Hybrid, 0),
        (Residency::Hybrid, 1),
        (Residency::Hybrid, 3),
        (Residency::Paged, 0),
    ]
}

/// Full is the golden mode of `golden_tiny`; the others must give its digest for every tile and
/// across the split of a prompt into cached and new positions.
#[test]
fn residency_changes_no_bit() {
    for (name, recipe) in recipes() {
        let (header, file) = recipe.file().unwrap();
        for base in [STRICT, INT8] {
            let mut seen: Vec<(Outcome, Outcome)> = Vec::new();
            for (residency, kept_layers) in modes() {
                for prefill_tile in [0, 7] {
                    let options = Options {
                        residency,
                        kept_layers,
                        prefill_tile,
                        ..base
                    };
                    let mut source = Watched::new(&file);
                    let mut model = open(&header, &mut source, options, u64::MAX);
                    let ids: Vec<u32> = (0..61).map(|i| i * 7 % 50).collect();
                    let request = greedy(&model, &ids, 9);
                    let cold = run(&mut model, &mut source, request);
                    let longer = [&ids[..], &cold.ids[..5], &[3, 1, 4]].concat();
                    let request = greedy(&model, &longer, 4);
                    let warm = run(&mut model, &mut source, request);
                    assert_eq!(warm.last.reused, 66, "{name} {residency:?}");
                    seen.push((cold, warm));
                }
            }
            for (cold, warm) in &seen {
                assert_eq!(
                    (cold.digest, &cold.ids),
                    (seen[0].0.digest, &seen[0].0.ids),
                    "{name}"
                );
                assert_eq!(
                    (warm.digest, &warm.ids),
                    (seen[0].1.digest, &seen[0].1.ids),
                    "{name}"
                );
            }
        }
    }
}

/// By hand: a decoded token reads each layer that is not kept once; paged, also the head once and
/// one group of rows of the embedding. A prompt reads each layer once, however many tiles it has.
#[test]
fn a_layer_is_read_once_for_a_token_and_once_for_a_prompt() {
    let recipe = Recipe {
        layers: 5,
        ..Recipe::QUANTIZED
    };
    let (header, file) = recipe.file().unwrap();
    let extent = |prefix: &str| {
        let mut tensors = header
            .tensors
            .iter()
            .filter(|it| it.name.starts_with(prefix));
        let first = tensors.next().unwrap();
        tensors.next_back().unwrap_or(first).range.end - first.range.start
    };
    let layers: Vec<u64> = (0..5)
        .map(|layer| extent(&format!("layers.{layer}.")))
        .collect();
    // The head is f16, 50 rows of 32; a group of the q8_0 embedding is 4 rows of 34 bytes.
    let (head, group) = (50 * 32 * 2, 136);
    for (residency, kept, token, prompt) in [
        (
            Residency::Hybrid,
            2,
            layers[2..].iter().sum(),
            layers[2..].iter().sum(),
        ),
        (
            Residency::Paged,
            0,
            layers.iter().sum::<u64>() + head + group,
            layers.iter().sum::<u64>() + head + 61 * group,
        ),
    ] {
        let options = Options {
            residency,
            kept_layers: kept,
            prefill_tile: 8,
            ..INT8
        };
        let mut source = Watched::new(&file);
        let mut model = open(&header, &mut source, options, u64::MAX);
        assert_eq!(model.plan().streamed, token, "{residency:?}");
        // No two neighbours share a group of four rows.
        let ids: Vec<u32> = (0..61).map(|i| i * 4 % 48).collect();
        let before = source.bytes;
        model.begin(greedy(&model, &ids, 1)).unwrap();
        finish_from(&mut model, &mut source).unwrap();
        assert_eq!(source.bytes - before, prompt, "{residency:?}");
        model.begin(greedy(&model, &ids, 3)).unwrap();
        let mut counts = Vec::new();
        loop {
            let before = source.bytes;
            let step = model.step_from(&mut source).unwrap();
            counts.push(source.bytes - before);
            if step.status == STEP_DONE {
                break;
            }
        }
        assert_eq!(counts[counts.len() - 2..], [token, token], "{residency:?}");
    }
}

/// A disk that fails at every single read of a request in turn: the failure is typed and placed,
/// what was committed stays, and the same request then gives the same bits.
#[test]
fn a_failed_read_ends_the_request_and_nothing_else() {
    let recipe = Recipe {
        layers: 3,
        ..Recipe::QUANTIZED
    };
    let (header, file) = recipe.file().unwrap();
    for (residency, kept_layers) in [(Residency::Hybrid, 1), (Residency::Paged, 0)] {
        let options = Options {
            residency,
            kept_layers,
            ..INT8
        };
        let mut source = Watched::new(&file);
        let mut model = open(&header, &mut source, options, u64::MAX);
        let ids: Vec<u32> = (0..40).collect();
        let before = source.reads;
        let whole = greedy(&model, &ids, 4);
        let wanted = run(&mut model, &mut source, whole);
        let reads = source.reads - before;
        assert!(reads > 4, "{reads}");
        for nth in 0..reads {
            let cold = Request {
                cold: true,
                ..greedy(&model, &ids, 4)
            };
            model.begin(cold).unwrap();
            source.fail_at = Some(source.reads + nth);
            let error = finish_from(&mut model, &mut source).unwrap_err();
            assert_eq!(error.code(), TrResult::HostRead, "{residency:?} read {nth}");
            assert!(
                [Stage::Prefill, Stage::Decode].contains(&error.stage()),
                "{error}"
            );
            assert!(
                error.0.at >= header.data_start && error.0.at < header.file_len,
                "{error}"
            );
            assert!(error.0.item <= 3, "{error}");
            assert_eq!(model.step().unwrap_err().code(), TrResult::IllegalState);
            // Goes on from what was committed.
            let again = greedy(&model, &ids, 4);
            let again = run(&mut model, &mut source, again);
            assert_eq!(
                (again.digest, again.ids),
                (wanted.digest, wanted.ids.clone()),
                "{nth}"
            );
        }
    }
}

/// Hybrid takes what it is given: from nearly nothing to everything, never more than the limit.
#[test]
fn hybrid_keeps_as_many_layers_as_fit() {
    let recipe = Recipe {
        layers: 5,
        ..Recipe::QUANTIZED
    };
    let (header, file) = recipe.file().unwrap();
    let options = Options {
        residency: Residency::Hybrid,
        ..INT8
    };
    let around = Surroundings::native(1);
    let whole = measure(&header, &options, &around, u64::MAX).unwrap().0;
    assert_eq!((whole.kept_layers, whole.layers, whole.streamed), (5, 5, 0));
    let mut kept = Vec::new();
    for limit in (0..=whole.total).rev().step_by(997) {
        let plan = measure(&header, &options, &around, limit).unwrap().0;
        match Model::open(header.clone(), options, limit) {
            Ok(model) => {
                assert!(plan.total <= limit);
                assert_eq!(model.plan(), &plan);
                kept.push(plan.kept_layers);
            }
            Err(error) => {
                assert_eq!(error.code(), TrResult::OutOfMemory);
                assert_eq!(plan.kept_layers, 0, "at {limit}");
            }
        }
    }
    kept.dedup();
    assert!(
        kept.is_sorted_by(|more, fewer| more > fewer) && kept.len() >= 4,
        "{kept:?}"
    );
    assert!(file.len() as u64 <= u64::from(PIECE_BYTES));
}

/// A file that is cut off, or whose bytes are no numbers, is refused in every mode and by any team,
/// whose workers share the check and the hashes of the pieces.
#[test]
fn weights_are_checked_also_if_they_are_not_kept() {
    let (header, file) = Recipe::QUANTIZED.file().unwrap();
    let layer = header.tensor("layers.1.q").unwrap();
    let head = header.tensor("head").unwrap();
    let norm = header.tensor("layers.1.ffn_norm").unwrap();
    for (residency, kept_layers) in modes() {
        for (tensor, offset) in [(layer, 70), (head, 3201 - 2), (norm, 3)] {
            let mut bad = file.clone();
            let at = tensor.range.start as usize + (offset & !1);
            bad[at..at + 2].copy_from_slice(&[0xff, 0x7f]);
            let options = Options {
                residency,
                kept_layers,
                ..INT8
            };
            let mut seen = Vec::new();
            for team in [Team::solo(), Team::threads(3).unwrap()] {
                let mut source = Watched::new(&bad);
                let kernels = Kernels::best();
                let engine = Engine {
                    kernels,
                    team,
                    ..Engine::default()
                };
                let model = Model::open_with(header.clone(), options, u64::MAX, engine);
                let mut model = model.unwrap();
                let hashes = models::load(&mut model, &mut source).unwrap();
                let first = model.first() as usize;
                let pieces = bad[first..].chunks(PIECE_BYTES as usize);
                let hash = |piece| format::piece_hash(piece, bad.len() as u64);
                assert_eq!(hashes, pieces.map(hash).collect::<Vec<_>>());
                let error = model.ready_from(&mut source).unwrap_err();
                assert_eq!(
                    error.code(),
                    TrResult::InvalidModel,
                    "{residency:?} {}",
                    tensor.name
                );
                let index = error.0.item as usize;
                assert_eq!(header.tensors[index].name, tensor.name, "{residency:?}");
                assert!(tensor.range.contains(&error.0.at), "{error}");
                seen.push(error.0.at);
            }
            assert_eq!(seen[0], seen[1], "the first bad byte");
        }
    }
}

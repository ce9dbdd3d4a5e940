//! Models and requests for the tests of whole models.
#![allow(dead_code, reason = "each test binary uses its own part")]

use format::{Digest, Header, PIECE_BYTES};
use protocol::abi::{STEP_DONE, Step};
use protocol::{Stage, TrResult};
use runtime::sampler::Settings;
use runtime::tiny::Recipe;
use runtime::{
    Engine, Kernels, KvFormat, Mode, Model, Options, Request, RuntimeError, Source, Team,
};

/// A file in memory.
pub struct InMemory<'a>(pub &'a [u8]);

impl Source for InMemory<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        match self.0.get(at as usize..at as usize + into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(RuntimeError::new(TrResult::HostRead, Stage::Load)),
        }
    }
}

pub const STRICT: Options = Options {
    mode: Mode::StrictF32V1,
    kv_format: KvFormat::F32,
    ..Options::DEFAULT
};
pub const INT8: Options = Options {
    mode: Mode::Int8V1,
    kv_format: KvFormat::F16,
    ..Options::DEFAULT
};

pub fn engine(kernels: Kernels, workers: usize) -> Engine {
    let team = match workers {
        1 => Team::solo(),
        _ => Team::threads(workers).unwrap(),
    };
    Engine {
        kernels,
        team,
        ..Engine::default()
    }
}

/// Reads every piece, in file order.
pub fn load(model: &mut Model, source: &mut dyn Source) -> Result<Vec<Digest>, RuntimeError> {
    let file_len = model.header().file_len;
    let pieces = (model.first()..file_len).step_by(PIECE_BYTES as usize);
    let load = |at: u64| {
        let len = (file_len - at).min(u64::from(PIECE_BYTES));
        model.load(source, at, len as u32)
    };
    pieces.map(load).collect()
}

pub fn open(header: &Header, file: &[u8], options: Options, engine: Engine) -> Model {
    let mut model = Model::open_with(header.clone(), options, u64::MAX, engine).unwrap();
    load(&mut model, &mut InMemory(file)).unwrap();
    model.ready().unwrap();
    model
}

/// A model from a formula, on the best kernels and one worker.
pub fn tiny(recipe: &Recipe, options: Options) -> Model {
    let (header, file) = recipe.file().unwrap();
    open(&header, &file, options, Engine::default())
}

/// A greedy request that goes on past stop tokens and hashes its logits.
pub fn greedy<'a>(model: &Model, ids: &'a [u32], max_new: u32) -> Request<'a> {
    Request {
        ids,
        max_new,
        sampling: Settings {
            vocab: model.header().manifest.architecture.vocab,
            ..Settings::GREEDY
        },
        ignore_eos: true,
        digest: true,
        cold: false,
        argmax: false,
        number: 0,
    }
}

/// What a finished request gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub ids: Vec<u32>,
    pub digest: Digest,
    pub last: Step,
}

/// Steps until the request of a model that is wholly in memory is done.
pub fn finish(model: &mut Model) -> Result<Outcome, RuntimeError> {
    finish_from(model, &mut InMemory(&[]))
}

pub fn finish_from(model: &mut Model, source: &mut dyn Source) -> Result<Outcome, RuntimeError> {
    let mut ids = Vec::new();
    loop {
        let step = model.step_from(source)?;
        if step.has_token == 1 {
            ids.push(step.token);
        }
        if step.status == STEP_DONE {
            let digest = model.digest();
            let last = step;
            return Ok(Outcome { ids, digest, last });
        }
    }
}

pub fn run(model: &mut Model, request: Request<'_>) -> Outcome {
    model.begin(request).unwrap();
    finish(model).unwrap()
}

//! One request at a time: from prompt ids to the next token, in bounded steps.
//!
//! ```text
//! begin -> (Tile per tile) per layer, per group of tiles -> First -> Decode* -> done
//!                   \-> Rank per position, if every position's best token is asked
//! ```
//!
//! A group is one tile, unless layers are read from the file: then it is many, so that a layer is
//! read once for all of them.
//!
//! A position is committed when everything computed from it is known good: a group when its last
//! layer is done, the newest position when its logits are. A stop or a failure forgets what was not
//! committed, and every later request may build on what was.

mod prefill;

use alloc::vec::Vec;

use format::{Digest, Header};
use protocol::abi::{
    FINISH_CANCELLED, FINISH_LENGTH, FINISH_NUMERICAL_COLLAPSE, FINISH_STOP, REGION_KV,
    REGION_LOGITS, REGION_METADATA, REGION_SAMPLER, REGION_SCRATCH, STEP_DONE, STEP_TOKEN,
};
use protocol::{Stage, TrResult};

pub use protocol::abi::Step;

use crate::RuntimeError;
use crate::error::reserve_memory;
use crate::forward::{Graph, Tile};
use crate::kv::Cache;
use crate::logits::Logits;
use crate::plan::{KvFormat, Plan, lengths};
use crate::request::Request;
use crate::sampler::{Malformed, Sampler};
use crate::scratch::Scratch;
use crate::weights::Source;

/// The changing parts of a model: cache, buffers, sampler and the sequence so far.
pub struct Generator {
    cache: Cache,
    scratch: Scratch,
    logits: Logits,
    sampler: Sampler,
    context: usize,
    tile: usize,
    group: usize,
    layers: usize,
    vocab: u32,
    stop: Vec<u32>,
    /// The prompt and what followed it.
    ids: Vec<u32>,
    /// Leading `ids` whose keys and values stand in the cache.
    committed: usize,
    argmax: Vec<u32>,
    malformed: u64,
    run: Option<Run>,
}

/// A request in progress. A step takes it out and puts it back, so a failure ends it.
#[derive(Clone, Copy)]
struct Run {
    prompt: usize,
    reused: usize,
    max_new: u32,
    generated: u32,
    ignore_eos: bool,
    digest: bool,
    argmax: bool,
    mask: bool,
    number: u32,
    work: Work,
}

/// What the next step does.
#[derive(Clone, Copy)]
enum Work {
    /// One layer of one prompt tile.
    Tile { tile: Tile, layer: usize },
    /// The best token of one finished position of the tile.
    Rank { tile: Tile, row: usize },
    /// The first new token, from the prompt's last position in row `row`.
    First { row: usize },
    /// The next token, from the newest id.
    Decode,
}

impl Generator {
    /// Takes every buffer by the plan.
    pub fn open(
        header: &Header,
        plan: &Plan,
        kv_format: KvFormat,
        workers: usize,
    ) -> Result<Generator, RuntimeError> {
        let architecture = &header.manifest.architecture;
        let positions = [plan.prefill_tile, plan.prefill_group, plan.context];
        let lengths = lengths(architecture, positions, workers);
        let vocab = architecture.vocab as usize;
        let short = |region, bytes| move |error: RuntimeError| error.in_region(region, bytes);
        Ok(Generator {
            cache: Cache::new(architecture, kv_format, plan.context, plan.prefill_group)
                .map_err(short(REGION_KV, plan.kv))?,
            scratch: Scratch::new(&lengths).map_err(short(REGION_SCRATCH, plan.scratch))?,
            logits: Logits::new(vocab).map_err(short(REGION_LOGITS, plan.logits))?,
            sampler: Sampler::new(vocab)
                .map_err(|code| RuntimeError::new(code, Stage::Allocate))
                .map_err(short(REGION_SAMPLER, plan.sampler))?,
            context: plan.context as usize,
            tile: plan.prefill_tile as usize,
            group: plan.prefill_group as usize,
            layers: architecture.layers.len(),
            vocab: architecture.vocab,
            stop: header.manifest.special.stop.clone(),
            ids: reserve_memory(plan.context as usize + 1, Stage::Allocate)
                .map_err(short(REGION_METADATA, plan.metadata))?,
            committed: 0,
            argmax: Vec::new(),
            malformed: 0,
            run: None,
        })
    }

    /// Starts a request. A refusal leaves everything as it was.
    pub fn begin(&mut self, request: &Request<'_>) -> Result<(), RuntimeError> {
        if self.run.is_some() {
            return Err(RuntimeError::new(TrResult::IllegalState, Stage::Prefill));
        }
        request.check(self.vocab, self.context)?;
        let prompt = request.ids.len();
        let mut argmax = Vec::new();
        if request.argmax {
            argmax = reserve_memory(prompt, Stage::Prefill)?;
        }
        self.sampler
            .begin(&request.sampling)
            .map_err(|code| RuntimeError::new(code, Stage::Sample))?;
        for id in request.ids {
            self.sampler.observe(*id);
        }

        if request.cold || request.argmax {
            self.cache.clear();
        }
        // The last position is computed anew in any case: its logits are wanted.
        let reused = self.cache.enter(request.ids, prompt - 1);
        self.ids.clear();
        self.ids.extend_from_slice(request.ids);
        self.committed = reused;
        self.argmax = argmax;
        self.logits.forget();
        self.run = Some(Run {
            prompt,
            reused,
            max_new: request.max_new,
            generated: 0,
            ignore_eos: request.ignore_eos,
            digest: request.digest,
            argmax: request.argmax,
            mask: request.sampling.malformed == Malformed::Mask,
            number: request.number,
            work: self.next_tile(reused, prompt),
        });
        Ok(())
    }

    /// One bounded unit of work: at most one layer of one tile, or one token. Allocates nothing.
    /// `source` gives what of the weights is not in memory.
    pub fn step(
        &mut self,
        graph: &mut Graph,
        source: &mut dyn Source,
    ) -> Result<Step, RuntimeError> {
        let Some(mut run) = self.run.take() else {
            return Err(RuntimeError::new(TrResult::IllegalState, Stage::Decode));
        };
        graph.team.serve(run.number);
        let step = match self.work(graph, source, &mut run) {
            Err(error) if error.code() == TrResult::Cancelled => Step {
                finish: FINISH_CANCELLED,
                ..self.report(&run, STEP_DONE)
            },
            step => step?,
        };
        if step.status != STEP_DONE {
            self.run = Some(run);
        }
        Ok(step)
    }

    fn work(
        &mut self,
        graph: &mut Graph,
        source: &mut dyn Source,
        run: &mut Run,
    ) -> Result<Step, RuntimeError> {
        match run.work {
            Work::Tile { tile, layer } => self.tile(graph, source, run, (tile, layer)),
            Work::Rank { tile, row } => self.rank(graph, source, run, (tile, row)),
            Work::First { row } => {
                self.head(graph, source, row, Stage::Prefill)?;
                self.choose(run)
            }
            Work::Decode => {
                self.decode(graph, source)?;
                self.choose(run)
            }
        }
    }

    /// Ends the request, if there is one. Committed positions stay.
    pub fn stop(&mut self) {
        self.run = None;
    }

    /// The cache between two requests.
    pub fn idle_cache(&mut self) -> Result<&mut Cache, TrResult> {
        match self.run {
            None => Ok(&mut self.cache),
            Some(_) => Err(TrResult::IllegalState),
        }
    }

    /// Logits of the newest position; empty until the request has some.
    pub fn logits(&self) -> &[f32] {
        self.logits.known()
    }

    /// SHA-256 of the little-endian logits of every step since `begin`.
    pub fn digest(&self) -> Digest {
        self.logits.digest()
    }

    /// The most likely next token of each prompt position so far, if the request asked.
    pub fn argmax(&self) -> &[u32] {
        &self.argmax
    }

    /// Bytes taken for the cache, the buffers, the logits, the sampler, and the ids.
    pub fn taken(&self) -> [u64; 5] {
        [
            self.cache.taken(),
            self.scratch.taken(),
            self.logits.taken(),
            self.sampler.taken(),
            (self.ids.capacity() * 4) as u64,
        ]
    }

    /// Logits masked since the model was opened.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// The positions before `end` are good.
    fn commit(&mut self, end: usize) {
        self.committed = end;
        self.cache.commit(&self.ids[..end]);
    }

    /// All layers for the newest id, and its logits.
    fn decode(&mut self, graph: &mut Graph, source: &mut dyn Source) -> Result<(), RuntimeError> {
        let position = self.committed;
        let tile = Tile {
            start: position,
            count: 1,
            row: 0,
        };
        let s = &mut self.scratch;
        self.cache
            .reach(position, position + 1)
            .map_err(|code| failure(code, Stage::Decode, 0, position))?;
        graph
            .embed(&self.ids[position..], tile, source, s)
            .map_err(|error| placed(error, Stage::Decode, 0, position))?;
        for layer in 0..self.layers {
            graph
                .weights
                .bring_layer(layer, source)
                .map_err(|error| placed(error, Stage::Decode, layer, position))?;
            graph
                .layer(layer, tile, &mut self.cache, s)
                .map_err(|code| failure(code, Stage::Decode, layer, position))?;
        }
        self.head(graph, source, 0, Stage::Decode)
    }

    fn head(
        &mut self,
        graph: &mut Graph,
        source: &mut dyn Source,
        row: usize,
        stage: Stage,
    ) -> Result<(), RuntimeError> {
        graph
            .head(row, source, &mut self.scratch, self.logits.fill())
            .map_err(|error| placed(error, stage, self.layers, self.committed))
    }

    /// Commits the newest position if its logits are good, and takes a token from them.
    fn choose(&mut self, run: &mut Run) -> Result<Step, RuntimeError> {
        let committed = run.prompt + run.generated as usize;
        let mut token = None;
        if run.mask {
            self.logits.mask_malformed();
        }
        if run.max_new > 0 {
            let place = |code| RuntimeError::new(code, Stage::Sample).at(committed as u64 - 1);
            let choice = self.sampler.sample(self.logits.filled()).map_err(place)?;
            self.malformed += u64::from(choice.malformed);
            token = choice.token;
        } else if !run.mask && !self.logits.are_finite() {
            let error = RuntimeError::new(TrResult::NumericalFailure, Stage::Prefill);
            return Err(error.at(committed as u64 - 1));
        }
        self.logits.publish();
        self.commit(committed);
        if run.digest {
            self.logits.hash();
        }
        if run.argmax && run.generated == 0 {
            self.argmax.push(self.logits.greatest());
        }
        Ok(self.emit(run, token))
    }

    /// Records the token and says whether it was the last.
    fn emit(&mut self, run: &mut Run, token: Option<u32>) -> Step {
        let Some(token) = token else {
            let finish = match run.max_new {
                0 => FINISH_LENGTH,
                _ => FINISH_NUMERICAL_COLLAPSE,
            };
            return Step {
                finish,
                ..self.report(run, STEP_DONE)
            };
        };
        self.sampler.observe(token);
        self.ids.push(token);
        run.generated += 1;
        run.work = Work::Decode;
        let finish = if !run.ignore_eos && self.stop.contains(&token) {
            Some(FINISH_STOP)
        } else if run.generated == run.max_new || self.committed == self.context {
            Some(FINISH_LENGTH)
        } else {
            None
        };
        Step {
            token,
            has_token: 1,
            finish: finish.unwrap_or_default(),
            ..self.report(
                run,
                if finish.is_some() {
                    STEP_DONE
                } else {
                    STEP_TOKEN
                },
            )
        }
    }

    fn report(&self, run: &Run, status: u32) -> Step {
        Step {
            status,
            prefilled: self.committed.min(run.prompt) as u32,
            prompt: run.prompt as u32,
            reused: run.reused as u32,
            generated: run.generated,
            ..Step::default()
        }
    }
}

fn failure(code: TrResult, stage: Stage, layer: usize, position: usize) -> RuntimeError {
    RuntimeError::new(code, stage)
        .item(layer)
        .at(position as u64)
}

/// A failed read keeps the file byte, and everything else gets the position.
fn placed(error: RuntimeError, stage: Stage, layer: usize, position: usize) -> RuntimeError {
    match error.code() {
        TrResult::HostRead => error.during(stage).item(layer),
        code => failure(code, stage, layer, position),
    }
}

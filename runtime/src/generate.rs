//! One request at a time: from prompt ids to the next token, in bounded steps.
//!
//! ```text
//! begin -> Tile(layer 0..n) per prompt tile -> First -> Decode* -> done
//!                   \-> Rank per position, if every position's best token is asked
//! ```
//!
//! A position is committed when everything computed from it is known good: a tile when its last
//! layer is done, the newest position when its logits are. A stop or a failure forgets what was not
//! committed, and the next request may build on what was.

use alloc::vec::Vec;

use format::{Digest, Header};
use protocol::abi::{
    FINISH_CANCELLED, FINISH_LENGTH, FINISH_NUMERICAL_COLLAPSE, FINISH_STOP, STEP_DONE, STEP_MORE,
    STEP_TOKEN,
};
use protocol::{Stage, TrResult};

pub use protocol::abi::Step;

use crate::RuntimeError;
use crate::error::reserve_memory;
use crate::forward::{Graph, Tile};
use crate::kv::Cache;
use crate::logits::Logits;
use crate::plan::{KvFormat, Plan};
use crate::request::Request;
use crate::sampler::{Malformed, Sampler};
use crate::scratch::{Lengths, Scratch};

/// The changing parts of a model: cache, buffers, sampler and the sequence so far.
pub struct Generator {
    cache: Cache,
    scratch: Scratch,
    logits: Logits,
    sampler: Sampler,
    context: usize,
    tile: usize,
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
        let lengths = Lengths::new(architecture, plan.prefill_tile, plan.context, workers);
        let vocab = architecture.vocab as usize;
        Ok(Generator {
            cache: Cache::new(architecture, kv_format, plan.context)?,
            scratch: Scratch::new(&lengths)?,
            logits: Logits::new(vocab)?,
            sampler: Sampler::new(vocab)
                .map_err(|code| RuntimeError::new(code, Stage::Allocate))?,
            context: plan.context as usize,
            tile: plan.prefill_tile as usize,
            layers: architecture.layers.len(),
            vocab: architecture.vocab,
            stop: header.manifest.special.stop.clone(),
            ids: reserve_memory(plan.context as usize + 1, Stage::Allocate)?,
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

        let reused = match request.cold || request.argmax {
            true => 0,
            // The last position is computed anew in any case: its logits are wanted.
            false => common_prefix(&self.ids[..self.committed], request.ids).min(prompt - 1),
        };
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
    pub fn step(&mut self, graph: &Graph) -> Result<Step, RuntimeError> {
        let Some(mut run) = self.run.take() else {
            return Err(RuntimeError::new(TrResult::IllegalState, Stage::Decode));
        };
        graph.team.serve(run.number);
        let step = match self.work(graph, &mut run) {
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

    fn work(&mut self, graph: &Graph, run: &mut Run) -> Result<Step, RuntimeError> {
        match run.work {
            Work::Tile { tile, layer } => self.tile(graph, run, tile, layer),
            Work::Rank { tile, row } => self.rank(graph, run, tile, row),
            Work::First { row } => {
                self.head(graph, row, Stage::Prefill)?;
                self.choose(run)
            }
            Work::Decode => {
                self.decode(graph)?;
                self.choose(run)
            }
        }
    }

    /// Ends the request, if there is one. Committed positions stay.
    pub fn stop(&mut self) {
        self.run = None;
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

    /// Logits masked since the model was opened.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    fn next_tile(&self, start: usize, prompt: usize) -> Work {
        let count = self.tile.min(prompt - start);
        Work::Tile {
            tile: Tile { start, count },
            layer: 0,
        }
    }

    fn tile(
        &mut self,
        graph: &Graph,
        run: &mut Run,
        tile: Tile,
        layer: usize,
    ) -> Result<Step, RuntimeError> {
        let place = |code| failure(code, Stage::Prefill, layer, tile.start);
        let s = &mut self.scratch;
        if layer == 0 {
            let ids = &self.ids[tile.start..tile.start + tile.count];
            graph.embed(ids, tile.start, s).map_err(place)?;
        }
        graph
            .layer(layer, tile, &mut self.cache, s)
            .map_err(place)?;
        run.work = match layer + 1 {
            next if next < self.layers => Work::Tile { tile, layer: next },
            _ if run.argmax => Work::Rank { tile, row: 0 },
            _ => self.after_tile(run, tile),
        };
        Ok(self.report(run, STEP_MORE))
    }

    fn rank(
        &mut self,
        graph: &Graph,
        run: &mut Run,
        tile: Tile,
        row: usize,
    ) -> Result<Step, RuntimeError> {
        // The prompt's last position gets its logits from `First`.
        if tile.start + row + 1 < run.prompt {
            self.head(graph, row, Stage::Prefill)?;
            self.argmax.push(self.logits.greatest());
        }
        run.work = match row + 1 {
            next if next < tile.count => Work::Rank { tile, row: next },
            _ => self.after_tile(run, tile),
        };
        Ok(self.report(run, STEP_MORE))
    }

    /// A tile before the last is committed; the last waits for its logits.
    fn after_tile(&mut self, run: &Run, tile: Tile) -> Work {
        let end = tile.start + tile.count;
        if end < run.prompt {
            self.committed = end;
            self.next_tile(end, run.prompt)
        } else {
            Work::First {
                row: tile.count - 1,
            }
        }
    }

    /// All layers for the newest id, and its logits.
    fn decode(&mut self, graph: &Graph) -> Result<(), RuntimeError> {
        let position = self.committed;
        let tile = Tile {
            start: position,
            count: 1,
        };
        let s = &mut self.scratch;
        graph
            .embed(&self.ids[position..], position, s)
            .map_err(|code| failure(code, Stage::Decode, 0, position))?;
        for layer in 0..self.layers {
            graph
                .layer(layer, tile, &mut self.cache, s)
                .map_err(|code| failure(code, Stage::Decode, layer, position))?;
        }
        self.head(graph, 0, Stage::Decode)
    }

    fn head(&mut self, graph: &Graph, row: usize, stage: Stage) -> Result<(), RuntimeError> {
        graph
            .head(row, &mut self.scratch, self.logits.fill())
            .map_err(|code| failure(code, stage, self.layers, self.committed))
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
        self.committed = committed;
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

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

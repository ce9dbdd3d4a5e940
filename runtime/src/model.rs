//! A model in memory, from opening to generating.
//!
//! ```text
//! open -> load every piece -> ready -> (begin -> step* -> done | stop)*
//! ```
//!
//! A call out of this order is refused with `IllegalState` and changes nothing.

use alloc::boxed::Box;

use format::{Digest, Header, Kind};
use protocol::abi::REGION_METADATA;
use protocol::{Stage, TrResult};

use crate::RuntimeError;
use crate::ahead::ReadAhead;
use crate::forward::Graph;
use crate::generate::{Generator, Step};
use crate::kernels::Kernels;
use crate::kv::Cache;
use crate::plan::{Options, Plan, Surroundings, admit, measure};
use crate::records;
use crate::request::Request;
use crate::rope::Rotary;
use crate::team::Team;
use crate::weights::{Nowhere, Source, Weights};

pub struct Model {
    header: Header,
    plan: Plan,
    graph: Graph,
    generator: Generator,
    ready: bool,
}

/// How a model computes: which instructions, and how many workers. No choice changes a bit.
pub struct Engine {
    pub kernels: Kernels,
    pub team: Team,
    /// Reads the next block of weights that are not resident while this one is used.
    pub reader: Option<Box<dyn ReadAhead>>,
}

impl Engine {
    /// One worker, which reads everything itself.
    pub fn solo(kernels: Kernels) -> Engine {
        Engine {
            kernels,
            team: Team::solo(),
            reader: None,
        }
    }
}

impl Default for Engine {
    /// The best instructions, one worker.
    fn default() -> Engine {
        Engine::solo(Kernels::best())
    }
}

impl Model {
    /// Takes all memory that the model will ever need, by the plan, within `limit` bytes.
    pub fn open(header: Header, options: Options, limit: u64) -> Result<Model, RuntimeError> {
        Model::open_with(header, options, limit, Engine::default())
    }

    /// As [`Model::open`], on the given instructions and workers.
    pub fn open_with(
        header: Header,
        options: Options,
        limit: u64,
        engine: Engine,
    ) -> Result<Model, RuntimeError> {
        let around = Surroundings {
            windows: 1 + u64::from(engine.reader.is_some()),
            ..Surroundings::native(engine.team.workers())
        };
        Model::open_in(header, options, limit, engine, &around)
    }

    /// As [`Model::open_with`], in surroundings that count too.
    pub fn open_in(
        mut header: Header,
        options: Options,
        limit: u64,
        engine: Engine,
        around: &Surroundings,
    ) -> Result<Model, RuntimeError> {
        if header.manifest.kind == Kind::Adapter {
            return Err(RuntimeError::new(
                TrResult::UnsupportedFeature,
                Stage::Allocate,
            ));
        }
        let (plan, arrangement) = measure(&header, &options, around, limit)?;
        admit(&plan)?;
        // It says again what the directory says.
        header.manifest.tensors.clear();
        header.tensors.shrink_to_fit();
        let graph = Graph {
            kernels: engine.kernels,
            team: engine.team,
            mode: options.mode,
            weights: Weights::open(&header, arrangement, options.residency, engine.reader)
                .map_err(|error| error.in_region(REGION_METADATA, plan.metadata))?,
            rotary: Rotary::new(&header.manifest.architecture.rope)?,
            architecture: header.manifest.architecture.clone(),
        };
        Ok(Model {
            generator: Generator::open(&header, &plan, options.kv_format, around.workers)?,
            header,
            plan,
            graph,
            ready: false,
        })
    }

    /// What was planned, and so can never be exceeded.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan with what every region has really taken. What the surroundings have is theirs to
    /// say; of `transfer` this is the model's own part.
    pub fn memory(&self) -> Plan {
        let [kv, scratch, logits, sampler, ids] = self.generator.taken();
        let [weights, transfer, records] = self.graph.weights.taken();
        let header = records::kept_of(&self.header);
        let mut memory = Plan {
            weights,
            metadata: records + ids + self.graph.rotary.taken() + header,
            kv,
            scratch,
            logits,
            sampler,
            transfer,
            control: 0,
            stacks: 0,
            ..self.plan
        };
        memory.total = memory.sum();
        memory.decode = memory.total - self.plan.total.saturating_sub(self.plan.decode);
        memory
    }

    /// Bytes read from the file since the model was opened, besides loading it.
    pub fn streamed(&self) -> u64 {
        self.graph.weights.streamed()
    }

    /// Blocks of weights that were there when they were wanted, because a reader had read them.
    pub fn read_ahead(&self) -> u64 {
        self.graph.weights.read_ahead()
    }

    /// Without the manifest's list of tensors, which says again what the directory says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// First file byte to load, a multiple of 1 MiB; what lies before it belongs to the tokenizer.
    pub fn first(&self) -> u64 {
        self.graph.weights.first()
    }

    /// Reads the piece at file byte `at`, `len` bytes long (1 MiB, or what is left at the end), to
    /// where the weights lie, and gives the hash of the bytes as they lie there. The caller
    /// compares it; a piece may be loaded again until the model is ready.
    pub fn load(
        &mut self,
        source: &mut dyn Source,
        at: u64,
        len: u32,
    ) -> Result<Digest, RuntimeError> {
        match self.ready {
            false => {
                let Graph { weights, team, .. } = &mut self.graph;
                weights.load(source, at, len, team)
            }
            true => Err(RuntimeError::new(TrResult::IllegalState, Stage::Load).at(at)),
        }
    }

    /// Checks the weights: all loaded (`IllegalState` with the first missing byte), all finite
    /// (`InvalidModel` with tensor and byte). For a model that is wholly in memory.
    pub fn ready(&mut self) -> Result<(), RuntimeError> {
        self.ready_from(&mut Nowhere)
    }

    /// As [`Model::ready`]; what is not resident is read once more.
    pub fn ready_from(&mut self, source: &mut dyn Source) -> Result<(), RuntimeError> {
        if self.ready {
            return Err(RuntimeError::new(TrResult::IllegalState, Stage::Load));
        }
        let Graph { weights, team, .. } = &mut self.graph;
        weights.ready(&self.header, source, team)?;
        self.ready = true;
        Ok(())
    }

    /// Starts a request. A refusal leaves everything as it was.
    pub fn begin(&mut self, request: Request<'_>) -> Result<(), RuntimeError> {
        match self.ready {
            true => self.generator.begin(&request),
            false => Err(RuntimeError::new(TrResult::IllegalState, Stage::Prefill)),
        }
    }

    /// At most one layer of one prompt tile, or one token. Allocates nothing. A failure ends the
    /// request and leaves the last committed position as the truth.
    /// For a model that is wholly in memory.
    pub fn step(&mut self) -> Result<Step, RuntimeError> {
        self.step_from(&mut Nowhere)
    }

    /// As [`Model::step`]; `source` is the file, for weights that are not resident. If it cannot be
    /// read the request ends with `HostRead`, and the next one may find it readable again.
    pub fn step_from(&mut self, source: &mut dyn Source) -> Result<Step, RuntimeError> {
        self.generator.step(&mut self.graph, source)
    }

    /// Ends the request, if there is one. Committed positions stay.
    pub fn stop(&mut self) {
        self.generator.stop();
    }

    /// Leading tokens of `ids` whose keys and values are kept. The four calls about kept pages are
    /// refused while a request runs.
    pub fn known(&mut self, ids: &[u32]) -> Result<usize, RuntimeError> {
        Ok(self.idle_cache()?.known(ids))
    }

    /// Most bytes that the copy of a page takes.
    pub fn page_bytes(&mut self) -> Result<usize, RuntimeError> {
        Ok(self.idle_cache()?.copy_bytes())
    }

    /// Copies the page of the 32 tokens of `ids` from `32 * block` on, or of as many as there are;
    /// gives its length. `IllegalState` if they are not all known.
    pub fn copy_page(
        &mut self,
        ids: &[u32],
        block: usize,
        out: &mut [u8],
    ) -> Result<usize, RuntimeError> {
        let cache = self.idle_cache()?;
        cache.copy_out(ids, block, out).map_err(in_cache)
    }

    /// Takes a page back that [`Model::copy_page`] gave to a model with equal identity. What
    /// `bytes` says is believed. `IllegalState` if an earlier token is not known.
    pub fn restore_page(
        &mut self,
        ids: &[u32],
        block: usize,
        bytes: &[u8],
    ) -> Result<(), RuntimeError> {
        let (vocab, context) = (self.graph.architecture.vocab, self.plan.context as usize);
        if ids.len() > context || ids.iter().any(|id| *id >= vocab) {
            return Err(in_cache(TrResult::InvalidArgument));
        }
        let cache = self.idle_cache()?;
        cache.copy_in(ids, block, bytes).map_err(in_cache)
    }

    fn idle_cache(&mut self) -> Result<&mut Cache, RuntimeError> {
        match self.ready {
            true => self.generator.idle_cache().map_err(in_cache),
            false => Err(in_cache(TrResult::IllegalState)),
        }
    }

    /// Logits of the newest position, `[vocab]`; empty until the request has some.
    pub fn logits(&self) -> &[f32] {
        self.generator.logits()
    }

    /// SHA-256 of the little-endian f32 logits of every step since `begin`, if the request asked.
    pub fn digest(&self) -> Digest {
        self.generator.digest()
    }

    /// The most likely next token of each prompt position, if the request asked.
    pub fn argmax(&self) -> &[u32] {
        self.generator.argmax()
    }

    /// Logits that were masked since the model was opened.
    pub fn malformed_logits(&self) -> u64 {
        self.generator.malformed()
    }
}

fn in_cache(code: TrResult) -> RuntimeError {
    RuntimeError::new(code, Stage::Prefill)
}

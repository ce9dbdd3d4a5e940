//! The engine as the session sees it: one model at a time, one request at a time.
//!
//! Two implementors: `engine/native.rs` links the engine, `engine/module.rs` speaks the C ABI to a
//! compiled lane. Both give the same bits.

#[cfg(target_arch = "wasm32")]
pub mod module;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;

use format::Digest;
use protocol::abi::{self, Counters, ErrorPlace, Known, Opened, Options, Plan, Step};
use protocol::{Over, Sampling, Stage, TrResult};

/// A failure of the engine with its place, as it crosses the C boundary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineError(pub ErrorPlace);

impl EngineError {
    /// A failure without tensor, layer or position.
    pub fn new(code: TrResult, stage: Stage) -> EngineError {
        EngineError(ErrorPlace {
            code: code as i32,
            stage: stage as u32,
            item: u32::MAX,
            ..ErrorPlace::default()
        })
    }

    /// A region of a plan for which too little is left.
    pub fn short(over: Over) -> EngineError {
        let mut error = EngineError::new(TrResult::OutOfMemory, Stage::Plan);
        error.0.item = over.region;
        error.0.detail = abi::DETAIL_REGION;
        error.0.expected = over.left;
        error.0.found = over.needed;
        error
    }

    /// The code, or `InternalInvariant` if the number is no code of this build.
    pub fn code(&self) -> TrResult {
        TrResult::from_code(self.0.code).unwrap_or(TrResult::InternalInvariant)
    }

    pub fn stage(&self) -> Stage {
        Stage::from_code(self.0.stage).unwrap_or(Stage::Start)
    }
}

/// What to generate from.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub ids: &'a [u32],
    /// Ids below this may be sampled: the tokenizer's size.
    pub vocab: u32,
    pub sampling: Sampling,
    /// Sum of `protocol::abi::FLAG_...`.
    pub flags: u32,
    /// What the stop word calls it.
    pub number: u32,
}

impl Request<'_> {
    /// The request as a lane reads it; `ids` is where its ids lie in the lane's memory.
    pub fn to_abi(&self, ids: u32) -> abi::Request {
        let sampling = &self.sampling;
        abi::Request {
            seed: sampling.seed,
            stream: 0,
            ids,
            ids_len: self.ids.len() as u32,
            max_new: sampling.max_new,
            flags: self.flags,
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            top_k: sampling.top_k,
            repetition_penalty: sampling.repetition_penalty,
            presence_penalty: sampling.presence_penalty,
            frequency_penalty: sampling.frequency_penalty,
            vocab: self.vocab,
            number: self.number,
            reserved: 0,
        }
    }
}

/// Calls in the order of a model's life. A call out of order is refused with `IllegalState`.
pub trait Engine {
    /// Where the model's bytes come from; the engine owns it while the model is open.
    type File;

    /// Runs the known-answer tests and gives how many passed.
    fn self_test(&mut self) -> Result<u32, EngineError>;

    /// Most bytes that weights can be in one piece.
    const BLOCK_BYTES_MAX: u64;

    /// The memory a model would take, also if that is more than there is. Allocates nothing that
    /// stays.
    fn measure(
        &mut self,
        header: &[u8],
        file_len: u64,
        options: &Options,
    ) -> Result<Plan, EngineError>;

    /// The same of a model that fits; else `OutOfMemory` with the first region that does not.
    fn plan(
        &mut self,
        header: &[u8],
        file_len: u64,
        options: &Options,
    ) -> Result<Plan, EngineError> {
        let plan = self.measure(header, file_len, options)?;
        match plan.over(Self::BLOCK_BYTES_MAX) {
            None => Ok(plan),
            Some(over) => Err(EngineError::short(over)),
        }
    }

    /// The open model's plan with what every region has really taken.
    fn memory(&mut self) -> Result<Plan, EngineError>;

    /// Allocates everything. A refused file is dropped, which closes it.
    fn open(
        &mut self,
        header: &[u8],
        file_len: u64,
        options: &Options,
        file: Self::File,
    ) -> Result<Opened, EngineError>;

    /// Reads file bytes `at..at + len` to where the engine keeps them and gives the hash of the
    /// piece as it lies there.
    fn load_piece(&mut self, at: u64, len: u32) -> Result<Digest, EngineError>;

    /// Checks the loaded weights; from here on requests are legal.
    fn ready(&mut self) -> Result<(), EngineError>;

    fn begin(&mut self, request: &Request<'_>) -> Result<(), EngineError>;

    /// One bounded unit of work.
    fn step(&mut self) -> Result<Step, EngineError>;

    /// Ends the request; committed positions stay.
    fn stop(&mut self) -> Result<(), EngineError>;

    /// SHA-256 of all logits since `begin`, if the request asked for it.
    fn digest(&mut self) -> Result<Digest, EngineError>;

    /// How many of these ids need not be computed again, and the most bytes that a page takes.
    /// Refused while a request runs, as the next two are.
    fn known(&mut self, ids: &[u32]) -> Result<Known, EngineError>;

    /// Keys and values of the 32 ids from `32 * block` on, or of as many as there are.
    fn page_out(&mut self, ids: &[u32], block: u32) -> Result<Vec<u8>, EngineError>;

    /// Takes back what `page_out` gave an engine whose cache has the same identity.
    fn page_in(&mut self, ids: &[u32], block: u32, bytes: &[u8]) -> Result<(), EngineError>;

    /// Which kernels really ran.
    fn counters(&mut self) -> Counters;

    /// Blocks of the open model's weights that a reader had read when they were wanted.
    fn read_ahead(&mut self) -> u64;

    /// Size of the engine's own memory; 0 where it has none of its own.
    fn memory_bytes(&self) -> u64;

    /// It still answers, and the open model's file can still be read.
    fn is_well(&mut self) -> bool;

    /// Frees the model and gives its file back. Harmless when nothing is open.
    fn close(&mut self) -> Option<Self::File>;
}

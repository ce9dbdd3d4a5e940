//! The engine linked into the same program: for the command line and for tests.

use format::{Digest, Header};
use protocol::abi::{
    self, Counters, FLAG_COLD, FLAG_DIGEST, FLAG_IGNORE_EOS, FLAG_MASK_MALFORMED, Known, Opened,
    Plan, Step,
};
use protocol::{Stage, TrResult};
use runtime::sampler::{Malformed, Settings};
use runtime::{Model, Options, RuntimeError, Source, Surroundings, kernels};
use store::Disk;

use super::{Engine, EngineError, Request};

/// What a browser's lane could hold; natively only a guard against absurd plans.
pub const LIMIT_BYTES: u64 = 4 * 1024 * 1024 * 1024;

pub struct NativeEngine<D> {
    open: Option<(Model, D)>,
    limit: u64,
}

impl<D> NativeEngine<D> {
    /// `limit` is the most memory, in bytes, that a model may take.
    pub fn new(limit: u64) -> NativeEngine<D> {
        NativeEngine { open: None, limit }
    }

    fn model(&mut self, stage: Stage) -> Result<&mut Model, EngineError> {
        match &mut self.open {
            Some((model, _)) => Ok(model),
            None => Err(EngineError::new(TrResult::IllegalState, stage)),
        }
    }
}

impl<D> Default for NativeEngine<D> {
    fn default() -> NativeEngine<D> {
        NativeEngine::new(LIMIT_BYTES)
    }
}

impl From<RuntimeError> for EngineError {
    fn from(error: RuntimeError) -> EngineError {
        EngineError(error.0)
    }
}

/// A stored file as the engine reads it.
struct DiskSource<'d, D>(&'d D);

impl<D: Disk> Source for DiskSource<'_, D> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        self.0.read_at(at, into).map_err(|_| {
            let mut error = RuntimeError::new(TrResult::HostRead, Stage::Load);
            error.0.at = at;
            error
        })
    }
}

impl<D: Disk> Engine for NativeEngine<D> {
    type File = D;

    fn self_test(&mut self) -> Result<u32, EngineError> {
        let result = runtime::self_test();
        match result.failed {
            0 => Ok(result.tests),
            _ => Err(EngineError::new(TrResult::SelfTestFailed, Stage::Start)),
        }
    }

    const BLOCK_BYTES_MAX: u64 = isize::MAX as u64;

    fn measure(
        &mut self,
        header: &[u8],
        file_len: u64,
        options: &abi::Options,
    ) -> Result<Plan, EngineError> {
        let header = parse(header, file_len, Stage::Plan)?;
        let around = Surroundings::native(1);
        let options = Options::try_from(options)?;
        let (plan, _) = runtime::measure(&header, &options, &around, self.limit)?;
        Ok(plan)
    }

    fn memory(&mut self) -> Result<Plan, EngineError> {
        Ok(self.model(Stage::Load)?.memory())
    }

    fn open(
        &mut self,
        header: &[u8],
        file_len: u64,
        options: &abi::Options,
        file: D,
    ) -> Result<Opened, EngineError> {
        if self.open.is_some() {
            return Err(EngineError::new(TrResult::IllegalState, Stage::Allocate));
        }
        let header = parse(header, file_len, Stage::Allocate)?;
        let model = Model::open(header, Options::try_from(options)?, self.limit)?;
        let first = model.first();
        self.open = Some((model, file));
        Ok(Opened {
            handle: 1,
            first,
            len: file_len - first,
        })
    }

    fn load_piece(&mut self, at: u64, len: u32) -> Result<Digest, EngineError> {
        match &mut self.open {
            Some((model, file)) => Ok(model.load(&mut DiskSource(file), at, len)?),
            None => Err(EngineError::new(TrResult::IllegalState, Stage::Load)),
        }
    }

    fn ready(&mut self) -> Result<(), EngineError> {
        match &mut self.open {
            Some((model, file)) => Ok(model.ready_from(&mut DiskSource(file))?),
            None => Err(EngineError::new(TrResult::IllegalState, Stage::Load)),
        }
    }

    fn begin(&mut self, request: &Request<'_>) -> Result<(), EngineError> {
        let asked = |flag: u32| request.flags & flag != 0;
        let sampling = &request.sampling;
        let settings = Settings {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            repetition_penalty: sampling.repetition_penalty,
            presence_penalty: sampling.presence_penalty,
            frequency_penalty: sampling.frequency_penalty,
            seed: sampling.seed,
            stream: 0,
            vocab: request.vocab,
            malformed: match asked(FLAG_MASK_MALFORMED) {
                true => Malformed::Mask,
                false => Malformed::Refuse,
            },
        };
        let request = runtime::Request {
            ids: request.ids,
            max_new: sampling.max_new,
            sampling: settings,
            ignore_eos: asked(FLAG_IGNORE_EOS),
            digest: asked(FLAG_DIGEST),
            cold: asked(FLAG_COLD),
            argmax: false,
            number: request.number,
        };
        Ok(self.model(Stage::Prefill)?.begin(request)?)
    }

    fn step(&mut self) -> Result<Step, EngineError> {
        match &mut self.open {
            Some((model, file)) => Ok(model.step_from(&mut DiskSource(file))?),
            None => Err(EngineError::new(TrResult::IllegalState, Stage::Decode)),
        }
    }

    fn stop(&mut self) -> Result<(), EngineError> {
        self.model(Stage::Decode)?.stop();
        Ok(())
    }

    fn digest(&mut self) -> Result<Digest, EngineError> {
        Ok(self.model(Stage::Decode)?.digest())
    }

    fn known(&mut self, ids: &[u32]) -> Result<Known, EngineError> {
        let model = self.model(Stage::Prefill)?;
        Ok(Known {
            tokens: model.known(ids)? as u32,
            page_bytes: model.page_bytes()? as u32,
        })
    }

    fn page_out(&mut self, ids: &[u32], block: u32) -> Result<Vec<u8>, EngineError> {
        let model = self.model(Stage::Prefill)?;
        let mut page = vec![0; model.page_bytes()?];
        let len = model.copy_page(ids, block as usize, &mut page)?;
        page.truncate(len);
        Ok(page)
    }

    fn page_in(&mut self, ids: &[u32], block: u32, bytes: &[u8]) -> Result<(), EngineError> {
        let model = self.model(Stage::Prefill)?;
        Ok(model.restore_page(ids, block as usize, bytes)?)
    }

    fn counters(&mut self) -> Counters {
        let calls = kernels::calls();
        let malformed = self
            .open
            .as_ref()
            .map(|(model, _)| model.malformed_logits());
        Counters {
            scalar_calls: calls.scalar,
            simd_calls: calls.simd,
            relaxed_calls: calls.relaxed,
            malformed_logits: malformed.unwrap_or(0),
        }
    }

    fn read_ahead(&mut self) -> u64 {
        let open = self.open.as_ref();
        open.map_or(0, |(model, _)| model.read_ahead())
    }

    fn memory_bytes(&self) -> u64 {
        0
    }

    fn is_well(&mut self) -> bool {
        let open = self.open.as_ref();
        open.is_none_or(|(_, file)| file.len().is_ok())
    }

    fn close(&mut self) -> Option<D> {
        self.open.take().map(|(_, file)| file)
    }
}

/// The session has parsed the same bytes before, so this refuses nothing in practice.
fn parse(bytes: &[u8], file_len: u64, stage: Stage) -> Result<Header, EngineError> {
    Header::parse(bytes, file_len).map_err(|_| EngineError::new(TrResult::InvalidModel, stage))
}

//! What a lane does behind its C functions, in safe code that runs natively too.
//!
//! `abi` only turns exports into these calls. Every argument is checked before anything is done,
//! the place to write the answer included, so a refused call has no effect.

#[cfg(target_feature = "atomics")]
mod hosted;
mod pages;
mod requests;

use alloc::vec::Vec;

use format::Header;
use protocol::abi::{self, Counters, DETAIL_CODE, ErrorPlace, Opened, Plan, SelfTest, Span, Step};
use protocol::{Stage, TrResult};

#[cfg(target_feature = "atomics")]
use crate::ahead::beside::Board;
use crate::error::reserve_memory;
use crate::handles::{Handles, Open};
use crate::kernels::calls;
use crate::plan::{Options, Surroundings, measure};
use crate::self_test::self_test;
use crate::staging::{Address, Staging};
use crate::weights::Source;
use crate::{Engine, Model, RuntimeError, Team};
use requests::native_request;

/// The transfer window: the host's structs, a header of some hundred tensors in text and in parts
/// while it is planned, and what the allocator itself takes.
pub const TRANSFER_BYTES: u64 = 2 * 1024 * 1024;
/// A prompt's ids as the host passes them and as they are read from there.
const TRANSFER_POSITION: u64 = 8;

/// Everything that lives as long as a lane.
pub struct Lane {
    pub staging: Staging,
    handles: Handles,
    /// Bytes that the lane may take in all.
    capacity: u64,
    newest_failure: ErrorPlace,
    /// Masked logits of models that are closed.
    malformed: u64,
    /// Every model's; the caller alone until the host starts others.
    team: Team,
    #[cfg(target_feature = "atomics")]
    hosted: Option<hosted::Hosted>,
    #[cfg(target_feature = "atomics")]
    board: Board,
}

/// A header in staging memory, and the length of the file it heads.
#[derive(Clone, Copy)]
pub struct HeaderAt {
    pub address: Address,
    pub len: u32,
    pub file_len: u64,
}

/// The host's import: source, file byte, where to; 0 if all bytes were delivered.
pub type HostRead<'a> = &'a mut dyn FnMut(u32, u64, &mut [u8]) -> i32;

struct HostSource<'a> {
    number: u32,
    read: HostRead<'a>,
}

impl Source for HostSource<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        match (self.read)(self.number, at, into) {
            0 => Ok(()),
            code => Err(RuntimeError::new(TrResult::HostRead, Stage::Load)
                .at(at)
                .detail(DETAIL_CODE, 0, u64::from(code.unsigned_abs()))),
        }
    }
}

impl Lane {
    /// A lane that may take `memory_bytes`.
    pub fn new(memory_bytes: u64) -> Lane {
        Lane {
            staging: Staging::new(),
            handles: Handles::new(),
            capacity: memory_bytes,
            newest_failure: ErrorPlace {
                code: 0,
                stage: 0,
                item: u32::MAX,
                detail: 0,
                expected: 0,
                found: 0,
                at: 0,
            },
            malformed: 0,
            team: Team::solo(),
            #[cfg(target_feature = "atomics")]
            hosted: None,
            #[cfg(target_feature = "atomics")]
            board: Board::default(),
        }
    }

    /// The code of a finished call. A failure's place is kept for [`Lane::error`].
    pub fn code(&mut self, result: Result<(), RuntimeError>) -> i32 {
        match result {
            Ok(()) => TrResult::Ok as i32,
            Err(RuntimeError(place)) => {
                self.newest_failure = place;
                place.code
            }
        }
    }

    pub fn error(&mut self, out: Address) -> Result<(), RuntimeError> {
        self.answer(out, &self.newest_failure.to_bytes(), Stage::Start)
    }

    /// The answer is written also if a test failed, which the code then says.
    pub fn self_test(&mut self, out: Address) -> Result<(), RuntimeError> {
        self.check_room(out, SelfTest::BYTES, Stage::Start)?;
        let result = self_test();
        self.answer(out, &result.to_bytes(), Stage::Start)?;
        match result.failed {
            0 => Ok(()),
            _ => Err(RuntimeError::new(TrResult::SelfTestFailed, Stage::Start)
                .item(result.first_failure as usize)),
        }
    }

    pub fn plan(
        &mut self,
        header: HeaderAt,
        options: Address,
        out: Address,
    ) -> Result<(), RuntimeError> {
        self.check_room(out, Plan::BYTES, Stage::Plan)?;
        let options = self.options(options)?;
        let header = self.header(header)?;
        // A host that asks beside an open model means to close that one first.
        let (plan, _) = measure(&header, &options, &self.surroundings(), self.capacity)?;
        self.answer(out, &plan.to_bytes(), Stage::Plan)
    }

    /// The open model's plan with what its regions have really taken.
    pub fn memory(&mut self, handle: u64, out: Address) -> Result<(), RuntimeError> {
        self.check_room(out, Plan::BYTES, Stage::Start)?;
        let around = self.surroundings();
        let mut memory = self.handles.get(handle)?.model.memory();
        memory.control = around.control;
        memory.stacks = around.stacks;
        memory.transfer += around.transfer + around.transfer_position * u64::from(memory.context);
        memory.total = memory.sum();
        memory.decode += memory.control + memory.stacks + memory.transfer;
        self.answer(out, &memory.to_bytes(), Stage::Start)
    }

    /// What the host calls this lane, of which the lower 16 bits are kept.
    pub fn set_owner(&mut self, owner: u32) -> Result<(), RuntimeError> {
        self.handles.set_owner(owner as u16)
    }

    /// From the next plan on the lane takes no more than this.
    pub fn set_limit(&mut self, bytes: u64) -> Result<(), RuntimeError> {
        self.capacity = self.capacity.min(bytes);
        Ok(())
    }

    /// What a model finds here.
    fn surroundings(&self) -> Surroundings {
        Surroundings {
            workers: self.team.workers(),
            control: self.team.control_bytes(),
            stacks: self.stack_bytes(),
            transfer: TRANSFER_BYTES,
            transfer_position: TRANSFER_POSITION,
            windows: 1 + u64::from(self.has_team()),
        }
    }

    /// Where others share the memory, one of them may read ahead.
    fn has_team(&self) -> bool {
        #[cfg(target_feature = "atomics")]
        return self.hosted.is_some();
        #[cfg(not(target_feature = "atomics"))]
        false
    }

    /// Stacks and thread-local blocks of the workers that the host started.
    fn stack_bytes(&self) -> u64 {
        #[cfg(target_feature = "atomics")]
        if let Some(hosted) = &self.hosted {
            return hosted.stack_bytes();
        }
        0
    }

    pub fn open(
        &mut self,
        header: HeaderAt,
        options: Address,
        source: u32,
        out: Address,
    ) -> Result<(), RuntimeError> {
        self.check_room(out, Opened::BYTES, Stage::Allocate)?;
        #[cfg(target_feature = "atomics")]
        self.end_rehearsals();
        #[cfg(target_arch = "wasm32")]
        crate::heap::unseal();
        let options = self.options(options)?;
        let file_len = header.file_len;
        let engine = Engine {
            team: self.team.clone(),
            ..Engine::default()
        };
        #[cfg(target_feature = "atomics")]
        let (engine, reader) = self.with_reader(&options, engine);
        let around = self.surroundings();
        let header = self.header(header)?;
        let model = Model::open_in(header, options, self.limit(), engine, &around)?;
        let first = model.first();
        let opened = Opened {
            handle: self.handles.insert(Open {
                model,
                source,
                #[cfg(target_feature = "atomics")]
                reader,
            })?,
            first,
            len: file_len - first,
        };
        self.answer(out, &opened.to_bytes(), Stage::Allocate)
    }

    pub fn load(
        &mut self,
        handle: u64,
        at: u64,
        len: u32,
        out: Address,
        read: HostRead<'_>,
    ) -> Result<(), RuntimeError> {
        self.check_room(out, 32, Stage::Load)?;
        let Open { model, source, .. } = self.handles.get(handle)?;
        let number = *source;
        let digest = model.load(&mut HostSource { number, read }, at, len)?;
        self.answer(out, &digest.0, Stage::Load)
    }

    pub fn ready(&mut self, handle: u64, read: HostRead<'_>) -> Result<(), RuntimeError> {
        let Open { model, source, .. } = self.handles.get(handle)?;
        let number = *source;
        model.ready_from(&mut HostSource { number, read })?;
        // From here on the memory is as large as it will be.
        #[cfg(target_arch = "wasm32")]
        crate::heap::seal(TRANSFER_BYTES + TRANSFER_POSITION * u64::from(model.plan().context))?;
        Ok(())
    }

    pub fn begin(&mut self, handle: u64, request: Address) -> Result<(), RuntimeError> {
        let bounds = |code| RuntimeError::new(code, Stage::Prefill);
        let request = self.staging.read_array(request).map_err(bounds)?;
        let request = abi::Request::from_bytes(request);
        let ids = self.ids((request.ids, request.ids_len))?;
        self.handles
            .get(handle)?
            .model
            .begin(native_request(&request, &ids)?)
    }

    pub fn step(
        &mut self,
        handle: u64,
        out: Address,
        read: HostRead<'_>,
    ) -> Result<(), RuntimeError> {
        self.check_room(out, Step::BYTES, Stage::Decode)?;
        let Open { model, source, .. } = self.handles.get(handle)?;
        let number = *source;
        let step = model.step_from(&mut HostSource { number, read })?;
        self.answer(out, &step.to_bytes(), Stage::Decode)
    }

    pub fn stop(&mut self, handle: u64) -> Result<(), RuntimeError> {
        self.handles.get(handle)?.model.stop();
        Ok(())
    }

    pub fn logits(&mut self, handle: u64, out: Address) -> Result<(), RuntimeError> {
        self.check_room(out, Span::BYTES, Stage::Decode)?;
        let logits = self.handles.get(handle)?.model.logits();
        let span = Span {
            ptr: logits.as_ptr().expose_provenance() as u32,
            len: logits.len() as u32,
        };
        self.answer(out, &span.to_bytes(), Stage::Decode)
    }

    pub fn digest(&mut self, handle: u64, out: Address) -> Result<(), RuntimeError> {
        self.check_room(out, 32, Stage::Decode)?;
        let digest = self.handles.get(handle)?.model.digest();
        self.answer(out, &digest.0, Stage::Decode)
    }

    pub fn counters(&mut self, out: Address) -> Result<(), RuntimeError> {
        let calls = calls();
        let open = self.handles.iter();
        let malformed = open.map(|open| open.model.malformed_logits()).sum::<u64>();
        let counters = Counters {
            scalar_calls: calls.scalar,
            simd_calls: calls.simd,
            relaxed_calls: calls.relaxed,
            malformed_logits: self.malformed + malformed,
        };
        self.answer(out, &counters.to_bytes(), Stage::Start)
    }

    pub fn close(&mut self, handle: u64) -> Result<(), RuntimeError> {
        let closed = self.handles.remove(handle)?;
        #[cfg(target_arch = "wasm32")]
        crate::heap::unseal();
        self.malformed += closed.model.malformed_logits();
        Ok(())
    }

    /// Bytes that one more model may take.
    fn limit(&self) -> u64 {
        let own = |plan: &Plan| plan.total - plan.control - plan.stacks - plan.transfer;
        let open = self.handles.iter();
        let taken = open.map(|open| own(open.model.plan())).sum::<u64>();
        self.capacity.saturating_sub(taken)
    }

    /// Token ids in staging memory.
    fn ids(&self, (address, len): (Address, u32)) -> Result<Vec<u32>, RuntimeError> {
        let bounds = |code| RuntimeError::new(code, Stage::Prefill);
        let len = usize::try_from(u64::from(len) * 4).map_err(|_| bounds(TrResult::Bounds))?;
        let bytes = self.staging.read(address, len).map_err(bounds)?;
        let words = bytes.as_chunks::<4>().0;
        let mut ids: Vec<u32> = reserve_memory(words.len(), Stage::Prefill)?;
        ids.extend(words.iter().map(|id| u32::from_le_bytes(*id)));
        Ok(ids)
    }

    fn options(&self, address: Address) -> Result<Options, RuntimeError> {
        let bytes = self.staging.read_array(address);
        let bytes = bytes.map_err(|code| RuntimeError::new(code, Stage::Plan))?;
        Options::try_from(&abi::Options::from_bytes(bytes))
    }

    fn header(&self, at: HeaderAt) -> Result<Header, RuntimeError> {
        let refuse = |code| RuntimeError::new(code, Stage::Parse);
        // Beside a model that is ready a header must be parsed in what is free.
        #[cfg(target_arch = "wasm32")]
        if crate::heap::is_sealed() {
            core::hint::black_box(reserve_memory::<u8>(4 * at.len as usize, Stage::Parse)?);
        }
        let bytes = self.staging.read(at.address, at.len as usize);
        Header::parse(bytes.map_err(refuse)?, at.file_len)
            .map_err(|_| refuse(TrResult::InvalidModel))
    }

    fn check_room(&self, out: Address, len: usize, stage: Stage) -> Result<(), RuntimeError> {
        match self.staging.read(out, len) {
            Ok(_) => Ok(()),
            Err(code) => Err(RuntimeError::new(code, stage)),
        }
    }

    fn answer(&mut self, out: Address, bytes: &[u8], stage: Stage) -> Result<(), RuntimeError> {
        self.staging
            .write(out, bytes)
            .map_err(|code| RuntimeError::new(code, stage))
    }
}

//! The engine behind the C ABI of a compiled lane.
//!
//! Structs cross as bytes through one staging block in the lane's memory; `protocol::abi` says
//! what they mean. A view of that memory is made for one copy and dropped, because memory that
//! grows leaves every earlier view empty.
//!
//! A trap leaves the lane's memory in an unknown state, so after one every call is refused.

mod exports;
mod imports;
mod pages;
mod pool;
mod reader;
mod team;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use format::Digest;
use js_sys::{Reflect, Uint8Array, WebAssembly};
use protocol::abi::{Counters, ErrorPlace, Known, Opened, Options, Plan, SelfTest, Step, Team};
use protocol::{Stage, TrResult, abi};
use wasm_bindgen::prelude::*;

use super::{Engine, EngineError, Request};
use exports::Exports;
use imports::{Host, HostRead};

pub use imports::{Imports, ReadIntoView};
pub use pool::{Pool, Spec};
use reader::Reader;

/// Room for the largest struct that goes in and the largest that comes out.
const STAGING_BYTES: u32 = 512;
const OUT_AT: u32 = 256;
const _: () = assert!(abi::Request::BYTES <= OUT_AT as usize);
const _: () = assert!(Plan::BYTES <= (STAGING_BYTES - OUT_AT) as usize);

/// Engines that this worker has made.
static ENGINES: AtomicU32 = AtomicU32::new(1);

pub struct ModuleEngine<F> {
    exports: Exports,
    host: Rc<Host<F>>,
    /// Kept alive for as long as the lane may call it.
    _read: HostRead,
    staging: u32,
    handle: Option<u64>,
    sources: u32,
    trapped: Cell<bool>,
    memory: WebAssembly::Memory,
    /// Of a lane with threads.
    team: Option<Team>,
    pool: Option<Pool>,
    /// Of the open model, if its weights are not all resident.
    reader: Option<Reader>,
}

impl<F: ReadIntoView + 'static> ModuleEngine<F> {
    /// Takes an instance whose imports these are, if it has this build's ABI. `shared` is the
    /// memory that it imported, if it did.
    /// The error is the ABI number found, or `None` if the lane trapped or lacks an export.
    pub fn new(
        instance: &WebAssembly::Instance,
        imports: Imports<F>,
        shared: Option<WebAssembly::Memory>,
    ) -> Result<ModuleEngine<F>, Option<u32>> {
        let exports: Exports = instance.exports().unchecked_into();
        let found = exports.rt_abi().map_err(|_| None)?;
        if found != abi::ABI_VERSION {
            return Err(Some(found));
        }
        let memory = shared.unwrap_or_else(|| exports.memory());
        if !memory.is_instance_of::<WebAssembly::Memory>() {
            return Err(None);
        }
        imports.host.memory.replace(Some(memory.clone()));
        let staging = exports.rt_alloc(STAGING_BYTES).map_err(|_| None)?;
        if staging == 0 {
            return Err(None);
        }
        // A handle of an engine that was replaced is no handle of this one.
        let owner = ENGINES.fetch_add(1, Ordering::Relaxed);
        exports.rt_owner(owner).map_err(|_| None)?;
        Ok(ModuleEngine {
            exports,
            host: imports.host,
            _read: imports.read,
            staging,
            handle: None,
            sources: 0,
            trapped: Cell::new(false),
            memory,
            team: None,
            pool: None,
            reader: None,
        })
    }

    /// The self-tests' full answer.
    pub fn self_tests(&mut self) -> Result<SelfTest, EngineError> {
        let out = self.out();
        let code = self.exports.rt_self_test(out);
        // A failed test gives a code, but the struct says which one it was.
        match self.check(code, Stage::Start) {
            Err(error) if error.code() != TrResult::SelfTestFailed => Err(error),
            _ => Ok(SelfTest::from_bytes(&self.read(out))),
        }
    }

    /// The lane takes no more than `bytes` of memory from now on, for all that it plans.
    pub fn limit(&mut self, bytes: u64) -> Result<(), EngineError> {
        let code = self.exports.rt_limit(bytes);
        self.check(code, Stage::Start)
    }

    fn out(&self) -> u32 {
        self.staging + OUT_AT
    }

    fn handle(&self, stage: Stage) -> Result<u64, EngineError> {
        self.handle
            .ok_or_else(|| EngineError::new(TrResult::IllegalState, stage))
    }

    /// A view that must not outlive the next call into the lane.
    fn view(&self, ptr: u32, len: u32) -> Uint8Array {
        Uint8Array::new_with_byte_offset_and_length(&self.memory.buffer(), ptr, len)
    }

    fn write(&self, ptr: u32, bytes: &[u8]) {
        self.view(ptr, bytes.len() as u32).copy_from(bytes);
    }

    fn read<const N: usize>(&self, ptr: u32) -> [u8; N] {
        let mut bytes = [0; N];
        self.view(ptr, N as u32).copy_to(&mut bytes);
        bytes
    }

    fn check(&self, code: Result<i32, JsValue>, stage: Stage) -> Result<(), EngineError> {
        let code = self.trap(code, stage)?;
        if code == TrResult::Ok as i32 {
            return Ok(());
        }
        let out = self.staging;
        let told = self.exports.rt_error(out);
        self.trap(told, stage)?;
        let place = ErrorPlace::from_bytes(&self.read(out));
        Err(if place.code == code {
            EngineError(place)
        } else {
            let code = TrResult::from_code(code).unwrap_or(TrResult::InternalInvariant);
            EngineError::new(code, stage)
        })
    }

    fn trap<T>(&self, called: Result<T, JsValue>, stage: Stage) -> Result<T, EngineError> {
        if self.trapped.get() || self.pool.as_ref().is_some_and(Pool::is_lost) {
            return Err(EngineError::new(TrResult::WorkerFailure, stage));
        }
        called.map_err(|_| {
            self.trapped.set(true);
            let code = match self.is_team_broken() {
                true => TrResult::WorkerFailure,
                false => TrResult::TrapRecoveredByHost,
            };
            let mut error = EngineError::new(code, stage);
            // An allocation that was refused and that nobody could do without.
            if let Ok(bytes @ 1..) = self.exports.rt_refused() {
                error.0.detail = abi::DETAIL_REFUSED;
                error.0.found = u64::from(bytes);
            }
            error
        })
    }

    /// Runs `call` with the address of a copy of `bytes` in the lane's memory.
    fn staged<T>(
        &self,
        bytes: &[u8],
        stage: Stage,
        call: impl FnOnce(u32) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let len = u32::try_from(bytes.len())
            .map_err(|_| EngineError::new(TrResult::IntegerOverflow, stage))?;
        let ptr = self.trap(self.exports.rt_alloc(len), stage)?;
        if ptr == 0 {
            return Err(EngineError::new(TrResult::OutOfMemory, stage));
        }
        self.write(ptr, bytes);
        let called = call(ptr);
        self.trap(self.exports.rt_free(ptr, len), stage)?;
        called
    }
}

impl<F: ReadIntoView + 'static> Engine for ModuleEngine<F> {
    type File = F;

    fn self_test(&mut self) -> Result<u32, EngineError> {
        let result = self.self_tests()?;
        if result.failed > 0 {
            return Err(EngineError::new(TrResult::SelfTestFailed, Stage::Start));
        }
        Ok(result.tests)
    }

    /// One block of 32-bit addresses; its length is signed.
    const BLOCK_BYTES_MAX: u64 = i32::MAX as u64;

    fn memory(&mut self) -> Result<Plan, EngineError> {
        let handle = self.handle(Stage::Load)?;
        let out = self.out();
        let code = self.exports.rt_memory(handle, out);
        self.check(code, Stage::Load)?;
        Ok(Plan::from_bytes(&self.read(out)))
    }

    fn measure(
        &mut self,
        header: &[u8],
        file_len: u64,
        options: &Options,
    ) -> Result<Plan, EngineError> {
        let out = self.out();
        self.staged(header, Stage::Plan, |ptr| {
            self.write(self.staging, &options.to_bytes());
            let len = header.len() as u32;
            let code = self.exports.rt_plan(ptr, len, file_len, self.staging, out);
            self.check(code, Stage::Plan)?;
            Ok(Plan::from_bytes(&self.read(out)))
        })
    }

    fn open(
        &mut self,
        header: &[u8],
        file_len: u64,
        options: &Options,
        file: F,
    ) -> Result<Opened, EngineError> {
        if self.handle.is_some() {
            return Err(EngineError::new(TrResult::IllegalState, Stage::Allocate));
        }
        self.sources = self.sources.wrapping_add(1);
        let source = self.sources;
        self.host.file.replace(Some((source, file)));
        let out = self.out();
        let opened = self.staged(header, Stage::Allocate, |ptr| {
            self.write(self.staging, &options.to_bytes());
            let len = header.len() as u32;
            let code = self
                .exports
                .rt_open(ptr, len, file_len, self.staging, source, out);
            self.check(code, Stage::Allocate)?;
            Ok(Opened::from_bytes(&self.read(out)))
        });
        match opened {
            Ok(opened) => {
                self.handle = Some(opened.handle);
                Ok(opened)
            }
            Err(error) => {
                self.host.file.replace(None);
                Err(error)
            }
        }
    }

    fn load_piece(&mut self, at: u64, len: u32) -> Result<Digest, EngineError> {
        let handle = self.handle(Stage::Load)?;
        let out = self.out();
        let code = self.exports.rt_load(handle, at, len, out);
        self.check(code, Stage::Load)?;
        Ok(Digest(self.read(out)))
    }

    fn ready(&mut self) -> Result<(), EngineError> {
        let handle = self.handle(Stage::Load)?;
        self.check(self.exports.rt_ready(handle), Stage::Load)?;
        self.reader = self.start_reader(handle);
        Ok(())
    }

    fn begin(&mut self, request: &Request<'_>) -> Result<(), EngineError> {
        let handle = self.handle(Stage::Prefill)?;
        self.staged(&pages::id_bytes(request.ids), Stage::Prefill, |ptr| {
            self.write(self.staging, &request.to_abi(ptr).to_bytes());
            let code = self.exports.rt_begin(handle, self.staging);
            self.check(code, Stage::Prefill)
        })
    }

    fn step(&mut self) -> Result<Step, EngineError> {
        let handle = self.handle(Stage::Decode)?;
        let out = self.out();
        let code = self.exports.rt_step(handle, out);
        self.check(code, Stage::Decode)?;
        Ok(Step::from_bytes(&self.read(out)))
    }

    fn stop(&mut self) -> Result<(), EngineError> {
        let handle = self.handle(Stage::Decode)?;
        self.check(self.exports.rt_stop(handle), Stage::Decode)
    }

    fn digest(&mut self) -> Result<Digest, EngineError> {
        let handle = self.handle(Stage::Decode)?;
        let out = self.out();
        let code = self.exports.rt_digest(handle, out);
        self.check(code, Stage::Decode)?;
        Ok(Digest(self.read(out)))
    }

    fn known(&mut self, ids: &[u32]) -> Result<Known, EngineError> {
        self.known_ids(ids)
    }

    fn page_out(&mut self, ids: &[u32], block: u32) -> Result<Vec<u8>, EngineError> {
        self.copy_page(ids, block)
    }

    fn page_in(&mut self, ids: &[u32], block: u32, bytes: &[u8]) -> Result<(), EngineError> {
        self.restore_page(ids, block, bytes)
    }

    fn counters(&mut self) -> Counters {
        let out = self.out();
        match self.check(self.exports.rt_counters(out), Stage::Start) {
            Ok(()) => Counters::from_bytes(&self.read(out)),
            Err(_) => Counters::default(),
        }
    }

    fn read_ahead(&mut self) -> u64 {
        let place = self.handle.and_then(|handle| self.reader_place(handle));
        place.map_or(0, |place| place.blocks)
    }

    fn memory_bytes(&self) -> u64 {
        // 4 GiB, which a shared memory can have, is no 32-bit length.
        let len = Reflect::get(&self.memory.buffer(), &"byteLength".into());
        len.ok().and_then(|len| len.as_f64()).unwrap_or(0.0) as u64
    }

    fn is_well(&mut self) -> bool {
        let out = self.out();
        let answers = self.check(self.exports.rt_counters(out), Stage::Start);
        let file = self.host.file.borrow();
        let can_read = |(_, file): &(u32, F)| {
            let byte = Uint8Array::new_with_length(1);
            file.read_into_view(0, &byte)
        };
        answers.is_ok() && file.as_ref().is_none_or(can_read)
    }

    fn close(&mut self) -> Option<F> {
        if let Some(handle) = self.handle.take() {
            // A refused close leaves nothing that could be done about it: the file is taken back
            // either way, and a trap is remembered by `check`.
            self.check(self.exports.rt_close(handle), Stage::Start).ok();
        }
        self.reader = None;
        self.host.file.take().map(|(_, file)| file)
    }
}

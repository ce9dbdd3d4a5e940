//! A lane with threads, from its memory to its proved team.
//!
//! Seven conditions, each refused in its own words: the page is isolated, memory can be shared, the
//! module compiles, its memory can be made, every worker acknowledges the module, the team meets in
//! time, and every worker's part of a test product is right and counted.

use format::Digest;
use js_sys::{Object, Reflect, WebAssembly};
use protocol::abi::{MEET_ABSENT, MEET_SOUND, MEET_UNCOUNTED, MEET_WRONG, Meet};
use protocol::{LaneId, SHARED_PAGES};
use wasm_bindgen::prelude::*;
use web_sys::{DedicatedWorkerGlobalScope, UrlSearchParams};

use super::super::{BrowserEngine, cross_origin_isolated};
use super::{compile, instantiate};
use crate::engine::module::{Pool, Spec};
use crate::lane::{LaneRefusal, ThreadFault};
use crate::threads::{self, Choice, ROUNDS};

/// Who started, and who took part in the last test meeting.
#[derive(Clone, Copy)]
pub struct TeamFacts {
    pub requested: u32,
    pub started: u32,
    /// Bit `i`: worker `i` finished a share of every meeting.
    pub present: u64,
}

impl TeamFacts {
    /// A lane without threads: its only worker.
    pub const SOLO: TeamFacts = TeamFacts {
        requested: 1,
        started: 1,
        present: 1,
    };

    pub fn participants(&self) -> Vec<u32> {
        let is_present = |worker: &u32| self.present >> worker & 1 == 1;
        (0..u64::BITS).filter(is_present).collect()
    }
}

pub async fn start(
    scope: &DedicatedWorkerGlobalScope,
    lane: LaneId,
    bytes: &[u8],
    sha256: Digest,
) -> Result<(BrowserEngine, TeamFacts), LaneRefusal> {
    let refuse = |fault| LaneRefusal::Threads { lane, fault };
    if !cross_origin_isolated() {
        return Err(refuse(ThreadFault::NotIsolated));
    }
    if !shares_memory() {
        return Err(refuse(ThreadFault::NoSharedMemory));
    }
    let module = compile(lane, bytes).await?;
    let memory = SHARED_PAGES.iter().find_map(|pages| shared_memory(*pages));
    let memory = memory.ok_or_else(|| refuse(ThreadFault::MemoryRefused))?;
    let mut engine = instantiate(lane, &module, Some(memory.clone())).await?;

    let asked = asked(scope);
    let workers = threads::to_start(asked, processors(scope));
    let broken = |_| LaneRefusal::Broken(lane);
    let spec = Spec {
        team: engine.make_team(workers).map_err(broken)?,
        module: &module,
        memory: &memory,
        sha256,
    };
    engine.employ(Pool::start(scope, &spec).await.map_err(refuse)?);
    let mut meet = engine.meet(workers, ROUNDS).map_err(broken)?;
    judge(&meet, workers).map_err(refuse)?;
    let mut started = workers;
    if asked.is_none() {
        started = choose(scope, &mut engine, workers).map_err(broken)?;
        meet = engine.settle(started).map_err(broken)?;
        judge(&meet, started).map_err(refuse)?;
    }
    let facts = TeamFacts {
        requested: workers,
        started,
        present: meet.present,
    };
    Ok((engine, facts))
}

/// What the test meetings showed.
fn judge(meet: &Meet, workers: u32) -> Result<(), ThreadFault> {
    let all = (1u64 << workers) - 1;
    match meet.fault {
        MEET_SOUND if meet.present & all == all => Ok(()),
        MEET_SOUND => Err(ThreadFault::Absent((!meet.present).trailing_zeros())),
        MEET_ABSENT => Err(ThreadFault::Absent(meet.worker)),
        MEET_WRONG => Err(ThreadFault::Wrong(meet.worker)),
        MEET_UNCOUNTED => Err(ThreadFault::Uncounted),
        _ => Err(ThreadFault::Late),
    }
}

/// Times a few meetings with ever more workers.
fn choose(
    scope: &DedicatedWorkerGlobalScope,
    engine: &mut BrowserEngine,
    workers: u32,
) -> Result<u32, crate::EngineError> {
    let now = || scope.performance().map_or(0.0, |clock| clock.now());
    let mut choice = Choice::new(workers);
    while let Some(workers) = choice.next() {
        let start = now();
        engine.meet(workers, ROUNDS)?;
        choice.took(now() - start);
    }
    Ok(choice.chosen())
}

/// `?threads=` of the worker's address.
pub fn asked(scope: &DedicatedWorkerGlobalScope) -> Option<u32> {
    let query = UrlSearchParams::new_with_str(&scope.location().search()).ok()?;
    query.get("threads")?.parse().ok()
}

/// `?memory=` of the worker's address: megabytes that the engine may take, fewer than there are.
pub fn memory_asked(scope: &DedicatedWorkerGlobalScope) -> Option<u64> {
    let query = UrlSearchParams::new_with_str(&scope.location().search()).ok()?;
    let megabytes: u64 = query.get("memory")?.parse().ok()?;
    megabytes.checked_mul(1_000_000)
}

/// The largest memory of its own that this browser would let a lane grow to, in bytes. It gives
/// such a memory room in the address space and nothing else, so asking costs nothing.
pub fn memory_granted() -> u64 {
    let grants = |pages: &&u32| {
        let limits = Object::new();
        let set = |name: &str, pages: u32| Reflect::set(&limits, &name.into(), &pages.into());
        let is_set = set("initial", 1).is_ok() && set("maximum", **pages).is_ok();
        is_set && WebAssembly::Memory::new(&limits).is_ok()
    };
    let pages = SHARED_PAGES.iter().find(grants).copied().unwrap_or(0);
    u64::from(pages) * 65_536
}

fn processors(scope: &DedicatedWorkerGlobalScope) -> u32 {
    scope.navigator().hardware_concurrency() as u32
}

fn shares_memory() -> bool {
    let constructor = Reflect::get(&js_sys::global(), &"SharedArrayBuffer".into());
    let Some(constructor) = constructor.ok().and_then(|found| found.dyn_into().ok()) else {
        return false;
    };
    let constructor: js_sys::Function = constructor;
    Reflect::construct(&constructor, &js_sys::Array::of1(&8.into())).is_ok()
}

/// A shared memory that never grows, if the browser gives one of this size.
fn shared_memory(pages: u32) -> Option<WebAssembly::Memory> {
    let limits = Object::new();
    Reflect::set(&limits, &"initial".into(), &pages.into()).ok()?;
    Reflect::set(&limits, &"maximum".into(), &pages.into()).ok()?;
    Reflect::set(&limits, &"shared".into(), &true.into()).ok()?;
    WebAssembly::Memory::new(&limits).ok()
}

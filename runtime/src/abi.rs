//! The exports of a lane, as `protocol::abi` lists them, and its only import.
//!
//! Nothing is decided here: see `lane`. Natively this file does not exist.
#![allow(unsafe_code)]

use core::arch::wasm32;
use core::cell::{Cell, UnsafeCell};
use core::panic::PanicInfo;
#[cfg(target_feature = "atomics")]
use core::sync::atomic::{AtomicPtr, Ordering};

use protocol::TrResult;
use protocol::abi::ABI_VERSION;

use crate::RuntimeError;
use crate::heap;
use crate::lane::{HeaderAt, Lane};
use crate::staging::Address;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn host_read(source: u32, offset: u64, dst: *mut u8, len: u32) -> i32;
}

/// The lane's state, made by the first call.
struct Single {
    lane: UnsafeCell<Option<Lane>>,
    /// A call is being served: the host called back from within its own `host_read`.
    busy: Cell<bool>,
}

// SAFETY: a lane without atomics has one thread, and of a lane with atomics the host calls these
// doors from its first thread only; `serve` keeps its calls from nesting.
unsafe impl Sync for Single {}

static SINGLE: Single = Single {
    lane: UnsafeCell::new(None),
    busy: Cell::new(false),
};

/// Runs `call` on the lane, or gives `None` if a call is being served already.
fn serve<T>(call: impl FnOnce(&mut Lane) -> T) -> Option<T> {
    if SINGLE.busy.replace(true) {
        return None;
    }
    heap::forget_refused();
    // SAFETY: `busy` was false, so no other reference to the lane is alive, and there is one
    // thread. A panic ends the instance, so the flag need not be reset by a guard.
    let lane = unsafe { &mut *SINGLE.lane.get() };
    let lane = lane.get_or_insert_with(|| Lane::new(heap::room()));
    let result = call(lane);
    SINGLE.busy.set(false);
    Some(result)
}

/// Runs a call that answers with a code.
fn code(call: impl FnOnce(&mut Lane) -> Result<(), RuntimeError>) -> i32 {
    let served = serve(|lane| {
        let result = call(lane);
        lane.code(result)
    });
    served.unwrap_or(TrResult::IllegalState as i32)
}

fn read(source: u32, at: u64, into: &mut [u8]) -> i32 {
    let Ok(len) = u32::try_from(into.len()) else {
        return TrResult::IntegerOverflow as i32;
    };
    // SAFETY: the host writes `len` bytes from the slice's start, or fewer and a code; the slice
    // is exclusively ours for the call. Any bytes are valid `u8`s.
    unsafe { host_read(source, at, into.as_mut_ptr(), len) }
}

#[unsafe(no_mangle)]
extern "C" fn rt_abi() -> u32 {
    ABI_VERSION
}

#[unsafe(no_mangle)]
extern "C" fn rt_alloc(len: u32) -> Address {
    serve(|lane| lane.staging.alloc(len as usize)).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn rt_free(ptr: Address, _len: u32) {
    serve(|lane| lane.staging.free(ptr));
}

#[unsafe(no_mangle)]
extern "C" fn rt_self_test(out: Address) -> i32 {
    code(|lane| lane.self_test(out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_plan(
    header: Address,
    header_len: u32,
    file_len: u64,
    options: Address,
    out: Address,
) -> i32 {
    let header = HeaderAt {
        address: header,
        len: header_len,
        file_len,
    };
    code(|lane| lane.plan(header, options, out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_open(
    header: Address,
    header_len: u32,
    file_len: u64,
    options: Address,
    source: u32,
    out: Address,
) -> i32 {
    let header = HeaderAt {
        address: header,
        len: header_len,
        file_len,
    };
    code(|lane| lane.open(header, options, source, out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_load(handle: u64, at: u64, len: u32, out: Address) -> i32 {
    code(|lane| lane.load(handle, at, len, out, &mut read))
}

#[unsafe(no_mangle)]
extern "C" fn rt_ready(handle: u64) -> i32 {
    code(|lane| lane.ready(handle, &mut read))
}

#[unsafe(no_mangle)]
extern "C" fn rt_begin(handle: u64, request: Address) -> i32 {
    code(|lane| lane.begin(handle, request))
}

#[unsafe(no_mangle)]
extern "C" fn rt_step(handle: u64, out: Address) -> i32 {
    code(|lane| lane.step(handle, out, &mut read))
}

#[unsafe(no_mangle)]
extern "C" fn rt_stop(handle: u64) -> i32 {
    code(|lane| lane.stop(handle))
}

#[unsafe(no_mangle)]
extern "C" fn rt_logits(handle: u64, out: Address) -> i32 {
    code(|lane| lane.logits(handle, out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_digest(handle: u64, out: Address) -> i32 {
    code(|lane| lane.digest(handle, out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_known(handle: u64, ids: Address, ids_len: u32, out: Address) -> i32 {
    code(|lane| lane.known(handle, (ids, ids_len), out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_page_out(
    handle: u64,
    ids: Address,
    ids_len: u32,
    block: u32,
    to: Address,
    to_len: u32,
    out: Address,
) -> i32 {
    code(|lane| lane.page_out(handle, (ids, ids_len), block, (to, to_len), out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_page_in(
    handle: u64,
    ids: Address,
    ids_len: u32,
    block: u32,
    from: Address,
    from_len: u32,
) -> i32 {
    code(|lane| lane.page_in(handle, (ids, ids_len), block, (from, from_len)))
}

#[unsafe(no_mangle)]
extern "C" fn rt_counters(out: Address) -> i32 {
    code(|lane| lane.counters(out))
}

/// Answers with the failure before this call, also if this call fails.
#[unsafe(no_mangle)]
extern "C" fn rt_error(out: Address) -> i32 {
    let served = serve(|lane| match lane.error(out) {
        Ok(()) => TrResult::Ok as i32,
        Err(error) => error.0.code,
    });
    served.unwrap_or(TrResult::IllegalState as i32)
}

#[unsafe(no_mangle)]
extern "C" fn rt_memory(handle: u64, out: Address) -> i32 {
    code(|lane| lane.memory(handle, out))
}

#[unsafe(no_mangle)]
extern "C" fn rt_owner(owner: u32) -> i32 {
    code(|lane| lane.set_owner(owner))
}

#[unsafe(no_mangle)]
extern "C" fn rt_limit(bytes: u64) -> i32 {
    code(|lane| lane.set_limit(bytes))
}

/// Touches no state but one word, so that it may be called after a trap.
#[unsafe(no_mangle)]
extern "C" fn rt_refused() -> u32 {
    heap::refused()
}

#[unsafe(no_mangle)]
extern "C" fn rt_close(handle: u64) -> i32 {
    code(|lane| lane.close(handle))
}

/// The team for workers to find, which live outside of `serve`; null until there is one.
#[cfg(target_feature = "atomics")]
static TEAM: AtomicPtr<crate::Team> = AtomicPtr::new(core::ptr::null_mut());

#[cfg(target_feature = "atomics")]
#[unsafe(no_mangle)]
extern "C" fn rt_team(workers: u32, out: Address) -> i32 {
    code(|lane| {
        let team = lane.make_team(workers, out)?;
        // A worker may look at any time, so the team is never freed.
        TEAM.store(alloc::boxed::Box::leak(team), Ordering::Release);
        Ok(())
    })
}

/// Runs in a thread of its own, beside whatever `serve` does.
#[cfg(target_feature = "atomics")]
#[unsafe(no_mangle)]
extern "C" fn rt_worker(index: u32) {
    let team = TEAM.load(Ordering::Acquire);
    // SAFETY: null, or a team that is never freed and may be shared.
    if let Some(team) = unsafe { team.as_ref() } {
        team.attend(index as usize);
    }
}

#[cfg(target_feature = "atomics")]
#[unsafe(no_mangle)]
extern "C" fn rt_meet(workers: u32, rounds: u32, out: Address) -> i32 {
    code(|lane| lane.meet(workers, rounds, out))
}

#[cfg(target_feature = "atomics")]
#[unsafe(no_mangle)]
extern "C" fn rt_reader(handle: u64, out: Address) -> i32 {
    code(|lane| lane.reader(handle, out))
}

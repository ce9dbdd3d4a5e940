//! The heap of a lane: memory that grows until a model is ready, or the one block that several
//! threads share.
//!
//! Natively this file does not exist.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use dlmalloc::Dlmalloc;

use crate::RuntimeError;
use crate::error::reserve_memory;

pub use rest::room;

/// Bytes of a page of Wasm memory, and the most pages that a 32-bit memory can have.
const PAGE_BYTES: usize = 65_536;
const PAGES_MAX: usize = 65_536;

#[global_allocator]
static ALLOCATOR: Locked = Locked {
    taken: AtomicBool::new(false),
    heap: UnsafeCell::new(Dlmalloc::new_with_allocator(Rest)),
};
/// The heap gets no more memory.
static SEALED: AtomicBool = AtomicBool::new(false);
/// Bytes of the newest allocation that was refused.
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// Keeps the memory as large as it is, once `slack` bytes of it are free.
pub fn seal(slack: u64) -> Result<(), RuntimeError> {
    SEALED.store(false, Ordering::Relaxed);
    let len = usize::try_from(slack).unwrap_or(usize::MAX);
    let free = reserve_memory::<u8>(len, protocol::Stage::Load)?;
    // The block is told to be used, or else it would not be taken at all.
    core::hint::black_box(&free);
    drop(free);
    SEALED.store(true, Ordering::Relaxed);
    Ok(())
}

/// From now on the memory may grow again.
pub fn unseal() {
    SEALED.store(false, Ordering::Relaxed);
}

pub fn is_sealed() -> bool {
    SEALED.load(Ordering::Relaxed)
}

/// A new call: what was refused before it was dealt with.
pub fn forget_refused() {
    REFUSED.store(0, Ordering::Relaxed);
}

/// Bytes of the newest allocation that was refused; 0 if none was.
pub fn refused() -> u32 {
    REFUSED.load(Ordering::Relaxed)
}

struct Locked {
    taken: AtomicBool,
    heap: UnsafeCell<Dlmalloc<Rest>>,
}

// SAFETY: `with` gives the heap to one thread at a time.
unsafe impl Sync for Locked {}

impl Locked {
    /// Only the first thread allocates, so this lock is free but for a fault of ours; it spins
    /// because a worker's thread may wait by no other means in every host.
    fn with<T>(&self, call: impl FnOnce(&mut Dlmalloc<Rest>) -> T) -> T {
        while self.taken.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        // SAFETY: `taken` was false and is now true, so no other reference is alive.
        let result = call(unsafe { &mut *self.heap.get() });
        self.taken.store(false, Ordering::Release);
        result
    }

    fn take(&self, size: usize, call: impl FnOnce(&mut Dlmalloc<Rest>) -> *mut u8) -> *mut u8 {
        let block = self.with(call);
        if block.is_null() {
            REFUSED.store(size as u32, Ordering::Relaxed);
        }
        block
    }
}

// SAFETY: Dlmalloc keeps the contract, and `with` lets one thread at a time call it.
unsafe impl GlobalAlloc for Locked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, here and below.
        self.take(size, |heap| unsafe { heap.malloc(size, align) })
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        self.with(|heap| unsafe { heap.free(ptr, layout.size(), layout.align()) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as above.
        self.take(size, |heap| unsafe { heap.calloc(size, align) })
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as above.
        self.take(new_size, |heap| unsafe {
            heap.realloc(ptr, size, align, new_size)
        })
    }
}

/// Hands out the memory in whole pages, each once, and takes none back.
struct Rest;

// SAFETY: every block lies within the memory, above data and stack, and is given once.
unsafe impl dlmalloc::Allocator for Rest {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let pages = size.div_ceil(PAGE_BYTES);
        let first = (!is_sealed()).then(|| rest::take(pages)).flatten();
        first.map_or((null_mut(), 0, 0), |first| {
            let start = core::ptr::with_exposed_provenance_mut(first);
            (start, pages * PAGE_BYTES, 0)
        })
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    /// New memory is zero.
    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE_BYTES
    }
}

/// Memory that the module has and lets grow.
#[cfg(not(target_feature = "atomics"))]
mod rest {
    use super::*;

    /// 4 GiB does not fit into an address; the last page is never asked for.
    fn pages_left() -> usize {
        (PAGES_MAX - 1).saturating_sub(wasm32::memory_size::<0>())
    }

    /// Address of so many new pages.
    pub fn take(pages: usize) -> Option<usize> {
        if pages > pages_left() {
            return None;
        }
        match wasm32::memory_grow::<0>(pages) {
            usize::MAX => None,
            before => Some(before * PAGE_BYTES),
        }
    }

    /// Bytes that the heap can still have, if the browser gives them.
    pub fn room() -> u64 {
        pages_left() as u64 * PAGE_BYTES as u64
    }
}

/// The host made the memory as large as it will ever be; what the linker did not take is the heap.
#[cfg(target_feature = "atomics")]
mod rest {
    use core::sync::atomic::AtomicUsize;

    use super::*;

    unsafe extern "C" {
        /// The linker's mark: its address is the first byte after data and stack.
        static __heap_base: u8;
    }

    /// First byte of the memory that the allocator has not got yet; 0 before the first call.
    static NEXT: AtomicUsize = AtomicUsize::new(0);

    fn end() -> usize {
        // 4 GiB does not fit into an address; the last page is left alone then.
        wasm32::memory_size::<0>().min(PAGES_MAX - 1) * PAGE_BYTES
    }

    fn next() -> usize {
        match NEXT.load(Ordering::Relaxed) {
            0 => (&raw const __heap_base).addr().next_multiple_of(PAGE_BYTES),
            next => next,
        }
    }

    /// Address of so many pages that nobody had before.
    pub fn take(pages: usize) -> Option<usize> {
        let start = next();
        let size = pages.checked_mul(PAGE_BYTES)?;
        if size > end().saturating_sub(start) {
            return None;
        }
        NEXT.store(start + size, Ordering::Relaxed);
        Some(start)
    }

    /// Bytes that the heap can still have.
    pub fn room() -> u64 {
        end().saturating_sub(next()) as u64
    }
}

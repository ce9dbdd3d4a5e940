//! The heap of a lane: memory that grows, or the one block that several threads share.
//!
//! Natively this file does not exist.
#![allow(unsafe_code)]

use core::arch::wasm32;

/// Bytes of a page of Wasm memory, and the most pages that a 32-bit memory can have.
const PAGE_BYTES: usize = 65_536;
const PAGES_MAX: usize = 65_536;

#[cfg(not(target_feature = "atomics"))]
mod growing {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

    /// Bytes that the heap can still have.
    pub fn room() -> u64 {
        let left = PAGES_MAX - wasm32::memory_size::<0>().min(PAGES_MAX);
        left as u64 * PAGE_BYTES as u64
    }
}

/// The host made the memory as large as it will ever be; what the linker did not take is the heap.
#[cfg(target_feature = "atomics")]
mod fixed {
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::UnsafeCell;
    use core::hint::spin_loop;
    use core::ptr::null_mut;
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use dlmalloc::Dlmalloc;

    use super::*;

    unsafe extern "C" {
        /// The linker's mark: its address is the first byte after data and stack.
        static __heap_base: u8;
    }

    #[global_allocator]
    static ALLOCATOR: Locked = Locked {
        taken: AtomicBool::new(false),
        heap: UnsafeCell::new(Dlmalloc::new_with_allocator(Rest)),
    };
    /// First byte of the memory that the allocator has not got yet; 0 before the first call.
    static NEXT: AtomicUsize = AtomicUsize::new(0);

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
    }

    // SAFETY: Dlmalloc keeps the contract, and `with` lets one thread at a time call it.
    unsafe impl GlobalAlloc for Locked {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller keeps the contract of `GlobalAlloc`, here and below.
            self.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
        }

        unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
            // SAFETY: as above.
            self.with(|heap| unsafe { heap.free(ptr, layout.size(), layout.align()) })
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: as above.
            self.with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
        }

        unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
            // SAFETY: as above.
            self.with(|heap| unsafe { heap.realloc(ptr, layout.size(), layout.align(), new_size) })
        }
    }

    /// Hands out the rest of the memory, page after page, each once.
    struct Rest;

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

    // SAFETY: every block lies within the memory, above data and stack, and is given once.
    unsafe impl dlmalloc::Allocator for Rest {
        fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
            let start = next();
            let size = size.div_ceil(PAGE_BYTES) * PAGE_BYTES;
            if size > end().saturating_sub(start) {
                return (null_mut(), 0, 0);
            }
            NEXT.store(start + size, Ordering::Relaxed);
            (core::ptr::with_exposed_provenance_mut(start), size, 0)
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

        /// The memory is new and each page is given once.
        fn allocates_zeros(&self) -> bool {
            true
        }

        fn page_size(&self) -> usize {
            PAGE_BYTES
        }
    }

    /// Bytes that the heap can still have.
    pub fn room() -> u64 {
        end().saturating_sub(next()) as u64
    }
}

#[cfg(target_feature = "atomics")]
pub use fixed::room;
#[cfg(not(target_feature = "atomics"))]
pub use growing::room;

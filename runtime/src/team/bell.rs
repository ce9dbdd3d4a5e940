//! Sleeping until a word changes: the slow path of a meeting.
//!
//! A wait may end early, and always ends after [`SLICE_NANOS`]; the caller looks at the word again.
#![allow(unsafe_code)]

use core::sync::atomic::AtomicU32;

/// The longest one wait lasts: a lost ring costs no more than this, and waits are counted to know
/// when to give up where there is no clock.
#[cfg_attr(
    not(any(feature = "threads", target_feature = "atomics")),
    allow(dead_code)
)]
pub const SLICE_NANOS: u64 = 100_000_000;

#[cfg(feature = "threads")]
pub use native::Bell;

#[cfg(not(feature = "threads"))]
pub use bare::Bell;

#[cfg(feature = "threads")]
mod native {
    use core::sync::atomic::Ordering;
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Duration;

    use super::{AtomicU32, SLICE_NANOS};

    pub struct Bell {
        lock: Mutex<()>,
        rung: Condvar,
    }

    impl Bell {
        pub const fn new() -> Bell {
            Bell {
                lock: Mutex::new(()),
                rung: Condvar::new(),
            }
        }

        /// Sleeps while `word` is `seen`.
        pub fn wait(&self, word: &AtomicU32, seen: u32) {
            // The lock guards nothing, so a panic elsewhere harms nothing.
            let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            if word.load(Ordering::SeqCst) == seen {
                let slice = Duration::from_nanos(SLICE_NANOS);
                drop(self.rung.wait_timeout(guard, slice));
            }
        }

        /// Wakes everyone who sleeps at `word`, which was changed before.
        pub fn ring(&self, _word: &AtomicU32) {
            // Whoever saw the old word holds the lock until it sleeps.
            drop(self.lock.lock());
            self.rung.notify_all();
        }
    }
}

#[cfg(not(feature = "threads"))]
mod bare {
    use super::AtomicU32;
    #[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
    use super::SLICE_NANOS;

    /// Wasm waits at the word itself; where there is one thread there is nobody to wait for.
    pub struct Bell;

    impl Bell {
        pub const fn new() -> Bell {
            Bell
        }

        /// Sleeps while `word` is `seen`.
        #[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
        pub fn wait(&self, word: &AtomicU32, seen: u32) {
            let at = word.as_ptr().cast::<i32>();
            // SAFETY: the address is that of a living, aligned 32-bit atomic.
            unsafe {
                core::arch::wasm32::memory_atomic_wait32(at, seen as i32, SLICE_NANOS as i64);
            }
        }

        /// Wakes everyone who sleeps at `word`, which was changed before.
        #[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
        pub fn ring(&self, word: &AtomicU32) {
            let at = word.as_ptr().cast::<i32>();
            // SAFETY: as in `wait`.
            unsafe {
                core::arch::wasm32::memory_atomic_notify(at, u32::MAX);
            }
        }

        #[cfg(not(all(target_arch = "wasm32", target_feature = "atomics")))]
        pub fn wait(&self, _: &AtomicU32, _: u32) {}

        #[cfg(not(all(target_arch = "wasm32", target_feature = "atomics")))]
        pub fn ring(&self, _: &AtomicU32) {}
    }
}

//! Which matrix products really ran.
//!
//! One relaxed addition per product; without atomics (MVP Wasm) it is a plain one.

use core::sync::atomic::{AtomicU64, Ordering};

static SCALAR: AtomicU64 = AtomicU64::new(0);
static SIMD: AtomicU64 = AtomicU64::new(0);
static RELAXED: AtomicU64 = AtomicU64::new(0);

/// Matrix products since the program started, one per worker that took part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub scalar: u64,
    pub simd: u64,
    /// With the relaxed integer dot product; not among `simd`.
    pub relaxed: u64,
}

pub fn calls() -> Calls {
    Calls {
        scalar: SCALAR.load(Ordering::Relaxed),
        simd: SIMD.load(Ordering::Relaxed),
        relaxed: RELAXED.load(Ordering::Relaxed),
    }
}

pub(super) fn count_scalar() {
    SCALAR.fetch_add(1, Ordering::Relaxed);
}

#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(
        target_arch = "wasm32",
        target_feature = "simd128",
        not(target_feature = "relaxed-simd")
    )
))]
pub(super) fn count_simd() {
    SIMD.fetch_add(1, Ordering::Relaxed);
}

#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
pub(super) fn count_relaxed() {
    RELAXED.fetch_add(1, Ordering::Relaxed);
}

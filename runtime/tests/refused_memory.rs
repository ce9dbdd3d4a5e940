//! Every allocation of an opening model refused in turn: a typed failure that names the region and
//! its bytes, nothing is kept, and the same model opens as soon as there is memory.
//!
//! One test only: the counters are the whole process's.

#![allow(clippy::unwrap_used, unsafe_code)]

mod models;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use format::Header;
use models::INT8;
use protocol::abi::{
    DETAIL_REFUSED, REGION_KV, REGION_LOGITS, REGION_METADATA, REGION_SAMPLER, REGION_SCRATCH,
    REGION_TRANSFER, REGION_WEIGHTS,
};
use protocol::{Residency, TrResult};
use runtime::tiny::Recipe;
use runtime::{Model, Options};

/// Blocks of this size are regions; smaller ones are records that every program needs.
const LARGE: usize = 16 * 1024;

/// Large blocks until one is refused; below zero none is.
static LEFT: AtomicI64 = AtomicI64::new(-1);
/// Bytes of large blocks that are held.
static HELD: AtomicI64 = AtomicI64::new(0);

struct Failing;

fn is_refused(size: usize) -> bool {
    if size < LARGE || LEFT.load(SeqCst) < 0 {
        return false;
    }
    LEFT.fetch_sub(1, SeqCst) == 0
}

// SAFETY: the system's allocator does the work; a null pointer is an allowed answer.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        if layout.size() >= LARGE {
            HELD.fetch_add(layout.size() as i64, SeqCst);
        }
        // SAFETY: the caller keeps the contract, here and below.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if layout.size() >= LARGE {
            HELD.fetch_sub(layout.size() as i64, SeqCst);
        }
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// The tiny model with so many words that every region is large.
fn header() -> Header {
    let recipe = Recipe {
        context: 8192,
        ..Recipe::QUANTIZED
    };
    let mut manifest = recipe.file().unwrap().0.manifest;
    manifest.architecture.vocab = 20_000;
    for name in ["embed", "head"] {
        manifest.tensors.get_mut(name).unwrap().shape.rows = 20_000;
    }
    Header::layout(manifest).unwrap()
}

#[test]
fn a_refused_region_is_named_and_nothing_is_kept() {
    let header = header();
    let mut named = BTreeSet::new();
    for residency in Residency::ALL {
        let options = Options { residency, ..INT8 };
        let before = HELD.load(SeqCst);
        let mut refusals = 0;
        for nth in 0.. {
            LEFT.store(nth, SeqCst);
            let opened = Model::open(header.clone(), options, u64::MAX);
            let is_over = LEFT.swap(-1, SeqCst) >= 0;
            let error = match opened {
                Ok(_) => {
                    assert!(is_over, "an allocation was refused and nobody noticed");
                    break;
                }
                Err(error) => error,
            };
            assert_eq!(
                error.code(),
                TrResult::OutOfMemory,
                "{residency:?} {nth}: {error}"
            );
            assert_eq!(
                error.0.detail, DETAIL_REFUSED,
                "{residency:?} {nth}: {error}"
            );
            assert!(error.0.found >= LARGE as u64, "{error}");
            named.insert(error.0.item);
            assert_eq!(
                HELD.load(SeqCst),
                before,
                "{residency:?} {nth} keeps something"
            );
            refusals += 1;
        }
        assert!(refusals > 10, "{refusals}");
        assert!(Model::open(header.clone(), options, u64::MAX).is_ok());
        assert_eq!(HELD.load(SeqCst), before);
    }
    let wanted = [
        REGION_WEIGHTS,
        REGION_METADATA,
        REGION_KV,
        REGION_SCRATCH,
        REGION_LOGITS,
        REGION_SAMPLER,
        REGION_TRANSFER,
    ];
    assert_eq!(named, BTreeSet::from(wanted));
}

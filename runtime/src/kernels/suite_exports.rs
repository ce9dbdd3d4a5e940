//! The suite as exports of a lane, for tests inside a Wasm engine.
#![allow(unsafe_code)]

use super::Kernels;
use super::suite::CASES;

// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn suite_count() -> u32 {
    CASES.len() as u32
}

/// 0: passed; 1: failed; -1: no such case.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn suite_run(index: u32) -> i32 {
    match CASES.get(index as usize) {
        Some(case) => i32::from(case.check(Kernels::best()).is_err()),
        None => -1,
    }
}

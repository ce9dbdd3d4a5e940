//! Any messages in any order from one peer: memory stays bounded and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../p2p/tests/drive/mod.rs"]
mod drive;

fuzz_target!(|bytes: &[u8]| drive::run(bytes));

//! The engine: from token ids to logits to the next token, with the same bits everywhere.
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "threads"))]
extern crate std;

mod error;
pub mod functions;
pub mod kernels;
pub mod sampler;
mod team;

pub use error::RuntimeError;

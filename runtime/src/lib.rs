//! The engine: from token ids to logits to the next token, with the same bits everywhere.
//!
//! Reading order: `plan`, `arrange` and `records` (how much memory, and for what), `model` (a
//! model's life), `weights` and `ahead` (tensors where they lie or pass through), `rope`, `kv` and
//! `scratch` (what a forward pass needs), `forward` (the paper), `generate` (one request in bounded
//! steps), `sampler`; below them `kernels`, `functions` and `team`; above them `self_test`, and
//! `lane`, `handles`, `staging`, `heap`, `abi` (the C functions of a compiled lane).
#![no_std]
// A lane with threads is built with its own standard library, where waiting is not stable yet.
#![cfg_attr(
    all(target_arch = "wasm32", target_feature = "atomics"),
    feature(stdarch_wasm_atomic_wait)
)]

extern crate alloc;
#[cfg(any(test, feature = "threads"))]
extern crate std;

mod ahead;
mod arrange;
mod error;
mod plan;
mod records;

mod forward;
mod generate;
mod kv;
mod logits;
mod model;
mod request;
mod rope;
mod scratch;
mod weights;

pub mod functions;
pub mod kernels;
pub mod sampler;
mod team;

#[cfg(target_arch = "wasm32")]
mod abi;
mod handles;
#[cfg(target_arch = "wasm32")]
mod heap;
mod lane;
mod self_test;
mod staging;
pub mod tiny;

#[cfg(feature = "threads")]
pub use ahead::thread::Reader;
pub use ahead::{Buffer, Filled, ReadAhead};
pub use error::RuntimeError;
pub use generate::Step;
pub use kernels::Kernels;
pub use lane::{HeaderAt, HostRead, Lane, TRANSFER_BYTES};
pub use model::{Engine, Model};
pub use plan::{
    KvFormat, Mode, Options, PREFILL_TILE_MAX, Plan, Surroundings, admit, measure, plan,
};
pub use protocol::Residency;
pub use request::Request;
pub use self_test::self_test;
#[cfg(feature = "threads")]
pub use team::Stopper;
pub use team::{Team, WORKERS_MAX};
pub use weights::Source;

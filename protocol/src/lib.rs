//! Everything that crosses a thread or a module boundary, defined once.
//!
//! Reading order: `result` (codes and where an error happened), `lanes` (the table of builds),
//! `abi` (structs and functions of a lane), `message` (page and worker), `catalogue` (what a
//! server offers), `bench` (figures of a device), `wire` (bytes of a message).
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod abi;
mod bench;
mod catalogue;
mod lanes;
mod message;
mod result;
mod wire;

pub use bench::{
    BENCH_SCHEMA, BENCH_SHORT, BenchBundle, BenchEngine, BenchFigures, BenchFirstToken, BenchModel,
    BenchOutcome, BenchPart, BenchReason, BenchRun, bench_prompt,
};
pub use catalogue::{CATALOGUE_SCHEMA, Catalogue, CatalogueEntry};
pub use lanes::{
    LANES, Lane, LaneArtifact, LaneId, LaneManifest, LaneMemory, MANIFEST_SCHEMA, Probe,
    SHARED_LINK_ARGS, SHARED_PAGES, SHARED_PAGES_MAX,
};
pub use message::*;
pub use result::{ErrorReport, Stage, TrResult};
pub use wire::{WireError, decode, encode};

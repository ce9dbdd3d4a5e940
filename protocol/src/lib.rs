//! Everything that crosses a thread or a module boundary, defined once.
//!
//! Reading order: `result` (codes and where an error happened), `lanes` (the table of builds),
//! `manifest` (what was built, signed), `abi` (structs and functions of a lane), `kv` (formats of
//! its cache), `receipt` (what really ran), `imports`, `message` and `subject` (page and worker),
//! `sharing` (the same, of peers), `fit` (whether a model fits), `levers` (what helps if it does
//! not), `tabs` (workers of several tabs),
//! `catalogue` (what a server offers), `diagnosis` (a failure and its circumstances), `bench`
//! (figures of a device), `wire` (bytes of a message).
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod abi;
mod bench;
mod catalogue;
mod diagnosis;
mod fit;
mod imports;
mod kv;
mod lanes;
mod levers;
mod manifest;
mod message;
mod receipt;
mod residency;
mod result;
mod sharing;
mod subject;
mod tabs;
mod wire;

pub use bench::{
    BENCH_SCHEMA, BENCH_SHORT, BenchBundle, BenchEngine, BenchFigures, BenchFirstToken, BenchModel,
    BenchOutcome, BenchPart, BenchReason, BenchRun, bench_prompt,
};
pub use catalogue::{
    CATALOGUE_SCHEMA, Catalogue, CatalogueEntry, PUBLISHED_SCHEMA, Published, PublishedModel,
    PublishedSource, catalogue_message,
};
pub use diagnosis::{
    DIAGNOSIS_SCHEMA, DiagnosticDetails, DiagnosticRecord, FailureRecord, ResourceSnapshot,
};
pub use fit::{Fit, FitReport, Lever, Regions, Short, Wish};
pub use imports::{ForeignImport, ImportPhase, ImportProgress, ImportSource, NamedFile};
pub use kv::{CacheIdentity, KV_LAYOUT, KvFormat};
pub use lanes::{
    LANES, Lane, LaneId, LaneMemory, PROBES, Probe, SHARED_LINK_ARGS, SHARED_PAGES,
    SHARED_PAGES_MAX,
};
pub use levers::{CONTEXT_LEAST, most_room, ways_to_fit};
pub use manifest::{
    LaneArtifact, LaneManifest, MANIFEST_SCHEMA, ManifestFile, ProbeRecord, Signature, Signed,
    artifact_message, head_message,
};
pub use message::*;
pub use receipt::{
    CapabilityReceipt, Executed, HostReported, MemoryMode, ModuleFacts, Observed, ProbeOutcome,
    RECEIPT_SCHEMA, Selection, SelfTestFacts,
};
pub use residency::{Over, Residency};
pub use result::{ErrorReport, Stage, TrResult};
pub use sharing::{InvitedModel, Meeting, Met, PeerReport, SwarmCommand, SwarmEvent, SwarmStatus};
pub use subject::Subject;
pub use tabs::{Ask, Call, ClientId, Edition, Epoch, Role as TabRole, Tell, ToClient, ToOwner};
pub use wire::{WireError, decode, encode};

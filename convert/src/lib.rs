//! The compatibility firewall: a GGUF file or a Hugging Face folder in, a `.slm` file out, or a
//! refusal that names its reason.
//!
//! Reading order: `step` (the words of the conversation), `converter` (the door), `drive` (the loop
//! around it), `gguf` and `folder` (the two kinds of source, each to a `plan`), `checksum` (the
//! first pass), `emit` and `rows` (the second), `limits` and `error`.
//!
//! Invariants: no weight changes unless the caller asks for it; every byte of the source that
//! means something is understood or refused by name; memory stays below 64 MiB however large the
//! source is; the same source gives the same bytes everywhere.

mod step;

mod converter;
mod drive;

mod folder;
mod gguf;

mod names;
mod plan;
mod rope;
mod window;

mod checksum;
mod emit;
mod rows;

mod error;
mod error_text;

pub mod limits;

pub use converter::Converter;
pub use drive::{DriveError, drive};
pub use error::{ConvertError, Lead};
pub use step::{Need, Options, Outcome, Phase, Progress, Quantized, Scope, SourceFile, Step};

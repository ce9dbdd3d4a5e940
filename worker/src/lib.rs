//! The dedicated inference worker: everything between the page's messages and the engine.
//!
//! Reading order: `engine` (the engine as a trait, and its two implementors), `lane` (which build
//! of it a browser gets), `publisher` (whose signature counts), `source` (where imported bytes
//! come from), `session` (the conversation itself, without input or output), `tabs` (one session,
//! many pages), `words` (failures as sentences). In a browser `shell` connects it: messages and
//! wakes, `tabs` (hands of several tabs), `files` (storage), `sources` (files), `fetches` and
//! `network` (addresses), `lanes` (compiled engines).
//!
//! Invariant: only the shell and `engine/module.rs` name the browser; the session has no clock.

pub mod engine;
mod kept;
pub mod lane;
mod publisher;
pub mod session;
pub mod source;
pub mod tabs;
pub mod threads;
mod words;

#[cfg(target_arch = "wasm32")]
mod shell;

#[cfg(not(target_arch = "wasm32"))]
pub use engine::native::NativeEngine;
pub use engine::{Engine, EngineError, Request};
pub use publisher::PublicKey;
pub use session::{FileAnswer, FileOp, Input, Output, Session, Start, Ticket};
pub use source::{Source, SourceFault};

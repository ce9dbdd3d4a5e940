//! The page: what a person sees and does, and nothing of the model.
//!
//! Reading order: `state` (plain data, one `App` that takes actions and events and answers with
//! effects), `markdown` and `text` (what is shown, still plain), `record` (what is kept), `error`.
//! Then the shells, which exist only in the browser: `page` (state in a signal, effects carried
//! out), `link` (the worker's port), `share` (connections to other browsers), `intake` (files from
//! outside), `export` (models to outside), `saved` (IndexedDB), `other_tabs`, `views`.
//!
//! Invariant: nothing above the shells knows a signal, a clock, a random number or the browser,
//! so everything a person can do is tested natively by feeding data.

pub mod error;
pub mod markdown;
pub mod record;
pub mod state;
pub mod text;

#[cfg(target_arch = "wasm32")]
mod export;
#[cfg(target_arch = "wasm32")]
mod intake;
#[cfg(target_arch = "wasm32")]
mod link;
#[cfg(target_arch = "wasm32")]
mod other_tabs;
#[cfg(target_arch = "wasm32")]
mod page;
#[cfg(target_arch = "wasm32")]
mod saved;
#[cfg(target_arch = "wasm32")]
mod share;
#[cfg(target_arch = "wasm32")]
mod views;

//! Drives the finished app in a real browser, as a person would.
//!
//! Reading order: `error`, `places` (what must have been built), `process` (nothing outlives a
//! test), `program` (the native answers), `http` and `folder` (the smallest client and server),
//! `server` (`tinyrustlm serve`), `scripted` (one that misbehaves), `engine` and `screen` (what
//! browsers need), `browser` (driver, profile, session), `page` (the app's page), `window` (several
//! tabs), `link` (a worker without a page).
//!
//! `./test` builds what is needed and runs these tests one after another.

mod browser;
mod engine;
mod error;
mod folder;
mod http;
mod link;
mod native;
mod page;
mod places;
mod process;
mod program;
mod screen;
mod scripted;
mod server;
mod sized;
mod window;

pub use browser::{Browser, Profile};
pub use engine::Engine;
pub use error::{E2eError, Result};
pub use fantoccini::wd::WindowHandle;
pub use folder::Folder;
pub use http::{Reply, get};
pub use link::WorkerLink;
pub use native::Native;
pub use page::Page;
pub use places::{
    copy_dist, dist, golden, model_gguf, model_slm, signing_seed, store_suite, suite_lane,
};
pub use program::{convert, eval};
pub use scripted::{Act, Asked, Script, Scripted};
pub use server::{Line, Options, Server};
pub use sized::sized_source;

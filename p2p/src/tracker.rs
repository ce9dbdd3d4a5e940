//! How peers of one model find each other: the tracker protocol of WebTorrent, both sides of it.
//!
//! A tracker keeps, for each info hash, who is there, and hands offers and answers from one to
//! another. It is JSON in text frames of a WebSocket; binary values are strings of exactly 20
//! characters, each of which is one byte. Public servers and other programs speak it, too.
//!
//! Reading order: `message` (what is said), `door` and `client` (one model at one tracker),
//! `server` (a tracker). Both are without sockets: inputs with the time go in, outputs are drained.

mod client;
mod door;
mod message;
mod server;

pub use client::TrackerClient;
pub use door::{TrackerIn, TrackerOut};
pub use message::{InfoHash, OfferId, PeerId, Progress};
pub use server::{SocketId, TrackerServer, TrackerServerOut};

/// Longest message that either side reads.
pub const TRACKER_TEXT_BYTES_MAX: usize = 64 * 1024;
/// Most offers of one announcement, as other trackers have it.
pub const OFFERS_MAX: usize = 5;
/// How long an offer waits for its answer.
pub const OFFER_LIFE_MS: u64 = 50_000;

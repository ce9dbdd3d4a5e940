//! What page and worker say of models that go from browser to browser.
//!
//! Connections exist only in pages, models only in the worker of the tab that owns them. The page
//! gives each connection a number; the bytes of its messages travel beside these messages, as
//! they are.

use alloc::string::String;
use alloc::vec::Vec;

use format::ModelId;
use serde::{Deserialize, Serialize};

/// A model that peers have, as an invite names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitedModel {
    pub id: ModelId,
    /// A stranger's word, for display only.
    pub name: String,
    /// Addresses of the `.slm` file. Beside each lies its `.pieces`.
    pub sources: Vec<String>,
    pub trackers: Vec<String>,
    /// What has come is given to others, too, meanwhile and afterwards.
    pub gives: bool,
    /// Drawn at random.
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwarmCommand {
    /// Gives a stored model to whoever is connected, until told otherwise.
    Share {
        model: ModelId,
        trackers: Vec<String>,
        /// Bytes a second, at most.
        limit: Option<u32>,
        /// Drawn at random.
        seed: u64,
    },
    /// At once, whatever is under way.
    Unshare {
        model: ModelId,
    },
    /// The page has a connection to a peer that speaks of this model. `key` is the beginning of
    /// the hash of the peer's certificate.
    Opened {
        model: ModelId,
        link: u32,
        key: [u8; 20],
    },
    Closed {
        link: u32,
    },
    /// So many bytes have left the connection's own queue.
    Drained {
        link: u32,
        bytes: u32,
    },
}

/// Only to the page of the tab that owns the models: it has the connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwarmEvent {
    /// Something is shared or fetched; told again when it changes, twice a second at most.
    Status(SwarmStatus),
    /// Nothing is shared or fetched of this model any more: its connections are of no use.
    Ended { model: ModelId },
    /// The connection is to be closed at once.
    Close {
        link: u32,
        why: String,
        /// The peer lied; it is not to be met again.
        is_lie: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmStatus {
    pub model: ModelId,
    pub name: String,
    pub trackers: Vec<String>,
    /// Pieces are wanted.
    pub fetches: bool,
    /// Pieces are given.
    pub gives: bool,
    pub pieces: u32,
    pub pieces_total: u32,
    /// Bytes that came from peers, verified, and that went to them.
    pub down: u64,
    pub up: u64,
    pub peers: Vec<PeerReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerReport {
    /// The page's number; `None` for a server.
    pub link: Option<u32>,
    pub pieces: u32,
    pub down: u64,
    pub up: u64,
}

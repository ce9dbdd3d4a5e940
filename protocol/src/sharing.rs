//! What page and worker say of models that go from browser to browser.
//!
//! Connections exist only in pages, models only in the worker of the tab that owns them, so the
//! connections are that tab's page's, for the pages of other tabs, too. It gives each connection a
//! number; the bytes of its messages travel beside these messages, as they are.

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
    /// A person's part in connecting two browsers without a server, in whichever tab.
    Meet(Meeting),
    /// What the page with the connections made of it.
    Met {
        model: ModelId,
        met: Met,
    },
}

/// One step of an exchange of codes between two people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meeting {
    /// A code is wanted for somebody else.
    Offer { model: ModelId },
    /// Somebody else's code is to be answered.
    Answer { model: ModelId, code: String },
    /// The code that came back.
    Take { model: ModelId, code: String },
}

impl Meeting {
    pub fn model(&self) -> ModelId {
        match self {
            Meeting::Offer { model }
            | Meeting::Answer { model, .. }
            | Meeting::Take { model, .. } => *model,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Met {
    /// To be given to the other person, who gives another back.
    Offer(String),
    /// To be given back.
    Answer(String),
    /// Both sides know each other; the connection is being made.
    Connecting,
    /// Why not, in words.
    Failed(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwarmEvent {
    /// To all pages. Something is shared or fetched; told again when it changes, twice a second at
    /// most.
    Status(SwarmStatus),
    /// To all pages. Nothing is shared or fetched of this model any more: its connections are of no
    /// use.
    Ended { model: ModelId },
    /// To the page with the connections. The connection is to be closed at once.
    Close {
        link: u32,
        why: String,
        /// The peer lied; it is not to be met again.
        is_lie: bool,
    },
    /// To the page with the connections: it is to do this.
    Meet(Meeting),
    /// To the page that wished for it.
    Met { model: ModelId, met: Met },
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

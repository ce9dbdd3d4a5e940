//! What can happen to a node, and who watches it.

use format::{PieceIndex, PieceLayer};
use p2p::{Description, Fault, LinkId, OfferId, PeerId, PeerKey, Status, TrackerOut};

use super::connection::{Connection, Pending};
use super::rendezvous::LineId;
use super::source::{ServerId, Trouble};

/// Everything that can happen to a node.
pub enum Happening {
    Opened {
        link: LinkId,
        key: PeerKey,
    },
    Message {
        link: LinkId,
        bytes: Vec<u8>,
    },
    Drained {
        link: LinkId,
        bytes: u32,
    },
    Closed {
        link: LinkId,
    },
    Tracker {
        line: LineId,
        out: TrackerOut,
    },
    /// The tracker cannot be reached, or went away.
    TrackerAway {
        line: LineId,
        why: String,
    },
    /// An offer that a tracker's line asked for.
    Offered {
        line: LineId,
        offer_id: OfferId,
        made: Option<(Pending, Description)>,
        link: LinkId,
    },
    /// The answer to a stranger's offer.
    Answered {
        line: LineId,
        to: PeerId,
        offer_id: OfferId,
        made: Option<(Connection, Description)>,
        link: LinkId,
    },
    /// A person typed in the answer to an offer.
    AnsweredByHand {
        link: LinkId,
        pending: Pending,
        answer: Description,
    },
    Fetched {
        link: LinkId,
        piece: PieceIndex,
        bytes: Result<Vec<u8>, Trouble>,
    },
    ServerAgain {
        server: ServerId,
    },
    NoLayer {
        server: ServerId,
        trouble: Trouble,
    },
    Layer(PieceLayer),
    /// The person wants it to end.
    End,
}

/// What is told to a person while it goes on.
pub trait Watcher: Send {
    fn left(&mut self, link: LinkId, fault: &Fault);
    fn said(&mut self, words: String);
    fn progress(&mut self, bytes: u64, status: &Status);
}

//! What goes into a swarm, and what comes out of it.
//!
//! A swarm does not know what a connection is. Whoever has one (a data channel of a browser, the
//! native stack, a server that answers Range requests) gives it a number and says what happens.

use format::{PieceIndex, PieceLayer, VerifiedPiece};

use crate::Fault;

/// Number of a connection; whoever opens it gives it, and never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// By what a peer is known again after it was left: its name at the tracker, or the fingerprint
/// of its certificate, cut to 20 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey(pub [u8; 20]);

/// What is wanted of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing: what is here is shared.
    Nothing,
    /// The hashes of its pieces.
    Layer,
    /// Its first so many pieces, in this order: the header, before anything else is decided.
    First(u32),
    All,
}

/// Whether what is here is given to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    Off,
    On,
}

/// Bytes a second that go out at most; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadLimits {
    pub total: Option<u32>,
    pub each: Option<u32>,
}

#[derive(Debug)]
pub enum Input<'a> {
    /// A connection to a peer is open. Messages on it are whole, in order and not lost.
    Opened {
        link: LinkId,
        key: PeerKey,
    },
    /// A server has the whole file; it is asked for whole pieces by [`Output::Fetch`].
    OpenedServer {
        link: LinkId,
    },
    Message {
        link: LinkId,
        bytes: &'a [u8],
    },
    /// So many bytes of what was sent have left the connection's own queue. Nothing more is sent
    /// while too much waits there.
    Drained {
        link: LinkId,
        bytes: u32,
    },
    /// It ended by itself.
    Closed {
        link: LinkId,
    },
    /// A server's piece, whole; `None` if it does not come.
    Fetched {
        link: LinkId,
        piece: PieceIndex,
        bytes: Option<Vec<u8>>,
    },
    /// The hashes of the pieces came another way.
    Layer(PieceLayer),
    /// The piece of an [`Output::Store`] is in good hands, but cannot be read by [`Output::Read`].
    Kept {
        piece: PieceIndex,
    },
    /// The piece is stored and can be read: after an [`Output::Store`], or from an earlier start.
    Stored {
        piece: PieceIndex,
    },
    /// It could not be stored, or is no longer there.
    Lost {
        piece: PieceIndex,
    },
    /// The answer to [`Output::Read`]: the whole piece, or `None` if it cannot be read.
    Read {
        piece: PieceIndex,
        bytes: Option<Vec<u8>>,
    },
    Want(Want),
    Share(Sharing),
    Limit(UploadLimits),
    /// Nothing happened but time; also after [`Output::WakeAt`].
    Time,
    /// Everything is over at once: all connections are closed, nothing is sent any more.
    Stop,
}

#[derive(Debug, PartialEq)]
pub enum Output {
    Send {
        link: LinkId,
        bytes: Vec<u8>,
    },
    /// Close it now; without waiting for what is still to be sent. A lying peer's key is also
    /// remembered, and `Swarm::is_banned` names it.
    Close {
        link: LinkId,
        fault: Fault,
    },
    /// Give this piece as [`Input::Read`].
    Read {
        piece: PieceIndex,
    },
    /// Ask this server for this piece, and give it as [`Input::Fetched`].
    Fetch {
        link: LinkId,
        piece: PieceIndex,
    },
    /// The hashes of all pieces are known, and give the model's root.
    Layer(PieceLayer),
    /// A whole piece, every leaf of it verified. Answered by `Stored`, `Kept` or `Lost`.
    Store(VerifiedPiece),
    /// All that is wanted is stored or kept.
    Finished,
    /// Give [`Input::Time`] at this time.
    WakeAt(u64),
}

/// One peer, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    pub link: LinkId,
    pub is_server: bool,
    /// Pieces that it says it has.
    pub pieces: u32,
    /// Verified bytes that came from it.
    pub down: u64,
    /// Bytes of leaves that were sent to it.
    pub up: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub pieces: u32,
    pub down: u64,
    pub up: u64,
    pub peers: Vec<PeerStatus>,
}

//! Sharing a model between browsers, and with the native program.
//!
//! `invite` is the link that one person gives to another; `topic` is the name under which those
//! who have a model find each other; `wire` is what two of them say to each other, and `swarm`
//! decides what to say: it pulls pieces from many peers at once, verifies every leaf on arrival,
//! and gives to others what is here. It does nothing itself: `door` is what goes in and out.
//! `signal` is what two peers must know of each other to connect, sealed for those who know the
//! model or as a code for two people; `tracker` is how strangers with the same model find each
//! other, and a server for them; `ice` are servers that help through routers; `qr` draws a link or
//! a code.

mod invite;

mod topic;

mod door;
mod fault;
mod pieces;
mod swarm;
mod wire;

mod signal;
mod tracker;

mod ice;
mod qr;

mod error;

pub use door::{Input, LinkId, Output, PeerKey, PeerStatus, Sharing, Status, UploadLimits, Want};
pub use error::{P2pError, SignalFault};
pub use fault::Fault;
pub use ice::IceServer;
pub use invite::{
    ADDRESS_BYTES_MAX, ADDRESSES_MAX, INVITE_BYTES_MAX, Invite, LENGTH_MAX, NAME_BYTES_MAX,
};
pub use pieces::PieceSet;
pub use qr::Qr;
pub use signal::{
    Address, CANDIDATES_MAX, Candidate, CandidateKind, Code, Description, NONCE_BYTES, Role,
    SDP_BYTES_MAX, answer_code, offer_code, offer_tag, open, read_code, seal,
};
pub use swarm::{
    ARRIVING_MAX, ENDGAME_PIECES, MODEL_BYTES_MAX, PEERS_MAX, STORE_QUEUE_BYTES_MAX, Swarm,
};
pub use topic::info_hash;
pub use tracker::{
    InfoHash, OFFER_LIFE_MS, OFFERS_MAX, OfferId, PeerId, Progress, SocketId,
    TRACKER_TEXT_BYTES_MAX, TrackerClient, TrackerIn, TrackerOut, TrackerServer, TrackerServerOut,
};
pub use wire::{
    Hello, LAYER_HASHES_MAX, LEAVES_PER_MESSAGE, MESSAGE_BYTES_MAX, Message, Reject, Run,
    WIRE_VERSION,
};

//! Sharing a model between browsers, and with the native program.
//!
//! `invite` is the link that one person gives to another; `topic` is the name under which those
//! who have a model find each other; `wire` is what two of them say to each other, and `swarm`
//! decides what to say: it pulls pieces from many peers at once, verifies every leaf on arrival,
//! and gives to others what is here. It does nothing itself: `door` is what goes in and out.

mod invite;

mod topic;

mod door;
mod fault;
mod pieces;
mod swarm;
mod wire;

mod error;

pub use door::{Input, LinkId, Output, PeerKey, PeerStatus, Sharing, Status, UploadLimits, Want};
pub use error::P2pError;
pub use fault::Fault;
pub use invite::{
    ADDRESS_BYTES_MAX, ADDRESSES_MAX, INVITE_BYTES_MAX, Invite, LENGTH_MAX, NAME_BYTES_MAX,
};
pub use pieces::PieceSet;
pub use swarm::{
    ARRIVING_MAX, ENDGAME_PIECES, MODEL_BYTES_MAX, PEERS_MAX, STORE_QUEUE_BYTES_MAX, Swarm,
};
pub use topic::info_hash;
pub use wire::{
    Hello, LAYER_HASHES_MAX, LEAVES_PER_MESSAGE, MESSAGE_BYTES_MAX, Message, Reject, Run,
    WIRE_VERSION,
};

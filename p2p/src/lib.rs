//! Sharing a model between browsers: so far its names.
//!
//! `invite` is the link that one person gives to another; `swarm` is the name under which those
//! who have a model find each other.

mod invite;

mod swarm;

mod error;

pub use error::P2pError;
pub use invite::{
    ADDRESS_BYTES_MAX, ADDRESSES_MAX, INVITE_BYTES_MAX, Invite, LENGTH_MAX, NAME_BYTES_MAX,
};
pub use swarm::info_hash;

//! What two peers must know of each other before they can connect, and the forms it travels in.
//!
//! Reading order: here (the facts), `sdp` (from and to the text that browsers speak), `bytes` (the
//! compact form), `code` (that form as text for two people to exchange), `seal` (that form for the
//! holders of one model's root, as it goes through a tracker).
//!
//! Only these facts ever reach a browser's or a library's parser: what a stranger sends is read
//! here and written anew, so no other line of theirs is obeyed.
//!
//! Addresses are private. No text made of a description by `Debug` or by an error holds one.

mod bytes;
mod code;
mod sdp;
mod seal;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

pub use code::{Code, answer_code, offer_code, offer_tag, read_code};
pub use seal::{NONCE_BYTES, open, seal};

use crate::{P2pError, SignalFault};

/// Most addresses of a description. A machine with more is reached by its first.
pub const CANDIDATES_MAX: usize = 12;
/// Longest SDP that is read. Browsers' are of 600 to 3000 bytes.
pub const SDP_BYTES_MAX: usize = 16 * 1024;
/// Shortest and longest user name fragment and password (RFC 8839, 5.4), bounded closer above.
const UFRAG_BYTES: std::ops::RangeInclusive<usize> = 4..=64;
const PASSWORD_BYTES: std::ops::RangeInclusive<usize> = 22..=128;

/// One side of a connection that is to be: one data channel's transport, and where it listens.
#[derive(Clone, PartialEq, Eq)]
pub struct Description {
    pub role: Role,
    pub ufrag: String,
    pub password: String,
    /// SHA-256 of the certificate that this side will show.
    pub fingerprint: [u8; 32],
    pub candidates: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Offer,
    /// Answers, and begins the handshake of the encryption.
    ActiveAnswer,
    /// Answers, and waits for that handshake.
    PassiveAnswer,
}

/// An address at which a side may be reached, always over UDP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub kind: CandidateKind,
    pub address: Address,
    pub port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateKind {
    /// The machine's own.
    Host,
    /// Of the router in front of it.
    Reflexive,
    /// Of a relay that it uses.
    Relayed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Address {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// A random name that only its own local network can resolve: `UUID.local`.
    Local([u8; 16]),
}

impl Description {
    pub fn is_offer(&self) -> bool {
        self.role == Role::Offer
    }

    /// Whether every part can be written in every form.
    fn check(&self) -> Result<(), P2pError> {
        check_secret("ufrag", &self.ufrag, UFRAG_BYTES)?;
        check_secret("password", &self.password, PASSWORD_BYTES)?;
        let usable = self.candidates.iter().all(|it| it.is_usable());
        match usable && self.candidates.len() <= CANDIDATES_MAX {
            true => Ok(()),
            false => Err(SignalFault::Field { name: "candidate" }.into()),
        }
    }
}

impl Candidate {
    /// No stranger makes this program send to a group, to everybody or to nobody.
    fn is_usable(&self) -> bool {
        let sound = match self.address {
            Address::V4(v4) => !v4.is_unspecified() && !v4.is_multicast() && !v4.is_broadcast(),
            Address::V6(v6) => !v6.is_unspecified() && !v6.is_multicast(),
            Address::Local(_) => true,
        };
        sound && self.port != 0
    }
}

/// Both are of the letters that RFC 8839 allows, so neither can end a line.
fn check_secret(
    name: &'static str,
    text: &str,
    bytes: std::ops::RangeInclusive<usize>,
) -> Result<(), P2pError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    match bytes.contains(&text.len()) && text.bytes().all(plain) {
        true => Ok(()),
        false => Err(SignalFault::Field { name }.into()),
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.candidates.iter().map(|it| it.kind).collect();
        f.debug_struct("Description")
            .field("role", &self.role)
            .field("candidates", &kinds)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

//! What goes into one side of a tracker's conversation, and what comes out of it.

use super::message::{OfferId, PeerId, Progress};
use crate::signal::{Description, NONCE_BYTES};

#[derive(Debug)]
pub enum TrackerIn<'a> {
    /// The socket is open. The bytes are random; they name this peer for as long as it lives.
    Opened {
        name: [u8; 20],
    },
    Text(&'a str),
    /// The socket is closed, or could not be opened.
    Closed,
    /// An offer that [`TrackerOut::MakeOffers`] asked for. Id and nonce are random.
    Offer {
        offer_id: OfferId,
        nonce: [u8; NONCE_BYTES],
        offer: &'a Description,
    },
    /// The answer to somebody's offer. The nonce is random.
    Answer {
        to: PeerId,
        offer_id: OfferId,
        nonce: [u8; NONCE_BYTES],
        answer: &'a Description,
    },
    Progress(Progress),
    /// How many offers shall be open at a time while more peers are wanted; zero for none.
    Seek(usize),
    /// Ask how many peers there are.
    Scrape,
    Time,
    /// Say goodbye.
    Stop,
}

#[derive(Debug, PartialEq)]
pub enum TrackerOut {
    /// Open the socket, then give `Opened` or `Closed`.
    Connect,
    Send(String),
    Close,
    WakeAt(u64),
    /// Make so many offers, and give each.
    MakeOffers(usize),
    /// The connection of this offer is not needed: nobody answered.
    Expired(OfferId),
    /// Somebody offers a connection: to be answered, or not.
    Offer {
        from: PeerId,
        offer_id: OfferId,
        offer: Description,
    },
    /// Somebody answered that offer of ours.
    Answer {
        from: PeerId,
        offer_id: OfferId,
        answer: Description,
    },
    /// The tracker's count of those who have all of it and those who do not.
    Counts {
        complete: Option<u32>,
        incomplete: Option<u32>,
    },
    /// The tracker refused; in its words.
    Refused(String),
    Warned(String),
}

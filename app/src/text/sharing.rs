//! Words for models that go from browser to browser.

use p2p::{P2pError, SignalFault};
use protocol::{ErrorReport, Stage, SwarmStatus, TrResult};

use super::bytes;
use crate::state::RoomView;

/// What a person agrees to, in one breath, before anything is shared.
pub const WHAT_A_PEER_LEARNS: &str = "Whoever connects learns this device’s network address and \
     that it has this model. A tracker learns the address, too, but not which model it is. \
     Conversations are never shared.";

/// What a person should know before naming such a server.
pub const BEYOND_ROUTERS: &str = "In one network nothing is needed. Browsers behind different \
     routers may need a STUN server, which tells each its public address, or a TURN server, which \
     passes on bytes that only the two can read. Whoever runs the server learns this device’s \
     address. None is asked unless it is named here.";

pub const BY_CODE: &str = "Without any server: the link now holds an offer of this page. Give it \
     to one person, who opens it or pastes it into Receive, and gives a code back.";

/// A pasted text that leads to no model.
pub fn invite_refused(error: &P2pError) -> ErrorReport {
    ErrorReport {
        code: TrResult::InvalidArgument,
        stage: Stage::Import,
        what: format!("This link leads to no model: {error}."),
        remedy: "Copy the whole link, or ask for it again.".into(),
    }
}

/// A peer that sent what is not the model's, in the worker's words.
pub fn peer_lied(link: u32, why: &str) -> ErrorReport {
    ErrorReport {
        code: TrResult::Source,
        stage: Stage::Import,
        what: format!("Peer {link} was left: {why}."),
        remedy: "Nothing of it was kept, and others are asked. There is nothing to do.".into(),
    }
}

pub fn code_refused(error: &P2pError) -> (&'static str, &'static str) {
    match error {
        P2pError::Signal(SignalFault::OtherModel) => (
            "The code is about another model.",
            "Ask for the code that belongs to this link.",
        ),
        _ => (
            "The code is incomplete or damaged.",
            "Copy the whole of it, or ask for a new one.",
        ),
    }
}

/// `2 peers · 34.1 MB given · 1.2 MB/s`
pub fn giving(room: &RoomView) -> String {
    let status = &room.status;
    let mut words = vec![peers(status), format!("{} given", bytes(status.up))];
    words.extend(
        room.up
            .bytes_per_second()
            .map(|speed| format!("{}/s", bytes(speed))),
    );
    words.extend(room.counts.map(|(have, want)| {
        format!("the tracker knows {have} who have it and {want} who want it")
    }));
    words.join(" · ")
}

/// `3 peers, 1 server`
pub fn peers(status: &SwarmStatus) -> String {
    let of = |is_server: bool| {
        let known = status.peers.iter();
        known
            .filter(|peer| peer.link.is_none() == is_server)
            .count()
    };
    let peers = match of(false) {
        0 => "no peer".into(),
        1 => "1 peer".into(),
        count => format!("{count} peers"),
    };
    match of(true) {
        0 => peers,
        1 => format!("{peers}, 1 server"),
        count => format!("{peers}, {count} servers"),
    }
}

//! What the workers of several tabs say to each other.
//!
//! One worker owns files and engine; it is the one that holds the origin's lock. The others ask
//! it. A channel between an owner and a client bears both names, so it works as a port does and
//! no third party has to hand it on. An owner's term has a number, its epoch: who speaks for an
//! older one is not heard.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Command, Event};

/// Of a tab's worker; drawn at random when it starts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ClientId(pub u64);

/// Grows with every owner.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

/// A build of page and worker, and when its page was opened. Of two builds the page that was
/// opened later is in the right: a person has just loaded it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edition {
    pub build: String,
    pub opened_ms: u64,
}

/// Heard by every tab, also by one of another build: these shapes never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Whoever owns, say so.
    Who {
        client: ClientId,
    },
    Owner {
        epoch: Epoch,
        edition: Edition,
    },
    /// To an owner whose number is not above one that was heard before.
    Known {
        epoch: Epoch,
    },
    /// A page of a later edition waits for the files.
    Yield {
        edition: Edition,
    },
}

/// From a client, on the channel of the owner's epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToOwner {
    pub epoch: Epoch,
    pub client: ClientId,
    pub ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// Answered by [`Tell::Welcome`] and what is going on.
    Hello,
    Command(Command),
}

/// From the owner, on the client's channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToClient {
    pub epoch: Epoch,
    pub tell: Tell,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Tell {
    Welcome,
    Event(Event),
}

/// What a tab has to do with the files and the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// This tab does the work, also that of the others.
    Owner,
    /// Another tab does it.
    Follower,
    /// Another tab does it with an earlier build, and will leave it to this one soon.
    Waiting,
    /// Another tab has the files and does not answer: it sleeps or hangs.
    Silent,
    /// Another tab does it with a later build; this one must be loaded again.
    Outdated,
}

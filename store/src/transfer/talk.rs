//! The words of the conversation with a transfer.

use super::ReplyHead;
use crate::range::RangeRefusal;

/// Number of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flight(pub u32);

/// Who vouches for the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Every piece has a hash: what the server says of its file does not matter.
    Hashes,
    /// Nothing but the server's word that the file is still the same one.
    Server,
}

/// What the network did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Head(ReplyHead),
    Body(Vec<u8>),
    End,
    Broken(Break),
}

/// Why no more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// There was no reply at all.
    Unreachable,
    /// The body broke off.
    Cut,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Get(Get),
    /// Read the next portion of this body.
    More(Flight),
    /// Give this request up.
    Abort(Flight),
    /// A window is whole. It is shorter than it was wanted only at the end of the file.
    Bytes {
        at: u64,
        bytes: Vec<u8>,
    },
    /// Nothing comes for now; told again whenever that changes.
    Waiting(Waiting),
    /// Bytes come again.
    Running,
    /// Give the time at this time, or soon after.
    WakeAt(u64),
    /// Nothing more will come.
    Failed(TransferFault),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    pub flight: Flight,
    /// Where an earlier request was led to; `None` is the address that the transfer is about.
    pub url: Option<String>,
    /// First byte and last byte; `None` asks for the whole file.
    pub range: Option<(u64, u64)>,
    /// For `If-Range`. Other origins are asked without it: they would have to allow it first.
    pub if_range: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub cause: WaitCause,
    /// Then it is tried again; earlier if the network comes back.
    pub until_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    Offline,
    Unreachable,
    /// The reply broke off.
    Cut,
    /// The reply stopped coming.
    Stalled,
    /// The server answered with this status.
    Busy(u16),
}

/// Why a file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferFault {
    /// No reply, however often it was asked for.
    Unreachable,
    Reply(RangeRefusal),
    /// A web page in place of the file, and how it begins.
    Page {
        first: Vec<u8>,
    },
    /// The file on the server is another one than it was.
    Changed,
    /// There is a file, and nothing in it.
    Empty,
    /// Replies break off before their first byte, again and again.
    Cut,
    /// The server asks for a longer wait than anybody sits through.
    AskedToWait {
        seconds: u64,
    },
}

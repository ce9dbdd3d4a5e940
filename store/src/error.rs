//! Every way storage can refuse.

use std::fmt;
use std::io::ErrorKind;

use format::{Digest, ModelId, PieceIndex};

/// What was being done to a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Directory,
    List,
    Open,
    Create,
    Rename,
    Remove,
    Read,
    Write,
    Len,
    SetLen,
    Flush,
    Close,
}

/// How stored bytes contradict themselves or what is asked of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// A stored model's file is shorter or longer than the model.
    Length { want: u64, got: u64 },
    /// A rebuilt tree has another root than the file's name says.
    Root { want: Digest, got: Digest },
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    NotFound {
        name: String,
    },
    /// Creating never replaces what is there.
    Exists {
        name: String,
    },
    /// The file is open elsewhere: in another tab, or through another handle.
    Busy {
        name: String,
    },
    /// The disk or the origin's quota is used up; `needed` is what this call asked for, in bytes.
    Quota {
        needed: u64,
    },
    /// Refused before the first byte, by the browser's own figures; all in bytes.
    NoRoom {
        needed: u64,
        free: u64,
        used: u64,
    },
    /// The browser or the system forbids storage here, as private windows do.
    Denied {
        operation: Operation,
    },
    /// This browser has no such storage at all.
    Unsupported {
        operation: Operation,
    },
    /// The handle was closed before.
    Closed,
    /// The file ends before `at + want`; `got` bytes could be read.
    ShortRead {
        at: u64,
        want: u64,
        got: u64,
    },
    /// `at + len` is beyond what this storage can address.
    Bounds {
        at: u64,
        len: u64,
    },
    /// The bytes are not the piece that the model's piece layer names.
    DigestMismatch {
        piece: PieceIndex,
        want: Digest,
        got: Digest,
    },
    NoSuchPiece {
        piece: PieceIndex,
        pieces: u32,
    },
    /// A piece has one right length; both in bytes.
    PieceLength {
        piece: PieceIndex,
        want: u64,
        got: u64,
    },
    /// `finish` before everything was there; both in bytes.
    Incomplete {
        want: u64,
        got: u64,
    },
    /// More bytes than the announced length of `want`.
    Overrun {
        want: u64,
        got: u64,
    },
    Corrupt {
        id: ModelId,
        what: Corruption,
    },
    /// The system refused for another reason.
    Io {
        operation: Operation,
        kind: ErrorKind,
    },
    /// The browser refused for another reason; `exception` is the `DOMException`'s name.
    Browser {
        operation: Operation,
        exception: String,
    },
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Operation::Directory => "opening the directory",
            Operation::List => "listing",
            Operation::Open => "opening",
            Operation::Create => "creating",
            Operation::Rename => "renaming",
            Operation::Remove => "removing",
            Operation::Read => "reading",
            Operation::Write => "writing",
            Operation::Len => "measuring",
            Operation::SetLen => "reserving space",
            Operation::Flush => "flushing",
            Operation::Close => "closing",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Corruption::Length { want, got } => {
                write!(f, "the file has {got} bytes instead of {want}")
            }
            Corruption::Root { want, got } => write!(f, "root {got} instead of {want}"),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NotFound { name } => write!(f, "no such file: {name}"),
            StoreError::Exists { name } => write!(f, "the file exists already: {name}"),
            StoreError::Busy { name } => write!(f, "the file is open elsewhere: {name}"),
            StoreError::Quota { needed } => write!(f, "no room left for {needed} bytes"),
            StoreError::NoRoom { needed, free, used } => write!(
                f,
                "{needed} bytes needed, {free} free, {used} used by this site"
            ),
            StoreError::Denied { operation } => write!(f, "storage is forbidden: {operation}"),
            StoreError::Unsupported { operation } => {
                write!(f, "this browser has no such storage: {operation}")
            }
            StoreError::Closed => f.write_str("the handle is closed"),
            StoreError::ShortRead { at, want, got } => {
                write!(f, "{got} of {want} bytes could be read at {at}")
            }
            StoreError::Bounds { at, len } => write!(f, "{len} bytes at {at} are out of reach"),
            StoreError::DigestMismatch { piece, want, got } => {
                write!(f, "piece {}: hash {got} instead of {want}", piece.0)
            }
            StoreError::NoSuchPiece { piece, pieces } => {
                write!(f, "piece {} of a model of {pieces} pieces", piece.0)
            }
            StoreError::PieceLength { piece, want, got } => {
                write!(f, "piece {}: {got} bytes instead of {want}", piece.0)
            }
            StoreError::Incomplete { want, got } => write!(f, "{got} of {want} bytes are here"),
            StoreError::Overrun { want, got } => write!(f, "{got} bytes instead of {want}"),
            StoreError::Corrupt { id, what } => write!(f, "{what} in model {}", id.root),
            StoreError::Io { operation, kind } => write!(f, "{kind} while {operation}"),
            StoreError::Browser {
                operation,
                exception,
            } => write!(f, "{exception} while {operation}"),
        }
    }
}

impl std::error::Error for StoreError {}

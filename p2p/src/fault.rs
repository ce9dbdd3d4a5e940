//! Why a peer was left.

use std::fmt;

use format::PieceIndex;

/// What was wrong with a peer, or why it is not needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A message longer than any may be.
    Oversize { bytes: usize },
    /// Bytes that are no message of this version.
    Malformed { kind: u8, bytes: usize },
    /// Another version of the protocol, or pieces of another length.
    OtherVersion { version: u8 },
    /// A wrong root or a wrong length.
    OtherModel,
    /// Something came before hello, a second hello, or a bitfield of a wrong length.
    OutOfOrder { kind: u8 },
    /// A piece, leaf or hash that the model does not have.
    NoSuchPiece { piece: PieceIndex },
    /// Leaves, hashes or a reject that nobody asked for.
    Unasked { piece: PieceIndex },
    /// The leaf is not the model's.
    BadLeaf { piece: PieceIndex, leaf: u8 },
    /// The hashes of the leaves do not give the piece's.
    BadHashes { piece: PieceIndex },
    /// The bytes of a server are not the model's piece.
    BadPiece { piece: PieceIndex },
    /// The piece hashes do not give the root.
    BadLayer,
    /// More requests, or more messages to no use, than anybody needs.
    Flood,
    /// Answers did not come, again and again.
    Silent,
    /// It was left before for one of the above.
    Banned,
    /// Enough peers are here.
    Full,
    /// The connection leads back to this page, or twice to the same one.
    Twice,
    /// Neither has anything for the other.
    NothingToDo,
    /// Sharing was stopped by a person, or the model is gone.
    Stopped,
}

impl Fault {
    /// Whether a peer like this is to be remembered and never met again.
    pub fn is_a_lie(&self) -> bool {
        !matches!(
            self,
            Fault::Silent
                | Fault::Banned
                | Fault::Full
                | Fault::Twice
                | Fault::NothingToDo
                | Fault::Stopped
                | Fault::OtherVersion { .. }
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Oversize { bytes } => write!(f, "it sent a message of {bytes} bytes"),
            Fault::Malformed { kind, bytes } => {
                write!(
                    f,
                    "it sent {bytes} bytes of kind {kind} that are no message"
                )
            }
            Fault::OtherVersion { version } => write!(f, "it speaks version {version}"),
            Fault::OtherModel => f.write_str("it has another model"),
            Fault::OutOfOrder { kind } => write!(f, "it sent kind {kind} at a wrong time"),
            Fault::NoSuchPiece { piece } => {
                write!(f, "it spoke of a piece {} there is not", piece.0)
            }
            Fault::Unasked { piece } => write!(f, "it sent of piece {} what nobody asked", piece.0),
            Fault::BadLeaf { piece, leaf } => {
                write!(
                    f,
                    "it sent wrong bytes for leaf {leaf} of piece {}",
                    piece.0
                )
            }
            Fault::BadHashes { piece } => write!(f, "it sent wrong hashes of piece {}", piece.0),
            Fault::BadPiece { piece } => write!(f, "it sent wrong bytes for piece {}", piece.0),
            Fault::BadLayer => f.write_str("it sent wrong hashes of pieces"),
            Fault::Flood => f.write_str("it sent more than anybody needs"),
            Fault::Silent => f.write_str("it does not answer"),
            Fault::Banned => f.write_str("it was left before"),
            Fault::Full => f.write_str("enough peers are here"),
            Fault::Twice => f.write_str("it is connected already"),
            Fault::NothingToDo => f.write_str("neither has anything for the other"),
            Fault::Stopped => f.write_str("sharing was stopped"),
        }
    }
}

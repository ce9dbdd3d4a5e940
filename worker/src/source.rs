//! Where imported bytes come from, and how that can fail. The browser part is `shell/sources.rs`.

use protocol::{ErrorReport, Stage, TrResult};
use store::RangeRefusal;

/// A number for something that bytes can be asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A file attached to a command; the shell gave the number.
    File(u32),
    /// An address; the session gave the number in `Output::Address`.
    Address(u32),
}

/// Why bytes did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceFault {
    /// No answer at all: offline, no such server, or the other origin forbids it.
    Unreachable,
    Status(u16),
    /// The whole file instead of the part that was asked for.
    NoRanges,
    /// The reply is about another part or another file.
    Range(RangeRefusal),
    /// A web page instead of the file; `first` is the beginning of it.
    Page {
        first: String,
    },
    /// The body ended early; both in bytes.
    Short {
        expected: u64,
        found: u64,
    },
    /// More than a file of this kind may have, in bytes.
    TooLarge {
        most: u64,
    },
    /// The browser cannot read the dropped file any more: it was moved, changed or withdrawn.
    Unreadable,
    /// The command promised a file and none was attached.
    NotAttached,
}

/// The beginning of a body in plain characters, for [`SourceFault::Page`].
pub fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(48).map(plain).collect()
}

impl SourceFault {
    /// Asking once more may help.
    pub fn is_passing(&self) -> bool {
        match self {
            SourceFault::Unreachable | SourceFault::Short { .. } => true,
            SourceFault::Status(status) => *status >= 500 || *status == 429,
            _ => false,
        }
    }

    pub fn report(&self) -> ErrorReport {
        ErrorReport {
            code: TrResult::Source,
            stage: Stage::Import,
            what: self.what(),
            remedy: self.remedy().into(),
        }
    }

    fn what(&self) -> String {
        match self {
            SourceFault::Unreachable => "The server cannot be reached.".into(),
            SourceFault::Status(404) => "The server does not have this file (404).".into(),
            SourceFault::Status(401 | 403) => "The server refuses to give this file out.".into(),
            SourceFault::Status(status) => format!("The server answered with status {status}."),
            SourceFault::NoRanges => {
                "The server sends the whole file and not the part that was asked for.".into()
            }
            SourceFault::Range(RangeRefusal::OtherFile { want, got }) => {
                format!("The file on the server has {got} bytes; the model has {want}.")
            }
            SourceFault::Range(RangeRefusal::StartsLate { want, got }) => {
                format!("The server's answer begins at byte {got}; byte {want} was asked for.")
            }
            SourceFault::Range(RangeRefusal::Status(status)) => {
                format!("The server answered with status {status}.")
            }
            SourceFault::Range(RangeRefusal::Unreadable) => {
                "The server's answer does not say which part of the file it is.".into()
            }
            SourceFault::Page { first } => {
                format!("The server sent a web page in place of the file; it begins {first:?}.")
            }
            SourceFault::Short { expected, found } => {
                format!("The transfer ended after {found} of {expected} bytes.")
            }
            SourceFault::TooLarge { most } => {
                format!("The server's file is larger than {most} bytes.")
            }
            SourceFault::Unreadable => "The browser cannot read the file any more.".into(),
            SourceFault::NotAttached => "No file came with the command.".into(),
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            SourceFault::Unreachable | SourceFault::Short { .. } => {
                "Check the connection and import again; what has arrived is kept."
            }
            SourceFault::Unreadable | SourceFault::NotAttached => {
                "Choose the file again, and do not move or change it meanwhile."
            }
            SourceFault::Status(500..) => "Try again later; what has arrived is kept.",
            _ => "Tell whoever runs the server, or import the model from a file.",
        }
    }
}

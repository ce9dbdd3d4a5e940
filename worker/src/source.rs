//! Where imported bytes come from, and how that can fail. The browser part is `shell/sources.rs`.

use protocol::{ErrorReport, Stage, TrResult};
use store::{RangeRefusal, TransferFault};

/// A number for something that bytes can be asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A file attached to a command; the shell gave the number.
    File(u32),
    /// An address; the session gave the number in `Output::Address`.
    Address(u32),
    /// The peers of a model; the session gave the number.
    Peers(u32),
}

/// Why bytes did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceFault {
    /// No answer at all: offline, no such server, or the other origin forbids it.
    Unreachable,
    Status(u16),
    /// A file that is fetched in parts.
    Transfer(TransferFault),
    /// A web page instead of the file; `first` is the beginning of it.
    Page {
        first: String,
    },
    /// A local file ended early; both in bytes.
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
            SourceFault::Unreachable | SourceFault::Transfer(TransferFault::Unreachable) => {
                "The server cannot be reached, or it does not let other sites read its files \
                 (CORS)."
                    .into()
            }
            SourceFault::Status(status) => status_words(*status),
            SourceFault::Transfer(fault) => transfer_words(fault),
            SourceFault::Page { first } => page_words(first),
            SourceFault::Short { expected, found } => {
                format!("The file ended after {found} of {expected} bytes.")
            }
            SourceFault::TooLarge { most } => {
                format!("The server's file is larger than {most} bytes.")
            }
            SourceFault::Unreadable => "The browser cannot read the file any more.".into(),
            SourceFault::NotAttached => "No file came with the command.".into(),
        }
    }

    fn remedy(&self) -> &'static str {
        const LATER: &str = "Try again later; what has arrived is kept.";
        const REFUSED: &str = "Check the address; if the model asks for an account or a licence, \
             download it where you are signed in, and drop the file here.";
        match self {
            SourceFault::Unreachable | SourceFault::Transfer(TransferFault::Unreachable) => {
                "Check the connection and the address. If it opens in another tab, download the \
                 file there and drop it here, or ask its host to send \
                 Access-Control-Allow-Origin; what has arrived is kept."
            }
            SourceFault::Unreadable | SourceFault::NotAttached | SourceFault::Short { .. } => {
                "Choose the file again, and do not move or change it meanwhile."
            }
            SourceFault::Status(status) => status_remedy(*status),
            SourceFault::Transfer(fault) => match fault {
                TransferFault::Reply(RangeRefusal::Status(status)) => status_remedy(*status),
                TransferFault::Cut | TransferFault::AskedToWait { .. } => LATER,
                TransferFault::Page { .. } => REFUSED,
                TransferFault::Changed => "Import it again: it begins anew with the new file.",
                _ => "Tell whoever runs the server, or import the model from a file.",
            },
            _ => "Tell whoever runs the server, or import the model from a file.",
        }
    }
}

fn transfer_words(fault: &TransferFault) -> String {
    match fault {
        TransferFault::Unreachable => "The server cannot be reached.".into(),
        TransferFault::Reply(RangeRefusal::Status(status)) => status_words(*status),
        TransferFault::Reply(RangeRefusal::OtherFile { want, got }) => {
            format!("The file on the server has {got} bytes; the model has {want}.")
        }
        TransferFault::Reply(RangeRefusal::StartsLate { want, got }) => {
            format!("The server's answer begins at byte {got}; byte {want} was asked for.")
        }
        TransferFault::Reply(RangeRefusal::Unreadable) => {
            "The server's answer does not say which part of the file it is.".into()
        }
        TransferFault::Page { first } => page_words(&beginning(first)),
        TransferFault::Changed => "The file on the server changed while it was fetched.".into(),
        TransferFault::Empty => "The file on the server is empty.".into(),
        TransferFault::Cut => {
            "The server's answers break off before their first byte, again and again.".into()
        }
        TransferFault::AskedToWait { seconds } => {
            let minutes = seconds.div_ceil(60);
            format!("The server is busy and asks to come back in {minutes} minutes.")
        }
    }
}

fn page_words(first: &str) -> String {
    format!("The server sent a web page in place of the file; it begins {first:?}.")
}

fn status_words(status: u16) -> String {
    match status {
        401 => "The server wants a sign-in for this file (401).".into(),
        403 => "The server refuses to give this file out (403).".into(),
        404 | 410 => format!("The server does not have this file ({status})."),
        416 => "The file on the server is shorter than it should be (416).".into(),
        429 => "The server limits how often it is asked, and still does (429).".into(),
        500.. => format!("The server has a fault of its own or no time ({status})."),
        _ => format!("The server answered with status {status}."),
    }
}

fn status_remedy(status: u16) -> &'static str {
    match status {
        401 | 403 => {
            "If the model asks for an account or a licence, download it where you are signed in, \
             and drop the file here."
        }
        404 | 410 => "Check the address, or ask whoever runs the server where the file is now.",
        429 | 500.. => "Try again later; what has arrived is kept.",
        _ => "Tell whoever runs the server, or import the model from a file.",
    }
}

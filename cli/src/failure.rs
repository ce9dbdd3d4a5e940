//! How a command ends when it does not succeed.

use std::fmt;
use std::path::Path;

/// Exit codes: 2 for wrong usage, 3 for a refused input, 130 for what a person interrupted, 1 for
/// the rest.
#[derive(Debug)]
pub enum Failure {
    /// The call itself is wrong.
    Usage(String),
    /// The input is not what it should be; nothing was written.
    Refused { what: String, remedy: String },
    /// The machine did not do its part: disk, memory, network.
    Machine(String),
    /// A person ended it with Ctrl-C before it was done.
    Interrupted(String),
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Refused { .. } => 3,
            Failure::Machine(_) => 1,
            // As shells have it: 128 and the number of the signal.
            Failure::Interrupted(_) => 130,
        }
    }

    pub fn file(path: &Path, error: &std::io::Error) -> Failure {
        let what = format!("{}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::NotFound => Failure::Usage(what),
            _ => Failure::Machine(what),
        }
    }

    pub fn refused(what: impl fmt::Display, remedy: impl fmt::Display) -> Failure {
        Failure::Refused {
            what: what.to_string(),
            remedy: remedy.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(what) | Failure::Machine(what) | Failure::Interrupted(what) => {
                f.write_str(what)
            }
            Failure::Refused { what, remedy } => write!(f, "{what}. {remedy}"),
        }
    }
}

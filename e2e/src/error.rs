//! Every way a browser test can fail before it comes to its own assertions.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub type Result<T> = std::result::Result<T, E2eError>;

#[derive(Debug)]
pub enum E2eError {
    /// Something that `./test` makes is not there.
    Missing {
        path: PathBuf,
        made_by: &'static str,
    },
    Io {
        path: PathBuf,
        source: io::Error,
    },
    /// No connection, or it broke.
    Net {
        address: String,
        source: io::Error,
    },
    Start {
        program: PathBuf,
        source: io::Error,
    },
    /// A program that should serve ended, or never said where.
    Silent {
        program: PathBuf,
        said: String,
    },
    Session(Box<fantoccini::error::NewSessionError>),
    Driver(Box<fantoccini::error::CmdError>),
    /// A script in the page threw.
    Script {
        words: String,
    },
    /// What was waited for did not come; `seen` is what was there instead.
    Timeout {
        what: String,
        after: Duration,
        seen: String,
    },
    /// An answer has another shape than expected.
    Shape {
        what: &'static str,
        found: String,
    },
}

impl E2eError {
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> E2eError {
        let path = path.to_owned();
        move |source| E2eError::Io { path, source }
    }

    pub fn net(address: &str) -> impl FnOnce(io::Error) -> E2eError {
        let address = address.to_owned();
        move |source| E2eError::Net { address, source }
    }
}

impl From<fantoccini::error::CmdError> for E2eError {
    fn from(error: fantoccini::error::CmdError) -> E2eError {
        E2eError::Driver(Box::new(error))
    }
}

impl fmt::Display for E2eError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            E2eError::Missing { path, made_by } => {
                write!(f, "run {made_by}, which makes {}", path.display())
            }
            E2eError::Io { path, source } => write!(f, "{source}: {}", path.display()),
            E2eError::Net { address, source } => write!(f, "{source}: {address}"),
            E2eError::Start { program, source } => {
                write!(f, "cannot start: {source}: {}", program.display())
            }
            E2eError::Silent { program, said } => {
                write!(f, "said no address but {said:?}: {}", program.display())
            }
            E2eError::Session(error) => write!(f, "no browser session: {error}"),
            E2eError::Driver(error) => write!(f, "driver: {error}"),
            E2eError::Script { words } => write!(f, "script: {words}"),
            E2eError::Timeout { what, after, seen } => {
                write!(f, "no {what} after {} s; instead: {seen}", after.as_secs())
            }
            E2eError::Shape { what, found } => write!(f, "{what} has another shape: {found}"),
        }
    }
}

impl std::error::Error for E2eError {}

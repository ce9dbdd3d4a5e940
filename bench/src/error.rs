//! Every way a comparison can fail.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use e2e::E2eError;

pub type Result<T> = std::result::Result<T, BenchError>;

#[derive(Debug)]
pub enum BenchError {
    Browser(E2eError),
    Io {
        path: PathBuf,
        source: io::Error,
    },
    /// A program ended, or answered something else than was asked.
    Program {
        path: PathBuf,
        said: String,
    },
    /// A page or a worker answered something else than was asked.
    Answer {
        of: String,
        said: String,
    },
    Interrupted,
    /// An engine of this project and its peer do not read the same tokens.
    Tokens {
        prompt: String,
        ours: usize,
        theirs: usize,
    },
}

impl BenchError {
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> BenchError {
        let path = path.to_owned();
        move |source| BenchError::Io { path, source }
    }

    pub fn answer(of: &str, said: impl fmt::Display) -> BenchError {
        BenchError::Answer {
            of: of.to_owned(),
            said: said.to_string().chars().take(400).collect(),
        }
    }
}

impl From<E2eError> for BenchError {
    fn from(error: E2eError) -> BenchError {
        BenchError::Browser(error)
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::Browser(error) => error.fmt(f),
            BenchError::Io { path, source } => write!(f, "{source}: {}", path.display()),
            BenchError::Program { path, said } => write!(f, "{} said {said:?}", path.display()),
            BenchError::Answer { of, said } => write!(f, "{of} answered {said}"),
            BenchError::Interrupted => f.write_str("interrupted"),
            BenchError::Tokens {
                prompt,
                ours,
                theirs,
            } => write!(
                f,
                "prompt {prompt} has {ours} tokens here and {theirs} there"
            ),
        }
    }
}

impl std::error::Error for BenchError {}

//! Every way a build step can fail.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::inventory::Memory;

pub type Result<T> = std::result::Result<T, XtaskError>;

#[derive(Debug)]
pub enum XtaskError {
    /// The command line asks for something that does not exist.
    Usage { word: String, help: &'static str },
    /// A file or folder could not be read or written.
    Io { path: PathBuf, source: io::Error },
    /// A program could not be started.
    Start { program: PathBuf, source: io::Error },
    /// A program ran and said no.
    Refused {
        program: PathBuf,
        doing: &'static str,
    },
    /// No compiler on this machine can build for the browser.
    NoWasmCompiler { looked_at: Vec<String> },
    /// The compiler ran but left no module where it should lie.
    NoModule { path: PathBuf },
    /// A lane does not hold what its row of the table says.
    Lane {
        lane: &'static str,
        reason: LaneFault,
    },
    /// wasm-bindgen refused a module; the words are its own.
    Bindings { module: &'static str, words: String },
    /// A placeholder is missing from a static file, or stands there twice.
    Placeholder {
        file: PathBuf,
        placeholder: &'static str,
        found: usize,
    },
    /// `cargo metadata` could not be read; the words are its own.
    Metadata { words: String },
    /// A JSON file of ours could not be written.
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// The file is not there, or holds no key.
    SigningKey { path: PathBuf },
    /// The system gave no random bytes; the words are its own.
    Random { words: String },
    /// There is no such lane in the table.
    NoLane { name: String },
    /// Two builds of one lane from two clones are not the same.
    NotReproducible {
        lane: &'static str,
        first: format::Digest,
        second: format::Digest,
    },
    /// House rules are broken; they have been printed.
    Untidy { findings: usize },
}

/// What can be wrong with a lane.
#[derive(Debug, PartialEq)]
pub enum LaneFault {
    /// Not a module, or not valid with the lane's own features and no others.
    Invalid {
        at: usize,
        words: String,
    },
    Imports {
        found: Vec<String>,
        expected: Vec<&'static str>,
    },
    MissingExport {
        name: String,
    },
    UnexpectedExport {
        name: String,
    },
    /// A required feature that no instruction uses.
    FeatureUnused {
        feature: &'static str,
    },
    FeatureForbidden {
        feature: String,
        count: u64,
    },
    /// The compiler's own feature list names one that the row does not.
    FeatureUnlisted {
        feature: String,
    },
    /// Not one memory of the row's kind.
    Memory {
        found: Vec<Memory>,
    },
    /// A relaxed instruction other than the integer dot.
    Relaxed {
        name: &'static str,
        count: u64,
    },
    CustomSection {
        name: String,
    },
    /// A start function where there must be none, or none where there must be one.
    Start {
        found: bool,
    },
    /// Two readers of the module saw different things.
    Disagreement {
        what: &'static str,
    },
    /// The start of an absolute path of this machine is inside.
    LeaksPath {
        path: String,
    },
}

impl XtaskError {
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> XtaskError {
        let path = path.to_owned();
        move |source| XtaskError::Io { path, source }
    }
}

impl fmt::Display for XtaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XtaskError::Usage { word, help } => write!(f, "cannot do `{word}`\n\n{help}"),
            XtaskError::Io { path, source } => write!(f, "{source}: {}", path.display()),
            XtaskError::Start { program, source } => {
                write!(f, "cannot start: {source}: {}", program.display())
            }
            XtaskError::Refused { program, doing } => {
                write!(f, "failed to {doing}: {}", program.display())
            }
            XtaskError::NoWasmCompiler { looked_at } => write!(
                f,
                "no compiler with the standard library's source; run scripts/setup (looked at {})",
                looked_at.join(", ")
            ),
            XtaskError::NoModule { path } => {
                write!(f, "the compiler left no module: {}", path.display())
            }
            XtaskError::Lane { lane, reason } => write!(f, "lane {lane}: {reason}"),
            XtaskError::Bindings { module, words } => write!(f, "bindings of {module}: {words}"),
            XtaskError::Placeholder {
                file,
                placeholder,
                found,
            } => write!(
                f,
                "{placeholder} must stand once, found {found}: {}",
                file.display()
            ),
            XtaskError::Metadata { words } => write!(f, "cargo metadata: {words}"),
            XtaskError::Json { path, source } => write!(f, "{source}: {}", path.display()),
            XtaskError::SigningKey { path } => write!(
                f,
                "no signing key of 64 hexadecimal digits; `cargo xtask key --out FILE` makes one, \
                 and TINYRUSTLM_SIGNING_KEY names it: {}",
                path.display()
            ),
            XtaskError::Random { words } => write!(f, "no random bytes for a key: {words}"),
            XtaskError::NoLane { name } => write!(f, "there is no lane {name:?}"),
            XtaskError::NotReproducible {
                lane,
                first,
                second,
            } => write!(f, "lane {lane} was built twice, as {first} and as {second}"),
            XtaskError::Untidy { findings } => write!(f, "{findings} house rules broken"),
        }
    }
}

impl fmt::Display for LaneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaneFault::Invalid { at, words } => write!(f, "invalid at byte {at}: {words}"),
            LaneFault::Imports { found, expected } => write!(
                f,
                "must import exactly [{}], imports [{}]",
                expected.join(", "),
                found.join(", ")
            ),
            LaneFault::MissingExport { name } => write!(f, "does not export {name}"),
            LaneFault::UnexpectedExport { name } => write!(f, "exports {name}, which is no door"),
            LaneFault::FeatureUnused { feature } => write!(f, "no instruction of {feature}"),
            LaneFault::FeatureForbidden { feature, count } => {
                write!(f, "{count} uses of {feature}, which the lane does not have")
            }
            LaneFault::FeatureUnlisted { feature } => {
                write!(
                    f,
                    "was compiled with {feature}, which its row does not name"
                )
            }
            LaneFault::Memory { found } => write!(f, "has not the memory of its row: {found:?}"),
            LaneFault::Relaxed { name, count } => {
                write!(
                    f,
                    "{count} uses of {name}, which engines may compute differently"
                )
            }
            LaneFault::CustomSection { name } => write!(f, "still has its section {name:?}"),
            LaneFault::Start { found: true } => f.write_str("has a start function"),
            LaneFault::Start { found: false } => f.write_str("does not fill its memory once"),
            LaneFault::Disagreement { what } => write!(f, "two readers disagree about {what}"),
            LaneFault::LeaksPath { path } => write!(f, "holds a path of this machine: {path}"),
        }
    }
}

impl std::error::Error for XtaskError {}

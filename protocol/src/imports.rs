//! Where a model that is brought in comes from, and how far it is.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{CatalogueEntry, ImportId, InvitedModel};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportSource {
    /// The file handle is attached to the message.
    File {
        name: String,
        length: u64,
    },
    /// A model of the server's catalogue, fetched by Range requests.
    Catalogue(CatalogueEntry),
    /// The parts of one GGUF model or the files of a folder called `name`; their handles are
    /// attached in this order.
    Files {
        name: String,
        files: Vec<NamedFile>,
    },
    /// Any address of a `.slm` or GGUF file, or of one part of a split GGUF.
    Address {
        url: String,
    },
    Invite(InvitedModel),
    /// A `.slm` file that is checked and used where it lies, and not copied: it is gone with the
    /// worker that has its handle, which is attached to the message.
    Borrowed {
        name: String,
        length: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Without folders.
    pub name: String,
    /// Bytes.
    pub length: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportProgress {
    pub import: ImportId,
    pub phase: ImportPhase,
    /// Bytes and pieces done in this phase. A resumed import starts above zero.
    pub bytes: u64,
    pub bytes_total: u64,
    pub pieces: u32,
    pub pieces_total: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportPhase {
    /// Reading a local file once to learn its identity.
    Checking,
    /// Turning a foreign format into `.slm`.
    Converting,
    /// Receiving and verifying pieces.
    Receiving,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignImport {
    pub name: String,
    pub progress: ImportProgress,
}

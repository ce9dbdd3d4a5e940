//! What can go wrong on the page's side of the port. The words are in `text`.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppError {
    /// The worker's script could not be started.
    WorkerRefused,
    /// The worker stopped without being asked to.
    WorkerDied,
    /// A message was not one of this build.
    MessageUnreadable,
    /// The worker that the server sent is of another build than the page.
    OtherBuild,
    /// Another tab works with a later build.
    Outdated,
    /// A second import was asked for while one is running.
    ImportBusy,
    /// The browser gives this window no database.
    SavedUnavailable,
    /// The database refused to write.
    SavedWrite,
    /// The database refused to read.
    SavedRead,
    /// A kept record is not what this build writes.
    RecordDamaged,
    /// A kept record was written by a newer build.
    RecordNewer { found: u32, known: u32 },
    /// A model could not be saved as a file.
    ExportFailed,
    /// The browser did not let the page write to the clipboard.
    ClipboardRefused,
    /// The browser makes no connections to other browsers.
    NoConnections,
    /// A code of an exchange is of no use.
    Code(p2p::P2pError),
    /// An answer was pasted where the other person's first code belongs.
    NotAnOffer,
    /// An answer to an offer that this page did not make or has forgotten.
    NoSuchOffer,
}

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::text::report(self).what)
    }
}

impl std::error::Error for AppError {}

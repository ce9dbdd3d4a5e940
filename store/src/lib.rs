//! Where models are kept: content-addressed pieces on any disk, and the imports that fill it.
//!
//! Reading order: `error`; `disk` (the two doors to the outside), their implementations `memory`,
//! `folder` (native), `opfs` and `indexeddb` (browser, with `later` as their door and `chunked`
//! below the second) and `faulty` (tests), held to one `conformance` suite;
//! `names` (which files a model has); `bitfield` and `journal` (which pieces are here, and how
//! that survives a crash); `import` and `sequential` (how a model arrives); `raw` (a foreign file
//! that is kept as it comes, to be converted); `range` (what an HTTP reply is worth) and `transfer`
//! (how a file is fetched in spite of its server); `read` (how a model is read back); `library`
//! (what a directory holds);
//! `quota` (whether it will fit).
//!
//! Invariants: nothing is written under a model's name before every byte of it was verified, and a
//! piece counts as present only if its hash was checked and its bytes were flushed before the
//! record that says so. A length proves nothing, and a block of zeros proves nothing.

mod bitfield;
mod chunked;
pub mod conformance;
mod disk;
mod error;
#[cfg(not(target_arch = "wasm32"))]
pub mod faulty;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod import;
#[cfg(target_arch = "wasm32")]
pub mod indexeddb;
mod journal;
#[cfg(target_arch = "wasm32")]
pub mod later;
mod library;
mod memory;
pub mod names;
#[cfg(target_arch = "wasm32")]
pub mod opfs;
mod progress;
mod quota;
mod range;
mod raw;
mod read;
mod sequential;
#[cfg(all(target_arch = "wasm32", feature = "suite"))]
mod suite;
mod transfer;

pub use bitfield::Bitfield;
pub use chunked::{Batch, CHUNK_BYTES, Chunk, ChunkKey, ChunkedDisk, ChunkedFiles, FileId};
pub use disk::{Catalog, Disk, Entry};
pub use error::{Corruption, Operation, StoreError};
#[cfg(not(target_arch = "wasm32"))]
pub use folder::{FolderCatalog, FolderDisk};
pub use import::{CHECKPOINT_BYTES, CHECKPOINT_MS, Fed, Found, Import, PieceRun, Resumed};
pub use journal::{HaveRecord, have_file_len, read_have};
pub use library::{Library, Partial, Stored};
pub use memory::{MemoryCatalog, MemoryDisk};
pub use progress::Progress;
pub use quota::{Estimate, MARGIN_BYTES, Room, import_bytes, preflight};
pub use range::{Place, RangeRefusal, Reply, looks_like_a_page, place};
pub use raw::{About, RawFile, pieces as pieces_of, raw_key, read_got};
pub use read::{ChunkStore, LayerRebuild};
pub use sequential::SequentialImport;
pub use transfer::{
    BUSY_TRIES_MAX, Break, FIRST_TRIES_MAX, FLIGHTS_MAX, Flight, Get, News, REQUEST_BYTES_MAX,
    RETRY_AFTER_MAX_S, ReplyHead, STALL_MS, Transfer, TransferFault, Trust, WAIT_MS_MAX,
    WAIT_MS_MIN, WaitCause, Waiting, Wish,
};

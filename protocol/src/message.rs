//! Messages between the page and its inference worker.
//!
//! A dropped file's handle cannot be encoded; it travels beside the message, and
//! [`ImportSource::File`] says that it does.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use format::{Digest, ModelId};
use serde::{Deserialize, Serialize};

use crate::{
    CapabilityReceipt, CatalogueEntry, ErrorReport, FailureRecord, Fit, FitReport, ForeignImport,
    ImportProgress, ImportSource, LaneId, Subject, SwarmCommand, SwarmEvent, TabRole, Wish,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImportId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u32);

impl RequestId {
    /// What a stop word in shared memory calls the request; never 0, which stops nothing.
    pub fn stop_number(self) -> u32 {
        self.0.checked_add(1).unwrap_or(1)
    }
}

/// Page to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Ask what is offered; answered by [`Event::Catalogue`]. `newest` is the greatest number that
    /// this browser has seen in a published catalogue.
    Catalogue {
        newest: u64,
    },
    /// Answered by [`Event::Models`].
    ListModels,
    Import {
        import: ImportId,
        source: ImportSource,
    },
    /// Stops the transfer. Verified pieces stay for a later resume unless `discard`.
    CancelImport {
        import: ImportId,
        discard: bool,
    },
    DeleteModel {
        model: ModelId,
    },
    /// Loads a stored model into the engine; `context` 0 takes the default.
    Load {
        model: ModelId,
        context: u32,
    },
    Unload,
    Chat {
        request: RequestId,
        messages: Vec<Message>,
        sampling: Sampling,
        /// Keep what was computed for this conversation, and begin with what was kept for it.
        kept_as: Option<u64>,
    },
    Stop {
        request: RequestId,
    },
    /// Fixed prompt of token ids, greedy: speed and the digest of the logits.
    Measure {
        request: RequestId,
        measure: Measure,
    },
    Diagnostics,
    /// As [`Command::Measure`] without the digest, whose hashing takes time of its own; answered
    /// by [`Event::Done`].
    Time {
        request: RequestId,
        measure: Measure,
    },
    /// Forgets which builds of the engine failed in this browser, so that the next start tries
    /// them again; answered by [`Event::FailuresForgotten`].
    ForgetFailures,
    /// Hands a stored model out as a file; answered by [`Event::Exported`].
    Export {
        model: ModelId,
    },
    /// Takes the work away from a tab that does not answer; only on a person's word.
    TakeOver,
    Swarm(SwarmCommand),
    /// How the next model is to be taken in and loaded; forgotten once one is being loaded.
    Prefer(Wish),
    /// Removes what was kept for a conversation, or for all; answered by [`Event::Kept`].
    ForgetKept {
        conversation: Option<u64>,
    },
    /// Reads a stored model that is not loaded and hashes it; answered by [`Event::Checked`].
    Check {
        model: ModelId,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// Sampling settings; each field's neutral value is stated in `abi::Request`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    pub seed: u64,
    pub temperature: f32,
    pub top_k: u32,
    pub top_p: f32,
    pub min_p: f32,
    pub repetition_penalty: f32,
    pub presence_penalty: f32,
    pub frequency_penalty: f32,
    pub max_new: u32,
}

impl Sampling {
    /// Always the most likely token.
    pub const GREEDY: Sampling = Sampling {
        seed: 0,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        max_new: 512,
    };
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    pub prompt_ids: Vec<u32>,
    pub max_new: u32,
    pub prefill_tile: u32,
    pub mode: Mode,
    /// May begin with what earlier requests left; otherwise the whole prompt is computed.
    pub reuses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    #[serde(rename = "strict-f32-v1")]
    StrictF32V1,
    #[serde(rename = "int8-v1")]
    Int8V1,
}

/// Worker to page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The worker can take commands. `downgrades` names every faster lane that was refused.
    Ready {
        lane: LaneReport,
        downgrades: Vec<ErrorReport>,
        storage: StorageKind,
    },
    Catalogue(Offered),
    Models(Vec<ModelSummary>),
    Import(ImportProgress),
    Imported {
        import: ImportId,
        model: ModelSummary,
        already_here: bool,
    },
    ImportCancelled {
        import: ImportId,
    },
    Loading {
        model: ModelId,
        done: u64,
        total: u64,
    },
    Loaded {
        model: ModelSummary,
        fit: Box<FitReport>,
    },
    Unloaded,
    Prefill {
        request: RequestId,
        done: u32,
        total: u32,
    },
    /// Whole UTF-8; never half a character.
    Text {
        request: RequestId,
        text: String,
    },
    Done {
        request: RequestId,
        finish: Finish,
        figures: Figures,
    },
    Measured {
        request: RequestId,
        figures: Figures,
        logits_sha256: Digest,
        ids: Vec<u32>,
    },
    Diagnostics(Box<Diagnostics>),
    Failed {
        subject: Subject,
        error: ErrorReport,
    },
    FailuresForgotten,
    /// The file itself travels beside the message.
    Exported {
        model: ModelId,
    },
    /// Who does the work has been settled, or has changed. With a new `epoch` a new owner begins:
    /// [`Event::Ready`] follows when it can work.
    Role {
        role: TabRole,
        epoch: u64,
    },
    /// The owner went away in the middle of this request; the text so far stands.
    Interrupted {
        request: RequestId,
    },
    /// An import that another tab asked for; `None` when it is over.
    Elsewhere(Option<ForeignImport>),
    /// Nothing comes for an import for now: why, in words, and in how many seconds it is tried
    /// again. Without a reason bytes come again.
    ImportWaiting {
        import: ImportId,
        why: Option<String>,
        seconds: u64,
    },
    Swarm(SwarmEvent),
    /// Whether a model fits: before its weights are fetched, and when it could not be loaded.
    Fit(Box<Fit>),
    /// What is kept of conversations in all: how many, and their bytes.
    Kept {
        conversations: u32,
        bytes: u64,
    },
    /// How far a [`Command::Check`] has come, in bytes.
    Checking {
        model: ModelId,
        done: u64,
        total: u64,
    },
    /// Every stored byte was read: it is what the root promises, or it is not.
    Checked {
        model: ModelId,
        is_sound: bool,
    },
    /// The header of what comes is here, before the rest: what it is, and under which licence.
    ImportOpened {
        import: ImportId,
        model: ModelSummary,
    },
}

/// What the server and the publisher offer together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    pub models: Vec<CatalogueEntry>,
    /// Number of the published catalogue that was believed.
    pub number: Option<u64>,
    /// Why the published catalogue was not believed.
    pub refused: Option<ErrorReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneReport {
    pub lane: LaneId,
    pub sha256: Option<Digest>,
    pub self_tests: u32,
    pub cross_origin_isolated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageKind {
    /// Origin private file system: models stay.
    Opfs,
    /// Nothing stays after the page is closed.
    Memory,
    /// A database of the browser, where there is no private file system: models stay.
    IndexedDb,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSummary {
    pub id: ModelId,
    pub name: String,
    pub licence: Option<String>,
    pub source: String,
    pub context: u32,
    /// Why the model cannot be chatted with, if it cannot.
    pub chat: ChatAbility,
    /// How far an unfinished import got, in verified bytes; `None` when complete.
    pub partial: Option<u64>,
    /// Stored bytes are not those that were verified when they arrived.
    pub damaged: bool,
    /// It is a person's own file, read where it lies: nothing of it is stored.
    pub borrowed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChatAbility {
    Yes,
    /// Kind `bare`: no tokenizer.
    NoTokenizer,
    /// No chat template in the source.
    NoTemplate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    Stop,
    Length,
    Cancelled,
    NumericalCollapse,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub prompt_tokens: u32,
    /// Prompt tokens that earlier requests had computed, or that were kept in the store.
    pub reused_tokens: u32,
    pub new_tokens: u32,
    pub prefill_ms: f64,
    pub decode_ms: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// `None` before a lane has started, and where none can.
    pub lane: Option<LaneReport>,
    pub storage: Option<StorageKind>,
    pub scalar_calls: u64,
    pub simd_calls: u64,
    pub relaxed_calls: u64,
    pub fit: Option<FitReport>,
    /// Blocks of the open model's weights that were read before they were wanted.
    pub read_ahead: u64,
    pub stored_bytes: u64,
    /// Where the model stands in its life.
    pub state: String,
    /// The worker's clock, by which the records are dated.
    pub now_ms: u64,
    /// Newest failures, oldest first.
    pub records: Vec<FailureRecord>,
    pub receipt: CapabilityReceipt,
}

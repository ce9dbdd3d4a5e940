//! Which lane to load: the pure part. The browser part is `shell/lanes.rs`.

use format::Digest;
use protocol::{
    ErrorReport, LANES, Lane, LaneArtifact, LaneId, LaneManifest, MANIFEST_SCHEMA, Stage, TrResult,
    abi,
};

/// A manifest larger than this is refused before it is parsed.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;
/// A lane larger than this is refused before it is fetched.
pub const LANE_BYTES_MAX: u64 = 16 * 1024 * 1024;

const RELOAD: &str = "Reload the page; if that does not help, the server's copy of the program is \
                      damaged or of another version.";

/// A lane of the table and the build of it that the server has.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'m> {
    pub lane: &'static Lane,
    pub artifact: &'m LaneArtifact,
}

/// Why a lane, or all of them, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneRefusal {
    /// The manifest is not one of this build.
    Manifest(&'static str),
    Fetch {
        what: &'static str,
        status: Option<u16>,
    },
    UnknownLane(String),
    NotBuilt(LaneId),
    Address(LaneId),
    Probe {
        lane: LaneId,
        probe: &'static str,
    },
    Length {
        lane: LaneId,
        expected: u64,
        found: u64,
    },
    Hash {
        lane: LaneId,
        expected: Digest,
        found: Digest,
    },
    Compile(LaneId),
    Abi {
        lane: LaneId,
        found: u32,
    },
    SelfTest {
        lane: LaneId,
        failed: u32,
        tests: u32,
        first: u32,
    },
    /// A condition for using threads does not hold.
    Threads {
        lane: LaneId,
        fault: ThreadFault,
    },
    /// The lane trapped, or an export is missing.
    Broken(LaneId),
    /// Every lane was refused.
    NoneLeft,
}

/// Why a lane with threads cannot be used. Every condition has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadFault {
    /// The page is not cross-origin isolated.
    NotIsolated,
    NoSharedMemory,
    /// Not even the smallest shared memory can be made.
    MemoryRefused,
    NotStarted(u32),
    OtherModule(u32),
    NoAnswer(u32),
    /// The test meetings were not over in time.
    Late,
    /// A share was not counted.
    Absent(u32),
    /// A worker's part of the test product is wrong.
    Wrong(u32),
    /// The counters do not tell of the products.
    Uncounted,
}

impl ThreadFault {
    fn what(self) -> String {
        match self {
            ThreadFault::NotIsolated => "the page is not cross-origin isolated".into(),
            ThreadFault::NoSharedMemory => "the browser shares no memory between workers".into(),
            ThreadFault::MemoryRefused => "the browser gives no shared memory of any size".into(),
            ThreadFault::NotStarted(worker) => format!("worker {worker} could not be started"),
            ThreadFault::OtherModule(worker) => format!("worker {worker} runs another engine"),
            ThreadFault::NoAnswer(worker) => format!("worker {worker} did not answer in time"),
            ThreadFault::Late => "a worker did not come to the test in time".into(),
            ThreadFault::Absent(worker) => format!("worker {worker} took no part in the test"),
            ThreadFault::Wrong(worker) => format!("worker {worker} computed the test wrongly"),
            ThreadFault::Uncounted => "the test's products were not counted".into(),
        }
    }
}

/// Parses `lanes/manifest.json` and checks that it speaks of this build.
pub fn manifest(bytes: &[u8]) -> Result<LaneManifest, LaneRefusal> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        return Err(LaneRefusal::Manifest("it is too large"));
    }
    let manifest: LaneManifest = serde_json::from_slice(bytes)
        .map_err(|_| LaneRefusal::Manifest("it is not a lane manifest"))?;
    if manifest.schema != MANIFEST_SCHEMA {
        return Err(LaneRefusal::Manifest("its schema is another one"));
    }
    if manifest.abi_version != abi::ABI_VERSION {
        return Err(LaneRefusal::Manifest("its ABI version is another one"));
    }
    if manifest.runtime_semantics != abi::RUNTIME_SEMANTICS {
        return Err(LaneRefusal::Manifest(
            "its numerical contract is another one",
        ));
    }
    Ok(manifest)
}

/// Whether this worker can start threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    Absent,
    Possible,
}

/// The lanes to try, best first: all of the table, or only the forced one.
pub fn order(forced: Option<&str>, threads: Threads) -> Result<Vec<&'static Lane>, LaneRefusal> {
    let Some(name) = forced else {
        let possible = |lane: &&Lane| threads == Threads::Possible || !lane.has_threads();
        return Ok(LANES.iter().filter(possible).collect());
    };
    match LANES.iter().find(|lane| lane.name == name) {
        Some(lane) => Ok(vec![lane]),
        None => Err(LaneRefusal::UnknownLane(name.chars().take(40).collect())),
    }
}

/// The build of one lane, if the manifest has a usable one.
pub fn candidate<'m>(
    manifest: &'m LaneManifest,
    lane: &'static Lane,
) -> Result<Candidate<'m>, LaneRefusal> {
    let artifact = manifest
        .artifacts
        .iter()
        .find(|artifact| artifact.id == lane.id)
        .ok_or(LaneRefusal::NotBuilt(lane.id))?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    // A plain file name cannot point outside the folder of the manifest.
    if !artifact.url.bytes().all(plain) || artifact.url.starts_with('.') {
        return Err(LaneRefusal::Address(lane.id));
    }
    if artifact.bytes > LANE_BYTES_MAX {
        return Err(LaneRefusal::Length {
            lane: lane.id,
            expected: LANE_BYTES_MAX,
            found: artifact.bytes,
        });
    }
    Ok(Candidate { lane, artifact })
}

/// Compares fetched bytes with what the manifest promises.
pub fn verify(candidate: &Candidate<'_>, bytes: &[u8]) -> Result<(), LaneRefusal> {
    let lane = candidate.lane.id;
    let found = bytes.len() as u64;
    if found != candidate.artifact.bytes {
        return Err(LaneRefusal::Length {
            lane,
            expected: candidate.artifact.bytes,
            found,
        });
    }
    let found = format::sha256(bytes);
    if found != candidate.artifact.sha256 {
        return Err(LaneRefusal::Hash {
            lane,
            expected: candidate.artifact.sha256,
            found,
        });
    }
    Ok(())
}

impl LaneRefusal {
    pub fn report(&self) -> ErrorReport {
        ErrorReport {
            code: self.code(),
            stage: Stage::Start,
            what: self.what(),
            remedy: self.remedy().into(),
        }
    }

    fn code(&self) -> TrResult {
        match self {
            LaneRefusal::Manifest(_) | LaneRefusal::Address(_) => TrResult::Source,
            LaneRefusal::Fetch { .. } | LaneRefusal::Length { .. } => TrResult::Source,
            LaneRefusal::UnknownLane(_) | LaneRefusal::NotBuilt(_) => TrResult::InvalidArgument,
            LaneRefusal::Probe { .. } => TrResult::UnsupportedFeature,
            LaneRefusal::Compile(_) => TrResult::UnsupportedFeature,
            LaneRefusal::Hash { .. } => TrResult::HashMismatch,
            LaneRefusal::Abi { .. } => TrResult::UnsupportedAbi,
            LaneRefusal::SelfTest { .. } => TrResult::SelfTestFailed,
            LaneRefusal::Threads { fault, .. } => match fault {
                ThreadFault::NotIsolated
                | ThreadFault::NoSharedMemory
                | ThreadFault::MemoryRefused => TrResult::UnsupportedFeature,
                ThreadFault::Wrong(_) | ThreadFault::Uncounted => TrResult::SelfTestFailed,
                _ => TrResult::WorkerFailure,
            },
            LaneRefusal::Broken(_) | LaneRefusal::NoneLeft => TrResult::WorkerFailure,
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            LaneRefusal::Probe { .. } | LaneRefusal::Compile(_) => {
                "A slower engine is used; a newer browser would run the faster one."
            }
            LaneRefusal::SelfTest { .. } => {
                "This engine computes wrongly in this browser and is not used; please report it."
            }
            LaneRefusal::Threads { .. } => {
                "A slower engine with one thread is used; reload the page to try threads again."
            }
            LaneRefusal::UnknownLane(_) | LaneRefusal::NotBuilt(_) => {
                "Remove the lane from the page's address and reload."
            }
            LaneRefusal::Fetch { status: None, .. } => "Check the connection and reload the page.",
            LaneRefusal::NoneLeft => {
                "Use a current version of Chrome, Edge, Firefox or Safari, or report this."
            }
            _ => RELOAD,
        }
    }

    fn what(&self) -> String {
        match self {
            LaneRefusal::Manifest(why) => format!("The list of engines cannot be used: {why}."),
            LaneRefusal::Fetch { what, status } => match status {
                Some(status) => format!("The server answered {status} for {what}."),
                None => format!("The server could not be reached for {what}."),
            },
            LaneRefusal::UnknownLane(name) => format!("There is no engine named {name:?}."),
            LaneRefusal::NotBuilt(lane) => {
                format!("The server has no build of the engine {}.", lane.name())
            }
            LaneRefusal::Address(lane) => {
                format!(
                    "The address of the engine {} is no plain file name.",
                    lane.name()
                )
            }
            LaneRefusal::Probe { lane, probe } => format!(
                "This browser lacks the WebAssembly feature {probe}, which {} needs.",
                lane.name()
            ),
            LaneRefusal::Length {
                lane,
                expected,
                found,
            } => format!(
                "The engine {} should have {expected} bytes and has {found}.",
                lane.name()
            ),
            LaneRefusal::Hash {
                lane,
                expected,
                found,
            } => format!(
                "The engine {} has SHA-256 {found}, the list says {expected}.",
                lane.name()
            ),
            LaneRefusal::Compile(lane) => {
                format!("This browser cannot compile the engine {}.", lane.name())
            }
            LaneRefusal::Abi { lane, found } => format!(
                "The engine {} speaks ABI {found}, this program {}.",
                lane.name(),
                abi::ABI_VERSION
            ),
            LaneRefusal::SelfTest {
                lane,
                failed,
                tests,
                first,
            } => format!(
                "The engine {} failed {failed} of {tests} self-tests, first number {first}.",
                lane.name()
            ),
            LaneRefusal::Threads { lane, fault } => format!(
                "The engine {} cannot use threads: {}.",
                lane.name(),
                fault.what()
            ),
            LaneRefusal::Broken(lane) => {
                format!("The engine {} stopped while it was tried.", lane.name())
            }
            LaneRefusal::NoneLeft => "No engine can run in this browser.".into(),
        }
    }
}

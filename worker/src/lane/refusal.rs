//! Why a lane cannot be used, for people.

use format::Digest;
use protocol::{ErrorReport, LaneId, Stage, TrResult, abi};

const RELOAD: &str = "Reload the page; if that does not help, the server's copy of the program is \
                      damaged or of another version.";

/// Why a lane, or all of them, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneRefusal {
    /// The manifest is not one of this build.
    Manifest(&'static str),
    /// The lane's entry in the manifest is not signed with the publisher's key.
    Signature(LaneId),
    /// It failed at an earlier visit, in this version of the browser.
    Remembered {
        lane: LaneId,
        what: String,
    },
    /// A condition for using threads does not hold.
    Threads {
        lane: LaneId,
        fault: ThreadFault,
    },
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

impl LaneRefusal {
    pub fn report(&self) -> ErrorReport {
        ErrorReport {
            code: self.code(),
            stage: Stage::Start,
            what: self.what(),
            remedy: self.remedy().into(),
        }
    }

    /// Whether the same build will fail in the same browser again. What a server or a network did
    /// wrong, or a machine that was too busy to start a worker, may be right at the next visit.
    pub fn is_lasting(&self) -> bool {
        match self {
            LaneRefusal::SelfTest { .. } | LaneRefusal::Broken(_) => true,
            LaneRefusal::Threads { fault, .. } => {
                matches!(fault, ThreadFault::Wrong(_) | ThreadFault::Uncounted)
            }
            _ => false,
        }
    }

    fn code(&self) -> TrResult {
        match self {
            LaneRefusal::Manifest(_) | LaneRefusal::Address(_) => TrResult::Source,
            LaneRefusal::Signature(_) => TrResult::Source,
            LaneRefusal::Remembered { .. } => TrResult::WorkerFailure,
            LaneRefusal::Threads { fault, .. } => match fault {
                ThreadFault::NotIsolated
                | ThreadFault::NoSharedMemory
                | ThreadFault::MemoryRefused => TrResult::UnsupportedFeature,
                ThreadFault::Wrong(_) | ThreadFault::Uncounted => TrResult::SelfTestFailed,
                _ => TrResult::WorkerFailure,
            },
            LaneRefusal::Fetch { .. } | LaneRefusal::Length { .. } => TrResult::Source,
            LaneRefusal::UnknownLane(_) | LaneRefusal::NotBuilt(_) => TrResult::InvalidArgument,
            LaneRefusal::Probe { .. } => TrResult::UnsupportedFeature,
            LaneRefusal::Compile(_) => TrResult::UnsupportedFeature,
            LaneRefusal::Hash { .. } => TrResult::HashMismatch,
            LaneRefusal::Abi { .. } => TrResult::UnsupportedAbi,
            LaneRefusal::SelfTest { .. } => TrResult::SelfTestFailed,
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
            LaneRefusal::Remembered { .. } => {
                "It is tried again after an update of the browser or of this program, or when \
                 you ask for it on the page About."
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
            LaneRefusal::Signature(lane) => format!(
                "The list's entry for the engine {} is not signed by the publisher.",
                lane.name()
            ),
            LaneRefusal::Remembered { lane, what } => format!(
                "The engine {} failed in this browser before and is not used: {what}",
                lane.name()
            ),
            LaneRefusal::Threads { lane, fault } => format!(
                "The engine {} cannot use threads: {}.",
                lane.name(),
                fault.what()
            ),
            LaneRefusal::Fetch { what, status } => unfetched(what, *status),
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
            LaneRefusal::Broken(lane) => {
                format!("The engine {} stopped while it was tried.", lane.name())
            }
            LaneRefusal::NoneLeft => "No engine can run in this browser.".into(),
        }
    }
}

fn unfetched(what: &str, status: Option<u16>) -> String {
    match status {
        Some(status) => format!("The server answered {status} for {what}."),
        None => format!("The server could not be reached for {what}."),
    }
}

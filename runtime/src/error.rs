//! Every way the engine can refuse or fail.

use protocol::abi::ErrorPlace;
use protocol::{Stage, TrResult};

/// A failure with its place, in the shape that crosses the C boundary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuntimeError(pub ErrorPlace);

impl RuntimeError {
    /// A failure without tensor, layer or position.
    pub fn new(code: TrResult, stage: Stage) -> RuntimeError {
        RuntimeError(ErrorPlace {
            code: code as i32,
            stage: stage as u32,
            item: u32::MAX,
            ..ErrorPlace::default()
        })
    }

    pub fn code(&self) -> TrResult {
        TrResult::from_code(self.0.code).unwrap_or(TrResult::InternalInvariant)
    }
}

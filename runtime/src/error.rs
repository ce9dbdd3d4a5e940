//! Every way the engine can refuse or fail.

use alloc::vec::Vec;
use core::fmt;

use protocol::abi::{DETAIL_BYTES, DETAIL_REFUSED, ErrorPlace};
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

    pub fn stage(&self) -> Stage {
        Stage::from_code(self.0.stage).unwrap_or(Stage::Start)
    }

    /// The tensor, layer or region concerned.
    pub(crate) fn item(mut self, item: usize) -> RuntimeError {
        self.0.item = u32::try_from(item).unwrap_or(u32::MAX);
        self
    }

    /// The same failure in another part of a model's life.
    pub(crate) fn during(mut self, stage: Stage) -> RuntimeError {
        self.0.stage = stage as u32;
        self
    }

    /// An allocation for this region of the plan was refused.
    pub(crate) fn in_region(self, region: u32, bytes: u64) -> RuntimeError {
        match self.code() {
            TrResult::OutOfMemory if self.0.detail != DETAIL_REFUSED => {
                self.item(region as usize).detail(DETAIL_REFUSED, 0, bytes)
            }
            _ => self,
        }
    }

    /// The file byte or sequence position concerned.
    pub(crate) fn at(mut self, at: u64) -> RuntimeError {
        self.0.at = at;
        self
    }

    /// What was expected and what was found, both in the unit that `detail` (`DETAIL_...`) says.
    pub(crate) fn detail(mut self, detail: u32, expected: u64, found: u64) -> RuntimeError {
        self.0.detail = detail;
        self.0.expected = expected;
        self.0.found = found;
        self
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({:?})", self.code(), self.stage())?;
        if self.0.item != u32::MAX {
            write!(f, ", item {}", self.0.item)?;
        }
        if self.0.detail != 0 {
            write!(
                f,
                ", expected {}, found {} (detail {})",
                self.0.expected, self.0.found, self.0.detail
            )?;
        }
        write!(f, ", at {}", self.0.at)
    }
}

impl core::error::Error for RuntimeError {}

/// `len` default elements, or `OutOfMemory`; nothing more than these is allocated.
pub(crate) fn take_memory<T: Clone + Default>(
    len: usize,
    stage: Stage,
) -> Result<Vec<T>, RuntimeError> {
    let mut memory = reserve_memory(len, stage)?;
    memory.resize(len, T::default());
    Ok(memory)
}

/// An empty vector that can grow to `len` elements without another allocation.
pub(crate) fn reserve_memory<T>(len: usize, stage: Stage) -> Result<Vec<T>, RuntimeError> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(len).map_err(|_| {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        RuntimeError::new(TrResult::OutOfMemory, stage).detail(DETAIL_BYTES, 0, bytes)
    })?;
    Ok(memory)
}

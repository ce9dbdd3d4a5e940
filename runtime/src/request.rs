//! A request as the host states it, and what is refused of it.

use protocol::abi::{DETAIL_POSITIONS, DETAIL_TOKEN_ID};
use protocol::{Stage, TrResult};

use crate::RuntimeError;
use crate::sampler::Settings;

/// What to generate from.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// At least one, and no more than the admitted positions.
    pub ids: &'a [u32],
    /// 0 computes the logits after the prompt and draws nothing.
    pub max_new: u32,
    pub sampling: Settings,
    /// Go on past the model's stop tokens.
    pub ignore_eos: bool,
    /// Keep a SHA-256 of the logits of every step.
    pub digest: bool,
    /// Reuse nothing of earlier requests.
    pub cold: bool,
    /// Keep the most likely next token of every prompt position; implies `cold`.
    pub argmax: bool,
    /// A stop of this number ends the request; 0 cannot be stopped that way.
    pub number: u32,
}

impl Request<'_> {
    /// Everything but the sampling settings, which the sampler checks.
    pub(crate) fn check(&self, vocab: u32, context: usize) -> Result<(), RuntimeError> {
        let refuse = |code| RuntimeError::new(code, Stage::Prefill);
        let (wanted, room) = (self.ids.len() as u64, context as u64);
        if wanted == 0 {
            return Err(refuse(TrResult::InvalidArgument).detail(DETAIL_POSITIONS, 1, 0));
        }
        if wanted > room {
            let error = refuse(TrResult::ContextExceeded);
            return Err(error.detail(DETAIL_POSITIONS, room, wanted));
        }
        match self.ids.iter().position(|id| *id >= vocab) {
            None => Ok(()),
            Some(at) => {
                let (most, found) = (u64::from(vocab) - 1, u64::from(self.ids[at]));
                let error = refuse(TrResult::InvalidArgument).at(at as u64);
                Err(error.detail(DETAIL_TOKEN_ID, most, found))
            }
        }
    }
}

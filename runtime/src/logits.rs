//! The logits of the newest position, and the hash of all of a request's.

use alloc::vec::Vec;

use format::Digest;
use protocol::Stage;
use sha2::{Digest as _, Sha256};

use crate::RuntimeError;
use crate::error::take_memory;

pub struct Logits {
    /// (V), in token-id order.
    values: Vec<f32>,
    /// Whether they are a finished position's of the newest request.
    known: bool,
    sha: Sha256,
}

impl Logits {
    pub fn new(vocab: usize) -> Result<Logits, RuntimeError> {
        Ok(Logits {
            values: take_memory(vocab, Stage::Allocate)?,
            known: false,
            sha: Sha256::new(),
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        (self.values.capacity() * size_of::<f32>()) as u64
    }

    /// A new request: nothing is known and nothing hashed.
    pub fn forget(&mut self) {
        self.known = false;
        self.sha = Sha256::new();
    }

    /// To be filled; known again after [`Logits::publish`].
    pub fn fill(&mut self) -> &mut [f32] {
        self.known = false;
        &mut self.values
    }

    /// What was filled in, known or not.
    pub fn filled(&self) -> &[f32] {
        &self.values
    }

    pub fn publish(&mut self) {
        self.known = true;
    }

    /// Empty if nothing is known.
    pub fn known(&self) -> &[f32] {
        match self.known {
            true => &self.values,
            false => &[],
        }
    }

    /// Id of the greatest, the lowest id on ties; NaN is never greatest.
    pub fn greatest(&self) -> u32 {
        let mut best = (0, f32::NEG_INFINITY);
        for (id, logit) in self.values.iter().enumerate() {
            if *logit > best.1 {
                best = (id as u32, *logit);
            }
        }
        best.0
    }

    pub fn are_finite(&self) -> bool {
        // Without an early end, so that it becomes vector code.
        let finite = |all, logit: &f32| all & logit.is_finite();
        self.values.iter().fold(true, finite)
    }

    /// NaN and infinity become negative infinity.
    pub fn mask_malformed(&mut self) {
        for logit in &mut self.values {
            if !logit.is_finite() {
                *logit = f32::NEG_INFINITY;
            }
        }
    }

    /// Adds them to the request's hash, little endian.
    pub fn hash(&mut self) {
        let mut bytes = [0; 256];
        for chunk in self.values.chunks(64) {
            for (four, float) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(chunk) {
                *four = float.to_le_bytes();
            }
            self.sha.update(&bytes[..chunk.len() * 4]);
        }
    }

    pub fn digest(&self) -> Digest {
        Digest(self.sha.clone().finalize().into())
    }
}

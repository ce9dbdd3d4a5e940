//! Fixed pieces of work whose results can be compared between devices.

use format::Digest;
use protocol::{Command, Figures, Measure, Mode, RequestId};

/// 128 ids below 256, which every vocabulary has: `(37 i + 11) mod 251`, all different.
pub const MEASURE_PROMPT: [u32; 128] = {
    let mut ids = [0; 128];
    let mut at = 0;
    while at < ids.len() {
        ids[at] = (37 * at as u32 + 11) % 251;
        at += 1;
    }
    ids
};

/// Reading 128 tokens and writing 64.
pub const SPEED: Probe = Probe {
    prompt: 128,
    max_new: 64,
};
/// Short, because a phone without SIMD must get through it too.
pub const BITS: Probe = Probe {
    prompt: 32,
    max_new: 16,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub prompt: usize,
    pub max_new: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub model: String,
    pub figures: Figures,
    pub logits_sha256: Digest,
    pub ids: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    running: Option<(RequestId, Probe, String)>,
    /// Prompt tokens done and wanted.
    progress: Option<(u32, u32)>,
    speed: Option<Outcome>,
    bits: Option<Outcome>,
}

impl Probe {
    pub fn command(self, request: RequestId) -> Command {
        Command::Measure {
            request,
            measure: Measure {
                prompt_ids: MEASURE_PROMPT[..self.prompt].to_vec(),
                max_new: self.max_new,
                prefill_tile: 0,
                mode: Mode::Int8V1,
                reuses: false,
            },
        }
    }
}

impl Measures {
    pub fn running(&self) -> Option<Probe> {
        self.running.as_ref().map(|(_, probe, _)| *probe)
    }

    pub fn progress(&self) -> Option<(u32, u32)> {
        self.progress
    }

    pub fn speed(&self) -> Option<&Outcome> {
        self.speed.as_ref()
    }

    pub fn bits(&self) -> Option<&Outcome> {
        self.bits.as_ref()
    }

    pub fn begin(&mut self, request: RequestId, probe: Probe, model: String) {
        self.progress = None;
        self.running = Some((request, probe, model));
    }

    pub fn advance(&mut self, request: RequestId, done: u32, total: u32) {
        if self
            .running
            .as_ref()
            .is_some_and(|(running, ..)| *running == request)
        {
            self.progress = Some((done, total));
        }
    }

    pub fn finish(&mut self, request: RequestId, figures: Figures, digest: Digest, ids: Vec<u32>) {
        let Some((_, probe, model)) = self.running.take_if(|(running, ..)| *running == request)
        else {
            return;
        };
        let outcome = Outcome {
            model,
            figures,
            logits_sha256: digest,
            ids,
        };
        match probe {
            SPEED => self.speed = Some(outcome),
            _ => self.bits = Some(outcome),
        }
    }

    /// True if the request was a measure.
    pub fn failed(&mut self, request: RequestId) -> bool {
        self.running
            .take_if(|(running, ..)| *running == request)
            .is_some()
    }

    pub fn lost(&mut self) {
        self.running = None;
    }

    /// Results belong to a model.
    pub fn clear(&mut self) {
        *self = Measures::default();
    }
}

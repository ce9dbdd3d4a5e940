//! Choosing the next token: section 7 of the numerical contract, step by step.
//!
//! Logits are never changed and nothing is allocated after [`Sampler::new`]. Two choices that the
//! contract leaves open are made here:
//!
//! - The softmax sums over the survivors in token-id order, in four stripes.
//! - min-p and top-p each keep a prefix of the ordered survivors, both measured on the softmax of
//!   step 8, so their order does not matter; the draw is made over the mass that is kept.
//!
//! Reading order: this file, `candidates` (selection and order), `generator` (PCG32).

mod candidates;
mod generator;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use protocol::TrResult;

use candidates::Candidates;
pub use generator::GeneratorState;
use generator::Pcg32;

use crate::kernels::greatest;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// 0 is greedy; finite, not negative.
    pub temperature: f32,
    /// 0 is off.
    pub top_k: u32,
    /// 1 is off; in 0..=1.
    pub top_p: f32,
    /// 0 is off; in 0..=1.
    pub min_p: f32,
    /// 1 is off; finite, above 0.
    pub repetition_penalty: f32,
    /// 0 is off; finite.
    pub presence_penalty: f32,
    /// 0 is off; finite.
    pub frequency_penalty: f32,
    pub seed: u64,
    pub stream: u64,
    /// Ids below this may be sampled: the tokenizer's size.
    pub vocab: u32,
    pub malformed: Malformed,
}

/// What happens to NaN and infinite logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// `NumericalFailure`.
    Refuse,
    /// They count as negative infinity, and are counted.
    Mask,
}

/// What one call of [`Sampler::sample`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `None`: no valid logit is left (`numerical_collapse`).
    pub token: Option<u32>,
    /// Logits that were NaN or infinite.
    pub malformed: u32,
}

/// Ids that are looked at together: enough for several vectors, few enough that most runs hold no
/// token that occurred; and as many as a word of `forbidden` has bits.
const RUN: usize = u64::BITS as usize;

pub struct Sampler {
    settings: Settings,
    generator: Pcg32,
    /// How often each id occurred.
    counts: Vec<u32>,
    /// One bit for each id that is not to be chosen.
    forbidden: Vec<u64>,
    candidates: Candidates,
}

impl Sampler {
    /// Takes all memory for logits of `rows` entries. `OutOfMemory`.
    pub fn new(rows: usize) -> Result<Sampler, TrResult> {
        Ok(Sampler {
            settings: Settings::GREEDY,
            generator: Pcg32::new(0, 0),
            counts: zeros(rows)?,
            forbidden: zeros(rows.div_ceil(64))?,
            candidates: Candidates::new(rows)?,
        })
    }

    /// Bytes that [`Sampler::new`] takes.
    pub fn bytes(rows: usize) -> u64 {
        let rows = rows as u64;
        rows * 4 + rows.div_ceil(64) * 8 + rows * Candidates::BYTES_EACH
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let own = self.counts.capacity() * 4 + self.forbidden.capacity() * 8;
        own as u64 + self.candidates.taken()
    }

    /// Starts a request: settings checked (`InvalidArgument`), generator seeded, history and
    /// forbidden ids forgotten.
    pub fn begin(&mut self, settings: &Settings) -> Result<(), TrResult> {
        let rows = self.counts.len();
        if !settings.valid() || settings.vocab == 0 || settings.vocab as usize > rows {
            return Err(TrResult::InvalidArgument);
        }
        self.settings = *settings;
        self.generator = Pcg32::new(settings.seed, settings.stream);
        self.counts.fill(0);
        self.forbidden.fill(0);
        Ok(())
    }

    /// Counts a token of the prompt, or one that was generated, for the penalties.
    /// Ids beyond the logits are ignored.
    pub fn observe(&mut self, token: u32) {
        if let Some(count) = self.counts.get_mut(token as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// The token is not to be chosen until [`Sampler::begin`] or [`Sampler::allow`].
    pub fn forbid(&mut self, token: u32) {
        if let Some(word) = self.forbidden.get_mut(token as usize / 64) {
            *word |= 1 << (token % 64);
        }
    }

    pub fn allow(&mut self, token: u32) {
        if let Some(word) = self.forbidden.get_mut(token as usize / 64) {
            *word &= !(1 << (token % 64));
        }
    }

    /// Chooses from `logits` (one per vocabulary row, token-id order), which are not changed.
    ///
    /// `NumericalFailure` for NaN or infinity under [`Malformed::Refuse`], or if the softmax
    /// cannot be taken (a temperature so small that the greatest logit becomes infinite); `Bounds`
    /// if the length is not that of [`Sampler::new`]. Does not observe the token.
    pub fn sample(&mut self, logits: &[f32]) -> Result<Choice, TrResult> {
        if logits.len() != self.counts.len() {
            return Err(TrResult::Bounds);
        }
        let malformed = logits
            .iter()
            .map(|logit| u32::from(!logit.is_finite()))
            .sum();
        if malformed > 0 && self.settings.malformed == Malformed::Refuse {
            return Err(TrResult::NumericalFailure);
        }
        let token = if self.settings.temperature == 0.0 {
            self.greedy(logits)
        } else {
            self.fill(logits);
            match self.candidates.is_empty() {
                true => None,
                false => Some(self.draw()?),
            }
        };
        Ok(Choice { token, malformed })
    }

    /// What a saved conversation needs to go on drawing the same numbers.
    pub fn state(&self) -> GeneratorState {
        self.generator.state()
    }

    /// `InvalidArgument` if the increment is even: no generator has such a state.
    pub fn restore(&mut self, state: GeneratorState) -> Result<(), TrResult> {
        self.generator = Pcg32::restored(state)?;
        Ok(())
    }

    /// Steps 2 to 4 for one id: `None` if it is masked, else its logit with penalties.
    #[inline]
    fn adjusted(&self, id: usize, logit: f32) -> Option<f32> {
        let forbidden = self.forbidden[id / 64] >> (id % 64) & 1 == 1;
        if forbidden || !logit.is_finite() {
            return None;
        }
        let count = self.counts[id];
        if count == 0 {
            return Some(logit + 0.0);
        }
        let Settings {
            repetition_penalty,
            presence_penalty,
            frequency_penalty,
            ..
        } = self.settings;
        let repeated = if logit < 0.0 {
            logit * repetition_penalty
        } else {
            logit / repetition_penalty
        };
        let present = repeated - presence_penalty;
        // Adding zero turns -0 into +0 and changes nothing else.
        Some(present - frequency_penalty * count as f32 + 0.0)
    }

    /// Step 5: the greatest logit, the lowest id on ties.
    fn greedy(&self, logits: &[f32]) -> Option<u32> {
        let mut best: Option<(f32, usize)> = None;
        for (first, logits) in self.runs(logits) {
            // Without penalties in this run, nobody beats what is not beaten by the greatest.
            let beaten = |most: f32| !self.counted(first, logits) && greatest(logits) <= most;
            if best.is_some_and(|(most, _)| beaten(most)) {
                continue;
            }
            for (at, logit) in logits.iter().enumerate() {
                let Some(logit) = self.adjusted(first + at, *logit) else {
                    continue;
                };
                if best.is_none_or(|(most, _)| logit > most) {
                    best = Some((logit, first + at));
                }
            }
        }
        best.map(|(_, id)| id as u32)
    }

    /// Steps 6 and 7: the survivors of top-k, with logits divided by temperature.
    fn fill(&mut self, logits: &[f32]) {
        let Settings {
            temperature, top_k, ..
        } = self.settings;
        let mut candidates = core::mem::take(&mut self.candidates);
        candidates.clear();
        for (first, logits) in self.runs(logits) {
            // A quotient grows with its logit, so the greatest stands for all.
            let beaten = |worst: f32| {
                !self.counted(first, logits) && greatest(logits) / temperature <= worst
            };
            if candidates.worst(top_k as usize).is_some_and(beaten) {
                continue;
            }
            if top_k == 0 && self.is_plain(first, logits) {
                candidates.take(logits, first as u32, temperature);
                continue;
            }
            for (at, logit) in logits.iter().enumerate() {
                if let Some(logit) = self.adjusted(first + at, *logit) {
                    candidates.offer(logit / temperature, (first + at) as u32, top_k as usize);
                }
            }
        }
        self.candidates = candidates;
    }

    /// The logits that may be sampled, in runs that are passed over as a whole if none can win,
    /// each with its first id.
    fn runs<'a>(&self, logits: &'a [f32]) -> impl Iterator<Item = (usize, &'a [f32])> + use<'a> {
        let runs = logits[..self.settings.vocab as usize].chunks(RUN);
        runs.enumerate().map(|(run, logits)| (run * RUN, logits))
    }

    /// Whether no token of this run has occurred, is forbidden, or has a logit to be masked.
    #[inline]
    fn is_plain(&self, first: usize, logits: &[f32]) -> bool {
        // A run is a word of bits.
        let allowed = self.forbidden[first / RUN] == 0;
        let finite = |all, logit: &f32| all & logit.is_finite();
        allowed && !self.counted(first, logits) && logits.iter().fold(true, finite)
    }

    /// Whether a token of this run has occurred.
    #[inline]
    fn counted(&self, first: usize, logits: &[f32]) -> bool {
        let counts = &self.counts[first..][..logits.len()];
        counts.iter().fold(0, |any, count| any | count) != 0
    }

    /// Steps 8 to 11, over at least one candidate.
    fn draw(&mut self) -> Result<u32, TrResult> {
        self.candidates.softmax()?;
        self.candidates.order();
        // The factors have 24 bits each, so the product is exact in f64 if the mass is 1.
        let u = f64::from(self.generator.uniform());
        let Settings { min_p, top_p, .. } = self.settings;
        if min_p == 0.0 && top_p == 1.0 {
            return Ok(self.candidates.first_beyond(u));
        }
        let (_, mass) = self.candidates.prefix(min_p, top_p);
        Ok(self.candidates.first_beyond(u * mass))
    }
}

impl Settings {
    /// The greatest logit; no penalties.
    pub const GREEDY: Settings = Settings {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        seed: 0,
        stream: 0,
        vocab: 0,
        malformed: Malformed::Refuse,
    };

    fn valid(&self) -> bool {
        let unit = 0.0..=1.0;
        self.temperature.is_finite()
            && self.temperature >= 0.0
            && unit.contains(&self.top_p)
            && unit.contains(&self.min_p)
            && self.repetition_penalty.is_finite()
            && self.repetition_penalty > 0.0
            && self.presence_penalty.is_finite()
            && self.frequency_penalty.is_finite()
    }
}

fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>, TrResult> {
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(len)
        .map_err(|_| TrResult::OutOfMemory)?;
    memory.resize(len, T::default());
    Ok(memory)
}

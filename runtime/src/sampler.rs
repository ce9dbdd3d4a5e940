//! Choosing the next token.

use protocol::TrResult;

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

/// The generator's state: what a saved conversation needs to go on drawing the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorState {
    pub state: u64,
    pub increment: u64,
}

pub struct Sampler {}

impl Sampler {
    /// Takes all memory for logits of `rows` entries. `OutOfMemory`.
    pub fn new(rows: usize) -> Result<Sampler, TrResult> {
        todo!("{rows}")
    }

    /// Bytes that [`Sampler::new`] takes.
    pub fn bytes(rows: usize) -> u64 {
        todo!("{rows}")
    }

    /// Starts a request: settings checked (`InvalidArgument`), generator seeded, history and
    /// forbidden ids forgotten.
    pub fn begin(&mut self, settings: &Settings) -> Result<(), TrResult> {
        todo!("{settings:?}")
    }

    /// Counts a token of the prompt, or one that was generated, for the penalties.
    pub fn observe(&mut self, token: u32) {
        todo!("{token}")
    }

    /// The token is not to be chosen until [`Sampler::begin`] or [`Sampler::allow`].
    pub fn forbid(&mut self, token: u32) {
        todo!("{token}")
    }

    pub fn allow(&mut self, token: u32) {
        todo!("{token}")
    }

    /// Chooses from `logits` (one per vocabulary row, token-id order), which are not changed.
    /// `NumericalFailure` for NaN or infinity under [`Malformed::Refuse`]; `Bounds` if the length
    /// is not that of [`Sampler::new`]. Does not observe the token.
    pub fn sample(&mut self, logits: &[f32]) -> Result<Choice, TrResult> {
        todo!("{logits:?}")
    }

    pub fn state(&self) -> GeneratorState {
        todo!()
    }

    pub fn restore(&mut self, state: GeneratorState) -> Result<(), TrResult> {
        todo!("{state:?}")
    }
}

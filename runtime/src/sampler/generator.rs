//! PCG32 (O'Neill 2014, PCG-XSH-RR with 64-bit state).

use protocol::TrResult;

/// The generator's state, to be saved with a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorState {
    pub state: u64,
    /// Odd.
    pub increment: u64,
}

pub(super) struct Pcg32(GeneratorState);

impl Pcg32 {
    /// State 0, one step, the seed added, one step.
    pub fn new(seed: u64, stream: u64) -> Pcg32 {
        let mut generator = Pcg32(GeneratorState {
            state: 0,
            increment: (stream << 1) | 1,
        });
        generator.next();
        generator.0.state = generator.0.state.wrapping_add(seed);
        generator.next();
        generator
    }

    pub fn next(&mut self) -> u32 {
        let old = self.0.state;
        self.0.state = old.wrapping_mul(MULTIPLIER).wrapping_add(self.0.increment);
        let mixed = (((old >> 18) ^ old) >> 27) as u32;
        mixed.rotate_right((old >> 59) as u32)
    }

    /// A multiple of 2^-24 in 0..1.
    pub fn uniform(&mut self) -> f32 {
        (self.next() >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    pub fn state(&self) -> GeneratorState {
        self.0
    }

    pub fn restored(state: GeneratorState) -> Result<Pcg32, TrResult> {
        if state.increment.is_multiple_of(2) {
            return Err(TrResult::InvalidArgument);
        }
        Ok(Pcg32(state))
    }
}

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

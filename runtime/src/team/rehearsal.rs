//! Meetings that prove a team before it is used, and that a host can time.
//!
//! Every worker computes its rows of one product, as in a forward pass; the result is compared with
//! what the caller computed alone, every share is counted, and so is every product.

use alloc::vec::Vec;

use format::Layout;
use protocol::abi::{MEET_ABSENT, MEET_LATE, MEET_SOUND, MEET_UNCOUNTED, MEET_WRONG, Meet};
use protocol::{Stage, TrResult};

use crate::RuntimeError;
use crate::error::take_memory;
use crate::kernels::{Input, Kernels, Matrix, Quantized, SharedRows, calls};

use super::Team;

/// A matrix as one position of a small model meets it, so that timings mean something.
const ROWS: usize = 1536;
const COLS: usize = 576;
/// More would keep the host waiting.
pub const ROUNDS_MAX: u32 = 1024;

pub struct Rehearsal {
    kernels: Kernels,
    weights: Vec<u8>,
    input: Vec<f32>,
    codes: Quantized,
    /// By the caller alone.
    expected: Vec<f32>,
    found: Vec<f32>,
}

impl Rehearsal {
    pub fn new(kernels: Kernels) -> Result<Rehearsal, RuntimeError> {
        let place = |code| RuntimeError::new(code, Stage::Start);
        let len = Layout::Q8_0R4.tensor_bytes(ROWS as u64, COLS as u64);
        let len = len.ok_or_else(|| place(TrResult::IntegerOverflow))? as usize;
        let mut weights = take_memory::<u8>(len, Stage::Start)?;
        // Groups of four rows: 128 codes from -60 to 60, then four scales, all 2^-7.
        for (at, byte) in weights.iter_mut().enumerate() {
            let (block, within) = (at / 136, at % 136);
            *byte = match within {
                128.. => [0x00, 0x20][within % 2],
                _ => ((block * 31 + within * 7) % 121) as u8,
            };
            if within < 128 {
                *byte = byte.wrapping_sub(60);
            }
        }
        let mut input = take_memory::<f32>(COLS, Stage::Start)?;
        for (at, x) in input.iter_mut().enumerate() {
            *x = ((at * 29 % 64) as f32 - 31.5) / 16.0;
        }
        let mut codes = Quantized::new(1, COLS).map_err(place)?;
        kernels.quantize(&input, COLS, &mut codes);
        let mut rehearsal = Rehearsal {
            kernels,
            weights,
            input,
            codes,
            expected: take_memory(ROWS, Stage::Start)?,
            found: take_memory(ROWS, Stage::Start)?,
        };
        rehearsal.product(&Team::solo()).map_err(place)?;
        core::mem::swap(&mut rehearsal.expected, &mut rehearsal.found);
        Ok(rehearsal)
    }

    /// `rounds` meetings of the whole team; what they showed.
    pub fn run(&mut self, team: &Team, rounds: u32) -> Meet {
        let workers = team.workers();
        let shares = |worker: usize| team.shares(worker);
        let before: u64 = (0..workers).map(shares).sum();
        let products_before = products();
        let mut meet = Meet::default();
        for round in 0..rounds.min(ROUNDS_MAX) {
            let first = (0..workers).map(shares).sum::<u64>();
            self.found.fill(f32::NAN);
            let met = self.product(team);
            if met.is_err() {
                (meet.fault, meet.worker) = (MEET_LATE, 0);
                break;
            }
            let after = (0..workers).map(shares).sum::<u64>();
            let wrong = self.first_wrong(workers);
            if let Some(worker) = wrong {
                (meet.fault, meet.worker) = (MEET_WRONG, worker as u32);
            } else if after - first != workers as u64 {
                (meet.fault, meet.worker) = (MEET_ABSENT, round);
            }
            if meet.fault != MEET_SOUND {
                break;
            }
        }
        meet.shares = (0..workers).map(shares).sum::<u64>() - before;
        meet.products = products() - products_before;
        meet.present = (0..workers)
            .filter(|worker| team.shares(*worker) > 0)
            .fold(0, |bits, worker| bits | 1 << worker);
        let whole = u64::from(rounds.min(ROUNDS_MAX)) * workers as u64;
        if meet.fault == MEET_SOUND && meet.products < whole {
            meet.fault = MEET_UNCOUNTED;
        }
        meet
    }

    fn product(&mut self, team: &Team) -> Result<(), TrResult> {
        let matrix = Matrix::new(Layout::Q8_0R4, ROWS, COLS, &self.weights)?;
        let input = Input::int8(&self.input, self.codes.codes());
        let rows = SharedRows::new(&mut self.found, ROWS, 4, team.workers());
        team.run(|worker| {
            self.kernels.matmul(&matrix, input, rows.part(worker));
            Ok(())
        })
    }

    /// The worker of the first row that is not bit for bit as expected.
    fn first_wrong(&self, workers: usize) -> Option<usize> {
        let mut pairs = self.found.iter().zip(&self.expected);
        let row = pairs.position(|(a, b)| a.to_bits() != b.to_bits())?;
        (0..workers).find(|worker| super::split(ROWS, 4, workers, *worker).contains(&row))
    }
}

fn products() -> u64 {
    let calls = calls();
    calls.scalar + calls.simd + calls.relaxed
}

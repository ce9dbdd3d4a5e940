//! The team of a lane with threads, seen from its first thread.

use protocol::abi::{MEET_LATE, Meet, Team};
use protocol::{Stage, TrResult, abi};
use wasm_bindgen::prelude::*;

use super::reader::Reader;
use super::{ModuleEngine, Pool, ReadIntoView};
use crate::engine::EngineError;

impl<F: ReadIntoView + 'static> ModuleEngine<F> {
    /// Takes the memory of a team of `workers`, of whom this thread is the first.
    pub fn make_team(&mut self, workers: u32) -> Result<Team, EngineError> {
        let out = self.out();
        let code = self.exports.rt_team(workers, out);
        self.check(code, Stage::Start)?;
        let team = Team::from_bytes(&self.read(out));
        self.team = Some(team);
        Ok(team)
    }

    /// The workers that the team has been waiting for; they end with this engine.
    pub fn employ(&mut self, pool: Pool) {
        self.pool = Some(pool);
    }

    /// Test meetings of the first `workers`, who then are the team.
    pub fn meet(&mut self, workers: u32, rounds: u32) -> Result<Meet, EngineError> {
        let out = self.out();
        let late = Meet {
            fault: MEET_LATE,
            ..Meet::default()
        };
        self.write(out, &late.to_bytes());
        let code = self.exports.rt_meet(workers, rounds, out);
        match self.check(code, Stage::Start) {
            // The struct says what it was.
            Err(error)
                if !self.trapped.get()
                    && matches!(
                        error.code(),
                        TrResult::WorkerFailure | TrResult::SelfTestFailed
                    ) =>
            {
                Ok(Meet::from_bytes(&self.read(out)))
            }
            Err(error) => Err(error),
            Ok(()) => Ok(Meet::from_bytes(&self.read(out))),
        }
    }

    /// From now on `workers` are the team; the others are sent home.
    pub fn settle(&mut self, workers: u32) -> Result<Meet, EngineError> {
        let meet = self.meet(workers, 1)?;
        if let Some(pool) = &mut self.pool {
            pool.dismiss(workers);
        }
        Ok(meet)
    }

    /// The shared memory and the address of the stop word in it, for another thread to write.
    pub fn stop_word(&self) -> Option<(JsValue, u32)> {
        let team = self.team?;
        Some((self.memory.buffer(), team.stop))
    }

    /// A worker that reads the open model's file ahead, where there is something to read and a file
    /// that it can be given.
    pub(super) fn start_reader(&self, handle: u64) -> Option<Reader> {
        let place = self.reader_place(handle)?;
        let file = self.host.file.borrow();
        let file = file.as_ref().and_then(|(_, file)| file.lent())?;
        match place.words {
            0 => None,
            _ => Reader::start(&self.memory, &place, &file),
        }
    }

    /// Where a reader of the open model is told what to read.
    pub(super) fn reader_place(&self, handle: u64) -> Option<abi::Reader> {
        self.team?;
        let out = self.out();
        let code = self.exports.rt_reader(handle, out);
        self.check(code, Stage::Load).ok()?;
        Some(abi::Reader::from_bytes(&self.read(out)))
    }

    pub(super) fn is_team_broken(&self) -> bool {
        let broken = self.team.map(|team| self.read::<4>(team.broken));
        broken.is_some_and(|word| word != [0; 4])
    }
}

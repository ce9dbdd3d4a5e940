//! A team whose workers the host starts, each in an instance of its own over the same memory.

use alloc::boxed::Box;
use alloc::vec::Vec;

use protocol::abi::{self, MEET_LATE, MEET_SOUND, Meet};
use protocol::{Residency, Stage, TrResult};

use super::Lane;
use crate::error::take_memory;
use crate::kernels::Kernels;
use crate::staging::Address;
use crate::team::rehearsal::Rehearsal;
use crate::{Engine, Options, RuntimeError, Team, WORKERS_MAX};

/// A worker only runs kernels, whose locals are a few kilobytes.
const STACK_BYTES: usize = 256 * 1024;
/// The engine has no thread-local values; the linker may have some.
const TLS_BYTES: usize = 1024;
/// Tenths of a second that a worker has to come to a meeting of the self-test.
const TEST_SLICES: u32 = 20;

pub struct Hosted {
    /// Threads the host started; no meeting asks for more.
    workers: u32,
    /// Stacks, then thread-local blocks; kept for as long as the lane.
    memory: Vec<u128>,
    /// Until the first model is opened.
    rehearsal: Option<Rehearsal>,
}

impl Hosted {
    /// Bytes taken for stacks and thread-local blocks.
    pub fn stack_bytes(&self) -> u64 {
        (self.memory.capacity() * size_of::<u128>()) as u64
    }
}

impl Lane {
    /// Takes the memory of a team and writes where it lies.
    pub fn make_team(&mut self, workers: u32, out: Address) -> Result<Box<Team>, RuntimeError> {
        self.check_room(out, abi::Team::BYTES, Stage::Start)?;
        let refuse = |code| RuntimeError::new(code, Stage::Start);
        if self.hosted.is_some() || self.handles.iter().next().is_some() {
            return Err(refuse(TrResult::IllegalState));
        }
        if !(1..=WORKERS_MAX as u32).contains(&workers) {
            return Err(refuse(TrResult::InvalidArgument));
        }
        let others = workers as usize - 1;
        let memory: Vec<u128> = take_memory(
            others * (STACK_BYTES + TLS_BYTES) / size_of::<u128>(),
            Stage::Start,
        )?;
        let start = memory.as_ptr().expose_provenance();
        let team = Team::hosted(workers as usize);
        let [stop, broken] = team.words();
        let told = abi::Team {
            stop: stop.as_ptr().expose_provenance() as u32,
            broken: broken.as_ptr().expose_provenance() as u32,
            stack: (start + STACK_BYTES) as u32,
            stack_bytes: STACK_BYTES as u32,
            tls: (start + others * STACK_BYTES) as u32,
            tls_bytes: TLS_BYTES as u32,
            workers,
            reserved: 0,
        };
        self.answer(out, &told.to_bytes(), Stage::Start)?;
        self.team = team.clone();
        self.hosted = Some(Hosted {
            workers,
            memory: memory,
            rehearsal: None,
        });
        Ok(Box::new(team))
    }

    /// Meetings that prove the first `workers`, who then are the team.
    pub fn meet(&mut self, workers: u32, rounds: u32, out: Address) -> Result<(), RuntimeError> {
        self.check_room(out, Meet::BYTES, Stage::Start)?;
        let refuse = |code| RuntimeError::new(code, Stage::Start);
        let is_idle = self.handles.iter().next().is_none();
        let Some(hosted) = self.hosted.as_mut().filter(|_| is_idle) else {
            return Err(refuse(TrResult::IllegalState));
        };
        if !(1..=hosted.workers).contains(&workers) {
            return Err(refuse(TrResult::InvalidArgument));
        }
        if hosted.rehearsal.is_none() {
            hosted.rehearsal = Some(Rehearsal::new(Kernels::best())?);
        }
        let Some(rehearsal) = &mut hosted.rehearsal else {
            return Err(refuse(TrResult::InternalInvariant));
        };
        self.team
            .set(workers as usize, Some(TEST_SLICES))
            .map_err(refuse)?;
        let meet = rehearsal.run(&self.team, rounds);
        self.team.set(workers as usize, None).map_err(refuse)?;
        self.answer(out, &meet.to_bytes(), Stage::Start)?;
        match meet.fault {
            MEET_SOUND => Ok(()),
            MEET_LATE => Err(refuse(TrResult::WorkerFailure)),
            _ => Err(refuse(TrResult::SelfTestFailed).item(meet.worker as usize)),
        }
    }

    /// The reader of a model whose weights are not all resident, and where it is told what to do.
    pub(super) fn with_reader(&mut self, options: &Options, engine: Engine) -> (Engine, [u32; 2]) {
        if self.hosted.is_none() || options.residency == Residency::Full {
            return (engine, [0; 2]);
        }
        let reader = self.board.reader();
        let place = reader.place();
        let engine = Engine {
            reader: Some(Box::new(reader)),
            ..engine
        };
        (engine, place)
    }

    /// Where a worker that reads this model's file ahead is told what to read.
    pub fn reader(&mut self, handle: u64, out: Address) -> Result<(), RuntimeError> {
        self.check_room(out, abi::Reader::BYTES, Stage::Load)?;
        let open = self.handles.get(handle)?;
        let [words, number] = open.reader;
        let reader = abi::Reader {
            words,
            number,
            blocks: open.model.read_ahead(),
        };
        self.answer(out, &reader.to_bytes(), Stage::Load)
    }

    /// The first model needs the memory more.
    pub(super) fn end_rehearsals(&mut self) {
        if let Some(hosted) = &mut self.hosted {
            hosted.rehearsal = None;
        }
    }
}

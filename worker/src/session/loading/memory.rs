//! The model in the engine's memory: planned, allocated, loaded piece by piece, freed.

use format::{Header, ModelId, PIECE_BYTES, PieceIndex};
use protocol::abi::{Options, Plan};
use protocol::{ErrorReport, Event, Stage as Place, Subject, TrResult};
use store::Disk;

use super::fit::judge;
use super::read;
use super::seat::{Goal, Loading, Seat, Wanted};
use crate::engine::{Engine, EngineError};
use crate::session::lifecycle::State;
use crate::session::meter::Meter;
use crate::session::{Session, Station};
use crate::words;

/// Pieces loaded before the session looks up: about 30 ms.
const PIECES_PER_WAKE: u32 = 4;

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    /// As the page wishes, with the most room of the usual ones that fits. If it does not fit, the
    /// page is told what helps.
    pub(super) fn choose(
        &mut self,
        header: &Header,
        header_bytes: &[u8],
        wanted: Wanted,
    ) -> Result<(Options, Plan), ErrorReport> {
        let Wanted { id, wish } = wanted;
        let judged = self.call(|engine| judge(engine, header, header_bytes, wish, Some(id)));
        let verdict = judged.map_err(|error| words::engine_error(&error, Some(header)))?;
        if verdict.chosen.is_err() {
            self.desk.event(Event::Fit(Box::new(verdict.fit)));
        }
        let chosen = verdict.chosen;
        chosen.map_err(|error| words::engine_error(&error, Some(header)))
    }

    /// Gives the file to the engine and begins to load pieces.
    pub(super) fn allocate(
        &mut self,
        disk: D,
        options: &Options,
        goal: Goal,
    ) -> Result<Loading<D>, ErrorReport> {
        let Station::Ready(start) = &mut self.station else {
            return Err(read::no_model());
        };
        let model = self.seat.model.as_ref().ok_or_else(read::no_model)?;
        let opened = start
            .engine
            .open(&model.header_bytes, model.len(), options, disk)
            .map_err(|error| words::engine_error(&error, Some(&model.header)))?;
        self.seat.advance(State::Allocated)?;
        self.desk.wake();
        Ok(Loading::Pieces {
            next: PieceIndex((opened.first / u64::from(PIECE_BYTES)) as u32),
            goal,
            meter: Meter::default(),
        })
    }

    pub(super) fn load_pieces(
        &mut self,
        mut next: PieceIndex,
        goal: Goal,
        mut meter: Meter,
    ) -> Result<Option<Loading<D>>, ErrorReport> {
        let Station::Ready(start) = &mut self.station else {
            return Err(read::no_model());
        };
        let model = self.seat.model.as_ref().ok_or_else(read::no_model)?;
        let id = model.summary.id;
        let refused = |error: EngineError| words::engine_error(&error, Some(&model.header));
        for _ in 0..PIECES_PER_WAKE {
            let Some(want) = model.layer.hashes().get(next.0 as usize) else {
                break;
            };
            let (at, len) = id.piece_range(next);
            let got = start.engine.load_piece(at, len).map_err(refused)?;
            if got != *want {
                return Err(read::damaged(next, *want, got));
            }
            next = PieceIndex(next.0 + 1);
        }
        let done = id.piece_range(next).0.min(id.length);
        if goal == Goal::Tell && meter.is_due(self.desk.now_ms, done, id.length) {
            self.desk.event(Event::Loading {
                model: id,
                done,
                total: id.length,
            });
        }
        self.desk.wake();
        if next.0 < id.pieces() {
            return Ok(Some(Loading::Pieces { next, goal, meter }));
        }
        start.engine.ready().map_err(refused)?;
        self.seat.advance(State::Loaded)?;
        let taken = start.engine.memory().ok();
        if let Some(model) = &mut self.seat.model {
            model.taken = taken;
            if goal == Goal::Tell {
                self.shelf.mark_sound(id.root);
                self.desk.event(Event::Loaded {
                    model: model.summary.clone(),
                    fit: Box::new(model.fit()),
                });
            }
        }
        Ok(None)
    }

    /// Opens the engine anew with other options, on the same file.
    pub(in crate::session) fn reopen(&mut self, options: &Options, plan: Plan) {
        let Station::Ready(start) = &mut self.station else {
            return;
        };
        let (Some(model), Some(file)) = (&mut self.seat.model, start.engine.close()) else {
            return;
        };
        let id = model.summary.id;
        model.options = *options;
        model.plan = plan;
        model.taken = None;
        let allocated = match self.seat.rewind() {
            Ok(()) => self.allocate(file, options, Goal::Request),
            Err(error) => Err(error),
        };
        match allocated {
            Ok(loading) => self.seat.loading = Some(loading),
            Err(error) => self.fail_load(id, error),
        }
    }

    /// What the loaded model would take with other options.
    pub(in crate::session) fn plan_again(
        &mut self,
        options: &Options,
    ) -> Result<Plan, ErrorReport> {
        let Station::Ready(start) = &mut self.station else {
            return Err(read::no_model());
        };
        let model = self.seat.model.as_ref().ok_or_else(read::no_model)?;
        start
            .engine
            .plan(&model.header_bytes, model.len(), options)
            .map_err(|error| words::engine_error(&error, Some(&model.header)))
    }

    /// One call of the engine, if there is one.
    pub(in crate::session) fn call<T>(
        &mut self,
        call: impl FnOnce(&mut E) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        match &mut self.station {
            Station::Ready(start) => call(&mut start.engine),
            _ => Err(EngineError::new(TrResult::WorkerFailure, Place::Load)),
        }
    }

    pub(super) fn fail_load(&mut self, id: ModelId, error: ErrorReport) {
        let is_damaged = error.code == TrResult::HashMismatch;
        if is_damaged {
            self.shelf.mark_damaged(id.root);
        }
        let was_told = self.requests.are_waiting();
        if words::is_fatal(error.code) {
            self.lose_engine();
        }
        self.free_seat();
        if was_told {
            // The page believes that the model is loaded, and its requests wait for it.
            self.desk.event(Event::Unloaded);
        }
        self.fail_requests(&error);
        self.desk.fail(Subject::Load(id), error);
        if is_damaged {
            self.desk.event(Event::Models(self.shelf.list()));
        }
    }

    /// After a trap nothing in the engine's memory can be trusted.
    pub(in crate::session) fn lose_engine(&mut self) {
        let (lane, storage) = match &self.station {
            Station::Ready(start) => (start.lane.clone(), start.storage),
            _ => return,
        };
        // Dropping the engine closes the file.
        self.station = Station::Lost(lane, storage);
        self.seat = Seat::default();
        self.seat.state = State::Destroyed;
        self.desk.engine_lost();
    }

    pub(super) fn unload(&mut self) {
        self.free_seat();
        self.desk.event(Event::Unloaded);
    }

    /// Gives memory and file back. The file is closed by being dropped.
    fn free_seat(&mut self) {
        if let Station::Ready(start) = &mut self.station {
            drop(start.engine.close());
        }
        if self.seat.state != State::Destroyed {
            self.seat = Seat::default();
        }
    }
}

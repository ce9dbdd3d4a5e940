//! From a stored file to a model that can be asked, and back.
//!
//! ```text
//! Layer -> File -> [Rebuild -> Mend] -> Read -> Pieces -> Loaded
//! ```
//!
//! The header pieces are hashed before the header is believed; every other piece is hashed where
//! the engine keeps it. A piece that is not what the root promises ends the load and is named.

use format::{Header, ModelId, PIECE_BYTES, PieceIndex, PieceLayer, Root};
use prompt::Prompter;
use protocol::abi::{KV_F16, MODE_INT8_V1, Options, Plan};
use protocol::{ErrorReport, Event, FitReport, ModelSummary, Stage as Place, Subject, TrResult};
use store::{Disk, LayerRebuild, StoreError, names};

use super::desk::Owner;
use super::imports::keep_layer;
use super::lifecycle::State;
use super::meter::Meter;
use super::{FileAnswer, FileOp, Session, Station};
use crate::engine::{Engine, EngineError};
use crate::words;

mod read;

pub use read::no_model;

/// Positions if the page does not say: half an hour of talk, and memory that phones have.
pub const CONTEXT_DEFAULT: u32 = 4096;
/// With less room than this nobody can talk.
pub const CONTEXT_LEAST: u32 = 512;
/// Pieces loaded before the session looks up: about 30 ms.
const PIECES_PER_WAKE: u32 = 4;

/// The engine's options for a conversation.
pub fn default_options(context: u32) -> Options {
    Options {
        mode: MODE_INT8_V1,
        kv_format: KV_F16,
        context,
        prefill_tile: 0,
    }
}

/// The one place for a model.
pub struct Seat<D> {
    pub state: State,
    pub model: Option<Model>,
    loading: Option<Loading<D>>,
}

/// A model that is loaded, or whose pieces are being loaded.
pub struct Model {
    pub summary: ModelSummary,
    pub header: Header,
    /// The header region, for the engine.
    header_bytes: Vec<u8>,
    layer: PieceLayer,
    /// `None` for weights without a tokenizer.
    pub prompter: Option<Prompter>,
    /// What the engine has now.
    mode: u32,
    pub plan: Plan,
}

enum Loading<D> {
    Layer(Wanted),
    File(Wanted, Option<PieceLayer>),
    /// The piece layer is lost or damaged and is made again from the whole file.
    Rebuild(Wanted, D, Box<LayerRebuild>),
    /// The rebuilt layer is being stored.
    Mend(Wanted, D, PieceLayer),
    Read(Wanted, D, PieceLayer),
    Pieces {
        next: PieceIndex,
        goal: Goal,
        meter: Meter,
    },
}

/// What the page asked for.
#[derive(Clone, Copy)]
struct Wanted {
    id: ModelId,
    context: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Tell the page that the model is loaded.
    Tell,
    /// A request waits for an engine with other options.
    Request,
}

impl<D> Default for Seat<D> {
    fn default() -> Seat<D> {
        Seat {
            state: State::Created,
            model: None,
            loading: None,
        }
    }
}

impl<D> Seat<D> {
    /// This model is loaded or being loaded.
    pub fn holds(&self, root: Root) -> bool {
        let wanted = match &self.loading {
            Some(
                Loading::Layer(wanted)
                | Loading::File(wanted, _)
                | Loading::Rebuild(wanted, ..)
                | Loading::Mend(wanted, ..)
                | Loading::Read(wanted, ..),
            ) => Some(wanted.id.root),
            Some(Loading::Pieces { .. }) | None => None,
        };
        let model = self.model.as_ref().map(|model| model.summary.id.root);
        wanted == Some(root) || model == Some(root)
    }

    pub fn is_loading(&self) -> bool {
        self.loading.is_some()
    }

    pub fn fit(&self) -> Option<FitReport> {
        self.model.as_ref().map(|model| fit_report(&model.plan))
    }

    /// A new engine is there.
    pub fn revive(&mut self) {
        *self = Seat::default();
    }

    /// Gives the memory back and keeps what is known of the file: it was read, checked and
    /// planned for.
    fn rewind(&mut self) -> Result<(), ErrorReport> {
        let way = [
            State::Unloaded,
            State::Created,
            State::Parsed,
            State::Authenticated,
            State::Validated,
            State::Planned,
        ];
        way.into_iter().try_for_each(|state| self.advance(state))
    }

    pub fn advance(&mut self, to: State) -> Result<(), ErrorReport> {
        self.state.advance(to).map_err(|refused| {
            let what = format!("a model cannot go from {:?} to {to:?}", refused.from);
            let remedy = "this is a fault of the program; please report it";
            words::illegal(Place::Load, &what, remedy)
        })
    }
}

impl Model {
    /// The engine that is open computes as these options ask.
    pub fn is_open_with(&self, mode: u32, plan: &Plan) -> bool {
        let same = (plan.context, plan.prefill_tile);
        mode == self.mode && same == (self.plan.context, self.plan.prefill_tile)
    }

    fn len(&self) -> u64 {
        self.summary.id.length
    }
}

pub fn fit_report(plan: &Plan) -> FitReport {
    FitReport {
        weights: plan.weights,
        metadata: plan.metadata,
        kv: plan.kv,
        scratch: plan.scratch,
        logits: plan.logits,
        total: plan.total,
        limit: plan.limit,
        context: plan.context,
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn on_load(&mut self, id: ModelId, context: u32) {
        let refused = match self.shelf.get(id.root) {
            None => Some("there is no such model"),
            Some(summary) if summary.id != id => Some("there is no such model"),
            Some(summary) if summary.partial.is_some() => Some("the model is not complete"),
            Some(_) if self.seat.is_loading() => Some("a model is being loaded"),
            Some(_) if self.requests.are_waiting() => Some("a request is running"),
            Some(_) if self.imports.concern(id.root) => Some("the model is being imported"),
            Some(_) if self.removals.concern(id.root) => Some("the model is being deleted"),
            Some(_) if !matches!(self.station, Station::Ready(_)) => {
                Some("the engine is being replaced")
            }
            Some(_) => None,
        };
        if let Some(what) = refused {
            let remedy = "list the models again, or wait until what is under way has ended";
            let error = words::illegal(Place::Load, what, remedy);
            return self.desk.fail(Subject::Load(id), error);
        }
        if self.seat.model.is_some() {
            self.unload();
        }
        let wanted = Wanted { id, context };
        let pieces = names::pieces(id.root);
        let op = if self.desk.names.contains(&pieces) {
            self.seat.loading = Some(Loading::Layer(wanted));
            FileOp::Open(pieces)
        } else {
            self.seat.loading = Some(Loading::File(wanted, None));
            FileOp::Open(names::done(id.root))
        };
        self.desk.files(Owner::Load, op);
    }

    pub(super) fn on_unload(&mut self) {
        let refused = if self.seat.is_loading() {
            Some("a model is being loaded")
        } else if self.requests.are_waiting() {
            Some("a request is running")
        } else if self.seat.model.is_none() {
            Some("no model is loaded")
        } else {
            None
        };
        match refused {
            None => self.unload(),
            Some(what) => {
                let error = words::illegal(Place::Load, what, "stop the request first");
                self.desk.fail(Subject::Start, error);
            }
        }
    }

    fn unload(&mut self) {
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

    pub(super) fn on_load_answer(&mut self, answer: Result<FileAnswer<D>, StoreError>) {
        let Some(loading) = self.seat.loading.take() else {
            return;
        };
        let id = loading.id(&self.seat);
        match self.load_answered(loading, answer) {
            Ok(loading) => self.seat.loading = Some(loading),
            Err(error) => self.fail_load(id, error),
        }
    }

    fn load_answered(
        &mut self,
        loading: Loading<D>,
        answer: Result<FileAnswer<D>, StoreError>,
    ) -> Result<Loading<D>, ErrorReport> {
        let stored = |error: StoreError| words::store_error(&error, Place::Load);
        match (loading, answer) {
            (Loading::Layer(wanted), answer) => {
                let layer = match answer {
                    Ok(FileAnswer::Opened(disk)) => read::layer(&disk, wanted.id),
                    _ => None,
                };
                let op = FileOp::Open(names::done(wanted.id.root));
                self.desk.files(Owner::Load, op);
                Ok(Loading::File(wanted, layer))
            }
            (Loading::File(wanted, layer), Ok(FileAnswer::Opened(disk))) => {
                self.desk.wake();
                match layer {
                    Some(layer) => Ok(Loading::Read(wanted, disk, layer)),
                    None => {
                        let root = wanted.id.root;
                        let rebuild = LayerRebuild::start(root, &disk).map_err(stored)?;
                        Ok(Loading::Rebuild(wanted, disk, Box::new(rebuild)))
                    }
                }
            }
            (Loading::Mend(wanted, disk, layer), answer) => {
                if let Ok(FileAnswer::Opened(file)) = answer
                    && let Err(error) = keep_layer(file, &layer)
                {
                    // The load can go on; the next one makes the layer again.
                    self.desk.records.push(stored(error));
                }
                self.desk.wake();
                Ok(Loading::Read(wanted, disk, layer))
            }
            (_, Err(error)) => Err(stored(error)),
            (loading, Ok(_)) => Ok(loading),
        }
    }

    pub(super) fn on_load_wake(&mut self) {
        let Some(loading) = self.seat.loading.take() else {
            return;
        };
        let id = loading.id(&self.seat);
        match self.load_on(loading) {
            Ok(loading) => self.seat.loading = loading,
            Err(error) => self.fail_load(id, error),
        }
    }

    fn load_on(&mut self, loading: Loading<D>) -> Result<Option<Loading<D>>, ErrorReport> {
        let stored = |error: StoreError| words::store_error(&error, Place::Load);
        match loading {
            Loading::Rebuild(wanted, disk, mut rebuild) => {
                let Some(layer) = rebuild.step(&disk).map_err(stored)? else {
                    self.desk.wake();
                    return Ok(Some(Loading::Rebuild(wanted, disk, rebuild)));
                };
                let name = names::pieces(wanted.id.root);
                self.desk.open_or_create(Owner::Load, name);
                Ok(Some(Loading::Mend(wanted, disk, layer)))
            }
            Loading::Read(wanted, disk, layer) => {
                self.seat.model = None;
                let (header_bytes, header) = self.authenticate(&disk, &layer)?;
                let prompter = read::prompter(&disk, &header)?;
                self.seat.advance(State::Validated)?;
                let (options, plan) = self.choose_context(&header, &header_bytes, wanted)?;
                self.seat.model = Some(Model {
                    summary: super::shelf::summary(wanted.id, &header, None),
                    header,
                    header_bytes,
                    layer,
                    prompter,
                    mode: options.mode,
                    plan,
                });
                self.seat.advance(State::Planned)?;
                self.allocate(disk, &options, Goal::Tell).map(Some)
            }
            Loading::Pieces { next, goal, meter } => self.load_pieces(next, goal, meter),
            // These wait for a file.
            loading => Ok(Some(loading)),
        }
    }

    fn authenticate(
        &mut self,
        disk: &D,
        layer: &PieceLayer,
    ) -> Result<(Vec<u8>, Header), ErrorReport> {
        let len = read::header_len(disk, layer.id.length)?;
        self.seat.advance(State::Parsed)?;
        let bytes = read::header_region(disk, layer, len)?;
        self.seat.advance(State::Authenticated)?;
        let header = Header::parse(&bytes, layer.id.length)
            .map_err(|error| words::format_error(&error, Place::Parse))?;
        Ok((bytes, header))
    }

    /// The page's context, or the largest of the usual ones that fits.
    fn choose_context(
        &mut self,
        header: &Header,
        header_bytes: &[u8],
        wanted: Wanted,
    ) -> Result<(Options, Plan), ErrorReport> {
        let most = header.manifest.architecture.context;
        let mut context = match wanted.context {
            0 => most.min(CONTEXT_DEFAULT),
            context => context,
        };
        loop {
            let options = default_options(context);
            let planned = self.call(|engine| engine.plan(header_bytes, header.file_len, &options));
            match planned {
                Ok(plan) => return Ok((options, plan)),
                Err(error)
                    if error.code() == TrResult::OutOfMemory
                        && wanted.context == 0
                        && context / 2 >= CONTEXT_LEAST =>
                {
                    context /= 2;
                }
                Err(error) => return Err(words::engine_error(&error, Some(header))),
            }
        }
    }

    /// Gives the file to the engine and begins to load pieces.
    fn allocate(
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

    fn load_pieces(
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
        if let Some(model) = self.seat.model.as_ref().filter(|_| goal == Goal::Tell) {
            self.desk.event(Event::Loaded {
                model: model.summary.clone(),
                fit: fit_report(&model.plan),
            });
        }
        Ok(None)
    }

    /// Opens the engine anew with other options, on the same file.
    pub(super) fn reopen(&mut self, options: &Options, plan: Plan) {
        let Station::Ready(start) = &mut self.station else {
            return;
        };
        let (Some(model), Some(file)) = (&mut self.seat.model, start.engine.close()) else {
            return;
        };
        let id = model.summary.id;
        model.mode = options.mode;
        model.plan = plan;
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
    pub(super) fn plan_again(&mut self, options: &Options) -> Result<Plan, ErrorReport> {
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
    pub(super) fn call<T>(
        &mut self,
        call: impl FnOnce(&mut E) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        match &mut self.station {
            Station::Ready(start) => call(&mut start.engine),
            _ => Err(EngineError::new(TrResult::WorkerFailure, Place::Load)),
        }
    }

    fn fail_load(&mut self, id: ModelId, error: ErrorReport) {
        if error.code == TrResult::HashMismatch {
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
    }

    /// After a trap nothing in the engine's memory can be trusted.
    pub(super) fn lose_engine(&mut self) {
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
}

impl<D> Loading<D> {
    fn id(&self, seat: &Seat<D>) -> ModelId {
        match self {
            Loading::Layer(wanted)
            | Loading::File(wanted, _)
            | Loading::Rebuild(wanted, ..)
            | Loading::Mend(wanted, ..)
            | Loading::Read(wanted, ..) => wanted.id,
            Loading::Pieces { .. } => match &seat.model {
                Some(model) => model.summary.id,
                None => ModelId {
                    root: Root::default(),
                    length: 0,
                },
            },
        }
    }
}

//! The place for the one model, and what it has.

use format::{Header, ModelId, PieceIndex, PieceLayer, Root};
use prompt::Prompter;
use protocol::abi::{Options, Plan};
use protocol::{ErrorReport, FitReport, ModelSummary, Stage as Place, Wish};
use store::LayerRebuild;

use crate::session::lifecycle::State;
use crate::session::meter::Meter;
use crate::words;

/// Positions if the page does not say: half an hour of talk, and memory that phones have.
pub const CONTEXT_DEFAULT: u32 = 4096;

/// The one place for a model.
pub struct Seat<D> {
    pub state: State,
    pub model: Option<Model>,
    pub loading: Option<Loading<D>>,
}

/// A model that is loaded, or whose pieces are being loaded.
pub struct Model {
    pub summary: ModelSummary,
    pub header: Header,
    /// The header region, for the engine.
    pub header_bytes: Vec<u8>,
    pub layer: PieceLayer,
    /// `None` for weights without a tokenizer.
    pub prompter: Option<Prompter>,
    /// What the engine has now.
    pub options: Options,
    pub plan: Plan,
    /// What it has really taken, once the model is there.
    pub taken: Option<Plan>,
}

pub enum Loading<D> {
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
pub struct Wanted {
    pub id: ModelId,
    pub wish: Wish,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Goal {
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

    /// The model that is loaded or being loaded.
    pub fn wanted(&self) -> Option<ModelId> {
        let loaded = self.model.as_ref().map(|model| model.summary.id);
        let loading = self.loading.as_ref().map(|loading| loading.id(self));
        loaded.or(loading)
    }

    pub fn fit(&self) -> Option<FitReport> {
        self.model.as_ref().map(Model::fit)
    }

    /// A new engine is there.
    pub fn revive(&mut self) {
        *self = Seat::default();
    }

    /// Gives the memory back and keeps what is known of the file: it was read, checked and
    /// planned for.
    pub fn rewind(&mut self) -> Result<(), ErrorReport> {
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
    pub fn is_open_with(&self, options: &Options, plan: &Plan) -> bool {
        let tile = plan.prefill_tile == self.plan.prefill_tile;
        let asked = Options {
            prefill_tile: self.options.prefill_tile,
            context: self.options.context,
            ..*options
        };
        tile && asked == self.options && plan.context == self.plan.context
    }

    /// What it takes, as far as that is known.
    pub fn fit(&self) -> FitReport {
        FitReport::of(&self.plan, self.taken.as_ref())
    }

    pub fn len(&self) -> u64 {
        self.summary.id.length
    }
}

impl<D> Loading<D> {
    pub fn id(&self, seat: &Seat<D>) -> ModelId {
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

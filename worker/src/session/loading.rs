//! From a stored file to a model that can be asked, and back.
//!
//! ```text
//! Layer -> File -> [Rebuild -> Mend] -> Read -> Pieces -> Loaded
//! ```
//!
//! The header pieces are hashed before the header is believed; every other piece is hashed where
//! the engine keeps it. A piece that is not what the root promises ends the load and is named.

mod fit;
mod memory;
mod read;
mod seat;

use format::{Header, ModelId, PieceLayer};
use protocol::{ErrorReport, ModelSummary, Stage as Place, Subject, Wish};
use store::{Disk, LayerRebuild, StoreError, names};

use super::desk::Owner;
use super::imports::keep_layer;
use super::lifecycle::State;
use super::{FileAnswer, FileOp, Session, Station};
use crate::engine::Engine;
use crate::words;
use seat::{Goal, Loading, Wanted};

pub use fit::{Verdict, judge};
pub use read::no_model;
pub use seat::{Model, Seat};

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
        self.give_up_check(id.root);
        if self.seat.model.is_some() {
            self.unload();
        }
        let mut wish = self.wish.take().unwrap_or(Wish::USUAL);
        if context != 0 {
            wish.context = context;
        }
        let wanted = Wanted { id, wish };
        let pieces = names::pieces(id.root);
        let op = if let Some(lent) = self.shelf.lent(id.root) {
            self.seat.loading = Some(Loading::File(wanted, Some(lent.layer.clone())));
            FileOp::Lend(lent.source)
        } else if self.desk.names.contains(&pieces) {
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
                self.desk.fail(Subject::Asked, error);
            }
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
                let (options, plan) = self.choose(&header, &header_bytes, wanted)?;
                self.seat.model = Some(Model {
                    summary: ModelSummary {
                        borrowed: self.shelf.lent(wanted.id.root).is_some(),
                        ..super::shelf::summary(wanted.id, &header, None)
                    },
                    header,
                    header_bytes,
                    layer,
                    prompter,
                    options,
                    plan,
                    taken: None,
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
}

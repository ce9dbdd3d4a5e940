//! Giving stored models to peers.

use format::{ModelId, PieceIndex, PieceLayer, Root};
use protocol::{Event, Stage as Place, Subject, SwarmCommand, SwarmEvent};
use store::{Disk, StoreError, names};

use super::desk::Owner;
use super::{FileAnswer, FileOp, Session};
use crate::engine::Engine;
use crate::source::Source;
use crate::words;

/// Models whose hashes are being read, with what was asked for.
#[derive(Default)]
pub struct Shares {
    opening: Vec<Wish>,
}

struct Wish {
    model: ModelId,
    trackers: Vec<String>,
    limit: Option<u32>,
    seed: u64,
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn on_swarm_command(&mut self, command: SwarmCommand) {
        match command {
            SwarmCommand::Share {
                model,
                trackers,
                limit,
                seed,
            } => self.share(Wish {
                model,
                trackers,
                limit,
                seed,
            }),
            SwarmCommand::Unshare { model } => {
                self.shares.opening.retain(|wish| wish.model != model);
                match self.desk.shares(model) || self.desk.is_fetched(model) {
                    true => self.desk.unshare(model),
                    // Whoever asks twice hears it twice.
                    false => self.desk.event(Event::Swarm(SwarmEvent::Ended { model })),
                }
            }
            SwarmCommand::Opened { model, link, key } => self.desk.peer_opened(model, link, key),
            SwarmCommand::Closed { link } => self.desk.peer_closed(link),
            SwarmCommand::Drained { link, bytes } => self.desk.peer_drained(link, bytes),
            // The pages' own business, which the hub sees to.
            SwarmCommand::Meet(_) | SwarmCommand::Met { .. } => {}
        }
    }

    fn share(&mut self, wish: Wish) {
        let model = wish.model;
        if self.desk.shares(model) {
            return self.desk.change_share(model, wish.trackers, wish.limit);
        }
        let is_whole = self.shelf.complete(model).is_some();
        if !is_whole || self.desk.is_fetched(model) || self.removals.concern(model.root) {
            let what = "there is no such model, or it is not whole";
            let remedy = "list the models again; a damaged model has to be repaired first";
            let error = words::illegal(Place::Store, what, remedy);
            return self.desk.fail(Subject::Store, error);
        }
        if !self.shares.opening.iter().any(|known| known.model == model) {
            self.shares.opening.push(wish);
            let op = FileOp::Open(names::pieces(model.root));
            self.desk.files(Owner::Share(model), op);
        }
    }

    pub(super) fn on_share_answer(
        &mut self,
        model: ModelId,
        answer: Result<FileAnswer<D>, StoreError>,
    ) {
        let at = self
            .shares
            .opening
            .iter()
            .position(|wish| wish.model == model);
        // Not wanted any more.
        let Some(at) = at else { return };
        let Wish {
            trackers,
            limit,
            seed,
            ..
        } = self.shares.opening.remove(at);
        let layer = match answer {
            Ok(FileAnswer::Opened(disk)) => read_layer(model, disk),
            Ok(_) => return,
            Err(error) => Err(error),
        };
        let name = self.shelf.get(model.root).map(|known| known.name.clone());
        let name = name.unwrap_or_default();
        let shared = match layer {
            Ok(Some(layer)) => self.desk.share_stored(layer, name, (trackers, limit, seed)),
            Ok(None) => {
                let what = "the hashes of the model's pieces are damaged";
                Err(words::illegal(
                    Place::Store,
                    what,
                    "load the model once, which mends them",
                ))
            }
            Err(error) => Err(words::store_error(&error, Place::Store)),
        };
        if let Err(error) = shared {
            self.desk.fail(Subject::Store, error);
        }
    }

    pub(super) fn unshare_root(&mut self, root: Root) {
        if let Some(summary) = self.shelf.get(root) {
            let model = summary.id;
            self.shares.opening.retain(|wish| wish.model != model);
            if !self.desk.is_fetched(model) {
                self.desk.unshare(model);
            }
        }
    }

    /// A peer wants a piece of the model that is just arriving.
    pub(super) fn read_arrived(&mut self, source: Source, piece: PieceIndex) {
        let bytes = self.imports.read(source, piece);
        self.desk.import_read(source, piece, bytes);
    }
}

/// `None` if what lies there are not this model's.
fn read_layer<D: Disk>(model: ModelId, mut disk: D) -> Result<Option<PieceLayer>, StoreError> {
    let len = disk.len()?;
    let expected = 32 * u64::from(model.pieces());
    let mut bytes = vec![0; len.min(expected) as usize];
    disk.read_at(0, &mut bytes)?;
    disk.close()?;
    Ok(PieceLayer::parse(model, &bytes).ok())
}

//! Making or opening the three files of an import: layer, part and record.

use format::PieceLayer;
use protocol::Event;
use store::{Disk, Found, Import, StoreError, import_bytes, names, preflight};

use super::job::{Bench, End, Job, Sound, Stage};
use super::receive::{Receive, Recheck};
use crate::engine::Engine;
use crate::session::{FileAnswer, FileOp};
use crate::source::Source;

pub struct Opening<D> {
    pub source: Source,
    pub layer: PieceLayer,
    pub sound: Sound,
    /// Which answer is awaited.
    step: Step,
    part: Option<D>,
    /// Nothing of the model was there when this import began.
    pub is_fresh: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A damaged model becomes an unfinished one: its sound pieces need not come again.
    Salvage,
    Room,
    Layer,
    Part,
    Record,
}

impl<D> Opening<D> {
    pub fn new(
        source: Source,
        layer: PieceLayer,
        sound: Sound,
        part: Option<D>,
    ) -> Box<Opening<D>> {
        Box::new(Opening {
            source,
            layer,
            sound,
            step: Step::Room,
            is_fresh: part.is_none(),
            part,
        })
    }
}

impl<D: Disk> Job<D> {
    pub(super) fn open_files<E: Engine<File = D>>(
        &mut self,
        mut opening: Box<Opening<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let root = opening.layer.id.root;
        let [part, done] = [names::part(root), names::done(root)];
        opening.is_fresh &= !bench.desk.names.contains(&part);
        // Were the model sound, this import would have ended before.
        if opening.part.is_none() && bench.desk.names.contains(&done) {
            opening.is_fresh = false;
            opening.step = Step::Salvage;
            let rename = FileOp::Rename {
                from: done,
                to: part,
            };
            self.waits_for_files = true;
            bench.desk.files(self.owner(), rename);
            return Ok(Stage::Opening(opening));
        }
        Ok(self.ask_for_room(opening, bench))
    }

    fn ask_for_room<E: Engine<File = D>>(
        &mut self,
        mut opening: Box<Opening<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Stage<D> {
        opening.step = Step::Room;
        self.waits_for_files = true;
        bench.desk.files(self.owner(), FileOp::Estimate);
        Stage::Opening(opening)
    }

    pub(super) fn on_opening<E: Engine<File = D>>(
        &mut self,
        mut opening: Box<Opening<D>>,
        answer: Result<FileAnswer<D>, StoreError>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        if opening.step == Step::Salvage {
            if let Err(error) = answer {
                self.stage = Stage::Opening(opening);
                return Err(error.into());
            }
            return Ok(self.ask_for_room(opening, bench));
        }
        let done = self.open_step(&mut opening, answer);
        match done {
            Ok(None) => {}
            Ok(Some((part, have))) => return self.start(*opening, part, have, bench),
            Err(end) => {
                // Back to where it was, so that the end knows what this import made.
                self.stage = Stage::Opening(opening);
                return Err(end);
            }
        }
        let root = opening.layer.id.root;
        let name = match opening.step {
            Step::Salvage | Step::Room | Step::Layer => names::pieces(root),
            Step::Part => names::part(root),
            Step::Record => names::have(root),
        };
        self.waits_for_files = true;
        bench.desk.open_or_create(self.owner(), name);
        Ok(Stage::Opening(opening))
    }

    /// Takes one answer; gives both files when both are open.
    fn open_step(
        &mut self,
        opening: &mut Opening<D>,
        answer: Result<FileAnswer<D>, StoreError>,
    ) -> Result<Option<(D, D)>, End> {
        let disk = match answer? {
            FileAnswer::Opened(disk) => Some(disk),
            FileAnswer::Estimate(estimate) => {
                let reserved = match (&opening.part, opening.is_fresh) {
                    (Some(part), _) => part.len()?,
                    (None, true) => 0,
                    // A part that is opened later; salvaged, or left by an earlier start.
                    (None, false) => opening.layer.id.length,
                };
                preflight(estimate, import_bytes(opening.layer.id, reserved))?;
                None
            }
            FileAnswer::Listed(_) | FileAnswer::Done => None,
        };
        match (opening.step, disk) {
            (Step::Room, _) => opening.step = Step::Layer,
            (Step::Layer, Some(disk)) => {
                keep_layer(disk, &opening.layer)?;
                opening.step = match opening.part {
                    Some(_) => Step::Record,
                    None => Step::Part,
                };
            }
            (Step::Part, Some(disk)) => {
                opening.part = Some(disk);
                opening.step = Step::Record;
            }
            (Step::Record, Some(have)) => {
                return Ok(opening.part.take().map(|part| (part, have)));
            }
            (Step::Salvage, _) | (_, None) => {}
        }
        Ok(None)
    }

    fn start<E: Engine<File = D>>(
        &mut self,
        opening: Opening<D>,
        part: D,
        have: D,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Opening {
            source,
            layer,
            sound,
            is_fresh,
            ..
        } = opening;
        let import = match Import::start(layer.clone(), part, have) {
            Ok(import) => import,
            Err(error) => {
                let opening = Opening::new(source, layer, sound, None);
                self.stage = Stage::Opening(Box::new(Opening {
                    is_fresh,
                    ..*opening
                }));
                return Err(error.into());
            }
        };
        let found = import.resumed().found;
        let model = sound.summary(layer.id, import.progress().bytes);
        for import in self.askers.iter().copied() {
            let model = model.clone();
            bench.desk.event(Event::ImportOpened { import, model });
        }
        bench.shelf.put(model);
        let receive = Receive::new(source, import, sound);
        match found {
            Found::PartOnly => {
                bench.desk.wake();
                Ok(Stage::Recheck(Box::new(Recheck::new(receive))))
            }
            Found::Nothing | Found::Record => self.begin_receive(receive, bench),
        }
    }
}

/// Writes the piece layer, unless it is there already.
pub fn keep_layer<D: Disk>(mut disk: D, layer: &PieceLayer) -> Result<(), StoreError> {
    let wanted = layer.to_bytes();
    let mut found = vec![0; wanted.len()];
    let is_there = disk.len()? == wanted.len() as u64
        && disk.read_at(0, &mut found).is_ok()
        && found == wanted;
    if !is_there {
        disk.set_len(wanted.len() as u64)?;
        disk.write_at(0, &wanted)?;
        disk.flush()?;
    }
    disk.close()
}

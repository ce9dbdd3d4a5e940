//! A stored model that is not loaded is read and hashed, on a person's word.
//!
//! One piece a wake, so everything else goes on meanwhile. What wants the file itself ends the
//! check, and that is told.

use format::{ModelId, Root};
use protocol::{Event, Stage, Subject};
use store::{Disk, LayerRebuild, StoreError, names};

use super::desk::Owner;
use super::meter::Meter;
use super::{FileAnswer, FileOp, Session, Station};
use crate::engine::Engine;
use crate::words;

pub struct Check<D> {
    id: ModelId,
    /// `None` until it is open.
    reading: Option<(D, LayerRebuild)>,
    meter: Meter,
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    /// After a sleep that nobody announced: the engine still answers, and every open file can
    /// still be reached. Without an engine there is nothing that could be unwell.
    pub fn is_well(&mut self) -> bool {
        let engine = match &mut self.station {
            Station::Ready(start) => start.engine.is_well(),
            _ => true,
        };
        engine && self.imports.are_well()
    }

    pub(super) fn on_check(&mut self, id: ModelId) {
        let there = self.shelf.get(id.root).filter(|summary| summary.id == id);
        let reason = match there {
            None => Some("there is no such model"),
            Some(summary) if summary.partial.is_some() => Some("the model is not complete"),
            Some(summary) if summary.borrowed => Some("the model is a file that is not stored"),
            Some(_) if self.check.is_some() => Some("a model is being checked already"),
            Some(_) if self.seat.holds(id.root) => Some("the model is loaded"),
            Some(_) if self.imports.concern(id.root) => Some("the model is being imported"),
            Some(_) if self.removals.concern(id.root) => Some("the model is being deleted"),
            Some(_) => None,
        };
        if let Some(what) = reason {
            let remedy = "every load checks every piece; unload the model to check it by itself";
            let error = words::illegal(Stage::Store, what, remedy);
            return self.desk.fail(Subject::Model(id), error);
        }
        let (reading, meter) = (None, Meter::default());
        self.check = Some(Check { id, reading, meter });
        self.desk
            .files(Owner::Check(id), FileOp::Open(names::done(id.root)));
    }

    pub(super) fn on_check_answer(
        &mut self,
        id: ModelId,
        answer: Result<FileAnswer<D>, StoreError>,
    ) {
        let Some(check) = self.check.as_mut().filter(|check| check.id == id) else {
            return;
        };
        let opened = answer.and_then(|answer| match answer {
            FileAnswer::Opened(disk) => {
                let rebuild = LayerRebuild::start(id.root, &disk)?;
                Ok(Some((disk, rebuild)))
            }
            _ => Ok(None),
        });
        match opened {
            Ok(reading) => {
                check.reading = reading;
                self.desk.wake();
            }
            Err(error) => self.end_check(id, Err(error)),
        }
    }

    pub(super) fn on_check_wake(&mut self) {
        let Some(check) = &mut self.check else { return };
        let (id, total) = (check.id, check.id.length);
        let Some((disk, rebuild)) = &mut check.reading else {
            return;
        };
        let step = rebuild.step(disk);
        let done = rebuild.bytes();
        match step {
            Ok(None) => {
                if check.meter.is_due(self.desk.now_ms, done, total) {
                    let model = id;
                    self.desk.event(Event::Checking { model, done, total });
                }
                self.desk.wake();
            }
            Ok(Some(_)) => self.end_check(id, Ok(())),
            Err(error) => self.end_check(id, Err(error)),
        }
    }

    fn end_check(&mut self, id: ModelId, result: Result<(), StoreError>) {
        self.check = None;
        let is_sound = result.is_ok();
        match result {
            Ok(()) => self.shelf.mark_sound(id.root),
            // The bytes can be read and are others, or cannot be read any more.
            Err(StoreError::Corrupt { .. } | StoreError::ShortRead { .. }) => {
                self.shelf.mark_damaged(id.root);
            }
            Err(error) => {
                let report = words::store_error(&error, Stage::Store);
                return self.desk.fail(Subject::Model(id), report);
            }
        }
        let model = id;
        self.desk.event(Event::Checked { model, is_sound });
        self.desk.event(Event::Models(self.shelf.list()));
    }

    /// The model's file is wanted for something else.
    pub(super) fn give_up_check(&mut self, root: Root) {
        if let Some(check) = self.check.take_if(|check| check.id.root == root) {
            let what = "the check has ended, because the model is wanted for something else";
            let error = words::illegal(Stage::Store, what, "check it again later");
            self.desk.fail(Subject::Model(check.id), error);
        }
    }
}

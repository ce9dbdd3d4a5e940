//! The end of an import: the last file operations, then the last event.

use std::collections::VecDeque;

use format::Root;
use protocol::{ErrorReport, Event, ModelSummary, Subject, TrResult};
use store::{Disk, StoreError, names};

use super::convert_in::Sink;
use super::job::{After, Bench, End, Job, Stage};
use super::remote::Remote;
use crate::engine::Engine;
use crate::session::desk::Desk;
use crate::session::shelf::{Shelf, files_of, nameless_of};
use crate::session::{FileAnswer, FileOp, Session};
use crate::words;
use protocol::Stage as Place;

pub struct Closing {
    /// In order; the first is under way.
    ops: VecDeque<FileOp>,
    outcome: Outcome,
}

pub enum Outcome {
    Imported {
        model: ModelSummary,
        already_here: bool,
    },
    Cancelled,
    Failed(ErrorReport),
}

impl Closing {
    pub fn new(ops: Vec<FileOp>, outcome: Outcome) -> Closing {
        Closing {
            ops: ops.into(),
            outcome,
        }
    }

    /// A complete import's files get their last names.
    pub fn complete(root: Root, outcome: Outcome) -> Closing {
        let rename = FileOp::Rename {
            from: names::part(root),
            to: names::done(root),
        };
        Closing::new(vec![rename, FileOp::Remove(names::have(root))], outcome)
    }

    pub fn remove(names: Vec<String>, outcome: Outcome) -> Closing {
        Closing::new(names.into_iter().map(FileOp::Remove).collect(), outcome)
    }
}

impl<D: Disk> Job<D> {
    /// Starts the last operations, of which there is at least one.
    pub(super) fn close<E: Engine<File = D>>(
        &mut self,
        closing: Closing,
        bench: &mut Bench<'_, E>,
    ) -> Stage<D> {
        if let Some(op) = closing.ops.front() {
            bench.desk.files(self.owner(), op.clone());
        }
        Stage::Closing(Box::new(closing))
    }

    /// `None` when the last event is out.
    pub(super) fn on_closing<E: Engine<File = D>>(
        &mut self,
        mut closing: Box<Closing>,
        answer: Result<FileAnswer<D>, StoreError>,
        bench: &mut Bench<'_, E>,
    ) -> Option<Box<Closing>> {
        let op = closing.ops.pop_front();
        if let Err(error) = answer {
            let report = words::store_error(&error, Place::Store);
            match op {
                // Without its name the model does not exist.
                Some(FileOp::Rename { .. }) => {
                    closing.ops.clear();
                    closing.outcome = Outcome::Failed(report);
                }
                // A file that stays is a stray, which the next start removes.
                _ if matches!(error, StoreError::NotFound { .. }) => {}
                _ => bench.desk.records.push(report),
            }
        }
        match closing.ops.front() {
            Some(op) => {
                bench.desk.files(self.owner(), op.clone());
                Some(closing)
            }
            None => {
                self.tell_outcome(closing.outcome, bench.desk, bench.shelf);
                None
            }
        }
    }

    /// What the storage refused; of a full one, how much room is missing.
    fn storage_report(&self, error: &StoreError) -> ErrorReport {
        match error {
            StoreError::Quota { needed } => words::no_room_midway((*needed).max(self.missing())),
            error => words::store_error(error, Place::Store),
        }
    }

    /// Bytes that are still to be written.
    fn missing(&self) -> u64 {
        let lacks = |remote: &Remote<D>| {
            let length = remote.length.unwrap_or(0);
            length.saturating_sub(remote.bytes())
        };
        let remotes: u64 = self.remotes.iter().map(lacks).sum();
        let rest = match &self.stage {
            Stage::Receive(receive) => {
                let progress = receive.import.progress();
                progress.bytes_total - progress.bytes
            }
            Stage::Opening(opening) => opening.layer.id.length,
            Stage::Convert(convert) => convert.lacks(),
            _ => 0,
        };
        remotes + rest
    }

    fn tell_outcome(&self, outcome: Outcome, desk: &mut Desk, shelf: &mut Shelf) {
        if let Outcome::Imported { model, .. } = &outcome {
            shelf.put(model.clone());
        }
        if let Outcome::Failed(error) = &outcome {
            desk.record_of_file(error, self.name());
        }
        for import in self.askers.iter().copied() {
            desk.event(match &outcome {
                Outcome::Imported {
                    model,
                    already_here,
                } => Event::Imported {
                    import,
                    model: model.clone(),
                    already_here: *already_here,
                },
                Outcome::Cancelled => Event::ImportCancelled { import },
                Outcome::Failed(error) => Event::Failed {
                    subject: Subject::Import(import),
                    error: error.clone(),
                },
            });
        }
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    /// Ends an import that cannot go on.
    pub(super) fn end_import(&mut self, mut job: Job<D>, end: End) {
        let outcome = match end {
            End::AlreadyHere(model) => {
                let already_here = true;
                Outcome::Imported {
                    model: *model,
                    already_here,
                }
            }
            End::Refused(error) => Outcome::Failed(error),
            End::Storage(error) => Outcome::Failed(job.storage_report(&error)),
            End::BadSource(error) => Outcome::Failed(job.places.named(error)),
        };
        // What no later start can use goes: the model is here already, or is none.
        let is_useful = match &outcome {
            Outcome::Failed(error) => matches!(error.code, TrResult::Source | TrResult::Storage),
            _ => false,
        };
        let raw = self.leave_remotes(&mut job, is_useful);
        let mut names = self.leave(&mut job, After::Keep);
        names.extend(raw);
        self.close_import(job, Closing::remove(names, outcome));
    }

    /// Ends an import that the page gave up.
    pub(super) fn stop_import(&mut self, mut job: Job<D>, after: After) {
        let raw = self.leave_remotes(&mut job, after == After::Keep);
        let mut names = self.leave(&mut job, after);
        names.extend(raw);
        self.close_import(job, Closing::remove(names, Outcome::Cancelled));
    }

    /// Keeps what came of addresses for a later start, or tells which files have to go.
    fn leave_remotes(&mut self, job: &mut Job<D>, is_useful: bool) -> Vec<String> {
        let mut names = Vec::new();
        for mut remote in std::mem::take(&mut job.remotes) {
            // Of a file without an end no later start can tell what is missing.
            let is_growing = remote.raw.as_ref().is_some_and(|raw| raw.is_growing());
            let is_useful = is_useful && !is_growing;
            let there = [store::names::raw(remote.key), store::names::got(remote.key)];
            let there = there
                .into_iter()
                .filter(|name| self.desk.names.contains(name));
            let now_ms = self.desk.now_ms;
            let kept = match &mut remote.raw {
                Some(raw) if is_useful => raw.keep(now_ms).and_then(|()| raw.close()),
                Some(raw) => raw.close(),
                // Files that were just being opened.
                None => Ok(()),
            };
            if let Err(error) = kept {
                self.desk
                    .records
                    .push(words::store_error(&error, Place::Store));
            }
            match remote.raw {
                Some(_) if is_useful => {
                    let (length, bytes) = (remote.length.unwrap_or(0), remote.bytes());
                    let summary = nameless_of(remote.key, length, remote.name(), bytes);
                    self.shelf.put(summary);
                }
                // What an earlier start left was just being opened.
                None if is_useful && self.shelf.get(remote.key).is_some() => {}
                _ => {
                    self.shelf.take(remote.key);
                    names.extend(there);
                }
            }
        }
        names
    }

    /// Closes what is open and tells which files have to go.
    fn leave(&mut self, job: &mut Job<D>, after: After) -> Vec<String> {
        let stage = std::mem::replace(&mut job.stage, Stage::Waiting);
        let receive = match stage {
            Stage::Receive(receive) => receive,
            Stage::Recheck(recheck) => recheck.receive,
            // Without its model a piece layer is a stray.
            Stage::Adopt(adopt) => return vec![names::pieces(adopt.layer.id.root)],
            Stage::Convert(convert) => {
                return match &convert.sink {
                    Sink::Layer { layer, .. } => {
                        let layer = names::pieces(layer.id.root);
                        convert
                            .sink
                            .name()
                            .cloned()
                            .into_iter()
                            .chain([layer])
                            .collect()
                    }
                    sink => sink.name().cloned().into_iter().collect(),
                };
            }
            Stage::Opening(opening) if opening.is_fresh || after == After::Discard => {
                return self.forget(opening.layer.id.root);
            }
            Stage::Head(_) | Stage::Part(_) | Stage::Layer(_) if after == After::Discard => {
                return job.root.map_or(Vec::new(), |root| self.forget(root));
            }
            _ => return Vec::new(),
        };
        let id = receive.import.id();
        let summary = receive.sound.summary(id, 0);
        // What the last record names stays, whatever this says.
        let kept = receive.import.suspend(self.desk.now_ms);
        if after == After::Discard {
            return self.forget(id.root);
        }
        match kept {
            Ok(progress) => self.shelf.put(ModelSummary {
                partial: Some(progress.bytes),
                ..summary
            }),
            Err(error) => {
                let report = words::store_error(&error, Place::Store);
                self.desk.records.push(report);
            }
        }
        Vec::new()
    }

    /// Takes an unfinished model off the shelf; its files are to be removed.
    fn forget(&mut self, root: Root) -> Vec<String> {
        self.shelf.take(root);
        let files = files_of(root).into_iter();
        files
            .filter(|name| self.desk.names.contains(name))
            .collect()
    }

    fn close_import(&mut self, mut job: Job<D>, closing: Closing) {
        self.drop_sources(&job);
        job.sources.clear();
        match closing.ops.front() {
            Some(op) => {
                self.desk.files(job.owner(), op.clone());
                job.cancelled = None;
                job.stage = Stage::Closing(Box::new(closing));
                self.imports.active = Some(job);
            }
            None => {
                job.tell_outcome(closing.outcome, &mut self.desk, &mut self.shelf);
                self.next_import();
            }
        }
    }
}

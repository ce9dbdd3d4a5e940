//! Reading the directory once at the start, and removing files.

use std::collections::VecDeque;

use format::{Header, ModelId, Root};
use protocol::{Event, Stage, Subject};
use store::{Disk, HaveRecord, Library, Partial, StoreError, Stored, have_file_len, names};

use super::desk::Owner;
use super::shelf::{Look, Shelf, files_of, nameless, nameless_of, summary};
use super::{FileAnswer, FileOp, Session, imports};
use crate::engine::Engine;
use crate::words;

/// A `.have` file for more pieces than any model that a lane can hold.
const HAVE_BYTES_MAX: u64 = 1024 * 1024;

/// Which files are still to be looked at.
#[derive(Default)]
pub struct Scan {
    /// The directory is read; commands can be taken.
    pub is_done: bool,
    looks: VecDeque<Look>,
    /// What the record of the partial model in front said.
    record: Option<HaveRecord>,
}

/// Files to be removed, and the models that are gone with the last of them.
#[derive(Default)]
pub struct Removals {
    names: VecDeque<String>,
    models: Vec<ModelId>,
}

impl Removals {
    pub fn concern(&self, root: Root) -> bool {
        self.models.iter().any(|model| model.root == root)
    }

    pub fn are_under_way(&self) -> bool {
        !self.models.is_empty()
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn start_scan(&mut self) {
        self.desk.files(Owner::Shelf, FileOp::List);
    }

    pub(super) fn on_scan_answer(&mut self, op: FileOp, answer: Result<FileAnswer<D>, StoreError>) {
        match (op, answer) {
            (FileOp::List, Ok(FileAnswer::Listed(entries))) => {
                let library = Library::derive(&entries);
                for root in &library.damaged {
                    let id = ModelId {
                        root: *root,
                        length: 0,
                    };
                    self.shelf.put(nameless(id, None));
                    self.shelf.mark_damaged(*root);
                }
                self.keeping.found(library.kept.clone());
                self.scan.looks = Shelf::looks(library).into();
            }
            (FileOp::List, Err(error)) => {
                let report = words::store_error(&error, Stage::Store);
                self.desk.fail(Subject::Store, report);
            }
            (_, answer) => self.look(answer),
        }
        self.next_look();
    }

    /// Takes the answer about the file in front.
    fn look(&mut self, answer: Result<FileAnswer<D>, StoreError>) {
        match (self.scan.looks.pop_front(), answer) {
            (Some(Look::Stored(stored)), Ok(FileAnswer::Opened(disk))) => {
                self.look_at_model(stored, &disk);
            }
            (Some(Look::Stored(stored)), Err(error)) => {
                self.shelf.put(nameless(stored.id, None));
                let report = words::store_error(&error, Stage::Store);
                self.desk.fail(Subject::Store, report);
            }
            (Some(Look::Partial(partial)), Ok(FileAnswer::Opened(disk))) if partial.have => {
                self.scan.record = have_record(&partial, &disk);
                // The record is read; the part itself is next.
                let part = Partial {
                    have: false,
                    ..partial
                };
                self.scan.looks.push_front(Look::Partial(part));
            }
            (Some(Look::Partial(partial)), Ok(FileAnswer::Opened(disk))) => {
                self.look_at_part(partial, &disk);
            }
            (Some(Look::Raw(key)), Ok(FileAnswer::Opened(disk))) => {
                // What cannot be read is shown all the same, so that it can be deleted.
                let (about, bytes) = store::read_got(&disk).ok().flatten().unwrap_or_default();
                let name = imports::file_name(&about.url);
                self.shelf.put(nameless_of(key, about.length, name, bytes));
            }
            (Some(Look::Partial(_)), Err(error)) => {
                self.scan.record = None;
                let report = words::store_error(&error, Stage::Store);
                self.desk.fail(Subject::Store, report);
            }
            // A stray that could not be removed stays a stray until the next start.
            _ => {}
        }
    }

    fn next_look(&mut self) {
        let op = match self.scan.looks.front() {
            None => return self.end_scan(),
            Some(Look::Stored(stored)) => FileOp::Open(names::done(stored.id.root)),
            Some(Look::Partial(partial)) if partial.have => FileOp::Open(names::have(partial.root)),
            Some(Look::Partial(partial)) => FileOp::Open(names::part(partial.root)),
            Some(Look::Raw(key)) => FileOp::Open(names::got(*key)),
            Some(Look::Stray(name)) => FileOp::Remove(name.clone()),
        };
        self.desk.files(Owner::Shelf, op);
    }

    fn end_scan(&mut self) {
        self.scan.is_done = true;
        if self.keeping.has_any() {
            self.tell_kept();
        }
        for (command, attached) in std::mem::take(&mut self.early) {
            self.on_command(command, attached);
        }
    }

    fn look_at_model(&mut self, stored: Stored, disk: &D) {
        match read_header(disk, stored.id.length) {
            Some(header) => self.shelf.put(summary(stored.id, &header, None)),
            None => {
                self.shelf.put(nameless(stored.id, None));
                self.shelf.mark_damaged(stored.id.root);
            }
        }
    }

    fn look_at_part(&mut self, partial: Partial, disk: &D) {
        let record = self.scan.record.take();
        let done = record.as_ref().map_or(0, |record| record.progress().bytes);
        let length = match (&record, disk.len()) {
            (Some(record), _) => record.id.length,
            (None, Ok(length)) => length,
            (None, Err(_)) => 0,
        };
        let id = ModelId {
            root: partial.root,
            length,
        };
        // Unverified, and only for the name: an import checks the header again.
        self.shelf.put(match read_header(disk, length) {
            Some(header) => summary(id, &header, Some(done)),
            None => nameless(id, Some(done)),
        });
    }

    /// Removes everything that a model has.
    pub(super) fn remove_model(&mut self, model: ModelId) {
        let root = model.root;
        let is_idle = self.removals.names.is_empty();
        let names = files_of(root).into_iter();
        let there = names.filter(|name| self.desk.names.contains(name));
        self.removals.names.extend(there);
        self.removals.models.push(model);
        if is_idle {
            self.next_removal();
        }
    }

    pub(super) fn on_removed(&mut self, op: &FileOp, answer: Result<FileAnswer<D>, StoreError>) {
        self.removals.names.pop_front();
        if let Err(error) = answer
            && !matches!(error, StoreError::NotFound { .. })
        {
            // The files that make a model exist go first, so a model whose removal fails half
            // way is either still whole or gone.
            let of = |model: &&ModelId| match op {
                FileOp::Remove(name) => files_of(model.root).contains(name),
                _ => false,
            };
            let model = self.removals.models.iter().find(of).copied();
            if let FileOp::Remove(name) = op
                && let Some(names::Name::Done(root)) = names::parse(name)
            {
                self.removals.models.retain(|removed| removed.root != root);
                let kept = files_of(root);
                self.removals.names.retain(|name| !kept.contains(name));
            }
            let report = words::store_error(&error, Stage::Store);
            let subject = model.map_or(Subject::Store, Subject::Model);
            self.desk.fail(subject, report);
        }
        self.next_removal();
    }

    fn next_removal(&mut self) {
        if let Some(name) = self.removals.names.front() {
            self.desk.files(Owner::Delete, FileOp::Remove(name.clone()));
            return;
        }
        for model in std::mem::take(&mut self.removals.models) {
            self.shelf.take(model.root);
        }
        self.desk.event(Event::Models(self.shelf.list()));
        self.next_import();
    }
}

fn have_record<D: Disk>(partial: &Partial, disk: &D) -> Option<HaveRecord> {
    let len = disk.len().ok().filter(|len| *len <= HAVE_BYTES_MAX)?;
    let mut bytes = vec![0; len as usize];
    disk.read_at(0, &mut bytes).ok()?;
    let record = partial.progress(&bytes)?;
    (have_file_len(record.id) == len).then_some(record)
}

/// The header of a stored file, if it has a sound one.
fn read_header<D: Disk>(disk: &D, length: u64) -> Option<Header> {
    let mut first = [0; 8];
    disk.read_at(0, &mut first).ok()?;
    let len = format::header_len(first, length).ok()?;
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    disk.read_at(0, &mut bytes).ok()?;
    Header::parse(&bytes, length).ok()
}

//! Conversations whose computed part is kept in the store: read back before a request that goes on
//! with one, written after it.
//!
//! ```text
//! Opening -> Restoring (a page a wake) -> the request -> Opening -> Saving (a page a wake)
//! ```
//!
//! Whatever goes wrong here costs time and nothing else: the request is computed as if nothing were
//! kept, the reason stands in the diagnostics, and the file goes.

use std::collections::VecDeque;

use format::Root;
use protocol::{CacheIdentity, ErrorReport, Event, KvFormat, Mode, Stage as Place, TrResult, abi};
use store::{Disk, StoreError, names};

use super::desk::Owner;
use super::loading::no_model;
use super::{FileAnswer, FileOp, Session};
use crate::engine::Engine;
use crate::kept::{self, Head, KeptFault, PAGE, TOKENS_MAX};
use crate::words;

/// All kept conversations together: a few long ones of a small model, and less than that model
/// itself needs on many devices. The one written longest ago goes first.
pub const KEPT_BYTES_MAX: u64 = 512 * 1024 * 1024;

pub struct Keeping<D> {
    work: Option<Work<D>>,
    /// Files and their bytes, the one written longest ago first.
    files: Vec<(Root, u64)>,
    doomed: VecDeque<Root>,
}

enum Work<D> {
    Opening(Root, Goal),
    Restoring {
        key: Root,
        disk: D,
        head: Head,
        /// The next page, and the first that is of no use.
        next: usize,
        end: usize,
    },
    Saving {
        key: Root,
        disk: D,
        head: Head,
        ids: Vec<u32>,
    },
    Removing,
}

/// What a file is opened for, with the ids concerned.
enum Goal {
    Restore(Vec<u32>),
    Save(Vec<u32>),
}

impl<D> Default for Keeping<D> {
    fn default() -> Keeping<D> {
        Keeping {
            work: None,
            files: Vec::new(),
            doomed: VecDeque::new(),
        }
    }
}

impl<D> Keeping<D> {
    /// What the directory holds.
    pub fn found(&mut self, files: Vec<(Root, u64)>) {
        self.files = files;
    }

    pub fn has_any(&self) -> bool {
        !self.files.is_empty()
    }

    /// No request may begin yet.
    pub fn is_busy(&self) -> bool {
        self.work.is_some() || !self.doomed.is_empty()
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The newest file has so many bytes; what is too much in all is to go.
    fn put(&mut self, key: Root, bytes: u64) {
        self.files.retain(|(other, _)| *other != key);
        self.files.push((key, bytes));
        let mut all = self.bytes();
        for (key, bytes) in &self.files {
            if all <= KEPT_BYTES_MAX {
                break;
            }
            self.doomed.push_back(*key);
            all -= bytes;
        }
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn tell_kept(&mut self) {
        let (conversations, bytes) = (self.keeping.files.len() as u32, self.keeping.bytes());
        self.desk.event(Event::Kept {
            conversations,
            bytes,
        });
    }

    /// Begins to read back what is kept for a request with these ids, if anything is.
    pub(super) fn restore(&mut self, conversation: u64, ids: Vec<u32>) -> bool {
        let key = kept::key(conversation);
        let name = names::kept(key);
        if !self.desk.names.contains(&name) || self.known(&ids) + 1 >= ids.len() {
            return false;
        }
        self.keeping.work = Some(Work::Opening(key, Goal::Restore(ids)));
        self.desk.files(Owner::Kept, FileOp::Open(name));
        true
    }

    /// Begins to write down what was computed of these ids.
    pub(super) fn save(&mut self, conversation: u64, ids: Vec<u32>) {
        let key = kept::key(conversation);
        if self.keeping.is_busy() || ids.len() > TOKENS_MAX {
            return;
        }
        self.keeping.work = Some(Work::Opening(key, Goal::Save(ids)));
        self.desk.open_or_create(Owner::Kept, names::kept(key));
    }

    pub(super) fn forget_kept(&mut self, conversation: Option<u64>) {
        let only = conversation.map(kept::key);
        let concerned = |key: &Root| only.is_none_or(|only| only == *key);
        match &self.keeping.work {
            Some(Work::Restoring { key, .. } | Work::Saving { key, .. }) if concerned(key) => {
                let key = *key;
                self.keeping.work = None;
                self.keeping.doomed.push_back(key);
            }
            // The answer is taken when it comes, and its file is removed then.
            Some(Work::Opening(key, _)) if concerned(key) => self.keeping.doomed.push_back(*key),
            _ => {}
        }
        let files = self.keeping.files.iter().map(|(key, _)| *key);
        let files: Vec<Root> = files.filter(concerned).collect();
        self.keeping.doomed.extend(files);
        self.requests.keep_no_more(conversation);
        match self.keeping.is_busy() {
            true => self.desk.wake(),
            false => self.tell_kept(),
        }
    }

    pub(super) fn on_kept_answer(
        &mut self,
        op: &FileOp,
        answer: Result<FileAnswer<D>, StoreError>,
    ) {
        self.desk.wake();
        match (self.keeping.work.take(), answer) {
            (Some(Work::Opening(key, _)), Ok(_)) if self.keeping.doomed.contains(&key) => {}
            (Some(Work::Opening(key, goal)), Ok(FileAnswer::Opened(disk))) => {
                let opened = match goal {
                    Goal::Restore(ids) => self.opened_to_restore(key, disk, &ids),
                    Goal::Save(ids) => self.opened_to_save(key, disk, ids),
                };
                match opened {
                    Ok(work) => self.keeping.work = work,
                    Err(error) => self.lose_kept(key, error),
                }
            }
            (Some(Work::Removing), answer) => {
                if let FileOp::Remove(name) = op {
                    let is_it = |key: &Root| names::kept(*key) == *name;
                    self.keeping.files.retain(|(key, _)| !is_it(key));
                }
                if let Err(error) = answer
                    && !matches!(error, StoreError::NotFound { .. })
                {
                    let report = words::store_error(&error, Place::Store);
                    self.desk.records.push(report);
                }
                if self.keeping.doomed.is_empty() {
                    self.tell_kept();
                }
            }
            (_, Err(error)) => {
                let report = words::store_error(&error, Place::Store);
                self.desk.records.push(report);
            }
            (work, Ok(_)) => self.keeping.work = work,
        }
    }

    /// One page, or the next thing to be removed.
    pub(super) fn keep_on(&mut self) {
        let (key, done) = match self.keeping.work.take() {
            Some(Work::Restoring {
                key,
                disk,
                head,
                next,
                end,
            }) => (key, self.restore_page(key, disk, head, (next, end))),
            Some(Work::Saving {
                key,
                disk,
                head,
                ids,
            }) => (key, self.save_page(key, disk, head, ids)),
            None => {
                if let Some(key) = self.keeping.doomed.pop_front() {
                    self.keeping.work = Some(Work::Removing);
                    let op = FileOp::Remove(names::kept(key));
                    self.desk.files(Owner::Kept, op);
                }
                return;
            }
            waiting => {
                self.keeping.work = waiting;
                return;
            }
        };
        match done {
            Ok(work) => self.keeping.work = work,
            Err(error) => self.lose_kept(key, error),
        }
        self.desk.wake();
    }

    fn opened_to_restore(
        &mut self,
        key: Root,
        disk: D,
        ids: &[u32],
    ) -> Result<Option<Work<D>>, ErrorReport> {
        let head = Head::read(&disk).map_err(|fault| fault_words(&fault))?;
        let head = head.ok_or_else(|| fault_words(&KeptFault::Damaged))?;
        if head.identity != self.identity()? {
            return Err(other_words());
        }
        let common = head.ids.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let (next, end) = (self.known(ids) / PAGE, common.div_ceil(PAGE));
        Ok((common > self.known(ids)).then_some(Work::Restoring {
            key,
            disk,
            head,
            next,
            end,
        }))
    }

    fn restore_page(
        &mut self,
        key: Root,
        disk: D,
        head: Head,
        (next, end): (usize, usize),
    ) -> Result<Option<Work<D>>, ErrorReport> {
        let bytes = head
            .page(&disk, next)
            .map_err(|fault| fault_words(&fault))?;
        self.call(|engine| engine.page_in(&head.ids, next as u32, &bytes))
            .map_err(|error| words::engine_error(&error, None))?;
        let next = next + 1;
        Ok((next < end).then_some(Work::Restoring {
            key,
            disk,
            head,
            next,
            end,
        }))
    }

    fn opened_to_save(
        &mut self,
        key: Root,
        mut disk: D,
        mut ids: Vec<u32>,
    ) -> Result<Option<Work<D>>, ErrorReport> {
        let stored = |error: StoreError| words::store_error(&error, Place::Store);
        let known = self
            .call(|engine| engine.known(&ids))
            .map_err(|error| words::engine_error(&error, None))?;
        ids.truncate(known.tokens as usize);
        let new = Head::new(self.identity()?, known.page_bytes);
        let mut head = match Head::read(&disk) {
            Ok(Some(head)) if (head.identity, head.place) == (new.identity, new.place) => head,
            // What was there cannot be used any more.
            _ => {
                disk.set_len(0).map_err(stored)?;
                new
            }
        };
        if head.file_len_of(ids.len()) > KEPT_BYTES_MAX {
            return Err(size_words());
        }
        let common = head
            .ids
            .iter()
            .zip(&ids)
            .take_while(|(a, b)| a == b)
            .count();
        if common < head.ids.len() || !common.is_multiple_of(PAGE) {
            head.cut(common / PAGE);
            head.write(&mut disk).map_err(stored)?;
        }
        Ok(Some(Work::Saving {
            key,
            disk,
            head,
            ids,
        }))
    }

    fn save_page(
        &mut self,
        key: Root,
        mut disk: D,
        mut head: Head,
        ids: Vec<u32>,
    ) -> Result<Option<Work<D>>, ErrorReport> {
        let stored = |error: StoreError| words::store_error(&error, Place::Store);
        let block = head.pages.len();
        if let Some(page) = ids.chunks(PAGE).nth(block) {
            let bytes = self
                .call(|engine| engine.page_out(&ids, block as u32))
                .map_err(|error| words::engine_error(&error, None))?;
            head.push(&mut disk, page, &bytes).map_err(stored)?;
            return Ok(Some(Work::Saving {
                key,
                disk,
                head,
                ids,
            }));
        }
        head.write(&mut disk).map_err(stored)?;
        disk.set_len(head.file_len()).map_err(stored)?;
        self.keeping.put(key, head.file_len());
        if self.keeping.doomed.is_empty() {
            self.tell_kept();
        }
        Ok(None)
    }

    /// Tells why and gives the file up.
    fn lose_kept(&mut self, key: Root, error: ErrorReport) {
        self.desk.records.push(error);
        self.keeping.doomed.push_back(key);
    }

    /// How many of these ids the engine need not compute again.
    fn known(&mut self, ids: &[u32]) -> usize {
        let known = self.call(|engine| engine.known(ids));
        known.map_or(0, |known| known.tokens as usize)
    }

    fn identity(&self) -> Result<format::Digest, ErrorReport> {
        let model = self.seat.model.as_ref().ok_or_else(no_model)?;
        let mode = match model.options.mode {
            abi::MODE_STRICT_F32_V1 => Mode::StrictF32V1,
            _ => Mode::Int8V1,
        };
        let kv_format = KvFormat::from_code(model.options.kv_format).unwrap_or_default();
        let root = model.summary.id.root;
        let identity = CacheIdentity::of(root, &model.header.manifest, mode, kv_format);
        identity.digest().ok_or_else(other_words)
    }
}

const COMPUTED: &str = "nothing is lost: it was computed again";

fn fault_words(fault: &KeptFault) -> ErrorReport {
    match fault {
        KeptFault::Store(error) => words::store_error(error, Place::Store),
        KeptFault::Damaged => {
            let what = "what was kept of a conversation is damaged";
            words::report(TrResult::HashMismatch, Place::Store, what, COMPUTED)
        }
    }
}

fn other_words() -> ErrorReport {
    let what = "what was kept of a conversation is of another model, mode or program";
    words::report(TrResult::UnsupportedFeature, Place::Store, what, COMPUTED)
}

fn size_words() -> ErrorReport {
    let what = format!(
        "a conversation is too long to be kept: no more than {} are",
        words::megabytes(KEPT_BYTES_MAX)
    );
    let remedy = "reopening it takes the time of reading it again";
    words::report(TrResult::Bounds, Place::Store, &what, remedy)
}

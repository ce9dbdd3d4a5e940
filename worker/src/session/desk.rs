//! What every part of the session shares: the time of the present input, the outgoing queue, the
//! numbers of what is under way, and the failure records.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::ModelId;
use protocol::{ErrorReport, Event, ImportId, Subject};
use store::{News, StoreError, Transfer, Trust};

use super::records::Records;
use super::swarms::Swarms;
use super::transfers::{Arrival, Transfers};
use super::{FetchId, FileAnswer, FileOp, Output, Ticket};
use crate::source::Source;

/// Who waits for the answer to a file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Shelf,
    Delete,
    Load,
    Kept,
    Check(ModelId),
    Import(ImportId),
    Share(ModelId),
}

#[derive(Default)]
pub struct Desk {
    pub now_ms: u64,
    pub records: Records,
    /// Names in the directory, as far as the answers tell. The origin has one owner, so nobody
    /// else changes them.
    pub names: BTreeSet<String>,
    pub(super) out: VecDeque<Output>,
    transfers: Transfers,
    pub(super) swarms: Swarms,
    under_way: BTreeMap<Ticket, (Owner, FileOp)>,
    tickets: u32,
    addresses: u32,
    wake_asked: bool,
}

impl Desk {
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    pub fn event(&mut self, event: Event) {
        self.out.push_back(Output::Event(event));
    }

    /// Tells a failure, once, and keeps it for diagnostics.
    pub fn fail(&mut self, subject: Subject, error: ErrorReport) {
        self.records.push(error.clone());
        self.event(Event::Failed { subject, error });
    }

    /// Keeps a failure for diagnostics without the file's name: names are private.
    pub fn record_of_file(&mut self, error: &ErrorReport, name: &str) {
        let mut record = error.clone();
        if !name.is_empty() {
            record.what = record.what.replace(name, "the file");
        }
        self.records.push(record);
    }

    /// Asks to be called again soon. Asking twice is asking once.
    pub fn wake(&mut self) {
        if !self.wake_asked {
            self.wake_asked = true;
            self.out.push_back(Output::Wake);
        }
    }

    pub fn woken(&mut self) {
        self.wake_asked = false;
    }

    /// A number for an address relative to the catalogue.
    pub fn address(&mut self, url: &str) -> Source {
        self.addresses = self.addresses.wrapping_add(1);
        let source = Source::Address(self.addresses);
        let url = url.to_owned();
        self.out.push_back(Output::Address { source, url });
        source
    }

    /// The same for a file of a known length that is fetched in parts, each of which is checked.
    pub fn file_address(&mut self, url: &str, length: u64) -> Source {
        self.transfer(url, Transfer::new(Trust::Hashes, Some(length)))
    }

    pub fn transfer(&mut self, url: &str, transfer: Transfer) -> Source {
        let source = self.address(url);
        self.transfers.add(self.now_ms, source, transfer);
        source
    }

    pub fn transfer_of(&self, source: Source) -> Option<&Transfer> {
        self.transfers.get(source)
    }

    pub fn need(&mut self, source: Source, at: u64, len: u32) {
        if matches!(source, Source::Peers(_)) {
            return self.need_of_peers(source, at, len);
        }
        let wish = (source, at, len);
        if !self.transfers.want(self.now_ms, wish, &mut self.out) {
            self.out.push_back(Output::NeedBytes { source, at, len });
        }
    }

    pub fn need_whole(&mut self, source: Source, most: u32) {
        self.out.push_back(Output::NeedWhole { source, most });
    }

    pub fn fetched(&mut self, fetch: FetchId, news: News) {
        self.transfers.news(self.now_ms, fetch, news, &mut self.out);
    }

    pub fn time(&mut self) {
        self.transfers.time(self.now_ms, &mut self.out);
        self.time_of_swarms();
    }

    pub fn network(&mut self, is_online: bool) {
        self.transfers
            .network(self.now_ms, is_online, &mut self.out);
    }

    /// The next thing that a transfer brought.
    pub fn arrived(&mut self) -> Option<Arrival> {
        self.transfers.arrived().or_else(|| self.swarms.arrived())
    }

    pub fn cancel_source(&mut self, source: Source) {
        if matches!(source, Source::Peers(_)) {
            return self.end_fetch(source);
        }
        self.transfers.close(source, &mut self.out);
        self.out.push_back(Output::CancelSource(source));
    }

    pub fn hand_out(&mut self, model: ModelId) {
        self.out.push_back(Output::HandOut(model));
    }

    pub fn engine_lost(&mut self) {
        self.out.push_back(Output::EngineLost);
    }

    pub fn forget_failures(&mut self) {
        self.out.push_back(Output::ForgetFailures);
    }

    pub fn files(&mut self, owner: Owner, op: FileOp) {
        self.tickets = self.tickets.wrapping_add(1);
        let ticket = Ticket(self.tickets);
        self.under_way.insert(ticket, (owner, op.clone()));
        self.out.push_back(Output::Files { ticket, op });
    }

    /// The operation that opens a file, made if it is not there.
    pub fn open_or_create(&mut self, owner: Owner, name: String) {
        let op = match self.names.contains(&name) {
            true => FileOp::Open(name),
            false => FileOp::Create(name),
        };
        self.files(owner, op);
    }

    /// Who waits for this answer. Keeps the names in step with the directory.
    pub fn answered<D>(
        &mut self,
        ticket: Ticket,
        answer: &Result<FileAnswer<D>, StoreError>,
    ) -> Option<(Owner, FileOp)> {
        let (owner, op) = self.under_way.remove(&ticket)?;
        match (&op, answer) {
            (FileOp::List, Ok(FileAnswer::Listed(entries))) => {
                self.names = entries.iter().map(|entry| entry.name.clone()).collect();
            }
            (FileOp::Create(name), Ok(_)) => {
                self.names.insert(name.clone());
            }
            (FileOp::Create(name), Err(StoreError::Exists { .. })) => {
                self.names.insert(name.clone());
            }
            (FileOp::Rename { from, to }, Ok(_)) => {
                self.names.remove(from);
                self.names.insert(to.clone());
            }
            (FileOp::Remove(name), Ok(_) | Err(StoreError::NotFound { .. })) => {
                self.names.remove(name);
            }
            (FileOp::Open(name), Err(StoreError::NotFound { .. })) => {
                self.names.remove(name);
            }
            _ => {}
        }
        Some((owner, op))
    }
}

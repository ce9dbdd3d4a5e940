//! All transfers from servers: numbers for their requests, one clock for their waits.

use std::collections::{BTreeMap, VecDeque};

use format::{PieceIndex, VerifiedPiece};
use store::{Flight, Get, News, Transfer, Waiting, Wish};

use super::{Ask, FetchId, Output};
use crate::source::{Source, SourceFault};

#[derive(Default)]
pub struct Transfers {
    by_source: BTreeMap<Source, Transfer>,
    flights: BTreeMap<FetchId, (Source, Flight)>,
    last: u32,
    /// The earliest time that the shell was asked to tell.
    wake_ms: Option<u64>,
    is_offline: bool,
    arrived: VecDeque<Arrival>,
}

/// What transfers have for those who asked.
pub enum Arrival {
    Bytes {
        source: Source,
        at: u64,
        bytes: Result<Vec<u8>, SourceFault>,
    },
    /// A piece of peers.
    Whole(Source, VerifiedPiece),
    /// `None`: bytes come again.
    Lull(Source, Option<Waiting>),
    /// A peer wants a piece of what is still arriving.
    Read(Source, PieceIndex),
}

impl Transfers {
    pub fn add(&mut self, now_ms: u64, source: Source, mut transfer: Transfer) {
        if self.is_offline {
            transfer.network(now_ms, false);
        }
        self.by_source.insert(source, transfer);
    }

    pub fn get(&self, source: Source) -> Option<&Transfer> {
        self.by_source.get(&source)
    }

    /// `false` if the source is none of these.
    pub fn want(
        &mut self,
        now_ms: u64,
        (source, at, len): (Source, u64, u32),
        out: &mut VecDeque<Output>,
    ) -> bool {
        let Some(transfer) = self.by_source.get_mut(&source) else {
            return false;
        };
        transfer.want(now_ms, at, len);
        self.drain(source, out);
        true
    }

    pub fn news(&mut self, now_ms: u64, fetch: FetchId, news: News, out: &mut VecDeque<Output>) {
        let is_last = matches!(news, News::End | News::Broken(_));
        let known = match is_last {
            true => self.flights.remove(&fetch),
            false => self.flights.get(&fetch).copied(),
        };
        let Some((source, flight)) = known else {
            return;
        };
        if let Some(transfer) = self.by_source.get_mut(&source) {
            transfer.news(now_ms, flight, news);
            self.drain(source, out);
        }
    }

    pub fn time(&mut self, now_ms: u64, out: &mut VecDeque<Output>) {
        // Others ask for times, too.
        if self.wake_ms.is_none_or(|at| at > now_ms) {
            return;
        }
        self.wake_ms = None;
        self.each(out, |transfer| transfer.time(now_ms));
    }

    pub fn network(&mut self, now_ms: u64, is_online: bool, out: &mut VecDeque<Output>) {
        self.is_offline = !is_online;
        self.each(out, |transfer| transfer.network(now_ms, is_online));
    }

    pub fn close(&mut self, source: Source, out: &mut VecDeque<Output>) {
        if let Some(transfer) = self.by_source.get_mut(&source) {
            transfer.close();
            self.drain(source, out);
            self.by_source.remove(&source);
        }
    }

    pub fn arrived(&mut self) -> Option<Arrival> {
        self.arrived.pop_front()
    }

    fn each(&mut self, out: &mut VecDeque<Output>, act: impl Fn(&mut Transfer)) {
        let sources: Vec<Source> = self.by_source.keys().copied().collect();
        for source in sources {
            self.by_source.get_mut(&source).map(&act);
            self.drain(source, out);
        }
    }

    fn drain(&mut self, source: Source, out: &mut VecDeque<Output>) {
        let Some(transfer) = self.by_source.get_mut(&source) else {
            return;
        };
        while let Some(wish) = transfer.poll() {
            match wish {
                Wish::Get(get) => {
                    self.last = self.last.wrapping_add(1);
                    let fetch = FetchId(self.last);
                    self.flights.insert(fetch, (source, get.flight));
                    out.push_back(fetch_of(fetch, source, get));
                }
                Wish::More(flight) => {
                    let fetch = number(&self.flights, source, flight);
                    out.extend(fetch.map(Output::FetchMore));
                }
                Wish::Abort(flight) => {
                    if let Some(fetch) = number(&self.flights, source, flight) {
                        self.flights.remove(&fetch);
                        out.push_back(Output::AbortFetch(fetch));
                    }
                }
                Wish::Bytes { at, bytes } => {
                    let bytes = Ok(bytes);
                    self.arrived.push_back(Arrival::Bytes { source, at, bytes });
                }
                Wish::Waiting(waiting) => {
                    self.arrived.push_back(Arrival::Lull(source, Some(waiting)));
                }
                Wish::Running => self.arrived.push_back(Arrival::Lull(source, None)),
                Wish::WakeAt(at) => {
                    if self.wake_ms.is_none_or(|known| at < known) {
                        self.wake_ms = Some(at);
                        out.push_back(Output::WakeAt(at));
                    }
                }
                Wish::Failed(fault) => {
                    let (at, bytes) = (0, Err(SourceFault::Transfer(fault)));
                    self.arrived.push_back(Arrival::Bytes { source, at, bytes });
                }
            }
        }
    }
}

fn number(
    flights: &BTreeMap<FetchId, (Source, Flight)>,
    source: Source,
    flight: Flight,
) -> Option<FetchId> {
    let mut flights = flights.iter();
    let found = flights.find(|(_, known)| **known == (source, flight));
    found.map(|(fetch, _)| *fetch)
}

fn fetch_of(fetch: FetchId, source: Source, get: Get) -> Output {
    let ask = Ask {
        url: get.url,
        range: get.range,
        if_range: get.if_range,
    };
    Output::Fetch { fetch, source, ask }
}

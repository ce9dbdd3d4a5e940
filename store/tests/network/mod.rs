//! A network of one transfer: a clock that jumps, a server that answers as a test says, and a
//! record of everything that was asked for.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};

use store::{Break, Flight, Get, News, ReplyHead, Transfer, TransferFault, Trust, Waiting, Wish};

pub const MIB: u64 = 1024 * 1024;
/// Of the usual file: its last window is short.
pub const LENGTH: u64 = 20 * MIB + 12_345;

/// How a body ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Good,
    Cut,
    /// Nothing more comes, and nobody says so.
    Silent,
}

pub struct Answer {
    /// `None`: no reply at all.
    pub head: Option<ReplyHead>,
    pub body: Vec<u8>,
    pub end: End,
}

/// What it answers to a request, which has a number.
type Server<'s> = Box<dyn FnMut(usize, &Get) -> Answer + 's>;

struct Open {
    body: Vec<u8>,
    at: usize,
    end: End,
}

pub struct Network<'s> {
    pub transfer: Transfer,
    pub now_ms: u64,
    pub gets: Vec<Get>,
    /// Windows that came.
    pub came: BTreeMap<u64, Vec<u8>>,
    pub waits: Vec<Waiting>,
    pub failed: Option<TransferFault>,
    /// Requests at a time, at most.
    pub most: usize,
    /// Bytes of bodies that were read.
    pub read: u64,
    /// Bytes of one portion.
    pub portion: usize,
    server: Server<'s>,
    open: BTreeMap<Flight, Open>,
    news: VecDeque<(Flight, News)>,
    wake_ms: Option<u64>,
}

/// A file whose every byte tells its place.
pub fn file(length: u64) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

/// What a good server answers.
pub fn good(file: &[u8], get: &Get) -> Answer {
    let (first, last) = get.range.unwrap_or((0, u64::MAX));
    let last = last.min(file.len() as u64 - 1);
    let body = file[first as usize..=last as usize].to_vec();
    let range = format!("bytes {first}-{last}/{}", file.len());
    Answer {
        head: Some(ReplyHead {
            status: if get.range.is_some() { 206 } else { 200 },
            content_range: get.range.map(|_| range),
            content_length: Some(body.len() as u64),
            etag: Some("\"one\"".into()),
            ..ReplyHead::default()
        }),
        body,
        end: End::Good,
    }
}

/// The whole file, whatever was asked for.
pub fn whole(file: &[u8]) -> Answer {
    Answer {
        head: Some(ReplyHead {
            status: 200,
            content_length: Some(file.len() as u64),
            ..ReplyHead::default()
        }),
        body: file.to_vec(),
        end: End::Good,
    }
}

pub fn status(status: u16) -> Answer {
    Answer {
        head: Some(ReplyHead {
            status,
            ..ReplyHead::default()
        }),
        body: b"no".to_vec(),
        end: End::Good,
    }
}

pub fn unreachable() -> Answer {
    Answer {
        head: None,
        body: Vec::new(),
        end: End::Good,
    }
}

pub fn head(answer: &mut Answer) -> &mut ReplyHead {
    answer.head.as_mut().unwrap()
}

/// Fetches the whole file with hashes behind it.
pub fn fetch<'s>(server: impl FnMut(usize, &Get) -> Answer + 's) -> Network<'s> {
    let mut network = Network::new(Trust::Hashes, Some(LENGTH), server);
    network.want(0, LENGTH);
    network.run();
    network
}

impl<'s> Network<'s> {
    pub fn new(
        trust: Trust,
        length: Option<u64>,
        server: impl FnMut(usize, &Get) -> Answer + 's,
    ) -> Network<'s> {
        Network::of(Transfer::new(trust, length), server)
    }

    pub fn of(transfer: Transfer, server: impl FnMut(usize, &Get) -> Answer + 's) -> Network<'s> {
        Network {
            transfer,
            now_ms: 1_000_000,
            gets: Vec::new(),
            came: BTreeMap::new(),
            waits: Vec::new(),
            failed: None,
            most: 0,
            read: 0,
            portion: 50_000,
            server: Box::new(server),
            open: BTreeMap::new(),
            news: VecDeque::new(),
            wake_ms: None,
        }
    }

    /// Wants windows of one MiB from `from` to `to`.
    pub fn want(&mut self, from: u64, to: u64) {
        for at in (from..to).step_by(MIB as usize) {
            let len = MIB.min(to - at) as u32;
            self.transfer.want(self.now_ms, at, len);
        }
        self.drain();
    }

    /// Runs until nothing happens any more, jumping over waits; gives up after ten hours.
    pub fn run(&mut self) {
        let until = self.now_ms + 36_000_000;
        while self.turn() {
            assert!(self.now_ms < until, "it waits for ever");
        }
    }

    /// One piece of news, or the next wake; `false` if there is neither.
    pub fn turn(&mut self) -> bool {
        if let Some((flight, news)) = self.news.pop_front() {
            self.now_ms += 1;
            if matches!(news, News::End | News::Broken(_)) {
                let is_open = self.open.remove(&flight).is_some();
                if is_open {
                    self.transfer.news(self.now_ms, flight, news);
                }
            } else if self.open.contains_key(&flight) {
                self.transfer.news(self.now_ms, flight, news);
            }
        } else if let Some(wake) = self.wake_ms.take() {
            self.now_ms = self.now_ms.max(wake);
            self.transfer.time(self.now_ms);
        } else {
            return false;
        }
        self.drain();
        true
    }

    pub fn drain(&mut self) {
        while let Some(wish) = self.transfer.poll() {
            match wish {
                Wish::Get(get) => self.get(get),
                Wish::More(flight) => self.more(flight),
                Wish::Abort(flight) => {
                    self.open.remove(&flight);
                }
                Wish::Bytes { at, bytes } => {
                    let old = self.came.insert(at, bytes);
                    assert_eq!(old, None, "the window at {at} came twice");
                }
                Wish::Waiting(waiting) => self.waits.push(waiting),
                Wish::Running => {}
                Wish::WakeAt(at) => self.wake_ms = Some(self.wake_ms.map_or(at, |old| old.min(at))),
                Wish::Failed(fault) => self.failed = Some(fault),
            }
        }
    }

    fn get(&mut self, get: Get) {
        let answer = (self.server)(self.gets.len(), &get);
        let news = match answer.head {
            Some(head) => News::Head(head),
            None => News::Broken(Break::Unreachable),
        };
        self.news.push_back((get.flight, news));
        let open = Open {
            body: answer.body,
            at: 0,
            end: answer.end,
        };
        self.open.insert(get.flight, open);
        self.most = self.most.max(self.open.len());
        self.gets.push(get);
    }

    fn more(&mut self, flight: Flight) {
        let Some(open) = self.open.get_mut(&flight) else {
            return;
        };
        let portion = self.portion.min(open.body.len() - open.at);
        let news = match (portion, open.end) {
            (0, End::Good) => News::End,
            (0, End::Cut) => News::Broken(Break::Cut),
            (0, End::Silent) => return,
            _ => News::Body(open.body[open.at..open.at + portion].to_vec()),
        };
        open.at += portion;
        self.read += portion as u64;
        self.news.push_back((flight, news));
    }

    /// Everything from the beginning to `length` came, and it is right.
    pub fn check_all(&self, file: &[u8]) {
        assert_eq!(self.failed, None);
        let mut next = 0;
        for (at, bytes) in &self.came {
            assert_eq!(*at, next);
            let end = next as usize + bytes.len();
            assert!(bytes == &file[next as usize..end], "wrong bytes at {at}");
            next = end as u64;
        }
        assert_eq!(next, file.len() as u64);
    }

    /// Sum of the lengths of all ranges that were asked for.
    pub fn asked(&self) -> u64 {
        let ranges = self.gets.iter().filter_map(|get| get.range);
        ranges.map(|(first, last)| last + 1 - first).sum()
    }
}

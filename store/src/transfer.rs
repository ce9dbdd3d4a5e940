//! One file on an HTTP server, fetched in parts by somebody who trusts no server.
//!
//! The owner says which windows of the file it wants; `handle` takes what the network did, and
//! `poll` gives what to do next. Nothing here waits, reads a clock or opens a connection.
//!
//! ```text
//! want -> Get -> Head -> More -> Body -> More -> .. -> End
//!                 |               '-> Bytes, for every window that is whole
//!                 '-> Failed, or Waiting and then Get again for what has not come
//! ```
//!
//! Reading order: `talk` (the words of the conversation), here (its course), `windows` (what is
//! wanted and what of it has come), `reply` (what a reply's head means), `body` (where its bytes
//! belong), `retry` (how long to wait, and when to give up).
//!
//! Invariants: two requests under way never ask for the same byte, and a byte that has come is
//! never asked for again, also if the reply that brought it broke off behind it. A body is pulled:
//! no more of it is read than somebody wants.

mod body;
mod reply;
mod retry;
mod talk;
mod windows;

use std::collections::{BTreeMap, VecDeque};

use crate::range::RangeRefusal;
pub use reply::ReplyHead;
use reply::Validator;
pub use retry::{
    BUSY_TRIES_MAX, FIRST_TRIES_MAX, RETRY_AFTER_MAX_S, STALL_MS, WAIT_MS_MAX, WAIT_MS_MIN,
};
use retry::{Failure, Retry, Verdict};
pub use talk::{Break, Flight, Get, News, TransferFault, Trust, WaitCause, Waiting, Wish};
use windows::Windows;

/// Requests under way at a time: enough to hide a round trip, below the six connections that a
/// browser opens to one server.
pub const FLIGHTS_MAX: usize = 4;
/// Bytes of one request.
pub const REQUEST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A request under way.
struct Flying {
    /// The bytes it is for. A reply with the whole file has no `end`.
    from: u64,
    end: Option<u64>,
    /// File position of the next byte of the body; `None` before the head.
    at: Option<u64>,
    /// Bytes that it brought and that were wanted.
    got: u64,
    /// Read, and wanted by nobody yet.
    held: Vec<u8>,
    /// What is wrong with it, unless its first bytes say better what it is.
    doubt: Option<TransferFault>,
    /// It went to an address that an earlier reply led to.
    was_led: bool,
    heard_ms: u64,
}

pub struct Transfer {
    trust: Trust,
    length: Option<u64>,
    validator: Validator,
    /// There was a sound reply.
    met: bool,
    /// The server gives only whole files.
    whole: bool,
    /// And does not say how long they are: the end of the reply is the end of the file.
    is_endless: bool,
    led_to: Option<String>,
    /// How often the address that it led to was refused.
    led_astray: u32,
    windows: Windows,
    flights: BTreeMap<Flight, Flying>,
    last: u32,
    retry: Retry,
    ended: bool,
    now_ms: u64,
    out: VecDeque<Wish>,
}

impl Transfer {
    /// `length` is that of the whole file in bytes, where it is known.
    pub fn new(trust: Trust, length: Option<u64>) -> Transfer {
        Transfer {
            trust,
            length,
            validator: Validator::default(),
            met: false,
            whole: false,
            is_endless: false,
            led_to: None,
            led_astray: 0,
            windows: Windows::default(),
            flights: BTreeMap::new(),
            last: 0,
            retry: Retry::default(),
            ended: false,
            now_ms: 0,
            out: VecDeque::new(),
        }
    }

    /// The same for a file of which an earlier start knew this.
    pub fn resumed(length: u64, validator: &str) -> Transfer {
        Transfer {
            validator: Validator::from_text(validator),
            ..Transfer::new(Trust::Server, Some(length))
        }
    }

    /// Length of the whole file in bytes, once it is known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The server does not say how long the file is; its end will.
    pub fn is_endless(&self) -> bool {
        self.is_endless && self.length.is_none()
    }

    /// What the server calls this state of the file, for [`Transfer::resumed`]; empty if it says
    /// nothing.
    pub fn validator(&self) -> String {
        self.validator.to_text()
    }

    /// Wants `len` bytes from `at` on, which nobody else wants.
    pub fn want(&mut self, now_ms: u64, at: u64, len: u32) {
        self.now_ms = now_ms;
        let len = self.clamp(at, u64::from(len));
        if !self.ended && len > 0 {
            self.windows.want(at, len);
            self.use_whole(at);
            self.schedule();
        }
    }

    pub fn news(&mut self, now_ms: u64, flight: Flight, news: News) {
        self.now_ms = now_ms;
        let Some(flying) = self.flights.get_mut(&flight).filter(|_| !self.ended) else {
            return;
        };
        flying.heard_ms = now_ms;
        match news {
            News::Head(head) => self.on_head(flight, &head),
            News::Body(bytes) => self.on_body(flight, bytes),
            News::End => {
                self.learn_end(flight);
                self.on_end(flight, WaitCause::Cut);
            }
            News::Broken(Break::Cut) => self.on_end(flight, WaitCause::Cut),
            News::Broken(Break::Unreachable) => self.on_end(flight, WaitCause::Unreachable),
        }
        self.schedule();
    }

    /// The browser says whether there is a network. Its yes means little; its no is true.
    pub fn network(&mut self, now_ms: u64, is_online: bool) {
        self.now_ms = now_ms;
        self.retry.network(is_online);
        if !self.ended {
            self.tell_wait();
            self.schedule();
        }
    }

    pub fn time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let is_late = |flying: &Flying| {
            flying.is_awaited() && now_ms.saturating_sub(flying.heard_ms) >= STALL_MS
        };
        let late: Vec<Flight> = self
            .flights
            .iter()
            .filter(|(_, flying)| is_late(flying))
            .map(|(flight, _)| *flight)
            .collect();
        for flight in late {
            self.out.push_back(Wish::Abort(flight));
            self.on_end(flight, WaitCause::Stalled);
        }
        if !self.ended {
            self.schedule();
            self.watch();
        }
    }

    /// Gives everything up.
    pub fn close(&mut self) {
        self.ended = true;
        for flight in std::mem::take(&mut self.flights).into_keys() {
            self.out.push_back(Wish::Abort(flight));
        }
    }

    pub fn poll(&mut self) -> Option<Wish> {
        self.out.pop_front()
    }

    fn clamp(&self, at: u64, len: u64) -> u64 {
        match self.length {
            Some(length) => len.min(length.saturating_sub(at)),
            None => len,
        }
    }

    fn fail(&mut self, fault: TransferFault) {
        self.close();
        self.out.push_back(Wish::Failed(fault));
    }

    /// Sends what is wanted and not asked for, if it may be sent now.
    fn schedule(&mut self) {
        if self.ended {
            return;
        }
        if self.retry.waits(self.now_ms) {
            // While other requests still brought bytes there was no lull.
            if self.flights.is_empty() && !self.retry.is_told() {
                self.tell_wait();
            }
            return;
        }
        let most = match self.met && !self.whole {
            true => self.retry.flights_max(),
            false => 1,
        };
        while self.flights.len() < most
            && let Some((from, end)) = self.windows.unclaimed(REQUEST_BYTES_MAX)
        {
            self.last = self.last.wrapping_add(1);
            let flight = Flight(self.last);
            let (from, end) = match self.whole {
                true => (0, None),
                false => (from, Some(end)),
            };
            self.windows.claim(from, end, flight);
            let flying = Flying {
                from,
                end,
                at: None,
                got: 0,
                held: Vec::new(),
                doubt: None,
                was_led: self.led_to.is_some(),
                heard_ms: self.now_ms,
            };
            self.flights.insert(flight, flying);
            self.out.push_back(Wish::Get(Get {
                flight,
                url: self.led_to.clone(),
                range: end.map(|end| (from, end - 1)),
                if_range: self.validator.if_range().filter(|_| end.is_some()),
            }));
            self.watch();
        }
    }

    /// Asks to be told when the next request is late or the next wait is over.
    fn watch(&mut self) {
        let awaited = self.flights.values().filter(|flying| flying.is_awaited());
        let late = awaited.map(|flying| flying.heard_ms + STALL_MS).min();
        let due = [late, self.retry.until()];
        if let Some(at) = due.into_iter().flatten().min() {
            self.out.push_back(Wish::WakeAt(at));
        }
    }

    fn tell_wait(&mut self) {
        if let Some(waiting) = self.retry.waiting(self.now_ms) {
            self.out.push_back(Wish::Waiting(waiting));
        }
    }

    /// A request is over: good if it brought all it was for.
    fn on_end(&mut self, flight: Flight, cause: WaitCause) {
        let Some(flying) = self.flights.remove(&flight) else {
            return;
        };
        let lacks = self.windows.release(flight);
        if let Some(fault) = flying.doubt {
            return self.fail(fault);
        }
        if flying.is_done() || !lacks {
            return;
        }
        if flying.was_led && flying.at.is_none() {
            self.leave_led();
        }
        let tries_max = match (self.met, cause) {
            (false, _) => Some(FIRST_TRIES_MAX),
            (true, WaitCause::Cut) => Some(BUSY_TRIES_MAX),
            // The network is away; it comes back.
            (true, _) => None,
        };
        self.put_off(cause, None, tries_max, flying.got);
    }

    /// The address that was led to is no good any more.
    fn leave_led(&mut self) {
        if self.led_to.take().is_some() {
            self.led_astray += 1;
        }
    }

    /// Waits before the next request, or gives up.
    fn put_off(
        &mut self,
        cause: WaitCause,
        after_s: Option<u64>,
        tries_max: Option<u32>,
        got: u64,
    ) {
        let failure = Failure {
            cause,
            after_s,
            tries_max,
            got,
        };
        match self.retry.put_off(self.now_ms, failure) {
            Verdict::AtOnce => {}
            Verdict::Wait => {
                self.tell_wait();
                self.watch();
            }
            Verdict::GiveUp => self.fail(match (cause, after_s) {
                (_, Some(seconds)) if seconds > RETRY_AFTER_MAX_S => {
                    TransferFault::AskedToWait { seconds }
                }
                (WaitCause::Busy(status), _) => TransferFault::Reply(RangeRefusal::Status(status)),
                (WaitCause::Cut, _) => TransferFault::Cut,
                _ => TransferFault::Unreachable,
            }),
        }
    }
}

impl Flying {
    /// Everything it was for has come; only its end is awaited.
    fn is_done(&self) -> bool {
        self.end.is_some() && self.at >= self.end
    }

    /// Its next news are due.
    fn is_awaited(&self) -> bool {
        self.held.is_empty()
    }
}

//! How long to wait after a failure, and when to give up.

use super::{FLIGHTS_MAX, WaitCause, Waiting};

/// The first wait and the longest; each is twice the one before.
pub const WAIT_MS_MIN: u64 = 1_000;
pub const WAIT_MS_MAX: u64 = 30_000;
/// The longest wait that a server can ask for. Who asks for more is told to people instead.
pub const RETRY_AFTER_MAX_S: u64 = 600;
/// How often a server is asked that never answered. One that answered is asked for ever, because
/// then it is the network that is away.
pub const FIRST_TRIES_MAX: u32 = 3;
/// How often a server is asked that answers but has no time; with the waits about two minutes.
pub const BUSY_TRIES_MAX: u32 = 8;
/// A reply from which nothing comes for so long is given up.
pub const STALL_MS: u64 = 30_000;
/// A request that brought as much as this before it broke off is no failure.
const WORTH_BYTES: u64 = 64 * 1024;

pub(super) struct Retry {
    /// Failures since bytes last came.
    failures: u32,
    wait: Option<(WaitCause, u64)>,
    /// The owner knows that nothing comes.
    told: bool,
    is_offline: bool,
    flights: usize,
}

/// One request's failure.
#[derive(Clone, Copy)]
pub(super) struct Failure {
    pub cause: WaitCause,
    /// What the server asked for.
    pub after_s: Option<u64>,
    /// After so many failures it is given up.
    pub tries_max: Option<u32>,
    /// Bytes that it brought before.
    pub got: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    AtOnce,
    Wait,
    GiveUp,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            failures: 0,
            wait: None,
            told: false,
            is_offline: false,
            flights: FLIGHTS_MAX,
        }
    }
}

impl Retry {
    pub fn put_off(&mut self, now_ms: u64, failure: Failure) -> Verdict {
        let Failure {
            cause,
            after_s,
            tries_max,
            got,
        } = failure;
        if let WaitCause::Busy(_) = cause {
            // The server has less time than was asked of it.
            self.flights = (self.flights / 2).max(1);
        }
        if got >= WORTH_BYTES {
            self.failures = 0;
            if cause != WaitCause::Stalled {
                return Verdict::AtOnce;
            }
        }
        self.failures += 1;
        let tries_max = tries_max.filter(|_| !self.is_offline);
        let is_too_long = after_s.is_some_and(|after| after > RETRY_AFTER_MAX_S);
        if is_too_long || tries_max.is_some_and(|most| self.failures >= most) {
            return Verdict::GiveUp;
        }
        let doubled = WAIT_MS_MIN << (self.failures - 1).min(10);
        let wait = doubled.min(WAIT_MS_MAX).max(after_s.unwrap_or(0) * 1000);
        // Of several requests that fail together the longest wait counts.
        let until = self.wait.map_or(0, |(_, until)| until).max(now_ms + wait);
        self.wait = Some((cause, until));
        Verdict::Wait
    }

    /// Whether nothing may be sent now. A wait that is over is forgotten.
    pub fn waits(&mut self, now_ms: u64) -> bool {
        if self.wait.is_some_and(|(_, until)| now_ms >= until) {
            self.wait = None;
        }
        self.wait.is_some()
    }

    pub fn until(&self) -> Option<u64> {
        self.wait.map(|(_, until)| until)
    }

    /// What people are told of a wait that has begun or changed.
    pub fn waiting(&mut self, now_ms: u64) -> Option<Waiting> {
        let (cause, until) = self.wait.filter(|(_, until)| *until > now_ms)?;
        self.told = true;
        Some(Waiting {
            // A server on this device answers without a network, so it is asked all the same.
            cause: match (self.is_offline, cause) {
                (true, WaitCause::Unreachable | WaitCause::Cut) => WaitCause::Offline,
                _ => cause,
            },
            until_ms: until,
        })
    }

    /// Whether the last that was told is that nothing comes.
    pub fn is_told(&self) -> bool {
        self.told
    }

    pub fn network(&mut self, is_online: bool) {
        self.is_offline = !is_online;
        let by_network = |(cause, _): &(WaitCause, u64)| !matches!(cause, WaitCause::Busy(_));
        if is_online && self.wait.as_ref().is_some_and(by_network) {
            self.wait = None;
        }
    }

    /// Bytes came; `true` if somebody was told that nothing comes.
    pub fn progress(&mut self, came: u64) -> bool {
        if came > 0 {
            self.failures = 0;
        }
        std::mem::take(&mut self.told)
    }

    /// One request more, up to the bound: the server has time.
    pub fn widen(&mut self) {
        self.flights = (self.flights + 1).min(FLIGHTS_MAX);
    }

    pub fn flights_max(&self) -> usize {
        self.flights
    }
}

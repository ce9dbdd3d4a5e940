//! What is wanted of a file, and what of it has come.

use std::collections::{BTreeMap, VecDeque};

use super::Flight;

/// Windows never overlap. Each is filled from its front, so what has come of it is a number.
#[derive(Default)]
pub(super) struct Windows {
    /// By position of the first byte.
    open: BTreeMap<u64, Window>,
    whole: VecDeque<(u64, Vec<u8>)>,
}

struct Window {
    len: u64,
    bytes: Vec<u8>,
    claimed: Option<Flight>,
}

impl Windows {
    pub fn want(&mut self, at: u64, len: u64) {
        let window = Window {
            len,
            bytes: Vec::new(),
            claimed: None,
        };
        self.open.insert(at, window);
    }

    /// The file ends at `length`. What was wanted behind it is answered by no bytes.
    pub fn end_at(&mut self, length: u64) {
        let beyond = self.open.split_off(&length);
        for (at, window) in &mut self.open {
            window.len = window.len.min(length - at);
        }
        let is_whole = |(_, window): &(&u64, &Window)| window.bytes.len() as u64 == window.len;
        let whole: Vec<u64> = self
            .open
            .iter()
            .filter(is_whole)
            .map(|(at, _)| *at)
            .collect();
        for at in whole {
            let window = self.open.remove(&at);
            self.whole.extend(window.map(|window| (at, window.bytes)));
        }
        self.whole
            .extend(beyond.into_keys().map(|at| (at, Vec::new())));
    }

    /// The first neighbouring bytes that nobody is asked for: first and one past the last.
    pub fn unclaimed(&self, most: u64) -> Option<(u64, u64)> {
        let mut free = self
            .open
            .iter()
            .filter(|(_, window)| window.claimed.is_none());
        let (at, window) = free.next()?;
        let from = at + window.bytes.len() as u64;
        let mut end = at + window.len;
        for (at, window) in free {
            // A window that has begun already starts its own request.
            if *at != end || !window.bytes.is_empty() || end + window.len - from > most {
                break;
            }
            end += window.len;
        }
        Some((from, end.min(from + most.max(window.len))))
    }

    /// From now on this request brings what is wanted between these bytes.
    pub fn claim(&mut self, from: u64, end: Option<u64>, flight: Flight) {
        for (at, window) in &mut self.open {
            let is_inside = at + window.bytes.len() as u64 >= from
                && end.is_none_or(|end| at + window.len <= end);
            if is_inside && window.claimed.is_none() {
                window.claimed = Some(flight);
            }
        }
    }

    /// A request ended; `true` if something was still wanted of it.
    pub fn release(&mut self, flight: Flight) -> bool {
        let mut lacks = false;
        for window in self.open.values_mut() {
            if window.claimed == Some(flight) {
                window.claimed = None;
                lacks = true;
            }
        }
        lacks
    }

    /// Takes bytes from the front of `bytes`, if somebody wants those at `at` next; tells how many.
    pub fn fill(&mut self, at: u64, bytes: &[u8]) -> Option<usize> {
        let (&start, window) = self.open.range_mut(..=at).next_back()?;
        if start + window.bytes.len() as u64 != at {
            return None;
        }
        let room = (window.len - window.bytes.len() as u64) as usize;
        let taken = room.min(bytes.len());
        // Once, so that a window never grows by copying.
        window.bytes.reserve_exact(room);
        window.bytes.extend_from_slice(&bytes[..taken]);
        if taken == room
            && let Some(window) = self.open.remove(&start)
        {
            self.whole.push_back((start, window.bytes));
        }
        Some(taken)
    }

    /// The first byte after `at` that is wanted of this request.
    pub fn next_after(&self, at: u64, flight: Flight) -> Option<u64> {
        let wanted = self.open.iter().filter(|(_, w)| w.claimed == Some(flight));
        wanted
            .map(|(start, window)| start + window.bytes.len() as u64)
            .find(|next| *next > at)
    }

    pub fn whole(&mut self) -> Option<(u64, Vec<u8>)> {
        self.whole.pop_front()
    }
}

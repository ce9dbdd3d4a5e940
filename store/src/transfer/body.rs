//! Where the bytes of a reply belong.

use super::{Flight, Flying, Transfer, TransferFault, Wish};
use crate::range::looks_like_a_page;

/// Bytes of a foreign page that a refusal quotes.
const QUOTE_BYTES: usize = 64;

impl Transfer {
    pub(super) fn on_body(&mut self, flight: Flight, bytes: Vec<u8>) {
        let Some(flying) = self.flights.get_mut(&flight) else {
            return;
        };
        let is_first = flying.got == 0 && flying.at.is_none_or(|at| at <= flying.from);
        let says_so = matches!(flying.doubt, Some(TransferFault::Page { .. }));
        if says_so || (is_first && looks_like_a_page(&bytes)) {
            let first = bytes[..bytes.len().min(QUOTE_BYTES)].to_vec();
            return self.fail(TransferFault::Page { first });
        }
        if let Some(fault) = flying.doubt.take() {
            return self.fail(fault);
        }
        self.take(flight, &bytes);
    }

    /// Puts a portion of a body where it belongs.
    fn take(&mut self, flight: Flight, mut rest: &[u8]) {
        let Some(flying) = self.flights.get_mut(&flight) else {
            return;
        };
        let Some(mut at) = flying.at else { return };
        let mut came = 0;
        let is_over = loop {
            let end = flying.end.or(self.length);
            if rest.is_empty() {
                break false;
            } else if end.is_some_and(|end| at >= end) {
                // More than was asked for: nobody reads on.
                break true;
            } else if at < flying.from {
                let passed = rest.len().min((flying.from - at) as usize);
                (at, rest) = (at + passed as u64, &rest[passed..]);
            } else if let Some(taken) = self.windows.fill(at, rest) {
                (at, rest) = (at + taken as u64, &rest[taken..]);
                came += taken as u64;
            } else if let Some(next) = self.windows.next_after(at, flight) {
                let passed = (rest.len() as u64).min(next - at);
                (at, rest) = (at + passed, &rest[passed as usize..]);
            } else {
                break flying.end.is_some();
            }
        };
        flying.at = Some(at);
        flying.got += came;
        flying.held = rest.to_vec();
        let is_hungry = rest.is_empty();
        while let Some((at, bytes)) = self.windows.whole() {
            self.out.push_back(Wish::Bytes { at, bytes });
        }
        if came > 0 && self.retry.progress(came) {
            self.out.push_back(Wish::Running);
        }
        if is_over {
            self.flights.remove(&flight);
            self.windows.release(flight);
            self.out.push_back(Wish::Abort(flight));
        } else if is_hungry {
            self.out.push_back(Wish::More(flight));
        }
    }

    /// A reply with the whole file may be what brings this byte, even what is read of it already.
    pub(super) fn use_whole(&mut self, wanted: u64) {
        let whole = |(_, flying): &(&Flight, &mut Flying)| flying.end.is_none();
        let Some((&flight, flying)) = self.flights.iter_mut().find(whole) else {
            return;
        };
        let at = flying.at.unwrap_or(0);
        if at > wanted {
            // It is past that byte, and there is no way back.
            return self.drop_flight(flight);
        }
        let held = std::mem::take(&mut flying.held);
        self.windows.claim(at, None, flight);
        if !held.is_empty() {
            flying.heard_ms = self.now_ms;
            self.take(flight, &held);
        }
    }
}

//! What the head of a reply means for a transfer.

use super::{BUSY_TRIES_MAX, Flight, Transfer, TransferFault, Trust, WaitCause, Wish};
use crate::range::{Place, RangeRefusal, Reply, number, place};

/// The head of a reply, as far as a browser shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyHead {
    pub status: u16,
    pub content_range: Option<String>,
    /// `None` if unknown, and if the body is compressed.
    pub content_length: Option<u64>,
    pub content_type: Option<String>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub retry_after: Option<String>,
    pub date: Option<String>,
    /// Where the request was led to, if that is another address.
    pub led_to: Option<String>,
}

/// What a server calls one state of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validator {
    etag: Option<String>,
    last_modified: Option<String>,
}

impl Validator {
    pub fn of(head: &ReplyHead) -> Validator {
        let kept = |text: &Option<String>| text.clone().filter(|text| !text.contains('\n'));
        Validator {
            etag: kept(&head.etag),
            last_modified: kept(&head.last_modified),
        }
    }

    /// Two lines, which header fields cannot contain.
    pub fn to_text(&self) -> String {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let text = [text(&self.etag), text(&self.last_modified)];
        match text.concat().is_empty() {
            true => String::new(),
            false => text.join("\n"),
        }
    }

    pub fn from_text(text: &str) -> Validator {
        let mut lines = text.split('\n').map(str::to_owned);
        let mut next = || lines.next().filter(|line| !line.is_empty());
        Validator {
            etag: next(),
            last_modified: next(),
        }
    }

    /// Whether the two name different states; what one of them does not say, nobody knows.
    fn contradicts(&self, other: &Validator) -> bool {
        let strong = |etag: &Option<String>| {
            let etag = etag.as_deref()?;
            Some(etag.strip_prefix("W/").unwrap_or(etag).to_owned())
        };
        match (strong(&self.etag), strong(&other.etag)) {
            (Some(one), Some(two)) => one != two,
            _ => match (&self.last_modified, &other.last_modified) {
                (Some(one), Some(two)) => one != two,
                _ => false,
            },
        }
    }

    /// Weak tags are not allowed there (RFC 9110, section 13.1.5).
    pub fn if_range(&self) -> Option<String> {
        let strong = self.etag.clone().filter(|etag| !etag.starts_with("W/"));
        strong.or_else(|| self.last_modified.clone())
    }
}

/// An address that was led to may expire. One that never works a second time is not tried again.
const LED_ASTRAY_MAX: u32 = 3;

/// Statuses of servers that may have more time later.
fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

impl Transfer {
    pub(super) fn on_head(&mut self, flight: Flight, head: &ReplyHead) {
        let Some(flying) = self.flights.get(&flight) else {
            return;
        };
        let (from, was_led) = (flying.from, flying.was_led);
        if was_led && matches!(head.status, 400 | 401 | 403 | 404 | 410) {
            // Signed addresses expire: the first one leads to a fresh one.
            self.leave_led();
            return self.drop_flight(flight);
        }
        if is_busy(head.status) {
            let after_s = retry_after(head);
            self.drop_flight(flight);
            let cause = WaitCause::Busy(head.status);
            return self.put_off(cause, after_s, Some(BUSY_TRIES_MAX), 0);
        }
        let reply = Reply {
            status: head.status,
            content_range: head.content_range.as_deref(),
            content_length: head.content_length,
        };
        let is_page = head
            .content_type
            .as_ref()
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"));
        let is_ours = self.trust == Trust::Server && self.length.is_some();
        let place = match place(self.length, from, reply) {
            Ok(_) if is_page => {
                let first = Vec::new();
                return self.read_in_doubt(flight, TransferFault::Page { first });
            }
            Ok(place) => place,
            // It may be a page: that is worth more to know than that its length is wrong.
            Err(refusal @ RangeRefusal::OtherFile { .. }) => {
                return self.read_in_doubt(
                    flight,
                    match is_ours {
                        true => TransferFault::Changed,
                        false => TransferFault::Reply(refusal),
                    },
                );
            }
            Err(RangeRefusal::Status(416)) if is_ours => {
                return self.fail(TransferFault::Changed);
            }
            Err(refusal) => return self.fail(TransferFault::Reply(refusal)),
        };
        if self.trust == Trust::Server && self.validator.contradicts(&Validator::of(head)) {
            return self.fail(TransferFault::Changed);
        }
        self.on_place(flight, head, place);
    }

    /// The body belongs there.
    fn on_place(&mut self, flight: Flight, head: &ReplyHead, place: Place) {
        let Some(flying) = self.flights.get(&flight) else {
            return;
        };
        let asked = flying.end.map(|end| end - flying.from);
        let is_whole = head.status == 200 && !place.is_told;
        let is_certain = is_whole
            || place.is_told
            || self.trust == Trust::Hashes
            || (self.length.is_some() && head.content_length == asked);
        let length = self.length.or(place.total);
        if length == Some(0) {
            return self.fail(TransferFault::Empty);
        }
        if !is_certain || (length.is_none() && !is_whole) {
            // Another origin hides where its bytes belong: the whole file begins at its beginning.
            self.whole = true;
            return self.drop_flight(flight);
        }
        self.is_endless = length.is_none();
        self.validator = match self.met {
            true => std::mem::take(&mut self.validator),
            false => Validator::of(head),
        };
        if let Some(length) = length {
            self.learn_length(length);
        }
        self.met = true;
        if self.led_astray < LED_ASTRAY_MAX {
            self.led_to = head.led_to.clone().or(self.led_to.take());
        }
        if is_whole {
            self.give_whole(flight);
        }
        self.retry.widen();
        self.read(flight, place.first);
    }

    /// Reads the first bytes of a body that is of no use, to say what it is.
    fn read_in_doubt(&mut self, flight: Flight, fault: TransferFault) {
        if let Some(flying) = self.flights.get_mut(&flight) {
            flying.at = Some(flying.from);
            flying.doubt = Some(fault);
            self.out.push_back(Wish::More(flight));
        }
    }

    /// Begins to read a body whose first byte has this position.
    fn read(&mut self, flight: Flight, first: u64) {
        if let Some(flying) = self.flights.get_mut(&flight) {
            flying.at = Some(first);
            self.out.push_back(Wish::More(flight));
        }
    }

    /// The server sends everything whatever it is asked: one request is enough.
    fn give_whole(&mut self, flight: Flight) {
        self.whole = true;
        let others: Vec<Flight> = self.flights.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != flight) {
            self.drop_flight(other);
        }
        if let Some(flying) = self.flights.get_mut(&flight) {
            flying.from = 0;
            flying.end = None;
        }
        self.windows.claim(0, None, flight);
    }

    /// A reply without a length has come to its end, and so has the file.
    pub(super) fn learn_end(&mut self, flight: Flight) {
        let Some(flying) = self.flights.get(&flight) else {
            return;
        };
        let is_sound = flying.doubt.is_none() && flying.held.is_empty();
        let Some(length) = flying.at.filter(|_| is_sound && self.is_endless()) else {
            return;
        };
        if length == 0 {
            return self.fail(TransferFault::Empty);
        }
        self.learn_length(length);
        while let Some((at, bytes)) = self.windows.whole() {
            self.out.push_back(Wish::Bytes { at, bytes });
        }
    }

    fn learn_length(&mut self, length: u64) {
        if self.length.replace(length) != Some(length) {
            self.windows.end_at(length);
            for flying in self.flights.values_mut() {
                flying.end = flying.end.map(|end| end.min(length));
            }
        }
    }

    pub(super) fn drop_flight(&mut self, flight: Flight) {
        if self.flights.remove(&flight).is_some() {
            self.windows.release(flight);
            self.out.push_back(Wish::Abort(flight));
        }
    }
}

/// Seconds; a date is measured from the server's own clock.
fn retry_after(head: &ReplyHead) -> Option<u64> {
    let text = head.retry_after.as_deref()?.trim();
    number(text).or_else(|| {
        let (then, now) = (seconds(text)?, seconds(head.date.as_deref()?.trim())?);
        Some(then.saturating_sub(now))
    })
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7), in seconds since March of year 0.
fn seconds(date: &str) -> Option<u64> {
    const MONTHS: &str = "MarAprMayJunJulAugSepOctNovDecJanFeb";
    let (_, rest) = date.split_once(", ")?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = words[..] else {
        return None;
    };
    let month = MONTHS.find(month).filter(|at| at % 3 == 0)? as u64 / 3;
    // January and February belong to the year before, so that leap days come last.
    let year = number(year)?.checked_sub(u64::from(month >= 10))?;
    let mut clock = time.split(':').map(number);
    let mut next = || clock.next().flatten();
    let (hour, minute, second) = (next()?, next()?, next()?);
    let days = number(day)? + (153 * month + 2) / 5 + 365 * year;
    let days = days + year / 4 - year / 100 + year / 400;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected differences from GNU `date -d ... +%s`.
    #[test]
    fn a_date_is_measured_from_the_servers_clock() {
        let check = |now: &str, then: &str, expected| {
            let head = ReplyHead {
                retry_after: Some(then.into()),
                date: Some(now.into()),
                ..ReplyHead::default()
            };
            assert_eq!(retry_after(&head), expected, "{now} {then}");
        };
        let eve = "Wed, 28 Feb 2024 23:59:50 GMT";
        check(eve, "Thu, 29 Feb 2024 00:00:20 GMT", Some(30));
        check(eve, "Fri, 01 Mar 2024 00:00:00 GMT", Some(86_410));
        check(
            "Tue, 31 Dec 2024 23:59:59 GMT",
            "Wed, 01 Jan 2025 00:00:00 GMT",
            Some(1),
        );
        // What is over already is over.
        check(eve, "Wed, 28 Feb 2024 23:59:49 GMT", Some(0));
        check(eve, "120", Some(120));
        check(eve, "soon", None);
        check("now", "Fri, 01 Mar 2024 00:00:00 GMT", None);
    }

    #[test]
    fn validators_survive_as_text() {
        for (etag, last_modified, text) in [
            (None, None, ""),
            (Some("\"a\""), None, "\"a\"\n"),
            (None, Some("then"), "\nthen"),
            (Some("W/\"a\""), Some("then"), "W/\"a\"\nthen"),
        ] {
            let validator = Validator {
                etag: etag.map(String::from),
                last_modified: last_modified.map(String::from),
            };
            assert_eq!(validator.to_text(), text);
            assert_eq!(Validator::from_text(text), validator);
        }
    }
}

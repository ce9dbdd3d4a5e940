//! What an HTTP reply to a request for a part of a file is worth: where its body belongs.
//!
//! Servers answer 200 with part of a file, begin before the byte that was asked for, ignore the
//! range, or send a web page with a friendly status. So the position comes from `Content-Range`
//! and the lengths, never from the status alone.

/// The parts of a reply that decide.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    pub status: u16,
    /// `None` also if another origin does not expose the header.
    pub content_range: Option<&'a str>,
    /// `None` if unknown, and if the body is compressed: the header counts compressed bytes then.
    pub content_length: Option<u64>,
}

/// Where a body belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first byte within the file that the body holds.
    pub first: u64,
    /// Length of the whole file, if the reply says it.
    pub total: Option<u64>,
    /// The reply says itself where its body begins.
    pub is_told: bool,
}

/// Why a body is not read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeRefusal {
    Status(u16),
    /// `Content-Range` says nothing that can be read.
    Unreadable,
    /// The whole file there has another length than the one that is wanted: it is another file,
    /// or a page.
    OtherFile {
        want: u64,
        got: u64,
    },
    /// The body begins after the byte that was asked for.
    StartsLate {
        want: u64,
        got: u64,
    },
}

/// Judges the reply to a request for the bytes from `at` on. `length` is that of the whole file,
/// where it is known.
pub fn place(length: Option<u64>, at: u64, reply: Reply<'_>) -> Result<Place, RangeRefusal> {
    if reply.status != 200 && reply.status != 206 {
        return Err(RangeRefusal::Status(reply.status));
    }
    let other = |total: Option<u64>| match (length, total) {
        (Some(want), Some(got)) if want != got => Err(RangeRefusal::OtherFile { want, got }),
        _ => Ok(total),
    };
    let Some(text) = reply.content_range else {
        // Another origin may hide the header; if the body is elsewhere the hashes will tell.
        return Ok(match reply.status {
            206 => Place {
                first: at,
                total: None,
                is_told: false,
            },
            _ => Place {
                first: 0,
                total: other(reply.content_length)?,
                is_told: false,
            },
        });
    };
    let (first, total) = content_range(text).ok_or(RangeRefusal::Unreadable)?;
    let total = other(total)?;
    if first > at {
        let (want, got) = (at, first);
        return Err(RangeRefusal::StartsLate { want, got });
    }
    let is_told = true;
    Ok(Place {
        first,
        total,
        is_told,
    })
}

/// `bytes 5-9/100` and `bytes 5-9/*` (RFC 9110, section 14.4): first byte and whole length.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (unit, rest) = text.trim().split_once(' ')?;
    let (range, total) = rest.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    let total = match total {
        "*" => None,
        total => Some(number(total)?),
    };
    let sound = first <= last && total.is_none_or(|total| last < total);
    (unit.eq_ignore_ascii_case("bytes") && sound).then_some((first, total))
}

pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// Whether bytes are the start of a web page: hosts of single-page applications answer any address
/// with their front page and status 200.
pub fn looks_like_a_page(first: &[u8]) -> bool {
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let text = text.trim_ascii_start();
    let starts = |tag: &&[u8]| {
        let head = text.get(..tag.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(tag))
    };
    let tags: [&[u8]; 4] = [b"<!doctype html", b"<html", b"<head", b"<?xml"];
    tags.iter().any(starts)
}

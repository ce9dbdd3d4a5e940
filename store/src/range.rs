//! What an HTTP reply to a request for pieces is worth: where its body belongs, and whole pieces
//! out of a body that arrives in portions.
//!
//! Servers answer 200 with part of a file, begin before the byte that was asked for, ignore the
//! range, or send a web page with a friendly status. So the position comes from `Content-Range`
//! and the lengths, never from the status alone, and every piece is verified by `Import::feed`.

use format::{ModelId, PIECE_BYTES, PieceIndex};

use crate::PieceRun;

/// The parts of a reply that decide.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    pub status: u16,
    /// `None` also if another origin does not expose the header.
    pub content_range: Option<&'a str>,
    /// `None` if unknown, and if the body is compressed: the header counts compressed bytes then.
    pub content_length: Option<u64>,
}

/// Why a body is not read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeRefusal {
    Status(u16),
    /// `Content-Range` says nothing that can be read.
    Unreadable,
    /// The whole file there has another length than the model: it is another file, or a page.
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

/// Cuts a body into pieces.
pub struct Assembler {
    id: ModelId,
    /// Bytes to pass over before the first whole piece.
    skip: u64,
    piece: PieceIndex,
    buffer: Vec<u8>,
    /// The buffer was handed out and is of no more use.
    spent: bool,
}

/// The first byte within the file that the reply's body holds.
pub fn place(id: ModelId, run: PieceRun, reply: Reply<'_>) -> Result<u64, RangeRefusal> {
    if reply.status != 200 && reply.status != 206 {
        return Err(RangeRefusal::Status(reply.status));
    }
    let Some(text) = reply.content_range else {
        let (want, got) = (id.length, reply.content_length);
        return match (reply.status, got) {
            // Another origin may hide the header; if the body is elsewhere the hashes will tell.
            (206, _) => Ok(run.at),
            (_, Some(got)) if got != want => Err(RangeRefusal::OtherFile { want, got }),
            _ => Ok(0),
        };
    };
    let (first, total) = content_range(text).ok_or(RangeRefusal::Unreadable)?;
    if let Some(got) = total
        && got != id.length
    {
        let want = id.length;
        return Err(RangeRefusal::OtherFile { want, got });
    }
    if first > run.at {
        let (want, got) = (run.at, first);
        return Err(RangeRefusal::StartsLate { want, got });
    }
    Ok(first)
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

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// Whether bytes that failed verification are the start of a web page: hosts of single-page
/// applications answer any address with their front page and status 200.
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

impl Assembler {
    /// `first` is the file position of the body's first byte. What comes before the next piece's
    /// beginning is passed over.
    pub fn new(id: ModelId, first: u64) -> Assembler {
        let piece = first.div_ceil(u64::from(PIECE_BYTES));
        Assembler {
            id,
            skip: piece * u64::from(PIECE_BYTES) - first,
            // Beyond the last piece if `first` is far out: then nothing will ever come.
            piece: PieceIndex(u32::try_from(piece).unwrap_or(u32::MAX)),
            buffer: Vec::new(),
            spent: false,
        }
    }

    /// Takes from the front of `body` until a piece is whole. `None` when `body` is used up, or
    /// past the end of the file; then what is left of `body` is surplus.
    pub fn take(&mut self, body: &mut &[u8]) -> Option<(PieceIndex, &[u8])> {
        let passed = self.skip.min(body.len() as u64);
        self.skip -= passed;
        *body = &body[passed as usize..];
        let (_, len) = self.id.piece_range(self.piece);
        let len = len as usize;
        if std::mem::take(&mut self.spent) {
            self.buffer.clear();
        }
        let (now, later) = body.split_at(body.len().min(len - self.buffer.len()));
        self.buffer.extend_from_slice(now);
        *body = later;
        if len == 0 || self.buffer.len() < len {
            return None;
        }
        let piece = self.piece;
        self.piece = PieceIndex(piece.0.saturating_add(1));
        self.spent = true;
        Some((piece, &self.buffer))
    }
}

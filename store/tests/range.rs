//! Replies of servers, good and bad. Situations are named as on the users' page.

#![allow(clippy::unwrap_used)]

use format::{Digest, ModelId, PIECE_BYTES, PieceIndex, Root};
use proptest::prelude::*;
use store::{Assembler, PieceRun, RangeRefusal, Reply, looks_like_a_page, place};

const PIECE: u64 = PIECE_BYTES as u64;
const LENGTH: u64 = 4 * PIECE + 100;

fn id() -> ModelId {
    ModelId {
        root: Root(Digest([1; 32])),
        length: LENGTH,
    }
}

/// Two pieces from the second on were asked for.
fn run() -> PieceRun {
    PieceRun {
        first: PieceIndex(1),
        count: 2,
        at: PIECE,
        len: 2 * PIECE,
    }
}

fn check(
    status: u16,
    content_range: Option<&str>,
    content_length: Option<u64>,
    expected: Result<u64, RangeRefusal>,
) {
    let reply = Reply {
        status,
        content_range,
        content_length,
    };
    assert_eq!(place(id(), run(), reply), expected, "{reply:?}");
}

#[test]
fn the_position_comes_from_the_range_and_the_lengths() {
    let asked = Some("bytes 1048576-3145727/4194404");
    check(206, asked, Some(2 * PIECE), Ok(PIECE));
    check(206, Some("bytes 1048576-3145727/*"), None, Ok(PIECE));
    check(206, Some("Bytes  1048576-3145727/4194404"), None, Ok(PIECE));
    // Fewer bytes than asked for are fine: the rest stays wanted.
    check(
        206,
        Some("bytes 1048576-1048576/4194404"),
        Some(1),
        Ok(PIECE),
    );
    // D3: 200 with a correct range is that range, not the start of the file.
    check(200, asked, Some(2 * PIECE), Ok(PIECE));
    // The range was ignored: the whole file comes.
    check(200, None, Some(LENGTH), Ok(0));
    check(200, None, None, Ok(0));
    // D4: it begins before what was asked for.
    check(
        206,
        Some("bytes 1000000-3145727/4194404"),
        None,
        Ok(1_000_000),
    );
    // Another origin does not show the header; the hashes will tell.
    check(206, None, Some(2 * PIECE), Ok(PIECE));
}

#[test]
fn what_cannot_be_the_model_is_not_read() {
    for status in [204, 301, 403, 404, 416, 429, 500] {
        check(
            status,
            None,
            Some(LENGTH),
            Err(RangeRefusal::Status(status)),
        );
    }
    // D7, D8: a page with a friendly status; D5: another version of the file.
    let other = |got| {
        let want = LENGTH;
        Err(RangeRefusal::OtherFile { want, got })
    };
    check(200, None, Some(1_534), other(1_534));
    check(
        206,
        Some("bytes 1048576-3145727/4194405"),
        None,
        other(4_194_405),
    );
    let late = RangeRefusal::StartsLate {
        want: PIECE,
        got: PIECE + 1,
    };
    check(206, Some("bytes 1048577-3145727/4194404"), None, Err(late));
    for text in [
        "",
        "bytes",
        "bytes */4194404",
        "bytes 5-4/4194404",
        "bytes 0-4194404/4194404",
        "bytes -5/4194404",
        "bytes +1-5/4194404",
        "bytes 1-5",
        "items 1048576-3145727/4194404",
        "bytes 99999999999999999999-99999999999999999999/*",
    ] {
        check(206, Some(text), None, Err(RangeRefusal::Unreadable));
    }
}

#[test]
fn pages_are_known_by_their_first_bytes() {
    for page in [
        "<!DOCTYPE html><html>",
        "\n\t <!doctype HTML>",
        "\u{feff}<HTML lang=en>",
        "<?xml version=\"1.0\"?><Error><Code>AccessDenied",
    ] {
        assert!(looks_like_a_page(page.as_bytes()), "{page}");
    }
    for other in [
        "",
        "<",
        "<!DOCTYPE",
        "{\"error\":1}",
        "\u{1}\0\0\0\0\0\0\0{",
    ] {
        assert!(!looks_like_a_page(other.as_bytes()), "{other}");
    }
}

fn pattern(at: u64) -> u8 {
    (at % 251) as u8
}

/// Feeds a body that begins at `first` in portions; the pieces that came out.
fn assemble(first: u64, end: u64, portions: &[usize]) -> Vec<u32> {
    let body: Vec<u8> = (first..end).map(pattern).collect();
    let mut assembler = Assembler::new(id(), first);
    let mut whole = Vec::new();
    let mut sizes = portions.iter().cycle();
    let mut rest = body.as_slice();
    while !rest.is_empty() {
        let size = sizes.next().map_or(1, |&size| size).min(rest.len());
        let (mut portion, later) = rest.split_at(size);
        while let Some((piece, bytes)) = assembler.take(&mut portion) {
            let (at, len) = id().piece_range(piece);
            assert_eq!(bytes.len() as u64, u64::from(len));
            let right = bytes
                .iter()
                .zip(at..)
                .all(|(&byte, at)| byte == pattern(at));
            assert!(right, "piece {}", piece.0);
            whole.push(piece.0);
        }
        rest = later;
    }
    whole
}

#[test]
fn whole_pieces_come_out_wherever_the_body_begins() {
    let half = PIECE / 2;
    assert_eq!(assemble(0, LENGTH, &[usize::MAX]), [0, 1, 2, 3, 4]);
    assert_eq!(assemble(PIECE, 3 * PIECE, &[70_000]), [1, 2]);
    // D4: the overlap is passed over, nothing is doubled.
    assert_eq!(assemble(half, 3 * PIECE, &[10_000]), [1, 2]);
    // Cut short: half a piece is none.
    assert_eq!(assemble(PIECE, 2 * PIECE + half, &[1 << 16]), [1]);
    // The short last piece, and surplus after it.
    assert_eq!(assemble(4 * PIECE, LENGTH, &[7]), [4]);
    assert_eq!(assemble(4 * PIECE, LENGTH + 5000, &[100, 7]), [4]);
    assert_eq!(assemble(4 * PIECE + 1, LENGTH + 5000, &[100]), [0; 0]);
    assert_eq!(assemble(9 * PIECE, 9 * PIECE + 10, &[3]), [0; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_piece_within_the_body_comes_out_once(
        first in 0..LENGTH,
        len in 0..LENGTH,
        portions in prop::collection::vec(1usize..600_000, 1..6),
    ) {
        let end = (first + len).min(LENGTH);
        let inside = |piece: &u32| {
            let (at, len) = id().piece_range(PieceIndex(*piece));
            first <= at && at + u64::from(len) <= end
        };
        let expected: Vec<u32> = (0..5).filter(inside).collect();
        prop_assert_eq!(assemble(first, end, &portions), expected);
    }

    #[test]
    fn any_header_is_answered(text in ".{0,60}") {
        let reply = Reply { status: 206, content_range: Some(&text), content_length: None };
        if let Ok(first) = place(id(), run(), reply) {
            prop_assert!(first <= run().at);
        }
    }
}

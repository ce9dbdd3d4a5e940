//! Replies of servers, good and bad. Situations are named as on the users' page.

#![allow(clippy::unwrap_used)]

use format::PIECE_BYTES;
use proptest::prelude::*;
use store::{RangeRefusal, Reply, looks_like_a_page, place};

const PIECE: u64 = PIECE_BYTES as u64;
const LENGTH: u64 = 4 * PIECE + 100;

/// Two pieces from the second on were asked for.
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
    let found = place(Some(LENGTH), PIECE, reply).map(|place| place.first);
    assert_eq!(found, expected, "{reply:?}");
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

proptest! {
    #[test]
    fn any_header_is_answered(text in ".{0,60}") {
        let reply = Reply { status: 206, content_range: Some(&text), content_length: None };
        if let Ok(place) = place(Some(LENGTH), PIECE, reply) {
            prop_assert!(place.first <= PIECE);
        }
    }
}

//! Transfers from servers of every kind, on a clock that jumps. Situations are named as on the
//! users' page; statuses and headers mean what RFC 9110 says. The same over real sockets is in
//! room `e2e`.

#![allow(clippy::unwrap_used)]

mod network;

use network::{End, LENGTH, MIB, Network, fetch, file, good, head, status, unreachable, whole};
use proptest::prelude::*;
use store::{FLIGHTS_MAX, Get, RangeRefusal, ReplyHead, TransferFault, Trust};

#[test]
fn a_good_server_is_asked_for_every_byte_once() {
    let file = file(LENGTH);
    let network = fetch(|_, get| good(&file, get));
    network.check_all(&file);
    assert_eq!((network.asked(), network.read), (LENGTH, LENGTH));
    assert_eq!(network.most, FLIGHTS_MAX);
    // One request finds out what kind of server it is.
    assert_eq!(network.gets[0].if_range, None);
    assert_eq!(network.gets[1].if_range.as_deref(), Some("\"one\""));
}

/// D4: the overlap is passed over.
#[test]
fn a_reply_that_begins_early_is_trimmed() {
    let file = file(LENGTH);
    let network = fetch(|_, get| {
        let (first, last) = get.range.unwrap();
        let early = Get {
            range: Some((first.saturating_sub(70_001), last)),
            ..get.clone()
        };
        good(&file, &early)
    });
    network.check_all(&file);
    assert_eq!(network.asked(), LENGTH);
}

/// D3: 200 with the right `Content-Range` is that range.
#[test]
fn a_range_with_status_200_is_that_range() {
    let file = file(LENGTH);
    let network = fetch(|_, get| {
        let mut answer = good(&file, get);
        head(&mut answer).status = 200;
        answer
    });
    network.check_all(&file);
    assert_eq!(network.read, LENGTH);
}

#[test]
fn a_server_without_ranges_sends_everything_once() {
    let file = file(LENGTH);
    let network = fetch(|_, _| whole(&file));
    network.check_all(&file);
    assert_eq!((network.gets.len(), network.read), (1, LENGTH));
}

/// D11: the length comes from elsewhere, so a server may be silent about it.
#[test]
fn without_any_length_the_file_is_whole_all_the_same() {
    let file = file(LENGTH);
    let network = fetch(|_, _| {
        let mut answer = whole(&file);
        head(&mut answer).content_length = None;
        answer
    });
    network.check_all(&file);
    // From elsewhere it does not: then the end of the reply is the end of the file, also where
    // that is the end of a window.
    for length in [LENGTH, 3 * MIB, 5] {
        let file = self::file(length);
        let mut network = Network::new(Trust::Server, None, |number, _| {
            let mut answer = whole(&file);
            head(&mut answer).content_length = None;
            if number == 0 && length == LENGTH {
                // A reply that breaks off is no end.
                answer.body.truncate(7_654_321);
                answer.end = End::Cut;
            }
            answer
        });
        network.want(0, 30 * MIB);
        network.run();
        assert_eq!(network.failed, None);
        assert_eq!(network.transfer.length(), Some(length));
        network.came.retain(|_, bytes| !bytes.is_empty());
        network.check_all(&file);
    }
    let mut network = Network::new(Trust::Server, None, |_, _| {
        let mut answer = whole(&file);
        head(&mut answer).content_length = None;
        answer.body.clear();
        answer
    });
    network.want(0, MIB);
    network.run();
    assert_eq!(network.failed, Some(TransferFault::Empty));
}

/// Another origin shows neither `Content-Range` nor `ETag`, but always the length.
#[test]
fn a_hidden_range_makes_the_whole_file_the_answer() {
    let file = file(3 * MIB);
    let hide = |_: usize, get: &Get| {
        let mut answer = good(&file, get);
        head(&mut answer).content_range = None;
        head(&mut answer).etag = None;
        answer
    };
    let mut network = Network::new(Trust::Server, None, hide);
    network.want(0, MIB);
    network.run();
    assert_eq!(network.transfer.length(), Some(3 * MIB));
    // A whole file is read no further than somebody wants.
    assert!(network.read < 2 * MIB + 200_000, "{}", network.read);
    network.want(MIB, 3 * MIB);
    network.run();
    network.check_all(&file);
    assert_eq!(network.gets.len(), 2);
}

/// D1: what came of a broken reply is never asked for again, to the byte.
#[test]
fn a_broken_reply_goes_on_at_the_very_byte() {
    let file = file(LENGTH);
    for end in [End::Cut, End::Good] {
        let network = fetch(|number, get| {
            let mut answer = good(&file, get);
            if number % 2 == 1 {
                answer.body.truncate(1_234_567);
                answer.end = end;
            }
            answer
        });
        network.check_all(&file);
        assert_eq!(network.read, LENGTH);
        let again = network.gets.iter().filter_map(|get| get.range);
        assert!(again.into_iter().any(|(first, _)| first % MIB != 0));
        assert!(
            network.waits.is_empty(),
            "a reply that brought much is no failure"
        );
    }
}

#[test]
fn a_body_that_is_too_long_is_not_read_on() {
    let file = file(LENGTH);
    let network = fetch(|_, get| {
        let mut answer = good(&file, get);
        answer.body.extend(vec![0xee; 3_000_000]);
        answer
    });
    network.check_all(&file);
    assert!(network.read < LENGTH + 10 * 100_000, "{}", network.read);
}

/// D7, D8: a friendly status and a web page.
#[test]
fn a_page_is_named_with_its_beginning() {
    let file = file(LENGTH);
    let page = b"<!DOCTYPE html><title>Sign in</title>".repeat(9);
    let check = |kind: Option<&str>, length: Option<u64>, from: usize| {
        let network = fetch(|number, get| {
            let mut answer = good(&file, get);
            if number >= from {
                answer.body = page.clone();
                *head(&mut answer) = ReplyHead {
                    status: 200,
                    content_type: kind.map(String::from),
                    content_length: length,
                    ..ReplyHead::default()
                };
            }
            answer
        });
        match network.failed {
            Some(TransferFault::Page { first }) => assert!(first.starts_with(b"<!DOCTYPE")),
            other => panic!("{other:?}"),
        }
    };
    check(Some("text/html; charset=utf-8"), Some(333), 0);
    check(Some("text/html"), None, 3);
    check(None, None, 0);
    check(None, None, 2);
}

#[test]
fn what_will_not_change_is_not_asked_for_again() {
    let file = file(LENGTH);
    for refused in [400, 401, 403, 404, 410, 416, 451] {
        let network = fetch(|_, _| status(refused));
        let refusal = RangeRefusal::Status(refused);
        assert_eq!(network.failed, Some(TransferFault::Reply(refusal)));
        assert_eq!(network.gets.len(), 1);
    }
    let late = fetch(|_, get| {
        let (first, last) = get.range.unwrap();
        let range = Some((first + 1, last));
        good(
            &file,
            &Get {
                range,
                ..get.clone()
            },
        )
    });
    let refusal = RangeRefusal::StartsLate { want: 0, got: 1 };
    assert_eq!(late.failed, Some(TransferFault::Reply(refusal)));
    let other = fetch(|_, get| good(&file[..5_000_000], get));
    let (want, got) = (LENGTH, 5_000_000);
    let refusal = RangeRefusal::OtherFile { want, got };
    assert_eq!(other.failed, Some(TransferFault::Reply(refusal)));
    let empty = fetch(|_, _| whole(&[]));
    assert!(empty.failed.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever mixture of good and bad replies comes: the right bytes, and none of them twice
    /// but those that a server sends unasked.
    #[test]
    fn every_mixture_ends_with_the_right_bytes(
        script in prop::collection::vec((0u8..8, 0usize..3_000_000), 1..12),
        portion in 1_000usize..400_000,
    ) {
        let length = 9 * MIB + 77;
        let file = file(length);
        let mut early = 0;
        let mut network = Network::new(Trust::Hashes, Some(length), |number, get| {
            let (kind, amount) = script[number % script.len()];
            // Every second reply is good, so that there is an end.
            let mut answer = good(&file, get);
            if number % 2 == 0 || get.range.is_none() {
                return answer;
            }
            match kind {
                0 => answer.body.truncate(amount),
                1 => { answer.body.truncate(amount); answer.end = End::Cut; }
                2 => { answer.body.truncate(amount); answer.end = End::Silent; }
                3 => answer.body.extend(vec![7; amount]),
                4 => return status(503),
                5 => return unreachable(),
                6 => head(&mut answer).status = 200,
                _ => {
                    let (first, last) = get.range.unwrap();
                    let from = first.saturating_sub(amount as u64);
                    early += first - from;
                    answer = good(&file, &Get { range: Some((from, last)), ..get.clone() });
                }
            }
            answer
        });
        network.portion = portion;
        network.want(0, length);
        network.run();
        network.check_all(&file);
        // Surplus is read for one portion at most.
        let gets = network.gets.len() as u64;
        let read = network.read;
        drop(network);
        prop_assert!(read <= length + early + gets * portion as u64);
    }
}

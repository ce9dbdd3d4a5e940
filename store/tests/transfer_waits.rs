//! Transfers over waits, expired addresses, changed files and cancels, on a clock that jumps.
//! Statuses and headers mean what RFC 9110 says.

#![allow(clippy::unwrap_used)]

mod network;

use network::{End, LENGTH, MIB, Network, fetch, file, good, head, status, unreachable};
use store::{
    BUSY_TRIES_MAX, FIRST_TRIES_MAX, RangeRefusal, ReplyHead, STALL_MS, Transfer, TransferFault,
    Trust, WaitCause,
};

/// The server's wish is honoured, told, and bounded.
#[test]
fn a_busy_server_gets_the_time_it_asks_for() {
    let file = file(LENGTH);
    for busy in [429, 503] {
        let mut network = Network::new(Trust::Hashes, Some(LENGTH), |number, get| {
            let mut answer = match number {
                1..=3 => status(busy),
                _ => return good(&file, get),
            };
            head(&mut answer).retry_after = Some("45".into());
            answer
        });
        network.want(0, LENGTH);
        network.run();
        network.check_all(&file);
        let asked_at = 1_000_000;
        assert_eq!(network.waits[0].cause, WaitCause::Busy(busy));
        assert!(network.waits[0].until_ms >= asked_at + 45_000);
        assert_eq!(network.read, LENGTH);
    }
    let network = fetch(|_, _| {
        let mut answer = status(429);
        head(&mut answer).retry_after = Some("86400".into());
        answer
    });
    let seconds = 86_400;
    assert_eq!(network.failed, Some(TransferFault::AskedToWait { seconds }));
    let network = fetch(|_, _| status(503));
    let refusal = RangeRefusal::Status(503);
    assert_eq!(network.failed, Some(TransferFault::Reply(refusal)));
    assert_eq!(network.gets.len() as u32, BUSY_TRIES_MAX);
    // Each wait is twice the one before, up to the longest.
    let waits: Vec<u64> = network.waits.iter().map(|wait| wait.until_ms).collect();
    assert!(waits[1] - waits[0] >= 2_000 && waits[6] - waits[5] >= 30_000);
}

/// Bytes of the other requests end the lull; when these are over, it has begun again.
#[test]
fn a_lull_is_told_again_when_the_last_bytes_have_come() {
    let file = file(LENGTH);
    let mut network = Network::new(Trust::Hashes, Some(LENGTH), |number, get| {
        if number != 3 {
            return good(&file, get);
        }
        let mut answer = status(429);
        head(&mut answer).retry_after = Some("45".into());
        answer
    });
    network.want(0, LENGTH);
    network.run();
    network.check_all(&file);
    let [first, again] = network.waits[..] else {
        panic!("{} waits were told", network.waits.len());
    };
    assert_eq!(first.until_ms, again.until_ms);
    assert_eq!(again.cause, WaitCause::Busy(429));
}

#[test]
fn an_unknown_server_is_tried_a_few_times_and_a_known_one_for_ever() {
    let network = fetch(|_, _| unreachable());
    assert_eq!(network.failed, Some(TransferFault::Unreachable));
    assert_eq!(network.gets.len() as u32, FIRST_TRIES_MAX);

    let file = file(LENGTH);
    let network = fetch(|number, get| match number {
        5..60 => unreachable(),
        _ => good(&file, get),
    });
    network.check_all(&file);
    assert_eq!(network.read, LENGTH);

    let mut network = Network::new(Trust::Hashes, Some(LENGTH), |_, _| unreachable());
    network.transfer.network(network.now_ms, false);
    network.want(0, LENGTH);
    while network.gets.len() < 9 {
        assert!(network.turn());
    }
    assert_eq!(network.failed, None, "without a network nobody gives up");
    assert_eq!(network.waits[0].cause, WaitCause::Offline);
}

/// A reply that breaks off before its first byte, again and again, is the server's fault.
#[test]
fn empty_replies_come_to_an_end() {
    let file = file(LENGTH);
    let network = fetch(|_, get| {
        let mut answer = good(&file, get);
        answer.body.clear();
        answer
    });
    assert_eq!(network.failed, Some(TransferFault::Cut));
}

#[test]
fn the_network_comes_back_and_nobody_waits_longer() {
    let file = file(LENGTH);
    let there = std::cell::Cell::new(true);
    let mut network = Network::new(Trust::Hashes, Some(LENGTH), |_, get| match there.get() {
        true => good(&file, get),
        false => unreachable(),
    });
    network.want(0, LENGTH);
    while network.came.len() < 6 {
        network.turn();
    }
    there.set(false);
    while network
        .waits
        .iter()
        .all(|wait| wait.until_ms < network.now_ms + 20_000)
    {
        assert!(network.turn());
    }
    there.set(true);
    let (before, now) = (network.gets.len(), network.now_ms);
    network.transfer.network(now, true);
    network.drain();
    assert!(network.gets.len() > before, "asked at once");
    network.run();
    network.check_all(&file);
}

#[test]
fn a_reply_that_stops_is_given_up() {
    let file = file(LENGTH);
    let network = fetch(|number, get| {
        let mut answer = good(&file, get);
        if number == 2 {
            answer.body.truncate(300_000);
            answer.end = End::Silent;
        }
        answer
    });
    network.check_all(&file);
    assert_eq!(network.read, LENGTH);
    assert!(network.now_ms >= 1_000_000 + STALL_MS);
    assert_eq!(network.waits[0].cause, WaitCause::Stalled);
}

/// Signed addresses expire in the middle: the first address leads to a fresh one.
#[test]
fn an_expired_address_is_left_for_the_first_one() {
    let file = file(LENGTH);
    let (mut led, mut signed) = (0, 0);
    let mut network = Network::new(Trust::Hashes, Some(LENGTH), |_, get| {
        let mut answer = good(&file, get);
        match &get.url {
            None => {
                (led, signed) = (led + 1, 0);
                head(&mut answer).led_to = Some(format!("https://cdn/{led}"));
            }
            Some(url) => {
                assert_eq!(*url, format!("https://cdn/{led}"));
                signed += 1;
                if signed > 2 {
                    return status(403);
                }
            }
        }
        answer
    });
    network.want(0, LENGTH);
    network.run();
    network.check_all(&file);
    assert!(network.waits.is_empty());
    assert_eq!(network.read, LENGTH);
    drop(network);
    // One that is refused from the first address on is refused for good.
    let network = fetch(|_, _| {
        let mut answer = status(403);
        head(&mut answer).led_to = Some("https://cdn/x".into());
        answer
    });
    let refusal = RangeRefusal::Status(403);
    assert_eq!(network.failed, Some(TransferFault::Reply(refusal)));
}

/// D5, D6: another file under the same address, whatever the server makes of `If-Range`.
#[test]
fn a_file_that_changes_is_noticed_where_only_the_server_vouches() {
    let file = file(LENGTH);
    let changed = |spoil: &dyn Fn(&mut ReplyHead)| {
        let mut network = Network::new(Trust::Server, None, |number, get| {
            let mut answer = good(&file, get);
            head(&mut answer).last_modified = Some("Sun, 06 Nov 1994 08:49:37 GMT".into());
            if number > 2 {
                spoil(head(&mut answer));
            }
            answer
        });
        network.want(0, MIB);
        network.run();
        network.want(MIB, LENGTH);
        network.run();
        network.failed
    };
    let fault = Some(TransferFault::Changed);
    assert_eq!(changed(&|head| head.etag = Some("\"two\"".into())), fault);
    assert_eq!(
        changed(&|head| {
            head.etag = None;
            head.last_modified = Some("Sun, 06 Nov 1994 08:49:38 GMT".into());
        }),
        fault
    );
    let longer = format!("bytes {}-{}/{}", 5 * MIB, 6 * MIB, LENGTH + 1);
    assert_eq!(
        changed(&|head| head.content_range = Some(longer.clone())),
        fault
    );
    assert_eq!(changed(&|head| head.status = 416), fault);
    assert_eq!(changed(&|head| head.etag = Some("W/\"one\"".into())), None);
}

/// What an earlier start knew is compared with what the server says now.
#[test]
fn a_later_start_notices_a_change_too() {
    let file = file(LENGTH);
    for (known, fault) in [
        ("\"one\"\n", None),
        ("\"zero\"\n", Some(TransferFault::Changed)),
    ] {
        let transfer = Transfer::resumed(LENGTH, known);
        let mut network = Network::of(transfer, |_, get| good(&file, get));
        network.want(7 * MIB, LENGTH);
        network.run();
        assert_eq!(network.failed, fault);
        let if_range = network.gets[0].if_range.as_deref();
        assert_eq!(if_range, known.split('\n').next());
    }
}

/// D18: after a cancel nothing is asked for, and everything under way is given up.
#[test]
fn a_cancel_ends_everything_at_once() {
    let file = file(LENGTH);
    let mut network = Network::new(Trust::Hashes, Some(LENGTH), |_, get| good(&file, get));
    network.want(0, LENGTH);
    while network.came.len() < 3 {
        network.turn();
    }
    let gets = network.gets.len();
    network.transfer.close();
    network.run();
    assert_eq!((network.gets.len(), network.failed.clone()), (gets, None));
}

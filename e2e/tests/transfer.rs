//! Transfers over real sockets from a server that misbehaves. Every row is one kind of server; what
//! it means is RFC 9110 and the users' reports D1 to D11. The same core on a clock that jumps is
//! proved in room `store`.
#![allow(clippy::unwrap_used)]

mod wire;

use std::sync::Arc;

use e2e::{Act, Asked, Script, Scripted};
use store::{RangeRefusal, Transfer, TransferFault, Trust, WaitCause};
use wire::{Brought, fetch};

const MIB: u64 = 1 << 20;
const LENGTH: u64 = 9 * MIB + 321;

fn file() -> Arc<Vec<u8>> {
    Arc::new((0..LENGTH).map(|at| (at * 31 % 251) as u8).collect())
}

fn run(acts: &[Act], then: Act) -> (Brought, Vec<Asked>) {
    let script = Script {
        body: file(),
        acts: acts.to_vec(),
        then,
    };
    let signed = Script {
        body: file(),
        acts: vec![Act::Good, Act::Good, Act::Status(403)],
        then: Act::Good,
    };
    let server = Scripted::start(vec![("/m.slm", script), ("/signed", signed)], None).unwrap();
    let transfer = Transfer::new(Trust::Hashes, Some(LENGTH));
    let brought = fetch(&server.url("/m.slm"), transfer, 0, LENGTH);
    (brought, server.asked())
}

/// Bytes of the file that went out.
fn sent(asked: &[Asked]) -> u64 {
    let of_file = |asked: &&Asked| {
        !matches!(
            asked.act,
            Act::Status(_) | Act::Busy(..) | Act::Lead(_) | Act::Page
        )
    };
    asked.iter().filter(of_file).map(|asked| asked.sent).sum()
}

/// Everything came, right; `surplus` bytes more than the file has went out, at most.
fn whole(acts: &[Act], then: Act, surplus: u64) -> (Brought, Vec<Asked>) {
    let (brought, asked) = run(acts, then);
    assert_eq!(brought.failed, None, "{acts:?}");
    let bytes: Vec<u8> = brought.windows.values().flatten().copied().collect();
    assert!(bytes == *file(), "{acts:?}");
    let sent = sent(&asked);
    assert!(
        (LENGTH..=LENGTH + surplus).contains(&sent),
        "{acts:?}: {sent} of {LENGTH}: {asked:?}"
    );
    (brought, asked)
}

#[test]
fn good_and_odd_servers_send_every_byte_once() {
    // What fits into the buffers of a connection may be under way when it is ended.
    const BUFFERS: u64 = 6 * MIB;
    whole(&[], Act::Good, 0);
    whole(&[], Act::Ranged200, 0);
    whole(&[], Act::Whole, 0);
    whole(&[], Act::Chunked, 0);
    whole(&[Act::Early(70_000), Act::Early(1)], Act::Good, 70_001);
    whole(
        &[Act::Short(1_500_000), Act::Short(2_222_222)],
        Act::Good,
        0,
    );
    whole(&[Act::Long(500_000)], Act::Good, 500_000);
    whole(&[Act::Good, Act::Refuse], Act::Good, 0);
    // Ranges are ignored from the second request on: the first of them is sent once more.
    whole(&[Act::Good], Act::Whole, 4 * MIB + BUFFERS);
}

#[test]
fn busy_servers_get_their_time() {
    let acts = [Act::Good, Act::Busy(429, 2), Act::Busy(503, 1)];
    let (brought, asked) = whole(&acts, Act::Good, 0);
    let busy = |wait: &&store::Waiting| matches!(wait.cause, WaitCause::Busy(_));
    assert!(brought.waits.iter().filter(busy).count() >= 1);
    assert!(asked.len() < 12, "{asked:?}");
}

#[test]
fn an_address_that_expires_is_fetched_anew() {
    let (_, asked) = whole(&[], Act::Lead("/signed"), 0);
    assert!(asked.iter().any(|asked| asked.act == Act::Status(403)));
    let first = asked.iter().filter(|asked| asked.path == "/m.slm");
    assert!(first.count() < asked.len() / 2, "{asked:?}");
}

#[test]
fn what_cannot_be_the_file_is_refused_by_name() {
    let refused = |acts: &[Act]| run(acts, acts[acts.len() - 1]).0.failed.unwrap();
    for status in [403, 404, 416] {
        let refusal = RangeRefusal::Status(status);
        let fault = refused(&[Act::Status(status)]);
        assert_eq!(fault, TransferFault::Reply(refusal));
    }
    match refused(&[Act::Page]) {
        TransferFault::Page { first } => assert!(first.starts_with(b"<!DOCTYPE")),
        other => panic!("{other:?}"),
    }
    let fault = refused(&[Act::Late(5)]);
    let (want, got) = (0, 5);
    assert_eq!(
        fault,
        TransferFault::Reply(RangeRefusal::StartsLate { want, got })
    );
    let seconds = 5_000;
    let fault = refused(&[Act::Busy(429, seconds)]);
    assert_eq!(fault, TransferFault::AskedToWait { seconds });
}

/// Without hashes only the server's word tells that the file is still the same.
#[test]
fn a_file_that_changes_under_way_is_noticed() {
    let script = Script {
        body: file(),
        acts: vec![Act::Good, Act::Good],
        then: Act::Other,
    };
    let server = Scripted::start(vec![("/m.gguf", script)], None).unwrap();
    let transfer = Transfer::new(Trust::Server, None);
    let brought = fetch(&server.url("/m.gguf"), transfer, 0, LENGTH);
    assert_eq!(brought.failed, Some(TransferFault::Changed));
}

/// The server is not there at all.
#[test]
fn nobody_there_is_told_after_a_few_tries() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/m.slm", listener.local_addr().unwrap());
    drop(listener);
    let transfer = Transfer::new(Trust::Hashes, Some(LENGTH));
    let brought = fetch(&url, transfer, 0, LENGTH);
    assert_eq!(brought.failed, Some(TransferFault::Unreachable));
    assert_eq!(brought.waits[0].cause, WaitCause::Unreachable);
}

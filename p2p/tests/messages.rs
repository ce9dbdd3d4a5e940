//! The bytes of every message, written out by hand from the table in `p2p/src/wire.rs`.

#![allow(clippy::unwrap_used)]

use format::{Digest, LEAF_BYTES, ModelId, PieceIndex, Root};
use p2p::{Fault, Hello, MESSAGE_BYTES_MAX, Message, Reject, Run};

const LEAF: usize = LEAF_BYTES as usize;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[track_caller]
fn check(message: Message<'_>, hex: &str) {
    assert_eq!(message.encode(), bytes(hex), "{message:?}");
    assert_eq!(Message::decode(&bytes(hex)), Ok(message));
}

fn run(piece: u32, leaf: u8, count: u8) -> Run {
    Run::new(PieceIndex(piece), leaf, count).unwrap()
}

#[test]
fn the_bytes_are_fixed() {
    let id = ModelId {
        root: Root(Digest([0xab; 32])),
        length: 0x0102_0304_0506,
    };
    let hello = format!(
        "00 01 {} 0605040302010000 00001000 8877665544332211",
        "ab".repeat(32)
    );
    check(
        Message::Hello(Hello::new(id, 0x1122_3344_5566_7788)),
        &hello,
    );
    check(Message::Bitfield(&[0x80, 0x01]), "01 80 01");
    check(Message::Have(PieceIndex(258)), "02 02010000");
    check(Message::Request(run(1, 2, 62)), "03 01000000 02 3e");
    check(Message::Cancel(run(1, 63, 1)), "05 01000000 3f 01");
    check(
        Message::Reject(run(9, 0, 64), Reject::NotHere),
        "06 09000000 00 40 00",
    );
    check(
        Message::Reject(run(9, 0, 1), Reject::NotSharing),
        "06 09000000 00 01 01",
    );
    check(
        Message::Reject(run(9, 0, 1), Reject::Cancelled),
        "06 09000000 00 01 02",
    );
    check(Message::AskHashes(PieceIndex(7)), "07 07000000");
    let hashes = [[1; 32], [2; 32]];
    let both = format!("{} {}", "01".repeat(32), "02".repeat(32));
    let piece = PieceIndex(3);
    check(
        Message::Hashes {
            piece,
            hashes: &hashes,
        },
        &format!("08 03000000 {both}"),
    );
    check(Message::AskLayer { first: 1536 }, "09 00060000");
    check(
        Message::Layer {
            first: 0,
            hashes: &hashes,
        },
        &format!("0a 00000000 {both}"),
    );
    check(Message::Ping(5), "0b 05000000");
    check(Message::Pong(5), "0c 05000000");
    let leaves = vec![0xcd; LEAF + 1];
    let hex = format!("04 03000000 3e {}", "cd".repeat(LEAF + 1));
    let (first, bytes) = (62, leaves.as_slice());
    check(
        Message::Leaves {
            piece,
            first,
            bytes,
        },
        &hex,
    );
}

#[track_caller]
fn refuse(hex: &str) {
    let bytes = bytes(hex);
    let kind = bytes.first().copied().unwrap_or(u8::MAX);
    let len = bytes.len();
    assert_eq!(
        Message::decode(&bytes),
        Err(Fault::Malformed { kind, bytes: len }),
        "{hex}"
    );
}

#[test]
fn what_is_not_to_the_byte_is_refused() {
    let root = "ab".repeat(32);
    let hash = "11".repeat(32);
    for hex in [
        "",
        "0d",
        "ff 00000000",
        // Hello, one byte short and one too long.
        &format!("00 01 {root} 0100000000000000 00001000 88776655443322"),
        &format!("00 01 {root} 0100000000000000 00001000 8877665544332211 00"),
        "01",
        "02 010000",
        "02 0100000000",
        // No leaf, and leaves beyond the piece.
        "03 01000000 00 00",
        "03 01000000 3f 02",
        "03 01000000 ff ff",
        "03 01000000 00",
        "04 01000000 00",
        "04 01000000",
        "04 01000000 40 00",
        "05 01000000 00 00",
        "06 01000000 00 01 03",
        "06 01000000 00 01",
        "07 010000",
        "08 01000000",
        "08 01000000 11",
        &format!("08 01000000 {}", hash.repeat(65)),
        "09",
        "0a 00000000",
        &format!("0a 00000000 {}", hash.repeat(1537)),
        "0b 000000",
        "0c 0000000000",
        // Four leaves in one message; one that reaches beyond its piece.
        &format!("04 01000000 00 {}", "00".repeat(3 * LEAF + 1)),
        &format!("04 01000000 3f {}", "00".repeat(LEAF + 1)),
    ] {
        refuse(hex);
    }
}

#[test]
fn nothing_longer_than_a_message_is_looked_at() {
    let long = vec![1; MESSAGE_BYTES_MAX + 1];
    let bytes = long.len();
    assert_eq!(Message::decode(&long), Err(Fault::Oversize { bytes }));
    assert!(Message::decode(&long[1..]).is_ok());
}

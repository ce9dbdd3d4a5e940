//! The bytes of what page and worker say of peers, frozen; as in `wire_bytes.rs` the expected
//! values were written by hand from the postcard 1.x wire specification.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use format::{Digest, ModelId, Root};
use protocol::*;
use serde::{Serialize, de::DeserializeOwned};

#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: T, hex: &str) {
    let bytes = encode(&message).unwrap();
    let found: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, hex.replace(' ', ""));
    assert_eq!(decode::<T>(&bytes), Ok(message));
    assert_eq!(decode::<T>(&bytes[..bytes.len() - 1]), Err(WireError));
}

fn model() -> ModelId {
    ModelId {
        root: Root(Digest([0xab; 32])),
        length: 300,
    }
}

/// 32 bytes of root, then 300 as a varint.
fn model_hex() -> String {
    format!("{} ac02", "ab".repeat(32))
}

#[test]
fn commands() {
    let model_hex = model_hex();
    let model = model();
    check(
        SwarmCommand::Share {
            model,
            trackers: vec!["ws".into()],
            limit: Some(300),
            seed: 1,
        },
        &format!("00 {model_hex} 01 02 7773 01 ac02 01"),
    );
    check(SwarmCommand::Unshare { model }, &format!("01 {model_hex}"));
    let key = [0xcd; 20];
    check(
        SwarmCommand::Opened {
            model,
            link: 7,
            key,
        },
        &format!("02 {model_hex} 07 {}", "cd".repeat(20)),
    );
    check(SwarmCommand::Closed { link: 128 }, "03 8001");
    check(SwarmCommand::Drained { link: 1, bytes: 2 }, "04 01 02");
    let meet = |meeting| SwarmCommand::Meet(meeting);
    check(
        meet(Meeting::Offer { model }),
        &format!("05 00 {model_hex}"),
    );
    let code = || "c".to_owned();
    check(
        meet(Meeting::Answer {
            model,
            code: code(),
        }),
        &format!("05 01 {model_hex} 01 63"),
    );
    check(
        meet(Meeting::Take {
            model,
            code: code(),
        }),
        &format!("05 02 {model_hex} 01 63"),
    );
    for (met, hex) in [
        (Met::Offer(code()), "00 01 63"),
        (Met::Answer(code()), "01 01 63"),
        (Met::Connecting, "02"),
        (Met::Failed(code()), "03 01 63"),
    ] {
        check(
            SwarmCommand::Met { model, met },
            &format!("06 {model_hex} {hex}"),
        );
    }
}

#[test]
fn events() {
    let model_hex = model_hex();
    let model = model();
    let peer = PeerReport {
        link: None,
        pieces: 1,
        down: 2,
        up: 3,
    };
    let status = SwarmStatus {
        model,
        name: "n".into(),
        trackers: Vec::new(),
        fetches: true,
        gives: false,
        pieces: 4,
        pieces_total: 5,
        down: 6,
        up: 7,
        peers: vec![peer],
    };
    check(
        SwarmEvent::Status(status),
        &format!("00 {model_hex} 01 6e 00 01 00 04 05 06 07 01 00 01 02 03"),
    );
    check(SwarmEvent::Ended { model }, &format!("01 {model_hex}"));
    let why = "w".into();
    check(
        SwarmEvent::Close {
            link: 1,
            why,
            is_lie: true,
        },
        "02 01 01 77 01",
    );
    check(
        SwarmEvent::Meet(Meeting::Offer { model }),
        &format!("03 00 {model_hex}"),
    );
    let met = Met::Connecting;
    check(
        SwarmEvent::Met { model, met },
        &format!("04 {model_hex} 02"),
    );
}

#[test]
fn an_invited_model() {
    check(
        InvitedModel {
            id: model(),
            name: "n".into(),
            sources: vec!["s".into()],
            trackers: Vec::new(),
            gives: true,
            seed: 2,
        },
        &format!("{} 01 6e 01 01 73 00 01 02", model_hex()),
    );
}

//! One side of a tracker's conversation, for the tests of both.

#![allow(dead_code, reason = "each test file uses a part of this")]
#![allow(clippy::unwrap_used)]

use format::{Digest, ModelId, Root};
use p2p::{Description, OfferId, TrackerClient, TrackerIn, TrackerOut, info_hash};
use serde_json::{Value, json};

pub const OFFER: &str = include_str!("../sdp/chromium-156-offer.sdp");
pub const ANSWER: &str = include_str!("../sdp/firefox-153-answer.sdp");

pub fn id() -> ModelId {
    ModelId {
        root: Root(Digest([0xc3; 32])),
        length: 3_000_000,
    }
}

pub fn offer() -> Description {
    Description::from_sdp(true, OFFER).unwrap()
}

pub fn answer() -> Description {
    Description::from_sdp(false, ANSWER).unwrap()
}

pub fn binary(bytes: [u8; 20]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

pub fn hash() -> String {
    binary(info_hash(id()))
}

pub struct Client {
    pub client: TrackerClient,
}

impl Client {
    pub fn new(left: u64) -> Client {
        Client {
            client: TrackerClient::new(id(), left, 7),
        }
    }

    pub fn put(&mut self, now_ms: u64, input: TrackerIn<'_>) -> Vec<TrackerOut> {
        self.client.handle(now_ms, input).unwrap();
        let mut out: Vec<_> = std::iter::from_fn(|| self.client.poll()).collect();
        out.retain(|out| !matches!(out, TrackerOut::WakeAt(_)));
        out
    }

    pub fn open(&mut self, now_ms: u64, name: u8) -> Vec<TrackerOut> {
        assert_eq!(self.put(now_ms, TrackerIn::Time), [TrackerOut::Connect]);
        self.put(now_ms, TrackerIn::Opened { name: [name; 20] })
    }

    pub fn offer(&mut self, now_ms: u64, number: u8) -> Vec<TrackerOut> {
        let (offer_id, nonce, offer) = (OfferId([number; 20]), [number; 24], &offer());
        self.put(
            now_ms,
            TrackerIn::Offer {
                offer_id,
                nonce,
                offer,
            },
        )
    }
}

pub fn sent(out: &[TrackerOut]) -> Vec<Value> {
    let texts = out.iter().filter_map(|out| match out {
        TrackerOut::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    });
    texts.collect()
}

#[track_caller]
pub fn only(out: Vec<TrackerOut>) -> Value {
    let [words] = &sent(&out)[..] else {
        panic!("{out:?}")
    };
    words.clone()
}

pub fn reply(interval: u64) -> String {
    json!({ "action": "announce", "interval": interval, "info_hash": hash(), "complete": 1,
        "incomplete": 2 })
    .to_string()
}

//! A client of a tracker, without a socket, against the words that npm `bittorrent-tracker` 11 and
//! `aquatic_ws` 0.9 send.

#![allow(clippy::unwrap_used)]

mod side;

use p2p::{OFFER_LIFE_MS, OfferId, TRACKER_TEXT_BYTES_MAX, TrackerIn, TrackerOut};
use serde_json::json;
use side::{Client, OFFER, binary, hash, id, offer, only, reply, sent};

#[test]
fn an_announcement_has_every_field_that_trackers_read() {
    let mut client = Client::new(5);
    client.put(0, TrackerIn::Seek(1));
    // The client is down until it is told the time, and up when it is told so.
    let out = client.put(1, TrackerIn::Opened { name: [0x80; 20] });
    assert_eq!(out, [TrackerOut::MakeOffers(1)]);
    let words = only(client.offer(2, 0xff));
    let sdp = words["offers"][0]["offer"]["sdp"].as_str().unwrap();
    assert!(
        sdp.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    );
    let expected = json!({
        "action": "announce", "info_hash": hash(), "peer_id": binary([0x80; 20]),
        "event": "started", "uploaded": 0, "downloaded": 0, "left": 5, "numwant": 1,
        "offers": [{ "offer_id": binary([0xff; 20]), "offer": { "type": "offer", "sdp": sdp } }],
    });
    assert_eq!(words, expected);
    let text = words.to_string();
    // Integers, as servers in other languages insist; each byte above 0x7f takes two of UTF-8.
    assert!(text.contains("\"left\":5,"), "{text}");
    assert_eq!(binary([0x80; 20]).len(), 40);
}

#[test]
fn what_is_not_for_us_is_passed_over() {
    let mut client = Client::new(5);
    client.open(0, 1);
    let sealed = p2p::seal(id(), OfferId([5; 20]), [1; 24], &offer()).unwrap();
    let passed_on = |hash: String, peer: [u8; 20], offer_id: String, sdp: &str| {
        json!({ "action": "announce", "info_hash": hash, "peer_id": binary(peer),
            "offer_id": offer_id, "offer": { "type": "offer", "sdp": sdp } })
        .to_string()
    };
    let right = passed_on(hash(), [2; 20], binary([5; 20]), &sealed);
    assert_eq!(client.put(1, TrackerIn::Text(&right)).len(), 1);
    for wrong in [
        passed_on(binary([9; 20]), [2; 20], binary([5; 20]), &sealed),
        passed_on(hash(), [1; 20], binary([5; 20]), &sealed),
        passed_on(hash(), [2; 20], "short".into(), &sealed),
        passed_on(hash(), [2; 20], "\u{100}".repeat(20), &sealed),
        passed_on(hash(), [2; 20], binary([6; 20]), &sealed),
        passed_on(hash(), [2; 20], binary([5; 20]), OFFER),
        // aquatic says this after an answer.
        json!({ "action": "announce", "info_hash": hash() }).to_string(),
        json!({ "action": "later", "info_hash": hash() }).to_string(),
        "[]".into(),
        "{".into(),
        " ".repeat(TRACKER_TEXT_BYTES_MAX + 1),
    ] {
        assert_eq!(client.put(2, TrackerIn::Text(&wrong)), [], "{wrong:.200}");
    }
    // A flood of sound offers costs nothing after the first few.
    let heard: usize = (0..100)
        .map(|_| client.put(3, TrackerIn::Text(&right)).len())
        .sum();
    assert!(heard < 20, "{heard}");
}

#[test]
fn failures_warnings_and_intervals_are_heard() {
    let mut client = Client::new(5);
    client.open(0, 1);
    let failure =
        json!({ "action": "announce", "failure reason": "no\nroom", "info_hash": hash() });
    let refused = client.put(1, TrackerIn::Text(&failure.to_string()));
    assert_eq!(refused, [TrackerOut::Refused("noroom".into())]);
    // As the npm server says it for what it cannot read: no action, no info hash.
    let bare = client.put(
        2,
        TrackerIn::Text("{\"failure reason\":\"invalid info_hash\"}"),
    );
    assert_eq!(bare, [TrackerOut::Refused("invalid info_hash".into())]);
    let warning = json!({ "action": "announce", "warning message": "slow", "interval": 60,
        "complete": 0, "incomplete": 1, "info_hash": hash() });
    let warned = client.put(3, TrackerIn::Text(&warning.to_string()));
    assert_eq!(warned[0], TrackerOut::Warned("slow".into()));
    assert_eq!(
        warned[1],
        TrackerOut::Counts {
            complete: Some(0),
            incomplete: Some(1)
        }
    );
    let scrape = json!({ "action": "scrape", "files": { hash(): { "complete": 3, "incomplete": 4,
        "downloaded": 5 } }, "flags": { "min_request_interval": 600 } });
    let counts = client.put(4, TrackerIn::Text(&scrape.to_string()));
    assert_eq!(
        counts,
        [TrackerOut::Counts {
            complete: Some(3),
            incomplete: Some(4)
        }]
    );
    // A refusal is an answer, too: the next announcement is one interval after it.
    assert_eq!(client.put(119_999, TrackerIn::Time), []);
    let again = only(client.put(120_003, TrackerIn::Time));
    assert_eq!(again["event"], "update");
    client.put(120_004, TrackerIn::Text(&reply(30)));
    // The interval it named before is kept to once; then the new one.
    let again = only(client.put(180_003, TrackerIn::Time));
    assert_eq!(again["event"], "update");
    client.put(180_004, TrackerIn::Text(&reply(30)));
    assert_eq!(client.put(210_002, TrackerIn::Time), []);
    assert_eq!(only(client.put(210_003, TrackerIn::Time))["left"], 5);
}

#[test]
fn a_lost_line_is_taken_up_again_later_and_later_under_another_name() {
    let mut client = Client::new(5);
    let mut now = 0;
    let mut waits = Vec::new();
    assert_eq!(client.put(now, TrackerIn::Time), [TrackerOut::Connect]);
    for _ in 0..12 {
        client.put(now, TrackerIn::Closed);
        let lost = now;
        while client.put(now, TrackerIn::Time) != [TrackerOut::Connect] {
            now += 100;
        }
        waits.push(now - lost);
    }
    assert!(waits[0] >= 2_000 && waits[0] <= 4_100, "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= 600_100), "{waits:?}");
    assert!(waits[11] >= 300_000, "{waits:?}");
    let first = only(client.put(now, TrackerIn::Opened { name: [1; 20] }));
    client.put(now, TrackerIn::Text(&reply(120)));
    client.put(now, TrackerIn::Closed);
    let back = now + 4_100;
    assert_eq!(
        client.put(back, TrackerIn::Time),
        [TrackerOut::Connect],
        "a reply ends the waiting"
    );
    let second = only(client.put(back, TrackerIn::Opened { name: [2; 20] }));
    assert_eq!(first["event"], "started");
    assert_eq!(second["event"], "started");
    assert_ne!(first["peer_id"], second["peer_id"]);
}

#[test]
fn offers_end_and_a_silent_tracker_is_left() {
    let mut client = Client::new(5);
    client.put(0, TrackerIn::Seek(2));
    client.put(0, TrackerIn::Opened { name: [1; 20] });
    client.offer(1, 1);
    client.offer(2, 2);
    client.put(3, TrackerIn::Text(&reply(120)));
    let out = client.put(2 + OFFER_LIFE_MS, TrackerIn::Time);
    let expired: Vec<_> = out
        .iter()
        .filter(|out| matches!(out, TrackerOut::Expired(_)))
        .collect();
    assert_eq!(expired.len(), 2);
    assert!(out.contains(&TrackerOut::MakeOffers(2)), "{out:?}");
    // Offers that are never made do not hold up an announcement.
    let out = client.put(2 + OFFER_LIFE_MS + 6_000, TrackerIn::Time);
    assert_eq!(sent(&out)[0]["offers"], json!([]));
    let out = client.put(2 + OFFER_LIFE_MS + 40_000, TrackerIn::Time);
    assert!(out.contains(&TrackerOut::Close), "{out:?}");
}

/// Who comes first finds nobody, and whoever comes next must not wait until new offers are made.
#[test]
fn offers_that_nobody_was_there_for_are_announced_again() {
    let counts = |others: u32| {
        json!({ "action": "announce", "interval": 120, "info_hash": hash(), "complete": 0,
            "incomplete": others + 1 })
        .to_string()
    };
    let mut client = Client::new(5);
    client.put(0, TrackerIn::Seek(3));
    client.put(0, TrackerIn::Time);
    client.put(0, TrackerIn::Opened { name: [1; 20] });
    client.offer(0, 1);
    client.offer(0, 2);
    let first = only(client.offer(0, 3))["offers"].clone();
    assert_eq!(first.as_array().unwrap().len(), 3);
    client.put(1, TrackerIn::Text(&counts(0)));
    let second = client.put(10_000, TrackerIn::Time);
    assert_eq!(only(second)["offers"], first);
    // One peer has come and been given the first.
    client.put(10_001, TrackerIn::Text(&counts(1)));
    let third = client.put(30_000, TrackerIn::Time);
    let rest = &first.as_array().unwrap()[1..];
    assert_eq!(only(third)["offers"], json!(rest));
    // They do not live longer for it.
    let mut ended = client.put(OFFER_LIFE_MS, TrackerIn::Time);
    ended.retain(|out| matches!(out, TrackerOut::Expired(_)));
    assert_eq!(ended.len(), 3);
}

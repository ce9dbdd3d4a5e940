//! Both sides of the tracker protocol against each other, without sockets, and against the words
//! that npm `bittorrent-tracker` 11 and `aquatic_ws` 0.9 send.

#![allow(clippy::unwrap_used)]

use format::{Digest, ModelId, Root};
use p2p::{
    Description, OFFER_LIFE_MS, OfferId, PeerId, Progress, SocketId, TRACKER_TEXT_BYTES_MAX,
    TrackerClient, TrackerIn, TrackerOut, TrackerServer, TrackerServerOut, info_hash,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const OFFER: &str = include_str!("sdp/chromium-156-offer.sdp");
const ANSWER: &str = include_str!("sdp/firefox-153-answer.sdp");

fn id() -> ModelId {
    ModelId {
        root: Root(Digest([0xc3; 32])),
        length: 3_000_000,
    }
}

fn offer() -> Description {
    Description::from_sdp(true, OFFER).unwrap()
}

fn answer() -> Description {
    Description::from_sdp(false, ANSWER).unwrap()
}

fn binary(bytes: [u8; 20]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn hash() -> String {
    binary(info_hash(id()))
}

struct Client {
    client: TrackerClient,
}

impl Client {
    fn new(left: u64) -> Client {
        Client {
            client: TrackerClient::new(id(), left, 7),
        }
    }

    fn put(&mut self, now_ms: u64, input: TrackerIn<'_>) -> Vec<TrackerOut> {
        self.client.handle(now_ms, input).unwrap();
        let mut out: Vec<_> = std::iter::from_fn(|| self.client.poll()).collect();
        out.retain(|out| !matches!(out, TrackerOut::WakeAt(_)));
        out
    }

    fn open(&mut self, now_ms: u64, name: u8) -> Vec<TrackerOut> {
        assert_eq!(self.put(now_ms, TrackerIn::Time), [TrackerOut::Connect]);
        self.put(now_ms, TrackerIn::Opened { name: [name; 20] })
    }

    fn offer(&mut self, now_ms: u64, number: u8) -> Vec<TrackerOut> {
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

fn sent(out: &[TrackerOut]) -> Vec<Value> {
    let texts = out.iter().filter_map(|out| match out {
        TrackerOut::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    });
    texts.collect()
}

#[track_caller]
fn only(out: Vec<TrackerOut>) -> Value {
    let [words] = &sent(&out)[..] else {
        panic!("{out:?}")
    };
    words.clone()
}

fn reply(interval: u64) -> String {
    json!({ "action": "announce", "interval": interval, "info_hash": hash(), "complete": 1,
        "incomplete": 2 })
    .to_string()
}

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
fn two_clients_meet_at_a_server_and_it_learns_no_address() {
    let mut server = TrackerServer::new(1);
    let (seeder_socket, leecher_socket) = (SocketId(1), SocketId(2));
    server.opened(0, seeder_socket);
    server.opened(0, leecher_socket);
    let mut seeder = Client::new(0);
    let mut leecher = Client::new(9);
    let mut wire = String::new();
    let mut carry = |server: &mut TrackerServer, from: SocketId, out: &[TrackerOut]| {
        for out in out {
            if let TrackerOut::Send(text) = out {
                wire.push_str(text);
                server.text(5, from, text);
            }
        }
        let out: Vec<_> = std::iter::from_fn(|| server.poll()).collect();
        out
    };
    let text_to = |out: &[TrackerServerOut], whom: SocketId| -> Vec<String> {
        let texts = out.iter().filter_map(|out| match out {
            TrackerServerOut::Send { to, text } if *to == whom => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    };

    let out = seeder.open(0, 1);
    let told = carry(&mut server, seeder_socket, &out);
    let counts = seeder.put(6, TrackerIn::Text(&text_to(&told, seeder_socket)[0]));
    assert_eq!(
        counts,
        [TrackerOut::Counts {
            complete: Some(1),
            incomplete: Some(0)
        }]
    );

    leecher.put(0, TrackerIn::Seek(2));
    leecher.put(0, TrackerIn::Opened { name: [2; 20] });
    leecher.offer(1, 11);
    let out = leecher.offer(2, 12);
    let told = carry(&mut server, leecher_socket, &out);
    // One seeder: one of the two offers reaches it.
    let [offered] = &text_to(&told, seeder_socket)[..] else {
        panic!("{told:?}")
    };
    let heard = seeder.put(7, TrackerIn::Text(offered));
    let [
        TrackerOut::Offer {
            from,
            offer_id,
            offer: heard_offer,
        },
    ] = &heard[..]
    else {
        panic!("{heard:?}")
    };
    assert_eq!((from, heard_offer), (&PeerId([2; 20]), &offer()));

    let (to, offer_id, nonce) = (*from, *offer_id, [3; 24]);
    let out = seeder.put(
        8,
        TrackerIn::Answer {
            to,
            offer_id,
            nonce,
            answer: &answer(),
        },
    );
    assert_eq!(
        sent(&out)[0]["left"],
        0,
        "an answer says that this is a seeder"
    );
    let told = carry(&mut server, seeder_socket, &out);
    let [answered] = &text_to(&told, leecher_socket)[..] else {
        panic!("{told:?}")
    };
    let heard = leecher.put(9, TrackerIn::Text(answered));
    let from = PeerId([1; 20]);
    assert_eq!(
        heard,
        [TrackerOut::Answer {
            from,
            offer_id,
            answer: answer()
        }]
    );
    // A second answer to the same offer is nobody's.
    assert_eq!(leecher.put(9, TrackerIn::Text(answered)), []);

    let out = leecher.put(
        10,
        TrackerIn::Progress(Progress {
            left: 0,
            uploaded: 1,
            downloaded: 9,
        }),
    );
    assert_eq!(sent(&out)[0]["event"], "completed");
    let told = carry(&mut server, leecher_socket, &out);
    let counts: Value = serde_json::from_str(&text_to(&told, leecher_socket)[0]).unwrap();
    assert_eq!(
        (&counts["complete"], &counts["incomplete"]),
        (&json!(2), &json!(0))
    );

    let out = seeder.put(11, TrackerIn::Stop);
    assert_eq!(out.last(), Some(&TrackerOut::Close));
    let told = carry(&mut server, seeder_socket, &out);
    let counts: Value = serde_json::from_str(&text_to(&told, seeder_socket)[0]).unwrap();
    assert_eq!(
        (&counts["complete"], &counts["incomplete"]),
        (&json!(1), &json!(0))
    );
    for private in ["192.0.2.2", "fd00", "44220", "candidate", "zIOw"] {
        assert!(!wire.contains(private), "{private}");
    }
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

/// A raw socket at a server.
fn told(server: &mut TrackerServer, words: &Value) -> Vec<Value> {
    server.text(1, SocketId(1), &words.to_string());
    let out = std::iter::from_fn(|| server.poll()).filter_map(|out| match out {
        TrackerServerOut::Send {
            to: SocketId(1),
            text,
        } => serde_json::from_str(&text).ok(),
        _ => None,
    });
    out.collect()
}

#[test]
fn a_server_says_what_is_wrong_and_ignores_what_it_does_not_know() {
    let mut server = TrackerServer::new(1);
    server.opened(0, SocketId(1));
    let short = json!({ "action": "announce", "info_hash": "abc", "peer_id": binary([1; 20]) });
    let refused = told(&mut server, &short);
    assert_eq!(refused[0]["action"], "announce");
    assert!(refused[0]["failure reason"].is_string());
    assert_eq!(
        told(&mut server, &json!({ "action": "later" })),
        [] as [Value; 0]
    );
    assert!(told(&mut server, &json!([]))[0]["failure reason"].is_string());
    let scrape = json!({ "action": "scrape", "info_hash": hash() });
    let expected = json!({ "action": "scrape", "flags": { "min_request_interval": 120 },
        "files": { hash(): { "complete": 0, "incomplete": 0, "downloaded": 0 } } });
    assert_eq!(told(&mut server, &scrape), [expected]);
    // Nobody gets the list of everything.
    assert_eq!(
        told(&mut server, &json!({ "action": "scrape" }))[0]["files"],
        json!({})
    );
    // JavaScript says null for infinity.
    let unknown = json!({ "action": "announce", "info_hash": hash(), "peer_id": binary([1; 20]),
        "left": null, "numwant": 50.0, "more": true });
    assert_eq!(told(&mut server, &unknown)[0]["incomplete"], 1);
    server.opened(0, SocketId(2));
    server.text(1, SocketId(2), &unknown.to_string());
    let TrackerServerOut::Send {
        to: SocketId(2),
        text,
    } = server.poll().unwrap()
    else {
        panic!()
    };
    assert!(text.contains("the name is in use"), "{text}");
}

#[test]
fn a_server_forgets_the_silent_and_throws_out_the_loud() {
    let mut server = TrackerServer::new(1);
    let announce = |peer: u8| json!({ "action": "announce", "info_hash": hash(), "peer_id": binary([peer; 20]), "left": 0 });
    server.opened(0, SocketId(1));
    server.opened(0, SocketId(2));
    server.text(0, SocketId(2), &announce(2).to_string());
    told(&mut server, &announce(1));
    server.text(200_000, SocketId(2), &announce(2).to_string());
    server.time(271_000);
    let out: Vec<_> = std::iter::from_fn(|| server.poll()).collect();
    assert!(
        out.contains(&TrackerServerOut::Close(SocketId(1))),
        "{out:?}"
    );
    assert!(
        !out.contains(&TrackerServerOut::Close(SocketId(2))),
        "{out:?}"
    );
    server.opened(271_000, SocketId(1));
    let scrape = json!({ "action": "scrape", "info_hash": hash() });
    assert_eq!(
        told(&mut server, &scrape)[0]["files"][hash()]["complete"],
        1
    );
    for _ in 0..300 {
        server.text(272_000, SocketId(2), &announce(2).to_string());
    }
    let out: Vec<_> = std::iter::from_fn(|| server.poll()).collect();
    assert!(out.contains(&TrackerServerOut::Close(SocketId(2))));
    assert_eq!(
        told(&mut server, &scrape)[0]["files"][hash()]["complete"],
        0
    );
}

proptest! {
    /// Whatever is said to either side, it goes on and answers in JSON.
    #[test]
    fn strangers_never_break_a_side(
        texts in proptest::collection::vec(
            ("(announce|scrape|x)", "[a-z]{18,22}", "[\\x00-\\xff]{20}", any::<Option<f64>>(), "\\PC{0,40}"),
            1..20,
        ),
    ) {
        let mut server = TrackerServer::new(1);
        let mut client = Client::new(5);
        server.opened(0, SocketId(1));
        client.open(0, 1);
        for (action, hash_text, peer, left, sdp) in texts {
            let words = json!({ "action": action, "info_hash": hash_text, "peer_id": peer,
                "left": left, "offers": [{ "offer_id": peer, "offer": { "type": "offer", "sdp": sdp } }],
                "offer_id": peer, "answer": { "type": "answer", "sdp": sdp }, "to_peer_id": peer });
            told(&mut server, &words);
            server.text(1, SocketId(1), &sdp);
            client.put(1, TrackerIn::Text(&words.to_string()));
            client.put(1, TrackerIn::Text(&sdp));
        }
    }
}

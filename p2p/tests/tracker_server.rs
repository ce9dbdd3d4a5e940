//! A tracker without sockets: two clients that meet there, and what it does about others.

#![allow(clippy::unwrap_used)]

mod side;

use p2p::{PeerId, Progress, SocketId, TrackerIn, TrackerOut, TrackerServer, TrackerServerOut};
use proptest::prelude::*;
use serde_json::{Value, json};
use side::{Client, answer, binary, hash, offer, sent};

/// A server, two clients, and all that was said on the way there.
struct Post {
    server: TrackerServer,
    wire: String,
}

const SEEDER: SocketId = SocketId(1);
const LEECHER: SocketId = SocketId(2);

impl Post {
    /// A server with a socket of either client.
    fn with_two() -> Post {
        let mut server = TrackerServer::new(1);
        server.opened(0, SEEDER);
        server.opened(0, LEECHER);
        Post {
            server,
            wire: String::new(),
        }
    }

    /// Gives the server what a client sends; gives what the server then sends to one of them.
    fn carry(&mut self, from: SocketId, out: &[TrackerOut], to: SocketId) -> String {
        for out in out {
            if let TrackerOut::Send(text) = out {
                self.wire.push_str(text);
                self.server.text(5, from, text);
            }
        }
        let told: Vec<_> = std::iter::from_fn(|| self.server.poll()).collect();
        let texts = told.iter().filter_map(|out| match out {
            TrackerServerOut::Send { to: whom, text } if *whom == to => Some(text),
            _ => None,
        });
        let texts: Vec<&String> = texts.collect();
        let [text] = texts[..] else {
            panic!("{told:?}")
        };
        text.clone()
    }
}

/// How many have all of it, and how many do not.
fn counts(text: &str) -> [u64; 2] {
    let words: Value = serde_json::from_str(text).unwrap();
    ["complete", "incomplete"].map(|name| words[name].as_u64().unwrap())
}

#[test]
fn two_clients_meet_at_a_server_and_it_learns_no_address() {
    let mut post = Post::with_two();
    let (mut seeder, mut leecher) = (Client::new(0), Client::new(9));
    let out = seeder.open(0, 1);
    assert_eq!(counts(&post.carry(SEEDER, &out, SEEDER)), [1, 0]);

    leecher.put(0, TrackerIn::Seek(2));
    leecher.put(0, TrackerIn::Opened { name: [2; 20] });
    leecher.offer(1, 11);
    let out = leecher.offer(2, 12);
    // One seeder: one of the two offers reaches it.
    let offered = post.carry(LEECHER, &out, SEEDER);
    let heard = seeder.put(7, TrackerIn::Text(&offered));
    let [
        TrackerOut::Offer {
            from: to,
            offer_id,
            offer: heard,
        },
    ] = &heard[..]
    else {
        panic!("{heard:?}")
    };
    assert_eq!((to, heard), (&PeerId([2; 20]), &offer()));
    let (to, offer_id, nonce, answer) = (*to, *offer_id, [3; 24], &answer());
    let out = seeder.put(
        8,
        TrackerIn::Answer {
            to,
            offer_id,
            nonce,
            answer,
        },
    );
    assert_eq!(
        sent(&out)[0]["left"],
        0,
        "an answer says that this is a seeder"
    );
    let answered = post.carry(SEEDER, &out, LEECHER);
    let heard = leecher.put(9, TrackerIn::Text(&answered));
    let from = PeerId([1; 20]);
    assert_eq!(
        heard,
        [TrackerOut::Answer {
            from,
            offer_id,
            answer: answer.clone()
        }]
    );
    // A second answer to the same offer is nobody's.
    assert_eq!(leecher.put(9, TrackerIn::Text(&answered)), []);

    for private in ["192.0.2.2", "fd00", "44220", "candidate", "zIOw"] {
        assert!(!post.wire.contains(private), "{private}");
    }
}

#[test]
fn a_server_counts_who_completes_and_who_leaves() {
    let mut post = Post::with_two();
    let (mut seeder, mut leecher) = (Client::new(0), Client::new(9));
    let out = seeder.open(0, 1);
    assert_eq!(counts(&post.carry(SEEDER, &out, SEEDER)), [1, 0]);
    let out = leecher.open(0, 2);
    assert_eq!(counts(&post.carry(LEECHER, &out, LEECHER)), [1, 1]);
    let progress = Progress {
        left: 0,
        uploaded: 1,
        downloaded: 9,
    };
    let out = leecher.put(10, TrackerIn::Progress(progress));
    assert_eq!(sent(&out)[0]["event"], "completed");
    assert_eq!(counts(&post.carry(LEECHER, &out, LEECHER)), [2, 0]);
    let out = seeder.put(11, TrackerIn::Stop);
    assert_eq!(out.last(), Some(&TrackerOut::Close));
    assert_eq!(counts(&post.carry(SEEDER, &out, SEEDER)), [1, 0]);
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

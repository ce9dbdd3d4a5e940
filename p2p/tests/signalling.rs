//! What peers must know of each other: read from what real engines wrote, and carried unharmed.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, Ipv6Addr};

use format::{Digest, ModelId, Root};
use p2p::{
    Address, CANDIDATES_MAX, Candidate, CandidateKind, Description, OfferId, P2pError, Qr, Role,
    SDP_BYTES_MAX, SignalFault, answer_code, offer_code, offer_tag, open, read_code, seal,
};
use proptest::prelude::*;

/// Written by the engines that the files are named after, with CR LF made LF.
const CHROMIUM_OFFER: &str = include_str!("sdp/chromium-156-offer.sdp");
const CHROMIUM_ANSWER: &str = include_str!("sdp/chromium-156-answer.sdp");
const CHROMIUM_NAMES_OFFER: &str = include_str!("sdp/chromium-156-names-offer.sdp");
const CHROMIUM_NAMES_ANSWER: &str = include_str!("sdp/chromium-156-names-answer.sdp");
const FIREFOX_OFFER: &str = include_str!("sdp/firefox-153-offer.sdp");
const FIREFOX_ANSWER: &str = include_str!("sdp/firefox-153-answer.sdp");

const OFFER: OfferId = OfferId([7; 20]);
const NONCE: [u8; 24] = [9; 24];

fn id() -> ModelId {
    ModelId {
        root: Root(Digest(std::array::from_fn(|index| index as u8))),
        length: 98_362_432,
    }
}

fn other_id() -> ModelId {
    ModelId {
        length: 98_362_431,
        ..id()
    }
}

fn host(address: Address, port: u16) -> Candidate {
    Candidate {
        kind: CandidateKind::Host,
        address,
        port,
    }
}

fn fault(fault: SignalFault) -> P2pError {
    P2pError::Signal(fault)
}

fn field(name: &'static str) -> P2pError {
    fault(SignalFault::Field { name })
}

#[test]
fn what_chromium_writes_is_read() {
    let offer = Description::from_sdp(true, CHROMIUM_OFFER).unwrap();
    assert_eq!(offer.role, Role::Offer);
    assert_eq!(offer.ufrag, "zIOw");
    assert_eq!(offer.password, "ZuklklyQ5Od6WoOMjv+P9s6q");
    assert_eq!(offer.fingerprint[..3], [0x79, 0x54, 0x52]);
    let v6: Ipv6Addr = "fd00::2".parse().unwrap();
    let candidates = [
        host(Address::V4(Ipv4Addr::new(192, 0, 2, 2)), 44220),
        host(Address::V6(v6), 59794),
    ];
    assert_eq!(offer.candidates, candidates);
    let answer = Description::from_sdp(false, CHROMIUM_ANSWER).unwrap();
    assert_eq!(answer.role, Role::ActiveAnswer);
}

#[test]
fn what_firefox_writes_is_read_without_its_tcp() {
    let offer = Description::from_sdp(true, FIREFOX_OFFER).unwrap();
    assert_eq!(offer.ufrag, "5eec2e99");
    assert_eq!(offer.fingerprint[..3], [0xbc, 0xa3, 0xb7]);
    let first = [
        0x1d, 0xf5, 0x24, 0x2a, 0xf4, 0xd4, 0x4b, 0x27, 0xb2, 0xc9, 0x75, 0xf8, 0x6b, 0x00, 0x85,
        0xb3,
    ];
    assert_eq!(offer.candidates.len(), 2);
    assert_eq!(offer.candidates[0], host(Address::Local(first), 43321));
    let answer = Description::from_sdp(false, FIREFOX_ANSWER).unwrap();
    assert_eq!(answer.role, Role::ActiveAnswer);
}

#[test]
fn every_engines_words_survive_every_form() {
    for (is_offer, sdp) in [
        (true, CHROMIUM_OFFER),
        (false, CHROMIUM_ANSWER),
        (true, CHROMIUM_NAMES_OFFER),
        (false, CHROMIUM_NAMES_ANSWER),
        (true, FIREFOX_OFFER),
        (false, FIREFOX_ANSWER),
    ] {
        let description = Description::from_sdp(is_offer, sdp).unwrap();
        let again = Description::from_sdp(is_offer, &description.to_sdp().unwrap());
        assert_eq!(again.unwrap(), description);
        let code = match is_offer {
            true => offer_code(id(), &description).unwrap(),
            false => answer_code(id(), [1, 2, 3, 4], &description).unwrap(),
        };
        assert!(code.len() <= 220, "{} characters", code.len());
        let read = read_code(id(), &code).unwrap();
        assert_eq!(read.description, description);
        assert_eq!(read.answers, (!is_offer).then_some([1, 2, 3, 4]));
        let sealed = seal(id(), OFFER, NONCE, &description).unwrap();
        assert_eq!(open(id(), is_offer, OFFER, &sealed), Ok(description));
    }
}

/// The SDP that a browser gets is ours to the letter: nothing else of a stranger's reaches it.
#[test]
fn the_text_is_fixed() {
    let description = Description {
        role: Role::PassiveAnswer,
        ufrag: "abcd".into(),
        password: "p".repeat(22),
        fingerprint: [0xa5; 32],
        candidates: vec![
            host(Address::V4(Ipv4Addr::new(192, 0, 2, 2)), 1),
            host(Address::Local(std::array::from_fn(|index| index as u8)), 2),
            Candidate {
                kind: CandidateKind::Reflexive,
                address: Address::V6("2001:db8::1".parse().unwrap()),
                port: 3,
            },
        ],
    };
    let expected = "v=0\n\
        o=- 1 1 IN IP4 127.0.0.1\n\
        s=-\n\
        t=0 0\n\
        a=group:BUNDLE 0\n\
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel\n\
        c=IN IP4 0.0.0.0\n\
        a=ice-ufrag:abcd\n\
        a=ice-pwd:pppppppppppppppppppppp\n\
        a=fingerprint:sha-256 A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:A5:\
        A5:A5:A5:A5:A5:A5:A5:A5:A5:A5\n\
        a=setup:passive\n\
        a=mid:0\n\
        a=sendrecv\n\
        a=sctp-port:5000\n\
        a=max-message-size:65536\n\
        a=candidate:1 1 udp 2130706431 192.0.2.2 1 typ host\n\
        a=candidate:2 1 udp 2130706175 00010203-0405-0607-0809-0a0b0c0d0e0f.local 2 typ host\n\
        a=candidate:3 1 udp 1694498303 2001:db8::1 3 typ srflx raddr 0.0.0.0 rport 0\n\
        a=end-of-candidates\n";
    assert_eq!(
        description.to_sdp().unwrap().replace("\r\n", "\n"),
        expected
    );
}

#[test]
fn wrong_descriptions_are_refused_by_their_line() {
    let refuse = |from: &str, to: &str, expected: P2pError| {
        assert!(CHROMIUM_OFFER.contains(from), "{from}");
        let sdp = CHROMIUM_OFFER.replace(from, to);
        assert_eq!(Description::from_sdp(true, &sdp), Err(expected), "{to}");
    };
    refuse("a=mid:0", "a=mid:data", field("mid"));
    refuse("a=sctp-port:5000", "a=sctp-port:5001", field("sctp-port"));
    refuse(":262144", ":65535", field("max-message-size"));
    refuse(
        "m=application",
        "m=audio 9 RTP/AVP 0\nm=application",
        field("m"),
    );
    refuse("webrtc-datachannel", "other", field("m"));
    refuse("a=ice-ufrag:zIOw", "a=ice-ufrag:z I", field("ufrag"));
    refuse("a=ice-ufrag:zIOw", "", field("ice-ufrag"));
    refuse("a=ice-pwd:Zuk", "a=ice-pwd:", field("password"));
    refuse("sha-256 79", "sha-1 79", field("fingerprint"));
    refuse("sha-256 79", "sha-256 79:79", field("fingerprint"));
    refuse("sha-256 79", "sha-256 é", field("fingerprint"));
    refuse("a=setup:actpass", "a=setup:holdconn", field("setup"));
    let long = CHROMIUM_OFFER.to_owned() + &"a=x\n".repeat(SDP_BYTES_MAX / 4);
    assert_eq!(
        Description::from_sdp(true, &long),
        Err(fault(SignalFault::TooLong))
    );
    let offered_as_answer = Description::from_sdp(false, CHROMIUM_OFFER);
    assert_eq!(offered_as_answer, Err(field("setup")));
}

#[test]
fn addresses_to_which_nobody_should_send_are_passed_over() {
    for address in [
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.251",
        "ff02::fb",
        "::",
        "a.local",
        "x",
    ] {
        let sdp = CHROMIUM_OFFER.replace("192.0.2.2 44220 typ", &format!("{address} 44220 typ"));
        let offer = Description::from_sdp(true, &sdp).unwrap();
        assert_eq!(offer.candidates.len(), 1, "{address}");
    }
    let many: String = (1..=40)
        .map(|port| format!("a=candidate:1 1 udp 1 192.0.2.9 {port} typ host\n"))
        .collect();
    let offer = Description::from_sdp(true, &(CHROMIUM_OFFER.to_owned() + &many)).unwrap();
    assert_eq!(offer.candidates.len(), CANDIDATES_MAX);
}

#[test]
fn debug_and_errors_hold_no_address() {
    let offer = Description::from_sdp(true, CHROMIUM_OFFER).unwrap();
    let text = format!(
        "{offer:?} {:?} {:#?}",
        offer.candidates,
        read_code(id(), &offer_code(id(), &offer).unwrap())
    );
    for private in ["192.0.2.2", "fd00", "44220", "zIOw", "ZuklklyQ5Od6"] {
        assert!(!text.contains(private), "{text}");
    }
}

#[test]
fn a_code_says_what_is_wrong_with_it() {
    let offer = Description::from_sdp(true, CHROMIUM_OFFER).unwrap();
    let code = offer_code(id(), &offer).unwrap();
    let wrapped = format!(" {}\n{} ", &code[..40], &code[40..]);
    assert_eq!(read_code(id(), &wrapped).unwrap().description, offer);
    let other = if code.as_bytes()[30] == b'A' {
        'B'
    } else {
        'A'
    };
    let damaged = format!("{}{other}{}", &code[..30], &code[31..]);
    assert_eq!(read_code(id(), &damaged), Err(fault(SignalFault::Damaged)));
    assert_eq!(
        read_code(id(), &code[..code.len() - 4]),
        Err(fault(SignalFault::Damaged))
    );
    assert_eq!(
        read_code(other_id(), &code),
        Err(fault(SignalFault::OtherModel))
    );
    for nothing in ["", "hello there", "AAAA", &"A".repeat(60)] {
        assert_eq!(
            read_code(id(), nothing),
            Err(fault(SignalFault::NotACode)),
            "{nothing}"
        );
    }
    let long = "A".repeat(10_000);
    assert_eq!(read_code(id(), &long), Err(fault(SignalFault::TooLong)));

    let answer = Description::from_sdp(false, FIREFOX_ANSWER).unwrap();
    let reply = answer_code(id(), offer_tag(&code).unwrap(), &answer).unwrap();
    assert_eq!(
        read_code(id(), &reply).unwrap().answers,
        Some(offer_tag(&code).unwrap())
    );
}

#[test]
fn only_who_knows_the_model_opens_a_seal_and_only_as_what_it_was() {
    let offer = Description::from_sdp(true, CHROMIUM_OFFER).unwrap();
    let sealed = seal(id(), OFFER, NONCE, &offer).unwrap();
    let closed = Err(fault(SignalFault::NotSealed));
    assert_eq!(open(other_id(), true, OFFER, &sealed), closed);
    assert_eq!(open(id(), false, OFFER, &sealed), closed);
    assert_eq!(open(id(), true, OfferId([8; 20]), &sealed), closed);
    assert_eq!(open(id(), true, OFFER, &sealed[..sealed.len() - 4]), closed);
    assert_eq!(open(id(), true, OFFER, CHROMIUM_OFFER), closed);
    assert_eq!(open(id(), true, OFFER, ""), closed);
}

/// Made with Python's `cryptography` (HKDF) and PyNaCl's bindings of libsodium
/// (XChaCha20-Poly1305) from the compact form of `sdp/chromium-156-offer.sdp`.
#[test]
fn the_seal_is_the_one_that_other_libraries_make() {
    let offer = Description::from_sdp(true, CHROMIUM_OFFER).unwrap();
    let expected = include_str!("sdp/chromium-156-offer.sealed").trim();
    assert_eq!(seal(id(), OFFER, NONCE, &offer).unwrap(), expected);
}

/// Drawn by `qrencode`'s rules: the three finders and their light frame, at least.
#[test]
fn a_code_can_be_drawn() {
    let offer = Description::from_sdp(true, FIREFOX_OFFER).unwrap();
    let qr = Qr::new(&offer_code(id(), &offer).unwrap()).unwrap();
    let finder = |x: usize, y: usize| {
        (0..7).all(|at| qr.is_dark(x + at, y) && qr.is_dark(x, y + at) && qr.is_dark(x + 6, y + at))
    };
    let far = qr.width() - 4 - 7;
    assert!(finder(4, 4) && finder(far, 4) && finder(4, far));
    assert!(!finder(far, far));
    assert!((0..qr.width()).all(|at| !qr.is_dark(at, 3) && !qr.is_dark(3, at)));
    let lines: Vec<String> = qr.to_terminal().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), qr.width().div_ceil(2));
    assert!(lines.iter().all(|line| line.chars().count() == qr.width()));
    assert_eq!(
        Qr::new(&"a".repeat(5000)).err(),
        Some(fault(SignalFault::TooLong))
    );
}

proptest! {
    #[test]
    fn strangers_texts_never_panic(text in "\\PC{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _sdp = Description::from_sdp(true, &text);
        let _code = read_code(id(), &text);
        let _sealed = open(id(), true, OFFER, &text);
        let lines = String::from_utf8_lossy(&bytes);
        let _lines = Description::from_sdp(false, &format!("{CHROMIUM_ANSWER}{lines}"));
    }
}

//! Invites as text: the form, its limits, and every refusal.

#![allow(clippy::unwrap_used)]

use format::{Digest, ModelId, Root};
use p2p::P2pError::*;
use p2p::{ADDRESS_BYTES_MAX, ADDRESSES_MAX, INVITE_BYTES_MAX, Invite, LENGTH_MAX, P2pError};
use proptest::prelude::*;

fn invite() -> Invite {
    Invite {
        id: ModelId {
            root: Root(Digest([0xab; 32])),
            length: 98_362_432,
        },
        name: "SmolLM2 135M & friends, 100 % né".into(),
        sources: vec![
            "https://example.org/m/a.slm?x=1&y=2#z".into(),
            "http://10.0.0.1:8/a".into(),
        ],
        trackers: vec!["wss://t.example.org/announce".into()],
        offer: None,
    }
}

fn root() -> String {
    "ab".repeat(32)
}

/// `rest` after a good root.
#[track_caller]
fn refuse(rest: &str, expected: P2pError) {
    assert_eq!(
        Invite::parse(&format!("slm1={}{rest}", root())),
        Err(expected),
        "{rest}"
    );
}

#[test]
fn the_text_is_fixed() {
    let expected = format!(
        "slm1={}&len=98362432&name=SmolLM2%20135M%20%26%20friends%2C%20100%20%25%20n%C3%A9\
         &src=https%3A%2F%2Fexample.org%2Fm%2Fa.slm%3Fx%3D1%26y%3D2%23z\
         &src=http%3A%2F%2F10.0.0.1%3A8%2Fa&tr=wss%3A%2F%2Ft.example.org%2Fannounce",
        root()
    );
    assert_eq!(invite().to_text().unwrap(), expected);
    assert_eq!(Invite::parse(&expected), Ok(invite()));
    assert_eq!(Invite::parse(&format!("#{expected}")), Ok(invite()));
    // RFC 3986, section 3.5: what a fragment may hold.
    assert!(
        expected.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte)
        })
    );
}

#[test]
fn text_that_a_program_half_decoded_is_read() {
    let text = format!(
        "slm1={}&tr=wss://t.example.org/announce&name=n\u{e9}+1&len=7&src=http://h/%61",
        root().to_uppercase()
    );
    let found = Invite::parse(&text).unwrap();
    assert_eq!(found.name, "né+1");
    assert_eq!(
        found.id,
        ModelId {
            length: 7,
            ..invite().id
        }
    );
    assert_eq!(found.sources, ["http://h/a"]);
    assert_eq!(found.trackers, ["wss://t.example.org/announce"]);
}

#[test]
fn what_is_no_invite() {
    for text in ["", "#", "slm2=00", "len=1", "/chat", "slm1"] {
        assert_eq!(Invite::parse(text), Err(NotAnInvite), "{text}");
    }
    let short = &root()[1..];
    for bad in ["", short, &format!("{short}g"), &format!("{}0", root())] {
        assert_eq!(
            Invite::parse(&format!("slm1={bad}&len=1&name=a")),
            Err(BadRoot),
            "{bad}"
        );
    }
}

#[test]
fn fields() {
    refuse("", MissingField { field: "len" });
    refuse("&len=1", MissingField { field: "name" });
    refuse("&name=a", MissingField { field: "len" });
    refuse("&len=1&len=1&name=a", DuplicateField { field: "len" });
    refuse("&len=1&name=a&name=b", DuplicateField { field: "name" });
    refuse("&len=1&name=a&exec=b", UnknownField { at: 83 });
    refuse("&len=1&name=a&", UnknownField { at: 83 });
    refuse("&len", UnknownField { at: 70 });
}

#[test]
fn lengths() {
    let over = (LENGTH_MAX + 1).to_string();
    for bad in [
        "",
        "0",
        "01",
        "+1",
        "-1",
        "1.0",
        "0x1",
        "%31",
        "18446744073709551616",
        &over,
    ] {
        refuse(&format!("&len={bad}&name=a"), BadLength);
    }
    assert!(Invite::parse(&format!("slm1={}&len={LENGTH_MAX}&name=a", root())).is_ok());
}

#[test]
fn names() {
    let long = "x".repeat(257);
    for bad in ["", "a%00", "%0A", "%C2%9B", &long] {
        refuse(&format!("&len=1&name={bad}"), BadName);
    }
    refuse("&len=1&name=%FF", NotUtf8 { field: "name" });
    for bad in ["a%", "a%4", "a%4g", "a%%41", "a b", "a\n"] {
        refuse(&format!("&len=1&name={bad}"), BadEscape { at: 82 });
    }
}

#[test]
fn addresses() {
    let long = format!("https://h/{}", "x".repeat(ADDRESS_BYTES_MAX));
    for bad in [
        "",
        "javascript:alert(1)",
        "data:,x",
        "file:///etc",
        "//h/a",
        "a.slm",
        "HTTPS://h/a",
        "https://",
        "https:///a",
        "https://?a",
        "wss://h",
        "https://h/a%20b",
        "https://h/%C3%A9",
        &long,
    ] {
        refuse(
            &format!("&len=1&name=a&src={bad}"),
            BadAddress {
                field: "src",
                index: 0,
            },
        );
    }
    let error = BadAddress {
        field: "tr",
        index: 1,
    };
    refuse("&len=1&name=a&tr=ws://h&tr=https://h", error);
    for (field, good) in [("src", "http://h"), ("tr", "ws://h")] {
        let many = format!("&{field}={good}").repeat(ADDRESSES_MAX + 1);
        let error = TooManyAddresses {
            field,
            max: ADDRESSES_MAX,
        };
        refuse(&format!("&len=1&name=a{many}"), error);
    }
}

#[test]
fn too_long_or_not_writable() {
    let text = format!("slm1={}&len=1&name={}", root(), "%41".repeat(2000));
    let (found, max) = (text.len(), INVITE_BYTES_MAX);
    assert_eq!(Invite::parse(&text), Err(TooLong { found, max }));
    // Each address is allowed; together they do not fit.
    let mut big = invite();
    big.sources = vec![format!("https://h/{}", "x".repeat(900)); 5];
    assert!(matches!(big.to_text(), Err(TooLong { .. })));
    let mut nameless = invite();
    nameless.name.clear();
    assert_eq!(nameless.to_text(), Err(BadName));
    let mut foreign = invite();
    foreign.trackers.push("udp://h".into());
    assert_eq!(
        foreign.to_text(),
        Err(BadAddress {
            field: "tr",
            index: 1
        })
    );
}

proptest! {
    #[test]
    fn any_valid_invite_round_trips(
        root in any::<[u8; 32]>(),
        length in 1..=LENGTH_MAX,
        name in "[^\\p{Cc}]{1,60}",
        sources in proptest::collection::vec("https?://[!-~&&[^/?#]][!-~]{0,40}", 0..=8),
        trackers in proptest::collection::vec("wss?://[!-~&&[^/?#]][!-~]{0,40}", 0..=8),
    ) {
        let id = ModelId { root: Root(Digest(root)), length };
        let invite = Invite { id, name, sources, trackers, offer: None };
        let text = invite.to_text().unwrap();
        prop_assert_eq!(Invite::parse(&text), Ok(invite));
    }

    /// What is read can be written and read again, whatever it was.
    #[test]
    fn arbitrary_text_never_panics(rest in "(&(len|name|src|tr|x)=[ -~é]{0,12}){0,5}") {
        if let Ok(invite) = Invite::parse(&format!("slm1={}{rest}", root())) {
            let again = Invite::parse(&invite.to_text().unwrap());
            prop_assert_eq!(again, Ok(invite));
        }
    }
}

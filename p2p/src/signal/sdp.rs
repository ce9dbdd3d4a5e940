//! Descriptions as SDP, the text that `RTCPeerConnection` reads and writes (RFC 8866, 8839, 8841).

use std::fmt::Write;

use super::{Address, CANDIDATES_MAX, Candidate, CandidateKind, Description, Role, SDP_BYTES_MAX};
use crate::{P2pError, SignalFault};

/// Every engine takes messages of this size; ours are never larger.
const MESSAGE_BYTES: u64 = 65_536;
const SCTP_PORT: &str = "5000";
/// The one media section; all engines call it so.
const MID: &str = "0";
/// Of the only component that a data channel has, highest first by kind (RFC 8445, 5.1.2.2).
const HOST_PREFERENCE: u32 = 126;
const REFLEXIVE_PREFERENCE: u32 = 100;
const RELAYED_PREFERENCE: u32 = 0;

impl Description {
    /// Takes what matters from a complete description of one data channel.
    pub fn from_sdp(is_offer: bool, sdp: &str) -> Result<Description, P2pError> {
        if sdp.len() > SDP_BYTES_MAX {
            return Err(SignalFault::TooLong.into());
        }
        let media = sdp.lines().filter(|line| line.starts_with("m="));
        let media: Vec<&str> = media.collect();
        let is_data = |line: &str| {
            line.starts_with("m=application ") && line.trim_end().ends_with(" webrtc-datachannel")
        };
        if !matches!(media[..], [only] if is_data(only)) {
            return Err(SignalFault::Field { name: "m" }.into());
        }
        let value = |name: &'static str| find(sdp, name);
        let need = |name| value(name).ok_or(P2pError::from(SignalFault::Field { name }));
        expect(value("mid"), MID, "mid")?;
        expect(value("sctp-port"), SCTP_PORT, "sctp-port")?;
        // Zero says "any size"; nothing said means 64 KiB.
        let largest = value("max-message-size").map_or(Some(MESSAGE_BYTES), |it| it.parse().ok());
        if !largest.is_some_and(|it| it == 0 || it >= MESSAGE_BYTES) {
            return Err(SignalFault::Field {
                name: "max-message-size",
            }
            .into());
        }
        let role = match (is_offer, need("setup")?) {
            // An offer of one role leaves the other to the answer, which every engine can take.
            (true, "actpass" | "active" | "passive") => Role::Offer,
            (false, "active") => Role::ActiveAnswer,
            (false, "passive") => Role::PassiveAnswer,
            _ => return Err(SignalFault::Field { name: "setup" }.into()),
        };
        let mut candidates = Vec::new();
        for candidate in lines_of(sdp, "candidate").filter_map(parse_candidate) {
            if candidates.len() < CANDIDATES_MAX && !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
        let description = Description {
            role,
            ufrag: need("ice-ufrag")?.into(),
            password: need("ice-pwd")?.into(),
            fingerprint: parse_fingerprint(need("fingerprint")?).ok_or(SignalFault::Field {
                name: "fingerprint",
            })?,
            candidates,
        };
        description.check()?;
        Ok(description)
    }

    /// A complete description for `setRemoteDescription`, of nothing but these facts.
    pub fn to_sdp(&self) -> Result<String, P2pError> {
        self.check()?;
        let setup = match self.role {
            Role::Offer => "actpass",
            Role::ActiveAnswer => "active",
            Role::PassiveAnswer => "passive",
        };
        let fingerprint: Vec<String> = self
            .fingerprint
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let mut sdp = format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE {MID}\r\n\
             m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n\
             a=ice-ufrag:{}\r\na=ice-pwd:{}\r\na=fingerprint:sha-256 {}\r\na=setup:{setup}\r\n\
             a=mid:{MID}\r\na=sendrecv\r\na=sctp-port:{SCTP_PORT}\r\n\
             a=max-message-size:{MESSAGE_BYTES}\r\n",
            self.ufrag,
            self.password,
            fingerprint.join(":"),
        );
        for (index, candidate) in self.candidates.iter().enumerate() {
            write_candidate(&mut sdp, index, candidate);
        }
        sdp.push_str("a=end-of-candidates\r\n");
        Ok(sdp)
    }
}

fn lines_of<'a>(sdp: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    sdp.lines().filter_map(move |line| {
        let value = line.trim_end().strip_prefix("a=")?.strip_prefix(name)?;
        value.strip_prefix(':').map(str::trim)
    })
}

fn find<'a>(sdp: &'a str, name: &'a str) -> Option<&'a str> {
    lines_of(sdp, name).next()
}

fn expect(found: Option<&str>, wanted: &str, name: &'static str) -> Result<(), P2pError> {
    match found == Some(wanted) {
        true => Ok(()),
        false => Err(SignalFault::Field { name }.into()),
    }
}

fn parse_fingerprint(value: &str) -> Option<[u8; 32]> {
    let (hash, digits) = value.split_once(' ')?;
    if !hash.eq_ignore_ascii_case("sha-256") {
        return None;
    }
    let mut bytes = digits.trim().split(':').map(|pair| match pair.len() {
        2 => u8::from_str_radix(pair, 16).ok(),
        _ => None,
    });
    let mut fingerprint = [0; 32];
    for byte in &mut fingerprint {
        *byte = bytes.next()??;
    }
    bytes.next().is_none().then_some(fingerprint)
}

/// `FOUNDATION COMPONENT udp PRIORITY ADDRESS PORT typ KIND ...`; what is not for us is passed
/// over: other transports, other components, names of other kinds.
fn parse_candidate(value: &str) -> Option<Candidate> {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    let [_, component, transport, _, address, port, "typ", kind, ..] = words[..] else {
        return None;
    };
    if component != "1" || !transport.eq_ignore_ascii_case("udp") {
        return None;
    }
    let kind = match kind {
        "host" => CandidateKind::Host,
        "srflx" => CandidateKind::Reflexive,
        "relay" => CandidateKind::Relayed,
        _ => return None,
    };
    let address = match address.strip_suffix(".local") {
        Some(name) => Address::Local(parse_uuid(name)?),
        None => match address.parse().ok()? {
            std::net::IpAddr::V4(v4) => Address::V4(v4),
            std::net::IpAddr::V6(v6) => Address::V6(v6),
        },
    };
    let port = port.parse().ok()?;
    Some(Candidate {
        kind,
        address,
        port,
    })
    .filter(Candidate::is_usable)
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] || !text.is_ascii() {
        return None;
    }
    let digits: String = groups.concat();
    let mut uuid = [0; 16];
    for (index, byte) in uuid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(uuid)
}

fn write_candidate(sdp: &mut String, index: usize, candidate: &Candidate) {
    let (name, preference) = match candidate.kind {
        CandidateKind::Host => ("host", HOST_PREFERENCE),
        CandidateKind::Reflexive => ("srflx raddr 0.0.0.0 rport 0", REFLEXIVE_PREFERENCE),
        CandidateKind::Relayed => ("relay raddr 0.0.0.0 rport 0", RELAYED_PREFERENCE),
    };
    let priority = (preference << 24) | ((u32::from(u16::MAX) - index as u32) << 8) | 255;
    let address = match candidate.address {
        Address::V4(v4) => v4.to_string(),
        Address::V6(v6) => v6.to_string(),
        Address::Local(uuid) => uuid_name(uuid),
    };
    let (foundation, port) = (index + 1, candidate.port);
    // Writing to a string cannot fail.
    let _ok = write!(
        sdp,
        "a=candidate:{foundation} 1 udp {priority} {address} {port} typ {name}\r\n"
    );
}

fn uuid_name(uuid: [u8; 16]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let [a, b, c, d, e] = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    format!("{a}-{b}-{c}-{d}-{e}.local")
}

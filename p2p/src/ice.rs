//! Servers that help two peers through routers, as people write them.

use crate::P2pError;

/// A longer line is no server's.
const LINE_BYTES_MAX: usize = 512;

/// A STUN server tells a peer its public address (RFC 8489); a TURN server also passes on what it
/// sends (RFC 8656). Whoever is asked learns the peer's address.
#[derive(Clone, PartialEq, Eq)]
pub struct IceServer {
    /// As RFC 7064 and RFC 7065 define it.
    pub url: String,
    /// Empty for STUN, as the password is.
    pub user: String,
    pub password: String,
}

impl IceServer {
    /// `stun:HOST`, `stun:HOST:PORT`, or `turn:HOST:PORT,USER,PASSWORD` with a `?transport=` or
    /// without; `stuns:` and `turns:` go over TLS. `NotAnIceServer` for anything else.
    pub fn parse(text: &str) -> Result<IceServer, P2pError> {
        let refused = Err(P2pError::NotAnIceServer);
        let text = text.trim();
        if text.len() > LINE_BYTES_MAX || text.chars().any(char::is_control) {
            return refused;
        }
        let mut parts = text.splitn(3, ',');
        let url = parts.next().unwrap_or_default();
        let Some((scheme, place)) = url.split_once(':') else {
            return refused;
        };
        let (user, password) = match (scheme, parts.next(), parts.next()) {
            ("stun" | "stuns", None, None) => ("", ""),
            ("turn" | "turns", Some(user), Some(password)) if !user.is_empty() => (user, password),
            _ => return refused,
        };
        let (host, transport) = match place.split_once('?') {
            None => (place, None),
            Some((host, transport)) => (host, Some(transport)),
        };
        let is_known = match (scheme, transport) {
            (_, None) => true,
            ("turn" | "turns", Some(transport)) => {
                matches!(transport, "transport=udp" | "transport=tcp")
            }
            _ => false,
        };
        if !is_known || !is_host(host) {
            return refused;
        }
        Ok(IceServer {
            url: url.to_owned(),
            user: user.to_owned(),
            password: password.to_owned(),
        })
    }

    /// One server a line; empty lines are passed over.
    pub fn parse_lines(text: &str) -> Result<Vec<IceServer>, P2pError> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(IceServer::parse).collect()
    }
}

/// A name or address, an IPv6 address in brackets, and a port if one stands behind it.
fn is_host(text: &str) -> bool {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((address, rest)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("v6", rest),
            _ => return false,
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok_and(|port| port > 0),
        None => rest.is_empty(),
    };
    port && !host.is_empty() && host.bytes().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses are the examples of RFC 7064, section 3.1, and RFC 7065, section 3.1.
    #[test]
    fn servers_are_read_as_the_standards_write_them() {
        for (text, url, user, password) in [
            ("stun:example.org", "stun:example.org", "", ""),
            ("stuns:example.org", "stuns:example.org", "", ""),
            (" stun:example.org:8000 ", "stun:example.org:8000", "", ""),
            ("stun:[2001:db8::1]:3478", "stun:[2001:db8::1]:3478", "", ""),
            ("turn:example.org,ann,a,b", "turn:example.org", "ann", "a,b"),
            (
                "turn:example.org:8000?transport=udp,ann,",
                "turn:example.org:8000?transport=udp",
                "ann",
                "",
            ),
            (
                "turns:192.0.2.1?transport=tcp,ann,pass",
                "turns:192.0.2.1?transport=tcp",
                "ann",
                "pass",
            ),
        ] {
            let server = IceServer::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (&*server.url, &*server.user, &*server.password),
                (url, user, password)
            );
        }
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for text in [
            "",
            "stun:",
            "stun:host:",
            "stun:host:0",
            "stun:host:65536",
            "stun:host:3478,ann,pass",
            "stun:host?transport=udp",
            "stun://host",
            "stun:a b",
            "stun:[::g]",
            "stun:[::1",
            "stun:[::1]3478",
            "turn:host",
            "turn:host,ann",
            "turn:host,,pass",
            "turn:host?transport=sctp,ann,pass",
            "https://host",
            "host:3478",
        ] {
            let read = IceServer::parse(text);
            assert_eq!(read.err(), Some(P2pError::NotAnIceServer), "{text}");
        }
        let long = format!("stun:{}", "a".repeat(LINE_BYTES_MAX));
        assert!(IceServer::parse(&long).is_err());
        assert_eq!(
            IceServer::parse_lines("\n stun:a \n\nstun:b\n")
                .unwrap()
                .len(),
            2
        );
        assert!(IceServer::parse_lines("stun:a\nnothing").is_err());
    }
}

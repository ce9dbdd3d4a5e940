//! One request, one answer, byte for byte: what a browser hides, the tests of headers must see.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::error::{E2eError, Result};

/// Nothing here answers slower than this.
const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Reply {
    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Asks `host:port` for a path, with more headers.
pub fn get(host: &str, path: &str, headers: &[(&str, &str)]) -> Result<Reply> {
    request("GET", host, path, headers)
}

pub fn request(method: &str, host: &str, path: &str, headers: &[(&str, &str)]) -> Result<Reply> {
    let mut stream = TcpStream::connect(host).map_err(E2eError::net(host))?;
    stream
        .set_read_timeout(Some(TIMEOUT))
        .map_err(E2eError::net(host))?;
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    stream
        .write_all(text.as_bytes())
        .map_err(E2eError::net(host))?;
    let mut bytes = Vec::new();
    stream
        .read_to_end(&mut bytes)
        .map_err(E2eError::net(host))?;
    parse(&bytes).ok_or_else(|| E2eError::Shape {
        what: "an HTTP answer",
        found: String::from_utf8_lossy(&bytes).chars().take(200).collect(),
    })
}

fn parse(bytes: &[u8]) -> Option<Reply> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let body = match headers.get("transfer-encoding").map(String::as_str) {
        Some("chunked") => unchunked(&bytes[end + 4..])?,
        _ => bytes[end + 4..].to_vec(),
    };
    Some(Reply {
        status,
        headers,
        body,
    })
}

fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|window| window == b"\r\n")?;
        let len = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?, 16).ok()?;
        if len == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(end + 2..end + 2 + len)?);
        bytes = bytes.get(end + 2 + len + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_byte_for_byte() {
        let reply = parse(b"HTTP/1.1 206 Partial\r\nETag: \"a\"\r\n\r\nbody").unwrap();
        assert_eq!((reply.status, reply.header("etag")), (206, "\"a\""));
        assert_eq!(reply.body, b"body");
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(parse(chunked).unwrap().body, b"abc");
        assert!(parse(b"HTTP/1.1 200 OK\r\n").is_none());
    }
}

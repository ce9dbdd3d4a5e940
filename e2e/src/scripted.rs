//! A server that misbehaves as it is told: one act for each request to a file, in order. What it
//! has no script for it passes on to another server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::error::{E2eError, Result};

/// How one request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// As RFC 9110 wants it.
    Good,
    /// This status and a few words.
    Status(u16),
    /// The same, and when to come back, in seconds.
    Busy(u16, u64),
    /// 206 that begins so many bytes before the range.
    Early(u64),
    /// 206 that begins so many bytes after the range.
    Late(u64),
    /// 200 with the right range.
    Ranged200,
    /// 200 with the whole file, whatever was asked for.
    Whole,
    /// The same in chunks, without any length.
    Chunked,
    /// A web page with status 200.
    Page,
    /// Breaks off after so many bytes of the body, when they have had time to be read.
    Short(usize),
    /// So many bytes more than the range has.
    Long(usize),
    /// Another file of the same length, with another `ETag`.
    Other,
    /// No answer at all.
    Refuse,
    /// 302 to this path below the server, as hosts with signed addresses do.
    Lead(&'static str),
    /// Says nothing for so many milliseconds, then is good.
    Slow(u64),
    /// Is good, but waits so many milliseconds after every 64 KiB.
    Trickle(u64),
}

/// When an answer breaks off, a browser drops what of it nobody has read yet (WHATWG Streams: a
/// stream that fails empties its queue); whether it was read is no matter of luck after this time.
const BEFORE_BREAKING_OFF: Duration = Duration::from_millis(500);

/// A file and what becomes of requests for it.
#[derive(Clone)]
pub struct Script {
    pub body: Arc<Vec<u8>>,
    /// For the first requests.
    pub acts: Vec<Act>,
    /// For all later ones.
    pub then: Act,
}

/// One request for a file with a script.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub range: Option<(u64, u64)>,
    pub act: Act,
    /// Bytes of the file that went out or are going out, from the first one named here.
    pub first: u64,
    pub sent: u64,
    /// When the last of them went out.
    pub last: SystemTime,
}

#[derive(Clone)]
pub struct Scripted {
    /// `host:port`.
    pub host: String,
    state: Arc<Mutex<State>>,
}

struct State {
    scripts: BTreeMap<String, Script>,
    asked: Vec<Asked>,
    /// Every path that was asked for, also of the other server.
    paths: Vec<String>,
}

struct Request {
    text: String,
    path: String,
    range: Option<(u64, u64)>,
}

impl Scripted {
    /// `scripts` by path, with its slash; `upstream` is the `host:port` of everything else.
    pub fn start(scripts: Vec<(&str, Script)>, upstream: Option<String>) -> Result<Scripted> {
        let bind = "127.0.0.1:0";
        let listener = TcpListener::bind(bind).map_err(E2eError::net(bind))?;
        let bound = listener.local_addr().map_err(E2eError::net(bind))?;
        let named = scripts.into_iter();
        let scripts = named.map(|(path, script)| (path.to_owned(), script));
        let state = Arc::new(Mutex::new(State {
            scripts: scripts.collect(),
            asked: Vec::new(),
            paths: Vec::new(),
        }));
        let server = Scripted {
            host: bound.to_string(),
            state,
        };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (server, upstream) = (serving.clone(), upstream.clone());
                std::thread::spawn(move || {
                    // A client that hangs up early is no matter of ours.
                    drop(server.answer(stream, upstream.as_deref()));
                });
            }
        });
        Ok(server)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    /// Gives a path another script.
    pub fn script(&self, path: &str, script: Script) {
        self.state().scripts.insert(path.to_owned(), script);
    }

    /// All requests for files with scripts.
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// Every path that was asked for.
    pub fn paths(&self) -> Vec<String> {
        self.state().paths.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, mut stream: TcpStream, upstream: Option<&str>) -> std::io::Result<()> {
        let request = read(&stream)?;
        let script = {
            let mut state = self.state();
            state.paths.push(request.path.clone());
            state.scripts.get_mut(&request.path).map(|script| {
                let act = match script.acts.is_empty() {
                    true => script.then,
                    false => script.acts.remove(0),
                };
                (Arc::clone(&script.body), act)
            })
        };
        match (script, upstream) {
            (Some((body, act)), _) => self.play(stream, &request, &body, act),
            (None, Some(upstream)) => pass_on(stream, upstream, &request.text),
            (None, None) => {
                stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            }
        }
    }

    fn play(
        &self,
        mut stream: TcpStream,
        request: &Request,
        body: &[u8],
        act: Act,
    ) -> std::io::Result<()> {
        let (head, first, bytes) = reply(request, body, act);
        if let Act::Slow(ms) = act {
            std::thread::sleep(Duration::from_millis(ms));
        }
        let index = {
            let mut state = self.state();
            state.asked.push(Asked {
                path: request.path.clone(),
                range: request.range,
                act,
                first,
                sent: 0,
                last: SystemTime::now(),
            });
            state.asked.len() - 1
        };
        let Some(head) = head else {
            return stream.shutdown(Shutdown::Both);
        };
        stream.write_all(head.as_bytes())?;
        for portion in bytes.chunks(64 * 1024) {
            // Counted first: who has all bytes may look before this thread goes on.
            self.count(index, |sent| sent + portion.len() as u64);
            let written = send(&mut stream, portion, act == Act::Chunked);
            if written.is_err() {
                self.count(index, |sent| sent - portion.len() as u64);
                return written;
            }
            if let Act::Trickle(ms) = act {
                std::thread::sleep(Duration::from_millis(ms));
            }
        }
        if act == Act::Chunked {
            stream.write_all(b"0\r\n\r\n")?;
        }
        if matches!(act, Act::Short(_)) {
            std::thread::sleep(BEFORE_BREAKING_OFF);
        }
        stream.shutdown(Shutdown::Write)
    }

    fn count(&self, index: usize, change: impl Fn(u64) -> u64) {
        let asked = &mut self.state().asked[index];
        asked.sent = change(asked.sent);
        asked.last = SystemTime::now();
    }
}

fn send(stream: &mut TcpStream, portion: &[u8], is_chunk: bool) -> std::io::Result<()> {
    if is_chunk {
        write!(stream, "{:x}\r\n", portion.len())?;
    }
    stream.write_all(portion)?;
    if is_chunk {
        stream.write_all(b"\r\n")?;
    }
    Ok(())
}

/// The head, the file position of the body's first byte, and the body. No head: no answer.
fn reply(request: &Request, body: &[u8], act: Act) -> (Option<String>, u64, Vec<u8>) {
    let length = body.len() as u64;
    let (first, last) = request.range.unwrap_or((0, length - 1));
    let last = last.min(length - 1);
    let (first, status) = match act {
        Act::Early(bytes) => (first.saturating_sub(bytes), "206 Partial Content"),
        Act::Late(bytes) => (first + bytes, "206 Partial Content"),
        Act::Ranged200 => (first, "200 OK"),
        Act::Whole | Act::Chunked => (0, "200 OK"),
        _ if request.range.is_some() => (first, "206 Partial Content"),
        _ => (first, "200 OK"),
    };
    let last = match act {
        Act::Whole | Act::Chunked => length - 1,
        _ => last,
    };
    let etag = if act == Act::Other { "two" } else { "one" };
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nETag: \"{etag}\"\r\n");
    let mut part = body[first as usize..=last as usize].to_vec();
    let words = |status: u16, more: String| {
        let text = "not now\n";
        let len = text.len();
        let head = format!(
            "HTTP/1.1 {status} No\r\nConnection: close\r\nContent-Length: {len}\r\n{more}\r\n"
        );
        (Some(head), 0, text.as_bytes().to_vec())
    };
    match act {
        Act::Status(status) => return words(status, String::new()),
        Act::Busy(status, after) => return words(status, format!("Retry-After: {after}\r\n")),
        Act::Lead(path) => return words(302, format!("Location: {path}\r\n")),
        Act::Refuse => return (None, 0, Vec::new()),
        Act::Page => {
            let page = "<!DOCTYPE html><title>Sign in</title>";
            let len = page.len();
            head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len}\r\n");
            head += "Content-Type: text/html\r\n\r\n";
            return (Some(head), 0, page.as_bytes().to_vec());
        }
        Act::Other => part.iter_mut().for_each(|byte| *byte ^= 0x55),
        _ => {}
    }
    head += "Content-Type: application/octet-stream\r\n";
    if !matches!(act, Act::Whole | Act::Chunked) && request.range.is_some() {
        head += &format!("Content-Range: bytes {first}-{last}/{length}\r\n");
    }
    match act {
        Act::Chunked => head += "Transfer-Encoding: chunked\r\n",
        // Its end is the end of the connection, or nobody could send more than was promised.
        Act::Long(more) => part.extend(vec![0xee; more]),
        _ => head += &format!("Content-Length: {}\r\n", part.len()),
    }
    if let Act::Short(bytes) = act {
        part.truncate(bytes);
    }
    (Some(head + "\r\n"), first, part)
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut text = format!("{first}\r\n");
    let mut range = None;
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            if name.eq_ignore_ascii_case("connection") {
                continue;
            }
            if name.eq_ignore_ascii_case("range") {
                range = parse(value.trim());
            }
        }
        text += &format!("{line}\r\n");
    }
    text += "Connection: close\r\n\r\n";
    let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
    Ok(Request { text, path, range })
}

/// `bytes=0-1048575`.
fn parse(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Requests of pages have no bodies.
fn pass_on(mut stream: TcpStream, upstream: &str, request: &str) -> std::io::Result<()> {
    let mut other = TcpStream::connect(upstream)?;
    other.write_all(request.as_bytes())?;
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = other.read(&mut bytes)?;
        if read == 0 {
            return stream.shutdown(Shutdown::Write);
        }
        stream.write_all(&bytes[..read])?;
    }
}

//! The smallest client of HTTP/1.1 that reads a body in portions, driven by a transfer: one thread
//! for each request, real sockets, real time.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use store::{Break, Flight, Get, News, ReplyHead, Transfer, TransferFault, Waiting, Wish};

/// No test takes longer.
const LONGEST: Duration = Duration::from_secs(60);

/// What a transfer brought.
#[derive(Default)]
pub struct Brought {
    pub windows: BTreeMap<u64, Vec<u8>>,
    pub waits: Vec<Waiting>,
    pub failed: Option<TransferFault>,
}

/// Fetches windows of one MiB until all are here or the transfer fails.
pub fn fetch(url: &str, mut transfer: Transfer, from: u64, to: u64) -> Brought {
    let start = Instant::now();
    let now_ms = || start.elapsed().as_millis() as u64 + 1;
    let (sender, receiver) = channel::<(Flight, News)>();
    let mut more: BTreeMap<Flight, Sender<()>> = BTreeMap::new();
    let mut brought = Brought::default();
    let mut wake_ms = None::<u64>;
    let windows: Vec<u64> = (from..to).step_by(1 << 20).collect();
    for at in &windows {
        transfer.want(now_ms(), *at, (to - at).min(1 << 20) as u32);
    }
    loop {
        while let Some(wish) = transfer.poll() {
            match wish {
                Wish::Get(get) => {
                    let (hungry, fed) = channel();
                    more.insert(get.flight, hungry);
                    let sender = sender.clone();
                    let url = get.url.clone().unwrap_or_else(|| url.to_owned());
                    std::thread::spawn(move || request(&url, &get, &sender, &fed));
                }
                Wish::More(flight) => drop(more.get(&flight).map(|hungry| hungry.send(()))),
                Wish::Abort(flight) => drop(more.remove(&flight)),
                Wish::Bytes { at, bytes } => {
                    assert!(
                        brought.windows.insert(at, bytes).is_none(),
                        "{at} came twice"
                    );
                }
                Wish::Waiting(waiting) => brought.waits.push(waiting),
                Wish::Running => {}
                Wish::WakeAt(at) => wake_ms = Some(wake_ms.map_or(at, |old| old.min(at))),
                Wish::Failed(fault) => brought.failed = Some(fault),
            }
        }
        if brought.failed.is_some() || brought.windows.len() == windows.len() {
            return brought;
        }
        assert!(start.elapsed() < LONGEST, "it never ends");
        let wait = wake_ms.map_or(1000, |at| at.saturating_sub(now_ms()));
        match receiver.recv_timeout(Duration::from_millis(wait)) {
            Ok((flight, news)) => transfer.news(now_ms(), flight, news),
            Err(_) => {
                wake_ms = None;
                transfer.time(now_ms());
            }
        }
    }
}

/// One request, with the addresses it is led to. Ends early when nobody wants more.
fn request(url: &str, get: &Get, sender: &Sender<(Flight, News)>, fed: &Receiver<()>) {
    let tell = |news| drop(sender.send((get.flight, news)));
    let (mut url, mut led_to) = (url.to_owned(), None);
    let (head, body) = loop {
        let Some((mut head, location, body)) = ask(&url, get) else {
            return tell(News::Broken(Break::Unreachable));
        };
        match location {
            Some(path) => {
                let host = url.split('/').nth(2).unwrap_or_default();
                url = format!("http://{host}{path}");
                led_to = Some(url.clone());
            }
            None => {
                head.led_to = led_to;
                break (head, body);
            }
        }
    };
    tell(News::Head(head));
    let mut body = body;
    let mut portion = vec![0; 100_000];
    while fed.recv().is_ok() {
        match body.read(&mut portion) {
            Ok(0) => return tell(News::End),
            Ok(len) => tell(News::Body(portion[..len].to_vec())),
            Err(_) => return tell(News::Broken(Break::Cut)),
        }
    }
}

type Body = Box<dyn Read>;

fn ask(url: &str, get: &Get) -> Option<(ReplyHead, Option<String>, Body)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/')?;
    let mut stream = TcpStream::connect(host).ok()?;
    let mut text = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n");
    if let Some((first, last)) = get.range {
        text += &format!("Range: bytes={first}-{last}\r\n");
    }
    if let Some(if_range) = &get.if_range {
        text += &format!("If-Range: {if_range}\r\n");
    }
    stream.write_all((text + "\r\n").as_bytes()).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut fields = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let field = |name: &str| fields.get(name).cloned();
    let head = ReplyHead {
        status,
        content_range: field("content-range"),
        content_length: field("content-length").and_then(|text| text.parse().ok()),
        content_type: field("content-type"),
        etag: field("etag"),
        retry_after: field("retry-after"),
        ..ReplyHead::default()
    };
    let body: Body = match (field("transfer-encoding"), head.content_length) {
        (Some(_), _) => Box::new(Chunks { reader, left: 0 }),
        (None, Some(len)) => Box::new(Exact { reader, left: len }),
        (None, None) => Box::new(reader),
    };
    Some((head, field("location"), body))
}

/// A body of a length that was promised: less of it is a fault, as in a browser.
struct Exact<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(self.left as usize);
        let read = self.reader.read(&mut into[..most])?;
        self.left -= read as u64;
        match read == 0 && self.left > 0 {
            true => Err(std::io::ErrorKind::UnexpectedEof.into()),
            false => Ok(read),
        }
    }
}

struct Chunks<R> {
    reader: R,
    left: usize,
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                line.clear();
                self.reader.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        }
        let most = into.len().min(self.left);
        let read = self.reader.read(&mut into[..most])?;
        self.left -= read;
        Ok(read)
    }
}

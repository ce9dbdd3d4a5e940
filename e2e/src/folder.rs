//! The smallest server of files, for pages and modules that the app does not have.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use crate::error::{E2eError, Result};

/// Serves a few files from memory until the test program ends, to pages that may share memory.
pub struct Folder {
    /// `http://host:port/`.
    pub address: String,
}

impl Folder {
    /// `files` are paths without the leading slash and bytes; an empty page lies at the root.
    pub fn serve(files: Vec<(String, Vec<u8>)>) -> Result<Folder> {
        let bind = "127.0.0.1:0";
        let listener = TcpListener::bind(bind).map_err(E2eError::net(bind))?;
        let bound = listener.local_addr().map_err(E2eError::net(bind))?;
        let mut files: BTreeMap<String, Vec<u8>> = files.into_iter().collect();
        files
            .entry(String::new())
            .or_insert_with(|| b"<!doctype html><title>empty</title>".to_vec());
        let files = Arc::new(files);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = Arc::clone(&files);
                std::thread::spawn(move || {
                    // A browser that hangs up early is no matter of ours.
                    drop(answer(stream, &files));
                });
            }
        });
        Ok(Folder {
            address: format!("http://{bound}/"),
        })
    }
}

fn answer(mut stream: TcpStream, files: &BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or("/");
    let path = path.trim_start_matches('/').split('?').next().unwrap_or("");
    let (status, body) = match files.get(path) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &b""[..]),
    };
    let kind = match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("wasm") => "application/wasm",
        Some("js") => "text/javascript",
        None if path.is_empty() => "text/html",
        _ => "application/octet-stream",
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\n\
         Cross-Origin-Embedder-Policy: require-corp\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

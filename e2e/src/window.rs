//! Several tabs of one browser. A page's steps are those of the tab that is shown.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fantoccini::wd::WindowHandle;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::error::{E2eError, Result};
use crate::page::Page;

/// A tab that crashes is noticed by the driver after a while.
const ANSWER: Duration = Duration::from_secs(20);

impl Browser {
    /// The tab that is shown.
    pub async fn shown(&self) -> Result<WindowHandle> {
        Ok(self.client.window().await?)
    }

    pub async fn show(&self, tab: &WindowHandle) -> Result<Page<'_>> {
        self.client.switch_to_window(tab.clone()).await?;
        Ok(Page::shown(self))
    }

    /// A new tab, shown, with nothing in it.
    pub async fn new_tab(&self) -> Result<WindowHandle> {
        let opened = self.client.new_window(true).await?;
        self.client.switch_to_window(opened.handle.clone()).await?;
        Ok(opened.handle)
    }

    /// A new tab, shown, with the app in it.
    pub async fn open_tab(&self, url: &str) -> Result<(WindowHandle, Page<'_>)> {
        let tab = self.new_tab().await?;
        Ok((tab, Page::open(self, url).await?))
    }

    /// Closes the tab that is shown, and shows another.
    pub async fn close_tab(&self, next: &WindowHandle) -> Result<Page<'_>> {
        self.client.close_window().await?;
        self.show(next).await
    }

    /// A command of Chromium's own protocol for the tab that is shown. The driver's protocol has
    /// none of its kind, so it is sent beside the client.
    pub fn devtools(&self, name: &str, parameters: Value) -> Result<Value> {
        let host = format!("127.0.0.1:{}", self.port());
        let body = json!({ "cmd": name, "params": parameters }).to_string();
        let request = format!(
            "POST /session/{}/goog/cdp/execute HTTP/1.1\r\nHost: {host}\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.session(),
            body.len(),
        );
        let answer = ask(&host, &request).map_err(E2eError::net(&host))?;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let value: Option<Value> = serde_json::from_str(body).ok();
        match value.and_then(|mut value| value.get_mut("value").map(Value::take)) {
            Some(value) if value["error"].is_null() => Ok(value),
            _ => Err(E2eError::Shape {
                what: "an answer of the driver",
                found: answer,
            }),
        }
    }

    /// Chromium: the shown tab's next pages keep their workers where a test can end them.
    pub fn keep_workers(&self) -> Result<()> {
        let source = "
            window.e2eWorkers = [];
            window.Worker = class extends Worker {
                constructor(...all) { super(...all); window.e2eWorkers.push(this); }
            };";
        let parameters = json!({ "source": source });
        let name = "Page.addScriptToEvaluateOnNewDocument";
        self.devtools(name, parameters).map(drop)
    }
}

/// The driver leaves the connection open, so the answer ends where its head says.
fn ask(host: &str, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(request.as_bytes())?;
    let (mut bytes, mut portion) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut portion)?;
        bytes.extend_from_slice(&portion[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if read == 0 || is_whole(&text) {
            return Ok(text.into_owned());
        }
    }
}

fn is_whole(answer: &str) -> bool {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    let mut lengths = head
        .lines()
        .filter_map(|line| line.strip_prefix("content-length:"));
    let length = lengths.next().and_then(|text| text.trim().parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

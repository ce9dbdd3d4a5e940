//! Several tabs of one browser. A page's steps are those of the tab that is shown.

use std::io::{Read, Write};
use std::net::TcpStream;

use fantoccini::wd::WindowHandle;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::error::{E2eError, Result};
use crate::page::Page;

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
        let mut answer = String::new();
        TcpStream::connect(&host)
            .and_then(|mut stream| {
                stream.write_all(request.as_bytes())?;
                stream.read_to_string(&mut answer)
            })
            .map_err(E2eError::net(&host))?;
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

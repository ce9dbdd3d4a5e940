//! An inference worker without a page: commands in, events out, as bytes.
//!
//! The bytes are `protocol`'s; a test encodes and decodes them itself, so that this crate's tests
//! speak exactly what the page speaks.

use std::time::Duration;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::error::{E2eError, Result};

/// A worker started from whatever page of the app's origin the browser shows.
#[derive(Clone, Copy)]
pub struct WorkerLink<'a> {
    browser: &'a Browser,
}

impl<'a> WorkerLink<'a> {
    /// Starts the worker; `query` is empty or as in `?lane=scalar-wasm32`. An earlier worker of
    /// this page is ended.
    pub async fn start(browser: &'a Browser, query: &str) -> Result<WorkerLink<'a>> {
        let script = "
            window.e2eWorker?.terminate();
            window.e2eEvents = [];
            const worker = new Worker('/worker.js' + args[0], { type: 'module' });
            worker.onmessage = ({ data }) => {
                // The stop word of an engine with threads is no event.
                if (Array.isArray(data)) {
                    // Nor is the name of the worker's own lock.
                    if (data.length === 2) window.e2eStopWord = data;
                }
                else window.e2eEvents.push([...new Uint8Array(data)]);
            };
            worker.onerror = (event) => window.e2eEvents.push(`${event.message}`);
            window.e2eWorker = worker;";
        browser.js(script, &[json!(query)]).await?;
        Ok(WorkerLink { browser })
    }

    pub async fn send(self, command: &[u8]) -> Result<()> {
        let script = "window.e2eWorker.postMessage(new Uint8Array(args[0]).buffer)";
        self.browser.js(script, &[json!(command)]).await.map(drop)
    }

    /// The next event.
    pub async fn next(self, after: Duration) -> Result<Vec<u8>> {
        let probe = "return window.e2eEvents.shift() ?? false";
        let event = self
            .browser
            .wait("event of the worker", after, probe)
            .await?;
        let bytes: Option<Vec<u8>> = match &event {
            Value::Array(_) => serde_json::from_value(event.clone()).ok(),
            _ => None,
        };
        bytes.ok_or_else(|| E2eError::Script {
            words: event.to_string(),
        })
    }
}

//! wllama, which is llama.cpp compiled to WebAssembly, in a page of its own.

use std::time::Duration;

use e2e::{Browser, Engine};
use serde_json::{Value, json};

use super::{Seat, Timing};
use crate::error::{BenchError, Result};
use crate::task::Work;

/// A slow machine shows a page within this.
const PAGE: Duration = Duration::from_secs(60);

pub struct Wllama {
    pub seat: Seat,
    version: &'static str,
    threads: usize,
    site: String,
    model: String,
    pub load_s: f64,
    /// As its package says.
    pub release: String,
    /// The model lies in its own cache.
    cached: bool,
}

impl Wllama {
    pub fn new(version: &'static str, threads: usize, site: &str, model: &str) -> Result<Wllama> {
        Ok(Wllama {
            seat: Seat::new(Engine::Chromium)?,
            version,
            threads,
            site: site.to_owned(),
            model: format!("/models/{model}.gguf"),
            load_s: 0.0,
            release: String::new(),
            cached: false,
        })
    }

    pub async fn open(&mut self) -> Result<()> {
        self.show().await?;
        let begin = "return window.peer.begin(args[0], args[1])";
        let release = self
            .js(begin, &[json!(self.version), json!(self.threads)])
            .await?;
        self.release = release.as_str().unwrap_or_default().to_owned();
        let loaded = self
            .js("return window.peer.load(args[0])", &[json!(self.model)])
            .await?;
        self.load_s = loaded["ms"].as_f64().unwrap_or(0.0) / 1e3;
        Ok(())
    }

    /// Ids of a text, from the version that tells them.
    pub async fn tokenize(&self, text: &str) -> Result<Option<Vec<u32>>> {
        let ids = self
            .js("return window.peer.tokenize(args[0])", &[json!(text)])
            .await?;
        Ok(serde_json::from_value(ids).ok())
    }

    pub async fn measure(&mut self, work: Work, text: &str) -> Result<Timing> {
        let before = self.seat.used();
        let script = "return window.peer.complete(args[0], args[1])";
        let answer = self
            .js(script, &[json!(text), json!(work.new_tokens())])
            .await?;
        let used = self.seat.used().since(&before, self.threads);
        let number = |key: &str| answer[key].as_f64().unwrap_or(f64::NAN);
        let (tokens, ms) = match work {
            Work::Read128 | Work::Read512 => (number("read"), number("total")),
            Work::Write128 => (number("steps"), number("writing")),
        };
        if tokens != f64::from(work.counted()) {
            return Err(BenchError::answer(self.version, answer));
        }
        Ok(Timing {
            tokens: work.counted(),
            wall_s: ms / 1e3,
            cpu_s: used.cpu_s * ms / number("total"),
            waited: Some(used.waited),
        })
    }

    /// Seconds from a new page in a new browser process to the first token, with the model in its
    /// cache.
    pub async fn first_token(&mut self, text: &str) -> Result<f64> {
        if !self.cached {
            self.fresh(text).await?;
            self.cached = true;
        }
        self.fresh(text).await
    }

    async fn fresh(&mut self, text: &str) -> Result<f64> {
        self.show().await?;
        let script = "return window.peer.fresh(...args)";
        let args = [
            json!(self.version),
            json!(self.threads),
            json!(self.model),
            json!(text),
        ];
        let answer = self.js(script, &args).await?;
        let ms = answer["ms"].as_f64();
        ms.map(|ms| ms / 1e3)
            .ok_or_else(|| BenchError::answer(self.version, answer))
    }

    async fn show(&mut self) -> Result<()> {
        let site = self.site.clone();
        let browser = self.seat.start().await?;
        browser
            .client
            .goto(&site)
            .await
            .map_err(e2e::E2eError::from)?;
        let there = "return Boolean(window.peer)";
        browser.wait("page of wllama", PAGE, there).await?;
        Ok(())
    }

    async fn js(&self, script: &str, args: &[Value]) -> Result<Value> {
        Ok(self.browser()?.js(script, args).await?)
    }

    fn browser(&self) -> Result<&Browser> {
        let none = || BenchError::answer(self.version, "nothing: there is no browser");
        self.seat.browser.as_ref().ok_or_else(none)
    }
}

//! This engine's worker, driven from an empty page of the app's origin.

use e2e::{Browser, Engine, get};
use format::ModelId;
use protocol::{
    Catalogue, Command, Event, FitReport, ImportId, ImportSource, Measure, Mode, RequestId, decode,
    encode,
};
use serde_json::{Value, json};

use super::{Seat, Timing};
use crate::error::{BenchError, Result};
use crate::task::Work;

/// Starts the worker and gives the page `ask`, which sends a command and waits for an event of
/// some kinds.
const START: &str = "
    window.engine?.terminate();
    const events = [];
    let wake = () => {};
    const worker = new Worker('/worker.js' + args[0], { type: 'module' });
    const hear = (event) => { events.push(event); wake(); };
    // Events are buffers; a pair hands over memory that is shared for a stop.
    worker.onmessage = ({ data }) => Array.isArray(data) || hear(new Uint8Array(data));
    worker.onerror = ({ message }) => hear(message || 'the worker cannot start');
    window.engine = worker;
    window.ask = async (command, kinds) => {
        const start = performance.now();
        if (command.length > 0) worker.postMessage(new Uint8Array(command).buffer);
        for (;;) {
            const event = events.shift();
            if (typeof event === 'string') throw event;
            if (event && kinds.includes(event[0])) {
                return { ms: performance.now() - start, bytes: [...event] };
            }
            if (!event) await new Promise((resolve) => (wake = resolve));
        }
    };";
const ASK: &str = "return window.ask(args[0], args[1])";
/// From the start of the navigation: `args` as of both scripts, twice.
const FRESH: &str = "
    for (const command of args[1]) await window.ask(command, args[2]);
    return performance.now()";

pub struct Lane {
    pub seat: Seat,
    host: String,
    query: String,
    threads: usize,
    model: Option<ModelId>,
    requests: u32,
    pub load_s: f64,
    pub fit: Option<FitReport>,
    /// Name and number of the lane as the worker tells them.
    pub version: String,
}

impl Lane {
    pub fn new(browser: &str, lane: &str, threads: usize, host: &str) -> Result<Lane> {
        let engine = match browser {
            "firefox" => Engine::Firefox,
            _ => Engine::Chromium,
        };
        Ok(Lane {
            seat: Seat::new(engine)?,
            host: host.to_owned(),
            query: format!("?lane={lane}&threads={threads}"),
            threads,
            model: None,
            requests: 0,
            load_s: 0.0,
            fit: None,
            version: String::new(),
        })
    }

    /// Starts browser and worker, imports the server's only model and loads it.
    pub async fn open(&mut self) -> Result<()> {
        let page = format!("http://{}/style.css", self.host);
        let browser = self.seat.start().await?;
        browser
            .client
            .goto(&page)
            .await
            .map_err(e2e::E2eError::from)?;
        browser.js(START, &[json!(self.query)]).await?;
        let (event, _) = self.ask(None, READY).await?;
        let Event::Ready { lane, .. } = event else {
            return Err(BenchError::answer(&self.query, format!("{event:?}")));
        };
        self.version = lane.lane.name().to_owned();
        if !self.query.contains(&format!("lane={}&", self.version)) {
            return Err(BenchError::answer(&self.query, &self.version));
        }
        let reply = get(&self.host, "/models/catalogue.json", &[])?;
        let catalogue: Catalogue = serde_json::from_slice(&reply.body)
            .map_err(|error| BenchError::answer("the catalogue", error))?;
        let Some(entry) = catalogue.models.into_iter().next() else {
            return Err(BenchError::answer("the catalogue", "no model"));
        };
        let import = Command::Import {
            import: ImportId(1),
            source: ImportSource::Catalogue(entry),
        };
        let (event, _) = self.ask(Some(&import), IMPORTED).await?;
        if let Event::Imported { model, .. } = event {
            self.model = Some(model.id);
        }
        let load = self.load_command()?;
        let (event, ms) = self.ask(Some(&load), LOADED).await?;
        if let Event::Loaded { fit, .. } = event {
            self.fit = Some(*fit);
        }
        self.load_s = ms / 1e3;
        Ok(())
    }

    pub async fn measure(&mut self, work: Work, ids: &[u32]) -> Result<Timing> {
        let before = self.seat.used();
        let command = self.time_command(ids, work.new_tokens());
        let (event, ms) = self.ask(Some(&command), DONE).await?;
        let used = self.seat.used().since(&before, self.threads);
        let Event::Done { figures, .. } = event else {
            return Err(BenchError::answer(&self.query, format!("{event:?}")));
        };
        let (wall_s, share) = match work {
            Work::Read128 | Work::Read512 => (ms / 1e3, 1.0),
            Work::Write128 => (figures.decode_ms / 1e3, figures.decode_ms / ms),
        };
        Ok(Timing {
            tokens: work.counted(),
            wall_s,
            cpu_s: used.cpu_s * share,
            waited: Some(used.waited),
        })
    }

    /// Seconds from a new page in a new browser process to the first token.
    pub async fn first_token(&mut self, ids: &[u32]) -> Result<f64> {
        let page = format!("http://{}/style.css", self.host);
        let commands = [
            Vec::new(),
            bytes(&self.load_command()?)?,
            bytes(&self.time_command(ids, 1))?,
        ];
        let kinds = [READY, LOADED, DONE, FAILED];
        let script = format!("{START}{FRESH}");
        let browser = self.seat.start().await?;
        browser
            .client
            .goto(&page)
            .await
            .map_err(e2e::E2eError::from)?;
        let args = [json!(self.query), json!(commands), json!(kinds)];
        let ms = browser.js(&script, &args).await?;
        ms.as_f64()
            .map(|ms| ms / 1e3)
            .ok_or_else(|| BenchError::answer(&self.query, ms))
    }

    fn load_command(&self) -> Result<Command> {
        let model = self
            .model
            .ok_or_else(|| BenchError::answer(&self.query, "no model"))?;
        Ok(Command::Load {
            model,
            context: 1024,
        })
    }

    fn time_command(&mut self, ids: &[u32], max_new: u32) -> Command {
        self.requests += 1;
        Command::Time {
            request: RequestId(self.requests),
            measure: Measure {
                prompt_ids: ids.to_vec(),
                max_new,
                prefill_tile: 0,
                mode: Mode::Int8V1,
                reuses: false,
            },
        }
    }

    /// The first event of a kind, and the milliseconds until it came.
    async fn ask(&self, command: Option<&Command>, kind: u8) -> Result<(Event, f64)> {
        let browser = self.browser()?;
        let command = command.map_or(Ok(Vec::new()), bytes)?;
        let answer = browser
            .js(ASK, &[json!(command), json!([kind, FAILED])])
            .await?;
        let ms = answer["ms"].as_f64().unwrap_or(0.0);
        let event: Option<Vec<u8>> = serde_json::from_value(answer["bytes"].clone()).ok();
        let event = event.and_then(|bytes| decode::<Event>(&bytes).ok());
        match event {
            Some(Event::Failed { error, .. }) => Err(BenchError::answer(&self.query, error.what)),
            Some(event) => Ok((event, ms)),
            None => Err(BenchError::answer(&self.query, Value::Null)),
        }
    }

    fn browser(&self) -> Result<&Browser> {
        let none = || BenchError::answer(&self.query, "nothing: there is no browser");
        self.seat.browser.as_ref().ok_or_else(none)
    }
}

/// First bytes of events, as the tests of `protocol` fix them.
const READY: u8 = 0;
const IMPORTED: u8 = 4;
const LOADED: u8 = 7;
const DONE: u8 = 11;
const FAILED: u8 = 14;

fn bytes(command: &Command) -> Result<Vec<u8>> {
    encode(command).map_err(|error| BenchError::answer("the wire", error))
}

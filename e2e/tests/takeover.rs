//! The working worker is killed at a random point, a hundred times, in the middle of an answer for
//! another. Workers of one page are as far apart as those of several tabs: each has its own locks
//! and channels, and only the model is small, so that there is time for a hundred.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::{Browser, Engine, Options, Profile, Server, convert, get, golden};
use format::{Digest, ModelId};
use protocol::{
    Catalogue, Command, Event, ImportId, ImportSource, Measure, Mode, RequestId, Subject, TabRole,
    decode, encode,
};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(120);
/// The promise is two seconds from the lock's release to the next owner; a machine that does
/// other things meanwhile gets five times that. The times themselves are printed.
const MOST_MS: f64 = 10_000.0;
/// A kill falls within so many thousandths of the time that an answer takes: anywhere in it, or
/// just after.
const KILL_WITHIN: u32 = 1_250;
const STEPS: u32 = 90;
const NAME: &str = "llama_gqa_headdim";

#[tokio::test]
async fn a_hundred_kills_in_chromium() {
    kills(Engine::Chromium, 100).await;
}

#[tokio::test]
async fn twenty_kills_in_firefox() {
    kills(Engine::Firefox, 20).await;
}

/// Workers of one page, by number.
struct Crowd<'a> {
    browser: &'a Browser,
    alive: Vec<usize>,
    started: usize,
    /// What was heard of each and not looked at.
    heard: BTreeMap<usize, Vec<(f64, Event)>>,
}

impl Crowd<'_> {
    async fn start(&mut self) -> usize {
        let script = "
            window.crowd ??= [];
            const [number] = args;
            const worker = new Worker('/worker.js?lane=simd128-wasm32', { type: 'module' });
            const one = { worker, heard: [] };
            one.worker.onmessage = ({ data }) => {
                if (Array.isArray(data)) return;
                one.heard.push([performance.now(), [...new Uint8Array(data)]]);
            };
            one.worker.onerror = (event) => { throw new Error(event.message); };
            window.crowd[number] = one;";
        let number = self.started;
        self.started += 1;
        self.browser.js(script, &[json!(number)]).await.unwrap();
        self.alive.push(number);
        number
    }

    /// Ends a worker and says when.
    async fn kill(&mut self, number: usize) -> f64 {
        let script = "
            window.crowd[args[0]].worker.terminate();
            return performance.now()";
        self.alive.retain(|alive| *alive != number);
        let at = self.browser.js(script, &[json!(number)]).await.unwrap();
        at.as_f64().unwrap()
    }

    async fn say(&self, number: usize, command: &Command) {
        let script = "window.crowd[args[0]].worker.postMessage(new Uint8Array(args[1]).buffer)";
        let arguments = [json!(number), json!(encode(command).unwrap())];
        self.browser.js(script, &arguments).await.unwrap();
    }

    /// The first event of a worker that `pick` wants, and when it came. What came before is gone.
    async fn wait<T>(&mut self, number: usize, pick: impl Fn(&Event) -> Option<T>) -> (f64, T) {
        let start = Instant::now();
        loop {
            let script = "return window.crowd[args[0]].heard.splice(0)";
            let news = self.browser.js(script, &[json!(number)]).await.unwrap();
            let events = self.heard.entry(number).or_default();
            for one in news.as_array().unwrap() {
                events.push(event(one));
            }
            let found = events
                .iter()
                .enumerate()
                .find_map(|(at, (ms, event))| Some((at, *ms, pick(event)?)));
            if let Some((at, ms, picked)) = found {
                events.drain(..=at);
                return (ms, picked);
            }
            assert!(start.elapsed() < LONG, "worker {number}: {events:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn event(value: &Value) -> (f64, Event) {
    let bytes: Vec<u8> = serde_json::from_value(value[1].clone()).unwrap();
    (value[0].as_f64().unwrap(), decode(&bytes).unwrap())
}

fn ready(event: &Event) -> Option<()> {
    matches!(event, Event::Ready { .. }).then_some(())
}

fn loaded(event: &Event) -> Option<()> {
    matches!(event, Event::Loaded { .. }).then_some(())
}

fn measure(number: u32) -> Command {
    Command::Measure {
        request: RequestId(number),
        measure: Measure {
            prompt_ids: (0..150).map(|i| (37 * i + 11) % 251).collect(),
            max_new: STEPS,
            prefill_tile: 32,
            mode: Mode::Int8V1,
            reuses: false,
        },
    }
}

/// How a request ended: with these logits, or cut off.
fn end_of(number: u32) -> impl Fn(&Event) -> Option<Option<Digest>> {
    move |event| match event {
        Event::Measured {
            request,
            logits_sha256,
            ..
        } if request.0 == number => Some(Some(*logits_sha256)),
        Event::Interrupted { request } if request.0 == number => Some(None),
        Event::Failed {
            subject: Subject::Request(request),
            error,
        } if request.0 == number => panic!("{error:?}"),
        _ => None,
    }
}

async fn import(crowd: &mut Crowd<'_>, number: usize, server: &Server) -> ModelId {
    let reply = get(&server.host, "/models/catalogue.json", &[]).unwrap();
    let catalogue: Catalogue = serde_json::from_slice(&reply.body).unwrap();
    let entry = catalogue.models.into_iter().next().unwrap();
    let import = Command::Import {
        import: ImportId(1),
        source: ImportSource::Catalogue(entry),
    };
    crowd.say(number, &import).await;
    let imported = |event: &Event| match event {
        Event::Imported { model, .. } => Some(model.id),
        _ => None,
    };
    crowd.wait(number, imported).await.1
}

async fn kills(engine: Engine, rounds: u32) {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join(format!("{NAME}.slm"));
    convert(&golden().unwrap().join("tiny").join(NAME), "", &model).unwrap();
    let server = Server::start(Options {
        models: Some(folder.path().to_owned()),
        ..Options::default()
    })
    .unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    browser.client.goto(&server.url("style.css")).await.unwrap();
    let mut crowd = Crowd {
        browser: &browser,
        alive: Vec::new(),
        started: 0,
        heard: BTreeMap::new(),
    };
    for _ in 0..3 {
        let number = crowd.start().await;
        crowd.wait(number, ready).await;
    }
    let model = import(&mut crowd, 0, &server).await;
    let load = Command::Load {
        model,
        context: 256,
    };
    crowd.say(0, &load).await;
    for number in 0..3 {
        crowd.wait(number, loaded).await;
    }
    // The second is as fast as all later ones.
    let mut whole = None;
    let mut answer = Duration::ZERO;
    for request in [0, 1] {
        let start = Instant::now();
        crowd.say(1, &measure(request)).await;
        whole = crowd.wait(1, end_of(request)).await.1;
        answer = start.elapsed();
    }
    let whole = whole.unwrap();
    let mut took = Vec::new();
    let mut cut = 0;
    for round in 0..rounds {
        // Any spread will do; this one is the same in every run.
        let spread = round.wrapping_mul(0x9E37_79B9) % KILL_WITHIN;
        let pause = answer * spread / 1_000;
        let (ms, was_cut) = kill_once(&mut crowd, &load, whole, (round, pause)).await;
        took.push(ms);
        cut += u32::from(was_cut);
    }
    took.sort_by(f64::total_cmp);
    let (middle, most) = (took[took.len() / 2], took[took.len() - 1]);
    println!(
        "{engine:?}: {rounds} kills, {cut} in the middle of an answer of {answer:?}; the next owner after \
         {middle:.0} ms (median), {most:.0} ms (most)"
    );
    assert!(
        cut > rounds / 5 && cut < rounds,
        "the kills were all alike: {cut}"
    );
    assert!(most < MOST_MS, "{took:?}");
}

/// Milliseconds until the next owner, and whether the answer was cut off. Afterwards there are
/// three workers again, and the model is loaded.
async fn kill_once(
    crowd: &mut Crowd<'_>,
    load: &Command,
    whole: Digest,
    (round, pause): (u32, Duration),
) -> (f64, bool) {
    // Locks are given in the order in which they were asked for; the youngest asks.
    let (owner, next) = (crowd.alive[0], crowd.alive[1]);
    let asker = *crowd.alive.last().unwrap();
    let request = 2 * round + 2;
    crowd.say(asker, &measure(request)).await;
    tokio::time::sleep(pause).await;
    let killed = crowd.kill(owner).await;
    let end = crowd.wait(asker, end_of(request)).await.1;
    assert!(end.is_none_or(|logits| logits == whole), "round {round}");
    let owns = |event: &Event| match event {
        Event::Role { role, .. } => (*role == TabRole::Owner).then_some(()),
        _ => None,
    };
    let owned = crowd.wait(next, owns).await.0;
    crowd.start().await;
    for number in crowd.alive.clone() {
        crowd.wait(number, ready).await;
        // Every page asks for what it had; one load comes of it.
        crowd.say(number, load).await;
    }
    for number in crowd.alive.clone() {
        crowd.wait(number, loaded).await;
    }
    // And it computes what it computed before.
    let last = *crowd.alive.last().unwrap();
    crowd.say(last, &measure(request + 1)).await;
    let logits = crowd.wait(last, end_of(request + 1)).await.1;
    assert_eq!(logits, Some(whole), "round {round}");
    (owned - killed, end.is_none())
}

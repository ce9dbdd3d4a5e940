//! How fast a model goes from browser to browser, beside a plain loop over a data channel that
//! sends as many bytes and looks at none; with the word `native`, between the native program and a
//! browser, beside the same loop of two browsers.
#![allow(clippy::unwrap_used)]

#[path = "../tests/model/mod.rs"]
mod model;
#[path = "../tests/someone/mod.rs"]
mod someone;

use e2e::{Engine, Native, Options, Server};
use model::Model;
use serde_json::{Value, json};
use someone::{Someone, TRANSFER, connect};

/// 24 MB, unless the environment says otherwise.
fn rows() -> u32 {
    let rows = std::env::var("ROWS").ok();
    rows.and_then(|rows| rows.parse().ok()).unwrap_or(192_000)
}

/// Notes when the first and the last bytes of the import came, and every task of the window that
/// took longer than 50 ms.
const WATCH: &str = "
    window.seen = { from: 0, to: 0, tasks: [] };
    try {
        new PerformanceObserver((list) => {
            for (const task of list.getEntries()) window.seen.tasks.push(task.duration);
        }).observe({ type: 'longtask' });
    } catch {}
    const timer = setInterval(() => {
        const bar = document.querySelector('#import-progress');
        const percent = Number(bar?.getAttribute('aria-valuenow') ?? 0);
        if (percent > 0 && !window.seen.from) {
            window.seen.from = performance.now();
            window.seen.percent = percent;
        }
        if (window.seen.from && !bar) {
            window.seen.to = performance.now();
            clearInterval(timer);
        }
    }, 20);";

/// Sends, with the same limit on what waits, messages of the same size.
const PLAIN_OFFER: &str = "
    const connection = window.plain = new RTCPeerConnection();
    const channel = window.channel = connection.createDataChannel('plain');
    channel.bufferedAmountLowThreshold = 262144;
    window.sending = new Promise((resolve) => {
        channel.onopen = async () => {
            const message = new Uint8Array(49158);
            for (let left = args[0]; left > 0; left -= message.length) {
                while (channel.bufferedAmount + message.length > 524288) {
                    await new Promise((low) => { channel.onbufferedamountlow = low; });
                }
                channel.send(message);
            }
            resolve();
        };
    });
    await connection.setLocalDescription(await connection.createOffer());
    while (connection.iceGatheringState !== 'complete') {
        await new Promise((later) => setTimeout(later, 20));
    }
    return connection.localDescription.sdp";

const PLAIN_ANSWER: &str = "
    const connection = window.plain = new RTCPeerConnection();
    window.came = { bytes: 0, from: 0, to: 0 };
    connection.ondatachannel = ({ channel }) => {
        channel.binaryType = 'arraybuffer';
        channel.onmessage = ({ data }) => {
            window.came.from ||= performance.now();
            window.came.bytes += data.byteLength;
            if (window.came.bytes >= args[1]) window.came.to ||= performance.now();
        };
    };
    await connection.setRemoteDescription({ type: 'offer', sdp: args[0] });
    await connection.setLocalDescription(await connection.createAnswer());
    while (connection.iceGatheringState !== 'complete') {
        await new Promise((later) => setTimeout(later, 20));
    }
    return connection.localDescription.sdp";

const PLAIN_ACCEPT: &str =
    "await window.plain.setRemoteDescription({ type: 'answer', sdp: args[0] })";

async fn plain(giver: &Someone, taker: &Someone, bytes: u64) -> f64 {
    let offer = giver
        .browser
        .js(PLAIN_OFFER, &[json!(bytes)])
        .await
        .unwrap();
    let answer = taker
        .browser
        .js(PLAIN_ANSWER, &[offer, json!(bytes)])
        .await
        .unwrap();
    giver.browser.js(PLAIN_ACCEPT, &[answer]).await.unwrap();
    let probe = "return Boolean(window.came.to) && window.came.to - window.came.from";
    let took = taker
        .browser
        .wait("the plain loop", TRANSFER, probe)
        .await
        .unwrap();
    giver.browser.js("window.plain.close()", &[]).await.unwrap();
    taker.browser.js("window.plain.close()", &[]).await.unwrap();
    bytes as f64 / 1000.0 / took.as_f64().unwrap()
}

async fn measure(from: Engine, to: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_rows(rows());
    let giver = Someone::with_model(from, &server, &model.path).await;
    let taker = Someone::new(to, &server).await;
    let before = plain(&giver, &taker, model.length).await;

    giver.browser.js(WATCH, &[]).await.unwrap();
    taker.browser.js(WATCH, &[]).await.unwrap();
    connect(&giver, &taker).await;
    taker.wait_model().await;
    let seen = taker.browser.js("return window.seen", &[]).await.unwrap();
    let shared = pace(&seen, &model);
    let after = plain(&giver, &taker, model.length).await;
    println!(
        "{from:?} to {to:?}: {shared:.1} MB/s shared, {before:.1} and {after:.1} MB/s plain, \
         {:.2} of it",
        shared / f64::midpoint(before, after)
    );
    let giving = giver.browser.js("return window.seen", &[]).await.unwrap();
    println!(
        "long tasks: giving {}, taking {}",
        tasks(&giving),
        tasks(&seen)
    );
}

/// Between the native program and browsers, both ways, found through a tracker.
async fn measure_native(engine: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_rows(rows());
    let giver = Someone::with_model(engine, &server, &model.path).await;
    let taker = Someone::new(engine, &server).await;
    let before = plain(&giver, &taker, model.length).await;

    let tracker = format!("ws://{}/announce", server.host);
    let slm = model.path.to_str().unwrap();
    let mut seed = Native::start(["seed", slm, "--tracker", &tracker]).unwrap();
    let link = seed.wait_for("Link: ").unwrap();
    taker.browser.js(WATCH, &[]).await.unwrap();
    taker.receive(&link).await;
    taker.wait_model().await;
    let seen = taker.browser.js("return window.seen", &[]).await.unwrap();
    drop(seed);
    let from_native = pace(&seen, &model);

    giver.browser.js(WATCH, &[]).await.unwrap();
    let link = giver.share_by_tracker(&server).await;
    let folder = tempfile::tempdir().unwrap();
    let got = folder.path().join("got.slm");
    let got = got.to_str().unwrap();
    let mut fetch = Native::start(["fetch", &link, "-o", got]).unwrap();
    let start = fetch.wait_for("Memory to run it: ");
    let start = start.map(|_| std::time::Instant::now()).unwrap();
    fetch.wait_for(got).unwrap();
    // The first piece came before.
    let bytes = model.length - (1 << 20);
    let to_native = bytes as f64 / 1e6 / start.elapsed().as_secs_f64();
    let giving = giver.browser.js("return window.seen", &[]).await.unwrap();
    let after = plain(&giver, &taker, model.length).await;
    let part = |pace: f64| pace / f64::midpoint(before, after);
    println!(
        "native to {engine:?}: {from_native:.1} MB/s, {:.2} of the plain loop, long tasks {}; \
         {engine:?} to native: {to_native:.1} MB/s, {:.2} of it, long tasks {}; \
         {before:.1} and {after:.1} MB/s plain",
        part(from_native),
        tasks(&seen),
        part(to_native),
        tasks(&giving),
    );
}

/// Megabytes a second of what came after the first piece.
fn pace(seen: &Value, model: &Model) -> f64 {
    let number = |key: &str| seen[key].as_f64().unwrap_or_default();
    let took = number("to") - number("from");
    assert!(took > 0.0);
    let share = 1.0 - number("percent") / 100.0;
    model.length as f64 * share / 1000.0 / took
}

fn tasks(seen: &Value) -> &Value {
    &seen["tasks"]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("native") => {
            measure_native(Engine::Chromium).await;
            measure_native(Engine::Firefox).await;
        }
        _ => measure(Engine::Chromium, Engine::Chromium).await,
    }
}

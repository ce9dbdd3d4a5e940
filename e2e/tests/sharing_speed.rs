//! How fast a model goes from browser to browser, beside a plain loop over a data channel that
//! sends as many bytes and looks at none. Figures are printed; none is asserted.
#![allow(clippy::unwrap_used)]

mod model;
mod someone;

use e2e::{Engine, Options, Server};
use serde_json::{Value, json};
use someone::{Someone, TRANSFER, connect};

/// 24 MiB.
const ROWS: u32 = 192_000;

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
    }, 5);";

/// Sends, with the same limit on what waits, messages of the same size.
const PLAIN_OFFER: &str = "
    const connection = window.plain = new RTCPeerConnection();
    const channel = window.channel = connection.createDataChannel('plain');
    channel.bufferedAmountLowThreshold = 65536;
    window.sending = new Promise((resolve) => {
        channel.onopen = async () => {
            const message = new Uint8Array(49158);
            for (let left = args[0]; left > 0; left -= message.length) {
                while (channel.bufferedAmount + message.length > 262144) {
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
    let probe = "return window.came.to && window.came.to - window.came.from";
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
    let model = model::of_rows(ROWS);
    let giver = Someone::with_model(from, &server, &model.path).await;
    let taker = Someone::new(to, &server).await;
    let before = plain(&giver, &taker, model.length).await;

    giver.browser.js(WATCH, &[]).await.unwrap();
    taker.browser.js(WATCH, &[]).await.unwrap();
    connect(&giver, &taker).await;
    taker.wait_model().await;
    let seen = taker.browser.js("return window.seen", &[]).await.unwrap();
    let number = |key: &str| seen[key].as_f64().unwrap_or_default();
    let took = number("to") - number("from");
    let share = 1.0 - number("percent") / 100.0;
    let shared = model.length as f64 * share / 1000.0 / took;
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
    assert!(took > 0.0);
}

fn tasks(seen: &Value) -> &Value {
    &seen["tasks"]
}

#[tokio::test]
async fn from_chromium_to_chromium() {
    measure(Engine::Chromium, Engine::Chromium).await;
}

//! Every lane's kernels against the scalar ones, inside a browser's own Wasm engine.
//!
//! The suite is the one that runs natively (`runtime::kernels`); here it checks the code that
//! this engine makes of the lane. A lane's module carries it as exports: `suite_count`, and
//! `suite_run(index)`, which answers 0 if the case holds.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{Browser, Engine, Folder, Profile, suite_lane};
use protocol::{LANES, Lane};
use serde_json::{Value, json};

/// Of the memory that a lane with threads is given: 64 MiB.
const SHARED_PAGES: u32 = 1024;
/// Runs all cases on one thread, giving the browser air between them; answers the count and what
/// failed.
const RUN: &str = "
    const bytes = await (await fetch(args[0])).arrayBuffer();
    const pages = args[1];
    const memory = pages &&
        new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const imports = { env: { host_read: () => 7, memory } };
    const { instance } = await WebAssembly.instantiate(bytes, imports);
    const { suite_count, suite_run } = instance.exports;
    const count = suite_count();
    const failed = [];
    for (let index = 0; index < count; index++) {
        let code;
        try { code = suite_run(index); } catch (error) { code = String(error); }
        if (code !== 0) failed.push([index, code]);
        await new Promise((resume) => setTimeout(resume, 0));
    }
    return { count, failed };";

#[tokio::test]
async fn every_lane_passes_the_kernel_suite_in_chromium() {
    every_lane_passes_the_kernel_suite(Engine::Chromium, LANES).await;
}

#[tokio::test]
async fn every_lane_passes_the_kernel_suite_in_firefox() {
    every_lane_passes_the_kernel_suite(Engine::Firefox, LANES).await;
}

/// It has neither shared memory nor relaxed vectors.
#[tokio::test]
async fn every_lane_that_webkit_has_passes_the_kernel_suite() {
    let lanes: Vec<Lane> = LANES
        .iter()
        .filter(|lane| Engine::WebKit.has(lane.required_features))
        .copied()
        .collect();
    assert_eq!(lanes.len(), 2);
    every_lane_passes_the_kernel_suite(Engine::WebKit, &lanes).await;
}

async fn every_lane_passes_the_kernel_suite(engine: Engine, lanes: &[Lane]) {
    let files = lanes
        .iter()
        .map(|lane| {
            let path = suite_lane(lane.name).unwrap();
            (format!("{}.wasm", lane.name), std::fs::read(path).unwrap())
        })
        .collect();
    let folder = Folder::serve(files).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    browser.client.goto(&folder.address).await.unwrap();
    for lane in lanes {
        let url = format!("{}{}.wasm", folder.address, lane.name);
        let pages = lane.has_threads().then_some(SHARED_PAGES);
        let outcome = browser.js(RUN, &[json!(url), json!(pages)]).await.unwrap();
        println!("{engine:?}, {}: {outcome}", lane.name);
        assert_eq!(outcome["failed"], Value::Array(Vec::new()), "{}", lane.name);
        assert!(outcome["count"].as_u64() > Some(0), "{}", lane.name);
    }
}

/// The harness itself: what waits must end, and a script that throws must be told from one that
/// answers.
#[tokio::test]
async fn a_script_that_throws_and_a_wait_in_vain_are_errors() {
    let folder = Folder::serve(Vec::new()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    browser.client.goto(&folder.address).await.unwrap();
    assert_eq!(
        browser.js("return args[0] + 1", &[json!(1)]).await.unwrap(),
        2
    );
    let thrown = browser.js("throw new Error('no')", &[]).await.unwrap_err();
    assert!(thrown.to_string().contains("Error: no"), "{thrown}");
    let waited = browser
        .wait("a miracle", Duration::from_millis(100), "return false")
        .await;
    let waited = waited.unwrap_err().to_string();
    assert!(waited.contains("no a miracle"), "{waited}");
}

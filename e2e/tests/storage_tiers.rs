//! The two storages that browsers have, held to the suite of every backend, and an import whose
//! worker is killed again and again.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{Browser, Engine, Folder, Profile, store_suite};
use serde_json::json;

/// How long the import's worker lives, several times over: from before its storage is open to
/// somewhere among its 24 pieces.
const LIVES_MS: [u64; 8] = [40, 80, 120, 160, 200, 250, 300, 400];

const WORKER: &str = "
    import init, { run, live } from './store_suite.js';
    await init();
    const [what, tier] = new URLSearchParams(location.search).get('do').split(',');
    try { postMessage({ answer: await (what === 'run' ? run(tier) : live(tier)) }); }
    catch (error) { postMessage({ error: String(error) }); }";
/// Starts the worker; ends it after `args[1]` milliseconds if that is not null.
const ASK: &str = "
    const worker = new Worker(`worker.js?do=${args[0]}`, { type: 'module' });
    const answer = await new Promise((resume) => {
        worker.onmessage = (message) => resume(message.data);
        worker.onerror = (error) => resume({ error: error.message });
        if (args[1] !== null) setTimeout(() => resume({ killed: true }), args[1]);
    });
    worker.terminate();
    return answer;";

#[tokio::test]
async fn both_storages_conform_in_chromium() {
    conform(
        Engine::Chromium,
        &[("opfs", "files"), ("indexeddb", "blobs")],
    )
    .await;
}

#[tokio::test]
async fn both_storages_conform_in_firefox() {
    conform(
        Engine::Firefox,
        &[("opfs", "files"), ("indexeddb", "blobs")],
    )
    .await;
}

/// It has no private file system, and under its driver a database of a private window, which
/// stores no blobs.
#[tokio::test]
async fn indexeddb_conforms_in_webkit() {
    conform(Engine::WebKit, &[("indexeddb", "bytes")]).await;
}

async fn conform(engine: Engine, tiers: &[(&str, &str)]) {
    let [glue, module] = store_suite().unwrap();
    let folder = Folder::serve(vec![
        ("worker.js".into(), WORKER.as_bytes().to_vec()),
        ("store_suite.js".into(), std::fs::read(glue).unwrap()),
        ("store_suite_bg.wasm".into(), std::fs::read(module).unwrap()),
    ]);
    let folder = folder.unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    browser.client.goto(&folder.address).await.unwrap();
    let ask = async |what: &str, tier: &str, life: Option<u64>| {
        let words = [json!(format!("{what},{tier}")), json!(life)];
        let asked = browser.js(ASK, &words);
        tokio::time::timeout(Duration::from_secs(120), asked)
            .await
            .unwrap()
            .unwrap()
    };
    for (tier, form) in tiers {
        let answer = ask("run", tier, None).await;
        assert_eq!(
            answer["answer"],
            json!(form),
            "{engine:?}, {tier}: {answer}"
        );
        for life in LIVES_MS {
            let answer = ask("live", tier, Some(life)).await;
            // On a fast machine it may come to its end; it must not come to a failure.
            assert!(answer["error"].is_null(), "{engine:?}, {tier}: {answer}");
        }
        let answer = ask("live", tier, None).await;
        println!("{engine:?}, {tier}: {answer} pieces were left by earlier lives");
        assert!(answer["answer"].is_u64(), "{engine:?}, {tier}: {answer}");
    }
}

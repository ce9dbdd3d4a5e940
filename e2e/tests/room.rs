//! Room that runs out in the middle, a download that a person stops, and a file that takes no room.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use e2e::{
    Act, Browser, Engine, Options, Page, Profile, Script, Scripted, Server, convert, golden,
    model_slm,
};
use serde_json::json;

const MODEL: &str = "/models/SmolLM2-135M-Instruct.slm";
const LONG: Duration = Duration::from_secs(180);
const SOON: Duration = Duration::from_secs(60);
/// Milliseconds for 64 KiB: with four requests the model takes some ten seconds.
const BRISK: Act = Act::Trickle(20);
/// Chromium asks for the quota of a database only every half minute; the model takes longer.
const SLOW: Act = Act::Trickle(100);
/// What is written down at the latest, and what can be under way then.
const UNRECORDED: u64 = 2 * 16 * 1024 * 1024;

/// The app, and its model at a walking pace.
struct Slow {
    server: Scripted,
    length: u64,
    _app: Server,
}

impl Slow {
    fn new(then: Act) -> Slow {
        let app = Server::start(Options::default()).unwrap();
        let body = Arc::new(std::fs::read(model_slm().unwrap()).unwrap());
        let length = body.len() as u64;
        let script = Script {
            body,
            acts: Vec::new(),
            then,
        };
        let server = Scripted::start(vec![(MODEL, script)], Some(app.host.clone())).unwrap();
        Slow {
            server,
            length,
            _app: app,
        }
    }

    fn sent(&self) -> u64 {
        let asked = self.server.asked();
        let of_model = asked.iter().filter(|asked| asked.path == MODEL);
        of_model.map(|asked| asked.sent).sum()
    }
}

async fn set_quota(browser: &Browser, origin: &str, quota: Option<u64>) {
    let origin = format!("http://{origin}");
    let parameters = match quota {
        Some(quota) => json!({ "origin": origin, "quotaSize": quota }),
        None => json!({ "origin": origin }),
    };
    let command = "Storage.overrideQuotaForOrigin";
    browser.chromium(command, &parameters).unwrap();
}

/// The quota shrinks under a download, as when other sites fill the disk. The database tier is the
/// one that it can hit: the private file system has reserved its room before the first byte.
#[tokio::test]
async fn room_that_runs_out_midway_costs_nothing_that_has_come() {
    let slow = Slow::new(SLOW);
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(Engine::Chromium, &profile)
        .await
        .unwrap();
    let address = slow.server.url("/?storage=indexeddb");
    let page = Page::open(&browser, &address).await.unwrap();
    // Something that could be deleted.
    let folder = tempfile::tempdir().unwrap();
    let tiny = folder.path().join("tiny.slm");
    convert(
        &golden().unwrap().join("tiny/llama_gqa_tied"),
        "q8_0",
        &tiny,
    )
    .unwrap();
    page.choose(&tiny).await.unwrap();
    page.wait_state("ready", SOON).await.unwrap();

    let click = "
        location.hash = '#/models';
        const found = [...document.querySelectorAll('button')]
            .find((button) => button.innerText.trim() === args[0] && !button.disabled);
        found?.click();
        return Boolean(found);";
    let get = [json!("Get")];
    while browser.js(click, &get).await.unwrap() != true {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    page.wait_percent(4, LONG).await.unwrap();
    set_quota(&browser, &slow.server.host, Some(1_000_000)).await;
    let told = page.wait_text("#error", SOON).await.unwrap();
    println!("told: {told}");
    assert!(told.contains("no room left"), "{told}");
    assert!(
        told.contains(" MB of the model are still to come"),
        "{told}"
    );
    assert!(told.contains("Delete a model"), "{told}");
    let proposed = page.wait_text("#make-room li", SOON).await.unwrap();
    assert!(!proposed.is_empty(), "what could be deleted is shown");
    let stopped = page.wait_text(".import .phase", SOON).await.unwrap();
    assert!(stopped.contains("are kept"), "{stopped}");
    let before = slow.sent();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(slow.sent() <= before + 4 * 64 * 1024, "it still fetches");

    // Room is made, and it goes on with what is missing.
    set_quota(&browser, &slow.server.host, None).await;
    let go_on = [json!("Continue")];
    assert_eq!(browser.js(click, &go_on).await.unwrap(), true);
    page.wait_state("ready", LONG).await.unwrap();
    let sent = slow.sent();
    assert!(
        sent <= slow.length + UNRECORDED,
        "{sent} of {} went out",
        slow.length
    );
}

/// From a person's press to the last byte and to a file that anybody may open again.
#[tokio::test]
async fn a_stopped_download_asks_for_nothing_more() {
    let slow = Slow::new(BRISK);
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(Engine::Chromium, &profile)
        .await
        .unwrap();
    let page = Page::open(&browser, &slow.server.url("/")).await.unwrap();
    page.click("#get-default").await.unwrap();
    page.wait_percent(20, LONG).await.unwrap();
    // In the page's own clock: from the press until the very file can be opened for writing.
    let script = "
        const root = await navigator.storage.getDirectory();
        const models = await root.getDirectoryHandle('models');
        let part;
        for await (const name of models.keys()) if (name.endsWith('.part')) part = name;
        const file = await models.getFileHandle(part);
        const isFree = () => file.createWritable().then((open) => open.abort(),
            ({ name }) => name === 'NoModificationAllowedError' ? 'taken' : name);
        if (await isFree() !== 'taken') return 'nobody writes the file';
        const [pressed, at] = [performance.now(), Date.now()];
        document.querySelector('#import-cancel').click();
        while (await isFree() === 'taken') await new Promise((soon) => setTimeout(soon, 2));
        return [at, performance.now() - pressed];";
    let measured = browser.js(script, &[]).await.unwrap();
    let (Some(at_ms), Some(free_ms)) = (measured[0].as_u64(), measured[1].as_f64()) else {
        panic!("{measured}");
    };
    let asked = slow.server.asked();
    let last = asked.iter().map(|asked| asked.last).max().unwrap();
    let last = last.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let last_ms = (last.as_millis() as u64).saturating_sub(at_ms);
    println!("file free after {free_ms:.0} ms, last bytes sent after {last_ms} ms");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let later = slow.server.asked();
    assert_eq!(later.len(), asked.len(), "a request after the stop");
    // What the server had already given to the socket may still count.
    let grown = slow.sent() - asked.iter().map(|asked| asked.sent).sum::<u64>();
    assert!(grown <= 4 * 64 * 1024, "{grown} bytes after the stop");
}

/// A person's own file is used where it lies, and gone with the page.
async fn try_a_file(engine: Engine) {
    let empty = tempfile::tempdir().unwrap();
    let server = Server::start(Options {
        models: Some(empty.path().to_owned()),
        ..Options::default()
    });
    let server = server.unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("empty", SOON).await.unwrap();
    let file = model_slm().unwrap();
    page.choose_in("#borrow-input", &file).await.unwrap();
    page.wait_state("ready", LONG).await.unwrap();
    let answer = page.ask("Name a color.", LONG).await.unwrap();
    assert!(!answer.is_empty());
    assert!(page.stored_models().await.unwrap().is_empty());
    browser.js("location.hash = '#/models'", &[]).await.unwrap();
    let told = page.wait_text(".card .warn", SOON).await.unwrap();
    assert!(told.contains("not copied"), "{told}");
    page.reload().await.unwrap();
    page.wait_state("empty", SOON).await.unwrap();
    // It was never kept, so nothing has been lost.
    assert_eq!(page.text("#error").await.unwrap(), "");
}

#[tokio::test]
async fn a_file_can_be_tried_without_being_kept_in_chromium() {
    try_a_file(Engine::Chromium).await;
}

#[tokio::test]
async fn a_file_can_be_tried_without_being_kept_in_firefox() {
    try_a_file(Engine::Firefox).await;
}

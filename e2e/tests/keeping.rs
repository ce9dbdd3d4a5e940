//! What is kept, as a person sees it: each tier of storage, export and import, eviction, damage.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{Browser, Engine, Options, Profile, Server, convert, golden};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);
/// The models on the page Models: name, words and root of each.
const CARDS: &str = "
    return [...document.querySelectorAll('.card')]
        .filter((card) => card.querySelector('.hash'))
        .map((card) => ({
            words: card.innerText,
            root: card.querySelector('.hash').innerText,
        }));";
/// Gives the file field a file that the page itself has.
const PICK: &str = "
    const carried = new DataTransfer();
    carried.items.add(new File([window.taken], 'elsewhere.slm'));
    const field = document.getElementById('file-input');
    field.files = carried.files;
    field.dispatchEvent(new Event('change', { bubbles: true }));
    return true;";

/// The app with one small model in its catalogue, and a browser that has opened it.
struct Visit {
    // Ends first: it uses all the others.
    browser: Browser,
    server: Server,
    _models: tempfile::TempDir,
    _profile: Profile,
}

impl Visit {
    async fn begin(engine: Engine, query: &str) -> Visit {
        let models = tempfile::tempdir().unwrap();
        let model = models.path().join("tiny.slm");
        let source = golden().unwrap().join("tiny/llama_gqa_tied");
        convert(&source, "q8_0", &model).unwrap();
        let server = Server::start(Options {
            models: Some(models.path().to_owned()),
            ..Options::default()
        });
        let profile = Profile::fresh().unwrap();
        let browser = Browser::start_engine(engine, &profile).await.unwrap();
        let visit = Visit {
            browser,
            server: server.unwrap(),
            _models: models,
            _profile: profile,
        };
        visit.open(query).await;
        visit
    }

    async fn open(&self, query: &str) {
        let address = format!("http://{}/{query}#/models", self.server.host);
        self.browser.client.goto(&address).await.unwrap();
        let up = "return !['starting', undefined].includes(document.documentElement.dataset.state)";
        self.browser.wait("start", SOON, up).await.unwrap();
    }
}

async fn click(browser: &Browser, words: &str) {
    let script = "
        const found = [...document.querySelectorAll('button')]
            .find((button) => button.innerText.trim() === args[0] && !button.disabled);
        found?.click();
        return Boolean(found);";
    let start = std::time::Instant::now();
    while browser.js(script, &[json!(words)]).await.unwrap() != true {
        assert!(start.elapsed() < SOON, "no button {words:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn cards(browser: &Browser) -> Vec<Value> {
    let cards = browser.js(CARDS, &[]).await.unwrap();
    cards.as_array().unwrap().clone()
}

/// Gets the offered model, waits until it is loaded, and looks at the list.
async fn get(browser: &Browser) -> String {
    click(browser, "Get").await;
    loaded(browser).await;
    cards(browser).await[0]["root"].as_str().unwrap().to_owned()
}

/// A loaded model leads to the chat; back from there to the list.
async fn loaded(browser: &Browser) {
    let ready = "return document.documentElement.dataset.state === 'ready'";
    browser.wait("the model", SOON, ready).await.unwrap();
    models_again(browser).await;
}

async fn models_again(browser: &Browser) {
    let script = "location.hash = '#/models'; return true";
    browser.js(script, &[]).await.unwrap();
    let there = "return Boolean(document.getElementById('space'))";
    browser.wait("the page Models", SOON, there).await.unwrap();
}

/// Out of the browser's storage as a file, away, and in again: the same model.
async fn round_trip(engine: Engine, query: &str, has_picker: bool) {
    let visit = Visit::begin(engine, query).await;
    let browser = &visit.browser;
    let root = get(browser).await;
    // A person's dialog is answered by a file of the page; a download is caught at its address.
    let catch = "
        if (args[0]) {
            const folder = await navigator.storage.getDirectory();
            const file = await folder.getFileHandle('chosen.slm', { create: true });
            window.showSaveFilePicker = async (options) => {
                window.suggested = options.suggestedName;
                return file;
            };
            window.take = async () => {
                const there = await file.getFile();
                return there.size > 0 ? there : null;
            };
        } else {
            delete window.showSaveFilePicker;
            window.showSaveFilePicker = undefined;
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { window.caught = blob; return make.call(URL, blob); };
            HTMLAnchorElement.prototype.click = function () { window.suggested = this.download; };
            window.take = async () => window.caught ?? null;
        }
        return true;";
    browser.js(catch, &[json!(has_picker)]).await.unwrap();
    click(browser, "Save as a file").await;
    let taken = "
        const file = await window.take?.();
        if (!file) return false;
        window.taken = new Blob([await file.arrayBuffer()]);
        return window.suggested;";
    let name = browser.wait("the file", SOON, taken).await.unwrap();
    assert!(name.as_str().unwrap().ends_with(".slm"), "{name}");

    click(browser, "Delete").await;
    click(browser, "Really delete").await;
    let gone = format!("return (() => {{ {CARDS} }})().length === 0");
    browser.wait("the deletion", SOON, &gone).await.unwrap();
    browser.js(PICK, &[]).await.unwrap();
    loaded(browser).await;
    assert_eq!(cards(browser).await[0]["root"], json!(root));
    // A person deleted it, so nothing is missed.
    let told = browser.js("return document.getElementById('error')?.innerText", &[]);
    let told = told.await.unwrap().to_string();
    assert!(!told.contains("removed"), "{told}");
}

#[tokio::test]
async fn an_exported_model_comes_back_in_chromium() {
    round_trip(Engine::Chromium, "", true).await;
}

#[tokio::test]
async fn a_downloaded_model_comes_back_in_firefox() {
    round_trip(Engine::Firefox, "", false).await;
}

#[tokio::test]
async fn a_model_in_the_database_comes_back_in_chromium() {
    round_trip(Engine::Chromium, "?storage=indexeddb", false).await;
}

/// Kept over a reload in a database, where there is no private file system at all.
#[tokio::test]
async fn webkit_keeps_models_in_its_database() {
    let visit = Visit::begin(Engine::WebKit, "").await;
    let browser = &visit.browser;
    let root = get(browser).await;
    browser.client.refresh().await.unwrap();
    let here = format!("return (() => {{ {CARDS} }})().length === 1");
    browser.wait("the kept model", SOON, &here).await.unwrap();
    assert_eq!(cards(browser).await[0]["root"], json!(root));
    let words = browser.js("return document.getElementById('space').innerText", &[]);
    let words = words.await.unwrap().to_string();
    assert!(words.contains("Database of this browser"), "{words}");
}

/// No storage at all: a banner says so, and everything works until the page is closed.
#[tokio::test]
async fn without_any_storage_a_banner_says_so() {
    let visit = Visit::begin(Engine::Chromium, "?storage=memory").await;
    let browser = &visit.browser;
    let banner = "return document.getElementById('memory-only')?.innerText";
    let words = browser.wait("the banner", SOON, banner).await.unwrap();
    assert!(words.as_str().unwrap().contains("gone when"), "{words}");
    get(browser).await;
    visit.open("?storage=memory&again").await;
    assert_eq!(cards(browser).await.len(), 0);
    // What another storage holds was not removed by anybody.
    let told = browser.js(
        "return document.getElementById('error')?.innerText ?? ''",
        &[],
    );
    assert_eq!(told.await.unwrap(), json!(""));
}

/// A quota that is too small is told before the first byte, and nothing stays behind. Chromium
/// gives figures that mean nothing, so it is the reservation that is refused.
#[tokio::test]
async fn a_small_quota_is_told_before_the_first_byte() {
    let visit = Visit::begin(Engine::Chromium, "").await;
    let browser = &visit.browser;
    let origin = format!("http://{}", visit.server.host);
    let small = json!({ "origin": origin, "quotaSize": 20_000 });
    browser
        .chromium("Storage.overrideQuotaForOrigin", &small)
        .unwrap();
    click(browser, "Get").await;
    let told = "return document.getElementById('error')?.innerText";
    let words = browser.wait("the refusal", SOON, told).await.unwrap();
    assert!(words.as_str().unwrap().contains("no room left"), "{words}");
    assert_eq!(cards(browser).await.len(), 0);
    let usual = json!({ "origin": origin });
    browser
        .chromium("Storage.overrideQuotaForOrigin", &usual)
        .unwrap();
    get(browser).await;
}

/// The browser removes a model while nobody looks, and a bit of another one flips.
#[tokio::test]
async fn eviction_is_told_and_damage_is_repaired() {
    let visit = Visit::begin(Engine::Chromium, "").await;
    let browser = &visit.browser;
    let root = get(browser).await;
    // Away from the page, so that its worker lets go of the file.
    let blank = format!("http://{}/icons/mark.svg", visit.server.host);
    browser.client.goto(&blank).await.unwrap();
    let flip = "
        const models = await (await navigator.storage.getDirectory()).getDirectoryHandle('models');
        const file = await models.getFileHandle(`${args[0]}.slm`);
        const size = (await file.getFile()).size;
        const writable = await file.createWritable({ keepExistingData: true });
        const at = size - 9;
        const byte = new Uint8Array(await (await file.getFile()).slice(at, at + 1).arrayBuffer());
        await writable.write({ type: 'write', position: at, data: Uint8Array.of(byte[0] ^ 1) });
        await writable.close();
        return true;";
    browser.js(flip, &[json!(root)]).await.unwrap();
    visit.open("").await;
    let damaged = "
        const warnings = [...document.querySelectorAll('.card .warn')];
        return warnings.map((it) => it.innerText).find((it) => it.includes('have changed'));";
    let words = browser.wait("the damage", SOON, damaged).await.unwrap();
    assert!(words.as_str().unwrap().contains("bad pieces"), "{words}");
    click(browser, "Repair").await;
    loaded(browser).await;

    browser.client.goto(&blank).await.unwrap();
    let evict = "
        await (await navigator.storage.getDirectory()).removeEntry('models', { recursive: true });
        return true;";
    browser.js(evict, &[]).await.unwrap();
    visit.open("").await;
    let told = "return document.getElementById('error')?.innerText";
    let words = browser.wait("the news", SOON, told).await.unwrap();
    assert!(
        words.as_str().unwrap().contains("browser has removed"),
        "{words}"
    );
}

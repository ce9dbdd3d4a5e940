//! A person's imports from a server that misbehaves, through the real interface. The server counts:
//! nothing that was verified is sent twice, and nothing is asked for that nobody wanted.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::{
    Act, Asked, Browser, Engine, Options, Page, Profile, Script, Scripted, Server, model_slm,
};
use fantoccini::Locator;

const MODEL: &str = "/models/SmolLM2-135M-Instruct.slm";
const IMPORT: Duration = Duration::from_secs(180);
const SOON: Duration = Duration::from_secs(30);
const EARLY: u64 = 70_000;
const LONG: usize = 300_000;

/// Each of these once, in this order; then the server is good.
const ACTS: [Act; 10] = [
    Act::Good,
    Act::Short(1_500_000),
    Act::Early(EARLY),
    Act::Ranged200,
    Act::Busy(429, 2),
    Act::Refuse,
    Act::Status(503),
    Act::Long(LONG),
    Act::Short(0),
    Act::Lead("/signed/model"),
];

#[tokio::test]
async fn a_server_that_misbehaves_costs_nothing_twice_in_chromium() {
    walk(Engine::Chromium).await;
}

#[tokio::test]
async fn a_server_that_misbehaves_costs_nothing_twice_in_firefox() {
    walk(Engine::Firefox).await;
}

async fn walk(engine: Engine) {
    let app = Server::start(Options::default()).unwrap();
    let body = Arc::new(std::fs::read(model_slm().unwrap()).unwrap());
    let script = |acts: &[Act], then| Script {
        body: Arc::clone(&body),
        acts: acts.to_vec(),
        then,
    };
    let scripts = vec![
        (MODEL, script(&ACTS, Act::Good)),
        (
            "/signed/model",
            script(&[Act::Good, Act::Status(403)], Act::Good),
        ),
        ("/odd/page.gguf", script(&[], Act::Page)),
        ("/odd/missing.slm", script(&[], Act::Status(404))),
        (
            "/odd/copy.slm",
            script(&[Act::Good, Act::Short(99_999)], Act::Good),
        ),
    ];
    let server = Scripted::start(scripts, Some(app.host.clone())).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    let page = Page::open(&browser, &server.url("/")).await.unwrap();
    page.wait_state("empty", IMPORT).await.unwrap();
    nothing_was_asked_unasked(&server);

    page.click("#get-default").await.unwrap();
    let lulls = watch(page).await;
    assert!(
        lulls.iter().any(|words| words.contains("tried again")),
        "a wait was told: {lulls:?}"
    );
    let length = body.len() as u64;
    let sent = sent(&server.asked(), "/odd/");
    let surplus = EARLY + LONG as u64;
    assert!(
        (length..=length + surplus).contains(&sent),
        "{sent} of {length}"
    );
    assert_eq!(page.text("#error").await.unwrap(), "");

    refused(page, &browser, &server.url("/odd/page.gguf"), "web page").await;
    refused(page, &browser, &server.url("/odd/missing.slm"), "404").await;
    // The model once more, from an address that nobody vouches for: it is found to be here.
    let before = page.stored_models().await.unwrap();
    name_address(page, &browser, &server.url("/odd/copy.slm")).await;
    page.wait_state("importing", SOON).await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();
    assert_eq!(page.stored_models().await.unwrap(), before);
    let asked = server.asked();
    let copies = asked.iter().filter(|asked| asked.path == "/odd/copy.slm");
    assert_eq!(copies.map(|asked| asked.sent).sum::<u64>(), length);
}

#[tokio::test]
async fn a_reload_goes_on_by_itself() {
    let app = Server::start(Options::default()).unwrap();
    let body = Arc::new(std::fs::read(model_slm().unwrap()).unwrap());
    let length = body.len() as u64;
    let script = Script {
        body,
        acts: Vec::new(),
        then: Act::Slow(700),
    };
    let scripts = vec![(MODEL, script)];
    let server = Scripted::start(scripts, Some(app.host.clone())).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("/")).await.unwrap();
    page.click("#get-default").await.unwrap();
    page.wait_percent(40, IMPORT).await.unwrap();
    page.reload().await.unwrap();
    // Nobody touches anything.
    page.wait_state("ready", IMPORT).await.unwrap();
    let sent = sent(&server.asked(), "/odd/");
    // What was under way and what was not yet recorded comes again, and no more.
    let again = 2 * 16 * 1024 * 1024 + 1024 * 1024;
    assert!(sent <= length + again, "{sent} of {length}");
}

/// The app itself asks for its own files and for the list of models, and for nothing else.
fn nothing_was_asked_unasked(server: &Scripted) {
    assert!(server.asked().is_empty());
    for path in server.paths() {
        let is_model = [".slm", ".gguf", ".pieces"]
            .iter()
            .any(|ending| path.ends_with(ending));
        assert!(!is_model, "{path} was asked for by nobody");
    }
}

/// Waits for the model; every sentence of a wait that was shown.
async fn watch(page: Page<'_>) -> Vec<String> {
    let start = Instant::now();
    let mut lulls = Vec::new();
    while page.state().await.unwrap() != "ready" {
        let error = page.text("#error").await.unwrap();
        assert!(
            start.elapsed() < IMPORT,
            "no model; waits were {lulls:?}, {error:?}"
        );
        let words = page.text("#import-lull").await.unwrap();
        if !words.is_empty() && lulls.last() != Some(&words) {
            lulls.push(words);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    lulls
}

async fn name_address(page: Page<'_>, browser: &Browser, url: &str) {
    browser.js("location.hash = '#/models'", &[]).await.unwrap();
    page.wait_text("label[for=address-input]", SOON)
        .await
        .unwrap();
    let field = Locator::Css("#address-input");
    let field = browser.client.find(field).await.unwrap();
    field.clear().await.unwrap();
    field.send_keys(url).await.unwrap();
    page.click("#address-get").await.unwrap();
}

/// The address is refused in these words.
async fn refused(page: Page<'_>, browser: &Browser, url: &str, words: &str) {
    name_address(page, browser, url).await;
    let start = Instant::now();
    loop {
        let error = page.text("#error").await.unwrap();
        if error.contains(words) {
            break;
        }
        assert!(
            start.elapsed() < SOON,
            "{url}: {error:?} does not say {words:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    page.wait_state("ready", SOON).await.unwrap();
}

/// Bytes of the model that went out, but for addresses that begin so.
fn sent(asked: &[Asked], but: &str) -> u64 {
    let of_file = |asked: &&Asked| {
        let is_word = matches!(asked.act, Act::Status(_) | Act::Busy(..) | Act::Lead(_));
        !is_word && !asked.path.starts_with(but)
    };
    asked.iter().filter(of_file).map(|asked| asked.sent).sum()
}

//! A model goes from browser to browser: by two codes without any server between them, and
//! through a tracker; the source dies half way and another takes its place; the tab that takes is
//! closed half way and the next one goes on.
//!
//! The native program's part is in `peers.rs`; what liars do is proved in `p2p`.
#![allow(clippy::unwrap_used)]

mod model;

use std::path::Path;
use std::time::Duration;

use e2e::{Browser, Engine, Options, Page, Profile, Server};
use serde_json::json;

const START: Duration = Duration::from_secs(120);
const TRANSFER: Duration = Duration::from_secs(120);
const CODE: Duration = Duration::from_secs(30);

/// A browser with a profile of its own, on the page of models.
struct Someone {
    browser: Browser,
    _profile: Profile,
}

impl Someone {
    async fn new(engine: Engine, server: &Server) -> Someone {
        let profile = Profile::fresh().unwrap();
        let browser = Browser::start_engine(engine, &profile).await.unwrap();
        Page::open(&browser, &server.url("#/models")).await.unwrap();
        Someone {
            browser,
            _profile: profile,
        }
    }

    /// With the model in storage, from a file.
    async fn with_model(engine: Engine, server: &Server, file: &Path) -> Someone {
        let someone = Someone::new(engine, server).await;
        someone.page().choose(file).await.unwrap();
        // It is loaded at once, which leads to the chat.
        someone.wait_model().await;
        someone.click("#nav-models").await;
        someone
    }

    fn page(&self) -> Page<'_> {
        Page::shown(&self.browser)
    }

    async fn click(&self, selector: &str) {
        self.page().click(selector).await.unwrap();
    }

    async fn wait_model(&self) {
        self.page().wait_state("ready", TRANSFER).await.unwrap();
    }

    /// The first value that a field has.
    async fn value(&self, selector: &str) -> String {
        let probe = format!("return document.querySelector('{selector}')?.value ?? ''");
        let value = self.browser.wait(selector, CODE, &probe).await.unwrap();
        value.as_str().unwrap().to_owned()
    }

    async fn fill(&self, selector: &str, words: &str) {
        let script = "
            const field = document.querySelector(args[0]);
            field.value = args[1];
            field.dispatchEvent(new Event('input', { bubbles: true }));";
        self.browser
            .js(script, &[json!(selector), json!(words)])
            .await
            .unwrap();
    }

    /// Waits until so many percent of a model have come.
    async fn wait_percent(&self, percent: u64) {
        self.page().wait_percent(percent, TRANSFER).await.unwrap();
    }

    async fn files(&self) -> Vec<String> {
        self.page().stored_models().await.unwrap()
    }

    /// Shares the one model that is here, by an offer for one person: the link with it.
    async fn offer(&self) -> String {
        self.click(".share-offer").await;
        self.value(".share-code").await
    }

    async fn share(&self) -> String {
        self.click(".share").await;
        self.value(".share-link").await
    }

    /// Pastes a link, and agrees.
    async fn receive(&self, link: &str) {
        self.click("#nav-models").await;
        self.fill("#receive-input", link).await;
        self.click("#receive-start").await;
    }
}

/// Two steps without a server: an offer in the link, and a code that goes back.
async fn connect(giver: &Someone, taker: &Someone) {
    giver.share().await;
    let link = giver.offer().await;
    assert!(link.contains("&offer="), "{link}");
    taker.receive(&link).await;
    let answer = taker.value("#receive-answer").await;
    giver.fill(".share-answer", &answer).await;
    giver.click(".share-connect").await;
}

async fn by_codes(from: Engine, to: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let giver = Someone::with_model(from, &server, &model.path).await;
    let taker = Someone::new(to, &server).await;
    connect(&giver, &taker).await;
    taker.wait_model().await;
    let whole = format!("{}.slm", model.root);
    assert!(
        taker.files().await.contains(&whole),
        "{:?}",
        taker.files().await
    );
    assert_eq!(taker.page().text("#error").await.unwrap(), "");
}

#[tokio::test]
async fn by_two_codes_from_chromium_to_chromium() {
    by_codes(Engine::Chromium, Engine::Chromium).await;
}

#[tokio::test]
async fn by_two_codes_from_chromium_to_firefox() {
    by_codes(Engine::Chromium, Engine::Firefox).await;
}

#[tokio::test]
async fn by_two_codes_from_firefox_to_chromium() {
    by_codes(Engine::Firefox, Engine::Chromium).await;
}

/// What has come stays, and only the rest comes from the next source.
#[tokio::test]
async fn a_source_that_dies_is_replaced_by_another() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let first = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let second = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let taker = Someone::new(Engine::Firefox, &server).await;
    // Slow enough to be killed half way.
    first.share().await;
    slow(&first).await;
    let link = first.offer().await;
    taker.receive(&link).await;
    let answer = taker.value("#receive-answer").await;
    first.fill(".share-answer", &answer).await;
    first.click(".share-connect").await;
    taker.wait_percent(30).await;
    first.browser.crash();

    second.share().await;
    let link = second.offer().await;
    // The same transfer, one more peer.
    taker.fill("#receive-input", &link).await;
    taker.click("#receive-start").await;
    let answer = taker.value("#receive-answer").await;
    second.fill(".share-answer", &answer).await;
    second.click(".share-connect").await;
    taker.wait_model().await;
    let whole = format!("{}.slm", model.root);
    assert!(taker.files().await.contains(&whole));
}

/// At most 200 kB/s.
async fn slow(giver: &Someone) {
    let script = "
        const select = document.querySelector('.share-speed select');
        select.value = '3';
        select.dispatchEvent(new Event('change', { bubbles: true }));";
    giver.browser.js(script, &[]).await.unwrap();
}

//! A model goes from browser to browser: by two codes without any server between them, and
//! through a tracker; the source dies half way and another takes its place; the tab that takes is
//! closed half way and the next one goes on.
//!
//! The native program's part is in `native_peer.rs` and `cli/tests`; what liars do is proved in
//! `p2p`.
#![allow(clippy::unwrap_used)]

mod model;
mod someone;

use e2e::{Engine, Options, Server};
use someone::{CODE, Someone, connect};

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

/// At most 1 MB/s.
async fn slow(giver: &Someone) {
    let script = "
        const select = document.querySelector('.share-speed select');
        select.value = '2';
        select.dispatchEvent(new Event('change', { bubbles: true }));";
    giver.browser.js(script, &[]).await.unwrap();
}

/// Found through the server's own tracker, which the link names.
async fn share_by_tracker(giver: &Someone, server: &Server) -> String {
    giver.share().await;
    let tracker = format!("ws://{}/announce", server.host);
    giver.fill(".share-tracker", &tracker).await;
    giver.click(".share-tracker-use").await;
    let probe = "
        const link = document.querySelector('.share-link').value;
        return link.includes('&tr=') && link";
    let link = giver.browser.wait("link with a tracker", CODE, probe).await;
    link.unwrap().as_str().unwrap().to_owned()
}

#[tokio::test]
async fn many_find_each_other_through_a_tracker() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let giver = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let link = share_by_tracker(&giver, &server).await;
    let first = Someone::new(Engine::Firefox, &server).await;
    let second = Someone::new(Engine::Chromium, &server).await;
    first.receive(&link).await;
    second.receive(&link).await;
    first.wait_model().await;
    second.wait_model().await;
    let whole = format!("{}.slm", model.root);
    for taker in [first, second] {
        assert!(taker.files().await.contains(&whole));
    }
}

/// The tab that has the files and the connections is closed half way: the one that asked for the
/// model becomes the owner, finds the giver again, and what had come is not fetched again.
#[tokio::test]
async fn the_owners_tab_is_closed_half_way() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let giver = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let link = share_by_tracker(&giver, &server).await;
    slow(&giver).await;
    let taker = Someone::new(Engine::Chromium, &server).await;
    let owner = taker.browser.shown().await.unwrap();
    let (asker, _) = taker
        .browser
        .open_tab(&server.url("#/models"))
        .await
        .unwrap();
    taker.receive(&link).await;
    taker.wait_percent(30).await;
    taker.browser.show(&owner).await.unwrap();
    taker.browser.client.close_window().await.unwrap();
    taker.browser.show(&asker).await.unwrap();
    taker.wait_model().await;
    let whole = format!("{}.slm", model.root);
    assert!(taker.files().await.contains(&whole));
}

//! A model goes from browser to browser: by two codes without any server between them, and
//! through a tracker; the source dies half way and another takes its place; the tab that takes is
//! closed half way and the next one goes on.
//!
//! The native program's part is in `native_peer.rs` and `cli/tests`; what liars do is proved in
//! `p2p`, and here what a person sees of one.
#![allow(clippy::unwrap_used)]

mod model;
mod someone;

use e2e::{Engine, Native, Options, Server};
use model::Model;
use someone::{CODE, Someone, connect, slow};

async fn by_codes(giver: &Someone, taker: &Someone, model: &Model) {
    connect(giver, taker).await;
    taker.wait_whole(model).await;
    assert_eq!(taker.page().text("#error").await.unwrap(), "");
    taker.click("#nav-models").await;
}

/// Who has taken a model gives it on.
#[tokio::test]
async fn by_two_codes_from_hand_to_hand() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let first = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let second = Someone::new(Engine::Firefox, &server).await;
    by_codes(&first, &second, &model).await;
    drop(first);
    let third = Someone::new(Engine::Chromium, &server).await;
    by_codes(&second, &third, &model).await;
    drop(second);
    // From a tab that has no connections itself to another such.
    let fourth = Someone::new(Engine::Chromium, &server).await;
    for someone in [&third, &fourth] {
        let address = server.url("#/models");
        someone.browser.open_tab(&address).await.unwrap();
    }
    by_codes(&third, &fourth, &model).await;
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
    let here = taker.page().import_percent().await.unwrap().unwrap();

    second.share().await;
    let link = second.offer().await;
    // The same transfer, one more peer.
    taker.fill("#receive-input", &link).await;
    taker.click("#receive-start").await;
    let answer = taker.value("#receive-answer").await;
    second.fill(".share-answer", &answer).await;
    second.click(".share-connect").await;
    taker.wait_whole(&model).await;
    let given = second.given().await;
    let missing = model.length as f64 * (100 - here) as f64 / 100.0;
    // Both are rounded to be shown.
    assert!(given <= missing + 1e5, "{given} of {missing} bytes");
}

#[tokio::test]
async fn many_find_each_other_through_a_tracker() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let giver = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let link = giver.share_by_tracker(&server).await;
    let first = Someone::new(Engine::Firefox, &server).await;
    let second = Someone::new(Engine::Chromium, &server).await;
    first.receive(&link).await;
    second.receive(&link).await;
    first.wait_whole(&model).await;
    second.wait_whole(&model).await;
}

/// The tab that has the files and the connections is closed half way: the one that asked for the
/// model becomes the owner, finds the giver again, and what had come is not fetched again.
#[tokio::test]
async fn the_owners_tab_is_closed_half_way_in_chromium() {
    the_owners_tab_is_closed_half_way(Engine::Chromium).await;
}

#[tokio::test]
async fn the_owners_tab_is_closed_half_way_in_firefox() {
    the_owners_tab_is_closed_half_way(Engine::Firefox).await;
}

async fn the_owners_tab_is_closed_half_way(engine: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let giver = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let link = giver.share_by_tracker(&server).await;
    slow(&giver).await;
    let taker = Someone::new(engine, &server).await;
    let owner = taker.browser.shown().await.unwrap();
    let (asker, _) = taker
        .browser
        .open_tab(&server.url("#/models"))
        .await
        .unwrap();
    taker.receive(&link).await;
    taker.wait_percent(60).await;
    let here = taker.page().import_percent().await.unwrap().unwrap();
    taker.browser.show(&owner).await.unwrap();
    taker.browser.client.close_window().await.unwrap();
    taker.browser.show(&asker).await.unwrap();
    taker.wait_whole(&model).await;
    // Pieces that were half here, or not yet written down, are begun again; the others are not.
    let given = giver.given().await;
    let most = model.length as f64 * (100 + here - 20) as f64 / 100.0;
    assert!(
        given < most,
        "{given} of {} bytes, {here} % were here",
        model.length
    );
}

/// A native program that gives wrong bytes: the page names it, keeps nothing of it, and takes the
/// model from the next one.
async fn a_liar_is_named(engine: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let tracker = format!("ws://{}/announce", server.host);
    let slm = model.path.to_str().unwrap();
    let mut liar = Native::start(["seed", slm, "--tracker", &tracker, "--lie"]).unwrap();
    let link = liar.wait_for("Link: ").unwrap();
    let taker = Someone::new(engine, &server).await;
    taker.receive(&link).await;
    let probe = "return document.querySelector('#error')?.innerText ?? false";
    let notice = taker.browser.wait("notice of the liar", CODE, probe).await;
    let notice = notice.unwrap().as_str().unwrap().to_owned();
    assert!(notice.contains("was left: it sent wrong "), "{notice}");
    let whole = format!("{}.slm", model.root);
    assert!(!taker.files().await.contains(&whole));

    let _honest = Native::start(["seed", slm, "--tracker", &tracker]).unwrap();
    taker.wait_whole(&model).await;
}

#[tokio::test]
async fn a_liar_is_named_by_chromium_and_another_is_asked() {
    a_liar_is_named(Engine::Chromium).await;
}

#[tokio::test]
async fn a_liar_is_named_by_firefox_and_another_is_asked() {
    a_liar_is_named(Engine::Firefox).await;
}

//! A model that came from another person is a model like any other: its link is opened, what it is
//! stands there before it comes, it talks without a network, it is given on if its new owner
//! agrees, and who stops sharing has stopped.
#![allow(clippy::unwrap_used)]

mod model;
mod someone;

use std::path::PathBuf;
use std::time::Duration;

use e2e::{Engine, Native, Options, Page, Server, model_slm};
use model::Model;
use someone::{CODE, Someone, TRANSFER, connect, limit, own_address, slow};

/// A model of 98 MB is loaded, or answers, within this on the slowest machine that tests it.
const LONG: Duration = Duration::from_secs(180);

/// The link is opened as a page, not pasted; nothing but the model's own words comes with it.
async fn opened_and_used_without_a_network(from: Engine, to: Engine) {
    let mut server = Server::start(Options::default()).unwrap();
    let giver = Someone::with_model(from, &server, &model_slm().unwrap()).await;
    let link = giver.share_by_tracker(&server).await;
    // Long enough for a person to read what comes.
    limit(&giver, 1).await;
    let taker = Someone::new(to, &server).await;
    // As a press on a link in a letter: the page is not there yet.
    taker.browser.client.goto("about:blank").await.unwrap();
    let page = Page::open(&taker.browser, &link).await.unwrap();
    let pasted = taker.value("#receive-input").await;
    assert!(link.ends_with(&pasted) && !pasted.is_empty(), "{pasted}");
    let claim = page.wait_text("#receive .facts", CODE).await.unwrap();
    assert!(claim.contains("98.2 MB"), "{claim}");
    assert!(claim.contains("through a tracker"), "{claim}");
    assert!(page.stored_models().await.unwrap().is_empty());
    taker.click("#receive-start").await;
    let licensed = "
        const words = document.querySelector('#receive-peers')?.innerText ?? '';
        return words.includes('licence: apache-2.0') && words";
    let told = taker.browser.wait("licence", TRANSFER, licensed).await;
    assert!(told.unwrap().as_str().unwrap().contains("1 peer"));
    limit(&giver, 0).await;
    page.wait_state("ready", LONG).await.unwrap();

    drop(giver);
    server.stop();
    page.reload().await.unwrap();
    page.wait_state("ready", LONG).await.unwrap();
    let answer = page.ask("Name a color.", LONG).await.unwrap();
    assert!(!answer.is_empty());
    assert_eq!(page.text("#error").await.unwrap(), "");
}

#[tokio::test]
async fn a_link_is_opened_in_firefox_and_its_model_talks_without_a_network() {
    opened_and_used_without_a_network(Engine::Chromium, Engine::Firefox).await;
}

#[tokio::test]
async fn a_link_is_opened_in_chromium_and_its_model_talks_without_a_network() {
    opened_and_used_without_a_network(Engine::Firefox, Engine::Chromium).await;
}

/// The first giver is gone before the last taker comes.
#[tokio::test]
async fn who_agrees_gives_on_what_has_come() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let first = Someone::with_model(Engine::Firefox, &server, &model.path).await;
    let link = first.share_by_tracker(&server).await;
    let second = Someone::new(Engine::Chromium, &server).await;
    second.click("#receive-gives").await;
    second.receive(&link).await;
    second.wait_whole(&model).await;
    first.browser.crash();
    let third = Someone::new(Engine::Firefox, &server).await;
    third.receive(&link).await;
    third.wait_whole(&model).await;
}

/// Who does not agree gives nothing, though it has everything and is still there.
#[tokio::test]
async fn who_does_not_agree_gives_nothing() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let first = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let link = first.share_by_tracker(&server).await;
    let second = Someone::new(Engine::Chromium, &server).await;
    second.receive(&link).await;
    second.wait_whole(&model).await;
    first.browser.crash();
    let third = Someone::new(Engine::Firefox, &server).await;
    third.receive(&link).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let whole = format!("{}.slm", model.root);
    assert!(!third.files().await.contains(&whole));
    // It was not for want of trying.
    second.click("#nav-models").await;
    second.share_by_tracker(&server).await;
    third.wait_whole(&model).await;
}

/// From the press on: what was already under way may still arrive, and nothing more.
#[tokio::test]
async fn stop_sharing_stops_at_once() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let giver = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let link = giver.share_by_tracker(&server).await;
    slow(&giver).await;
    let taker = Someone::new(Engine::Chromium, &server).await;
    taker.receive(&link).await;
    taker.wait_percent(30).await;
    giver.click(".share-stop").await;
    let here = taker.page().import_percent().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let later = taker.page().import_percent().await.unwrap().unwrap();
    // Three seconds at 1 MB/s would have been 48 of a hundred.
    assert!(later <= here + 10, "{here} % and then {later} %");
    let alone = "return document.querySelector('#receive-peers')?.innerText.includes('no peer')";
    taker
        .browser
        .wait("nobody there", CODE, alone)
        .await
        .unwrap();
    assert_eq!(giver.page().text(".share-state").await.unwrap(), "");
    // It goes on where it was when it is shared again.
    giver.share_by_tracker(&server).await;
    taker.wait_whole(&model).await;
}

/// What a person may copy and send to somebody else holds no way to a peer.
#[tokio::test]
async fn nothing_that_is_copied_holds_an_address() {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let giver = Someone::with_model(Engine::Chromium, &server, &model.path).await;
    let taker = Someone::new(Engine::Firefox, &server).await;
    connect(&giver, &taker).await;
    taker.wait_whole(&model).await;
    // A peer that goes without a word is something to write down.
    giver.page().click("#nav-models").await.unwrap();
    for someone in [&giver, &taker] {
        let go = "location.hash = '#/about'";
        someone.browser.js(go, &[]).await.unwrap();
        let read = "
            const texts = ['#diagnosis', '#receipt']
                .map((place) => document.querySelector(place)?.textContent ?? '');
            return texts.every((text) => text.length > 2) && texts.join(' ')";
        let copied = someone.browser.wait("diagnostics", CODE, read).await;
        let copied = copied.unwrap().as_str().unwrap().to_owned();
        let own = own_address().to_string();
        for word in [own.as_str(), "127.0.0.1", ".local", "candidate", "slm1"] {
            assert!(!copied.contains(word), "{word} in {copied}");
        }
    }
}

/// From the native program by codes, and on to it through a tracker.
async fn by_codes_and_on_by_a_tracker(engine: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let app = Someone::new(engine, &server).await;
    let slm = model.path.to_str().unwrap();
    let mut seed = Native::start(["seed", slm, "--manual"]).unwrap();
    let link = seed.wait_for("Link, for one person: ").unwrap();
    app.receive(&link).await;
    let answer = app.value("#receive-answer").await;
    seed.say(&answer).unwrap();
    app.wait_whole(&model).await;
    drop(seed);

    app.click("#nav-models").await;
    let link = app.share_by_tracker(&server).await;
    let (mut fetch, got) = native_fetch(&link, &model);
    fetch.end().unwrap();
    assert!(std::fs::read(got).unwrap() == std::fs::read(&model.path).unwrap());
}

/// From the native program through a tracker, and on to it by codes.
async fn by_a_tracker_and_on_by_codes(engine: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_six_mebibytes();
    let tracker = format!("ws://{}/announce", server.host);
    let slm = model.path.to_str().unwrap();
    let mut seed = Native::start(["seed", slm, "--tracker", &tracker]).unwrap();
    let link = seed.wait_for("Link: ").unwrap();
    let app = Someone::new(engine, &server).await;
    app.receive(&link).await;
    app.wait_whole(&model).await;
    drop(seed);

    app.click("#nav-models").await;
    app.share().await;
    let link = app.offer().await;
    let (mut fetch, got) = native_fetch(&link, &model);
    let answer = fetch.wait_for("Answer, to be given back: ").unwrap();
    app.fill(".share-answer", &answer).await;
    app.click(".share-connect").await;
    fetch.end().unwrap();
    assert!(std::fs::read(got).unwrap() == std::fs::read(&model.path).unwrap());
}

fn native_fetch(link: &str, model: &Model) -> (Native, PathBuf) {
    let got = model.path.with_file_name("got.slm");
    let fetch = Native::start(["fetch", link, "-o", got.to_str().unwrap()]).unwrap();
    (fetch, got)
}

#[tokio::test]
async fn a_native_model_comes_by_codes_and_goes_by_a_tracker_in_chromium() {
    by_codes_and_on_by_a_tracker(Engine::Chromium).await;
}

#[tokio::test]
async fn a_native_model_comes_by_codes_and_goes_by_a_tracker_in_firefox() {
    by_codes_and_on_by_a_tracker(Engine::Firefox).await;
}

#[tokio::test]
async fn a_native_model_comes_by_a_tracker_and_goes_by_codes_in_chromium() {
    by_a_tracker_and_on_by_codes(Engine::Chromium).await;
}

#[tokio::test]
async fn a_native_model_comes_by_a_tracker_and_goes_by_codes_in_firefox() {
    by_a_tracker_and_on_by_codes(Engine::Firefox).await;
}

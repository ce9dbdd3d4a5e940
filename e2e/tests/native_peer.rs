//! The native peer against the WebRTC of real browsers, both ways, by codes alone.
//!
//! The page has nothing but a plain `RTCPeerConnection`; the swarm that speaks through it runs in
//! the test. So what is proved is the native end and the descriptions, with each engine's own.

#![allow(clippy::unwrap_used)]

mod plain_page;

use std::path::PathBuf;

use e2e::{Browser, Engine, Native, Profile, convert, golden, sized_source};
use format::{Hasher, PieceLayer};
use p2p::{
    Description, Input, Invite, PieceSet, Sharing, Want, answer_code, offer_code, offer_tag,
    read_code,
};
use plain_page::PlainPage;
use tempfile::TempDir;

struct Model {
    folder: TempDir,
    slm: PathBuf,
    bytes: Vec<u8>,
    layer: PieceLayer,
}

fn model() -> Model {
    let folder = tempfile::tempdir().unwrap();
    let source = sized_source(&golden().unwrap(), folder.path(), 24_000, 1).unwrap();
    let slm = folder.path().join("model.slm");
    convert(&source, "", &slm).unwrap();
    let bytes = std::fs::read(&slm).unwrap();
    let mut hasher = Hasher::default();
    hasher.update(&bytes);
    Model {
        folder,
        slm,
        bytes,
        layer: hasher.finish(),
    }
}

/// A native `seed` gives to the browser.
async fn browser_fetches(browser: &Browser, model: &Model) {
    let slm = model.slm.to_str().unwrap();
    let mut seed = Native::start(["seed", slm, "--manual"]).unwrap();
    let link = seed.wait_for("Link, for one person: ").unwrap();
    let invite = Invite::parse(link.rsplit('#').next().unwrap()).unwrap();
    assert_eq!(invite.id, model.layer.id);
    let offer = invite.offer.unwrap();
    let description = read_code(invite.id, &offer).unwrap().description;
    let sdp = PlainPage::answer(browser, &description.to_sdp().unwrap()).await;
    let answer = Description::from_sdp(false, &sdp).unwrap();
    let tag = offer_tag(&offer).unwrap();
    seed.say(&answer_code(invite.id, tag, &answer).unwrap())
        .unwrap();
    let mut page = PlainPage::new(browser, invite.id, Vec::new());
    page.put(Input::Want(Want::All));
    page.run_until(|page| page.is_finished).await;
    assert!(page.bytes() == model.bytes);
}

/// A native `fetch` gets from the browser.
async fn browser_seeds(browser: &Browser, model: &Model) {
    let id = model.layer.id;
    let sdp = PlainPage::offer(browser).await;
    let offer = offer_code(id, &Description::from_sdp(true, &sdp).unwrap()).unwrap();
    let invite = Invite {
        id,
        name: "m".into(),
        sources: Vec::new(),
        trackers: Vec::new(),
        offer: Some(offer.clone()),
    };
    let got = model
        .folder
        .path()
        .join(format!("{:?}.slm", browser.engine));
    let link = invite.to_text().unwrap();
    let mut fetch = Native::start(["fetch", &link, "-o", got.to_str().unwrap()]).unwrap();
    let answer = fetch.wait_for("Answer, to be given back: ").unwrap();
    let code = read_code(id, &answer).unwrap();
    assert_eq!(code.answers, Some(offer_tag(&offer).unwrap()));
    PlainPage::accept(browser, &code.description.to_sdp().unwrap()).await;
    let mut page = PlainPage::new(browser, id, model.bytes.clone());
    page.put(Input::Layer(model.layer.clone()));
    for piece in PieceSet::full(id.pieces()).iter() {
        page.put(Input::Stored { piece });
    }
    page.put(Input::Share(Sharing::On));
    page.run_until(|_| fetch.has_ended()).await;
    fetch.end().unwrap();
    assert!(std::fs::read(&got).unwrap() == model.bytes);
}

async fn both_ways(engine: Engine) {
    let model = model();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    browser_fetches(&browser, &model).await;
    browser_seeds(&browser, &model).await;
}

#[tokio::test]
async fn chromium_and_the_native_peer_give_to_each_other() {
    both_ways(Engine::Chromium).await;
}

#[tokio::test]
async fn firefox_and_the_native_peer_give_to_each_other() {
    both_ways(Engine::Firefox).await;
}

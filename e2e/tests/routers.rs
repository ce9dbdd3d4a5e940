//! No server is asked for a browser's address unless a person names one.
#![allow(clippy::unwrap_used)]

mod model;
mod someone;

use std::net::UdpSocket;
use std::time::Duration;

use e2e::{Engine, Options, Server};
use serde_json::json;
use someone::{Someone, own_address};

const SOON: Duration = Duration::from_secs(10);
/// Bytes 4 to 7 of every STUN message (RFC 8489, section 5).
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// Whether a STUN binding request comes within the time.
fn is_asked(server: &UdpSocket, within: Duration) -> bool {
    server.set_read_timeout(Some(within)).unwrap();
    let mut bytes = [0; 2048];
    let Ok((len, _)) = server.recv_from(&mut bytes) else {
        return false;
    };
    assert!(len >= 20 && bytes[..2] == [0, 1], "no binding request");
    assert_eq!(bytes[4..8], MAGIC_COOKIE);
    true
}

/// Types servers into the page's field and leaves it.
async fn name(giver: &Someone, servers: &str) {
    let script = "
        const field = document.querySelector('#ice-servers');
        field.value = args[0];
        field.dispatchEvent(new Event('change', { bubbles: true }))";
    let typed = giver.browser.js(script, &[json!(servers)]).await;
    typed.unwrap();
}

async fn only_a_named_server_is_asked(engine: Engine) {
    let stun = UdpSocket::bind((own_address(), 0)).unwrap();
    let address = stun.local_addr().unwrap();
    let server = Server::start(Options::default()).unwrap();
    let model = model::of_rows(1_000);
    let giver = Someone::with_model(engine, &server, &model.path).await;
    giver.share().await;
    giver.offer().await;
    assert!(
        !is_asked(&stun, Duration::from_millis(200)),
        "nobody named it"
    );
    giver.click(".share-stop").await;

    giver.click("#routers summary").await;
    name(&giver, "nobody").await;
    let wrong = giver.page().wait_text("#ice-servers-wrong", SOON).await;
    let wrong = wrong.unwrap();
    assert!(wrong.starts_with("Each line must be stun:"), "{wrong}");
    name(&giver, &format!("stun:{address}")).await;
    let is_taken = "return document.querySelector('#ice-servers-wrong').innerText === ''";
    let taken = giver.browser.wait("word taken back", SOON, is_taken).await;
    taken.unwrap();
    giver.share().await;
    // The server says nothing, and the browser gives it up in its own time.
    giver.click(".share-offer").await;
    assert!(is_asked(&stun, someone::CODE), "the named server");
    giver.value(".share-code").await;
}

#[tokio::test]
async fn only_a_named_server_is_asked_in_chromium() {
    only_a_named_server_is_asked(Engine::Chromium).await;
}

#[tokio::test]
async fn only_a_named_server_is_asked_in_firefox() {
    only_a_named_server_is_asked(Engine::Firefox).await;
}

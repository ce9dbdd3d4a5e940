//! A person with a browser who shares a model or takes one.

#![allow(dead_code)]

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use e2e::{Browser, Engine, Page, Profile, Server};
use serde_json::json;

use crate::model::Model;

pub const TRANSFER: Duration = Duration::from_secs(120);
pub const CODE: Duration = Duration::from_secs(30);

/// A browser with a profile of its own, on the page of models.
pub struct Someone {
    pub browser: Browser,
    _profile: Profile,
}

impl Someone {
    pub async fn new(engine: Engine, server: &Server) -> Someone {
        let profile = Profile::fresh().unwrap();
        let browser = Browser::start_engine(engine, &profile).await.unwrap();
        Page::open(&browser, &server.url("#/models")).await.unwrap();
        Someone {
            browser,
            _profile: profile,
        }
    }

    /// With the model in storage, from a file.
    pub async fn with_model(engine: Engine, server: &Server, file: &Path) -> Someone {
        let someone = Someone::new(engine, server).await;
        someone.page().choose(file).await.unwrap();
        // It is loaded at once, which leads to the chat.
        someone.wait_model().await;
        someone.click("#nav-models").await;
        someone
    }

    pub fn page(&self) -> Page<'_> {
        Page::shown(&self.browser)
    }

    pub async fn click(&self, selector: &str) {
        self.page().click(selector).await.unwrap();
    }

    pub async fn wait_model(&self) {
        self.page().wait_state("ready", TRANSFER).await.unwrap();
    }

    /// The whole model is here, under its own name.
    pub async fn wait_whole(&self, model: &Model) {
        self.wait_model().await;
        let (files, whole) = (self.files().await, format!("{}.slm", model.root));
        assert!(files.contains(&whole), "{files:?}");
    }

    /// Bytes that this page has given, as it says when nobody takes any more.
    pub async fn given(&self) -> f64 {
        let probe = "
            const words = document.querySelector('.share-state').innerText;
            return words.startsWith('no peer') && words";
        let words = self.browser.wait("end of giving", CODE, probe).await;
        let words = words.unwrap().as_str().unwrap().to_owned();
        let given = words
            .split(" \u{b7} ")
            .find_map(|part| part.strip_suffix(" given"));
        let (number, unit) = given.unwrap().split_once(' ').unwrap();
        let factor = match unit {
            "MB" => 1e6,
            "kB" => 1e3,
            _ => 1.0,
        };
        number.parse::<f64>().unwrap() * factor
    }

    /// The first value that a field has.
    pub async fn value(&self, selector: &str) -> String {
        let probe = format!("return document.querySelector('{selector}')?.value ?? ''");
        let value = self.browser.wait(selector, CODE, &probe).await.unwrap();
        value.as_str().unwrap().to_owned()
    }

    pub async fn fill(&self, selector: &str, words: &str) {
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
    pub async fn wait_percent(&self, percent: u64) {
        self.page().wait_percent(percent, TRANSFER).await.unwrap();
    }

    pub async fn files(&self) -> Vec<String> {
        self.page().stored_models().await.unwrap()
    }

    /// Shares the one model that is here, by an offer for one person: the link with it.
    pub async fn offer(&self) -> String {
        self.click(".share-offer").await;
        self.value(".share-code").await
    }

    pub async fn share(&self) -> String {
        self.click(".share").await;
        self.value(".share-link").await
    }

    /// Found through the server's own tracker, which the link names.
    pub async fn share_by_tracker(&self, server: &Server) -> String {
        self.share().await;
        let tracker = format!("ws://{}/announce", server.host);
        self.fill(".share-tracker", &tracker).await;
        self.click(".share-tracker-use").await;
        let probe = "
            const link = document.querySelector('.share-link').value;
            return link.includes('&tr=') && link";
        let link = self.browser.wait("link with a tracker", CODE, probe).await;
        link.unwrap().as_str().unwrap().to_owned()
    }

    /// Pastes a link, and agrees.
    pub async fn receive(&self, link: &str) {
        self.click("#nav-models").await;
        self.fill("#receive-input", link).await;
        self.click("#receive-start").await;
    }
}

/// Two steps without a server: an offer in the link, and a code that goes back.
pub async fn connect(giver: &Someone, taker: &Someone) {
    giver.share().await;
    let link = giver.offer().await;
    assert!(link.contains("&offer="), "{link}");
    taker.receive(&link).await;
    let answer = taker.value("#receive-answer").await;
    giver.fill(".share-answer", &answer).await;
    giver.click(".share-connect").await;
}

/// From now on at most 1 MB/s.
pub async fn slow(giver: &Someone) {
    limit(giver, 2).await;
}

/// Chooses one of the speeds that the page offers: 0 is any, 1 is 5 MB/s, 2 is 1 MB/s.
pub async fn limit(giver: &Someone, speed: u32) {
    let script = "
        const select = document.querySelector('.share-speed select');
        select.value = args[0];
        select.dispatchEvent(new Event('change', { bubbles: true }));";
    let speed = [json!(speed.to_string())];
    giver.browser.js(script, &speed).await.unwrap();
}

/// Of this machine on its network: Firefox asks nobody at a loopback address. Nothing is sent.
pub fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // An address for documentation (RFC 5737).
    let known = socket.connect("203.0.113.1:9");
    known.and_then(|()| socket.local_addr()).unwrap().ip()
}

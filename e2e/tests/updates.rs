//! A new build under a running page: offered and never forced, and no page mixes two builds.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::time::Duration;

use e2e::{Browser, Options, Page, Profile, Server, copy_dist, dist};
use serde_json::json;

const START: Duration = Duration::from_secs(120);
const OTHER: &str = "0123456789abcdef";
/// The files that say which build they are of.
const NAMED: [&str; 3] = ["index.html", "worker.js", "sw.js"];

/// A copy of the app that can become another build.
struct Site {
    folder: tempfile::TempDir,
    build: String,
}

impl Site {
    fn copy() -> Site {
        let folder = tempfile::tempdir().unwrap();
        copy_dist(folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("index.html")).unwrap();
        let (_, rest) = page.split_once("data-build=\"").unwrap();
        let build = rest.split('"').next().unwrap().to_owned();
        Site { folder, build }
    }

    fn serve(&self, no_isolation_headers: bool) -> Server {
        Server::start(Options {
            app: Some(self.folder.path().to_owned()),
            no_isolation_headers,
            ..Options::default()
        })
        .unwrap()
    }

    /// These files are of the other build from now on.
    fn change(&self, names: &[&str]) {
        for name in names {
            let path = self.folder.path().join(name);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(&self.build), "{name}");
            fs::write(&path, text.replace(&self.build, OTHER)).unwrap();
        }
    }
}

async fn build(browser: &Browser) -> String {
    let script = "return document.documentElement.dataset.build";
    let build = browser.js(script, &[]).await.unwrap();
    build.as_str().unwrap().to_owned()
}

async fn controlled(browser: &Browser) {
    let probe = "return Boolean(navigator.serviceWorker.controller)";
    browser.wait("control", START, probe).await.unwrap();
}

async fn wait_role(browser: &Browser, role: &str) {
    let probe = format!("return document.documentElement.dataset.role === '{role}'");
    browser.wait(role, START, &probe).await.unwrap();
}

#[tokio::test]
async fn an_update_is_offered_and_the_running_pages_stay_whole() {
    let site = Site::copy();
    let server = site.serve(false);
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    browser.keep_workers().unwrap();
    let first = browser.shown().await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("empty", START).await.unwrap();
    controlled(&browser).await;
    let (second, _) = browser.open_tab(&server.url("")).await.unwrap();
    wait_role(&browser, "follower").await;

    let page = browser.show(&first).await.unwrap();
    site.change(&NAMED);
    let look = "
        window.same = true;
        await (await navigator.serviceWorker.getRegistration()).update()";
    browser.js(look, &[]).await.unwrap();
    let offered = "return document.documentElement.dataset.update === 'ready'";
    browser.wait("an offer", START, offered).await.unwrap();

    // A running page that needs its worker again gets one of its own build.
    let before = server.log().unwrap().len();
    let kill = "window.e2eWorkers.at(-1).terminate()";
    browser.js(kill, &[]).await.unwrap();
    wait_role(&browser, "follower").await;
    page.wait_state("empty", START).await.unwrap();
    assert_eq!(page.text("#reload").await.unwrap(), "");
    let log = server.log().unwrap();
    let asked: Vec<&str> = log[before..].iter().map(|line| &line.path[..]).collect();
    let of_the_shell = |path: &&&str| !path.starts_with("/models/");
    assert_eq!(asked.iter().find(of_the_shell), None, "{asked:?}");
    assert_eq!(build(&browser).await, site.build);
    let same = browser
        .js("return window.same === true", &[])
        .await
        .unwrap();
    assert_eq!(same, json!(true), "nothing was loaded again by itself");

    // On a person's word this tab is of the new build, and gets the work.
    let accept = "
        [...document.querySelectorAll('.notice button')]
            .find((button) => button.innerText === 'Reload into it').click()";
    browser.js(accept, &[]).await.unwrap();
    let changed = format!(
        "return document.documentElement.dataset.build === '{OTHER}' &&
             document.documentElement.dataset.state !== 'starting'"
    );
    browser
        .wait("the new build", START, &changed)
        .await
        .unwrap();
    wait_role(&browser, "owner").await;

    // The other tab is told, keeps what it shows, and its files are there until it leaves.
    let page = browser.show(&second).await.unwrap();
    wait_role(&browser, "outdated").await;
    assert_eq!(build(&browser).await, site.build);
    let both = "return (await caches.keys()).length";
    assert_eq!(browser.js(both, &[]).await.unwrap(), json!(2));
    page.click("#reload").await.unwrap();
    browser
        .wait("the new build", START, &changed)
        .await
        .unwrap();
    wait_role(&browser, "follower").await;
    let one = "return (await caches.keys()).length === 1";
    browser.wait("one build's files", START, one).await.unwrap();
}

/// The server was changed in the middle: the page is loaded again once, and then says what is
/// wrong instead of going round.
#[tokio::test]
async fn a_page_and_a_worker_of_two_builds_do_not_go_round() {
    let site = Site::copy();
    site.change(&["worker.js"]);
    let server = site.serve(false);
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("failed", START).await.unwrap();
    let words = page.wait_text("#error", START).await.unwrap();
    assert!(words.contains("different builds"), "{words}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let log = server.log().unwrap();
    let pages = log.iter().filter(|line| line.path == "/").count();
    assert!(pages <= 3, "the page was fetched {pages} times");
    page.wait_state("failed", START).await.unwrap();

    // What a person does then helps, once the server is whole again.
    fs::copy(
        dist().unwrap().join("worker.js"),
        site.folder.path().join("worker.js"),
    )
    .unwrap();
    let page = Page::open(&browser, &server.url("?fresh")).await.unwrap();
    page.wait_state("empty", START).await.unwrap();
}

/// C1: a forced reload goes past the service worker, so nothing isolates the page; it starts with
/// one thread.
#[tokio::test]
async fn a_forced_reload_starts_without_isolation() {
    let site = Site::copy();
    let server = site.serve(true);
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("empty", START).await.unwrap();
    controlled(&browser).await;
    for _ in 0..2 {
        let leave = "window.leaving = true";
        browser.js(leave, &[]).await.unwrap();
        browser
            .devtools("Page.reload", json!({ "ignoreCache": true }))
            .unwrap();
        let there = "
            const state = document.documentElement.dataset.state;
            return !window.leaving && Boolean(state) && state !== 'starting'";
        browser.wait("the page", START, there).await.unwrap();
        page.wait_state("empty", START).await.unwrap();
        let seen = "return [Boolean(navigator.serviceWorker.controller), crossOriginIsolated]";
        let seen = browser.js(seen, &[]).await.unwrap();
        println!("controlled and isolated: {seen}");
        assert_eq!(page.text("#error").await.unwrap(), "");
    }
}

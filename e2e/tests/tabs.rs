//! Several tabs, one engine: chat from any of them, and go on when the one that works is gone.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use e2e::{Browser, Engine, Options, Page, Profile, Server, WindowHandle};
use serde_json::json;

const START: Duration = Duration::from_secs(120);
const IMPORT: Duration = Duration::from_secs(180);
const ANSWER: Duration = Duration::from_secs(180);
/// Far above what a takeover takes; the time itself is printed.
const TAKEOVER: Duration = Duration::from_secs(60);
const STORY: &str = "Tell me a very long story about a dragon.";
const LAST: &str = "#messages .message.assistant:last-of-type .text";

/// The tab's part: `owner`, `follower` and so on.
async fn role(browser: &Browser) -> String {
    let script = "return document.documentElement.dataset.role ?? ''";
    let role = browser.js(script, &[]).await.unwrap();
    role.as_str().unwrap_or_default().to_owned()
}

async fn wait_role(browser: &Browser, role: &str) {
    let probe = format!("return document.documentElement.dataset.role === '{role}'");
    let what = format!("role {role}");
    browser.wait(&what, TAKEOVER, &probe).await.unwrap();
}

/// A first tab with the default model.
async fn first_tab<'a>(browser: &'a Browser, server: &Server) -> Page<'a> {
    let page = Page::open(browser, &server.url("")).await.unwrap();
    page.wait_state("empty", START).await.unwrap();
    page.click("#get-default").await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();
    assert_eq!(role(browser).await, "owner");
    page
}

#[tokio::test]
async fn any_tab_chats_and_the_next_one_takes_over() {
    walk(Engine::Chromium).await;
}

#[tokio::test]
async fn any_tab_chats_and_the_next_one_takes_over_in_firefox() {
    walk(Engine::Firefox).await;
}

async fn walk(engine: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    let first = browser.shown().await.unwrap();
    first_tab(&browser, &server).await;

    // R1: the second tab is of use at once, without an engine of its own (R3).
    let start = Instant::now();
    let (second, page) = browser.open_tab(&server.url("")).await.unwrap();
    page.wait_state("ready", START).await.unwrap();
    println!("a second tab can chat after {:?}", start.elapsed());
    assert_eq!(role(&browser).await, "follower");
    assert_eq!(page.text("#error").await.unwrap(), "");
    let answer = page.ask("What is the capital of France?", ANSWER).await;
    assert!(!answer.unwrap().is_empty());

    // R6: both ask at once; neither hears a word of the other's answer.
    page.click("#new-conversation").await.unwrap();
    page.say("Count from one to nine.").await.unwrap();
    let other = browser.show(&first).await.unwrap();
    other.click("#new-conversation").await.unwrap();
    let theirs = other.ask("Name three colours.", ANSWER).await.unwrap();
    let page = browser.show(&second).await.unwrap();
    page.wait_state("ready", ANSWER).await.unwrap();
    let mine = page.answers().await.unwrap().pop().unwrap();
    assert!(!mine.is_empty() && mine != theirs, "{mine:?} {theirs:?}");

    // The working tab is closed in the middle of an answer of this one.
    page.click("#new-conversation").await.unwrap();
    page.say(STORY).await.unwrap();
    let begun = page.wait_text(LAST, ANSWER).await.unwrap();
    browser.show(&first).await.unwrap();
    let start = Instant::now();
    let page = browser.close_tab(&second).await.unwrap();
    wait_role(&browser, "owner").await;
    println!(
        "took over {:?} after the other tab was closed",
        start.elapsed()
    );
    page.wait_state("ready", IMPORT).await.unwrap();
    println!("and could answer after {:?}", start.elapsed());
    let kept = page.answers().await.unwrap().pop().unwrap();
    assert!(kept.starts_with(begun.trim_end()), "{kept:?} {begun:?}");
    let remark = page.text(".message.assistant:last-of-type .remark").await;
    assert_eq!(remark.unwrap(), "Interrupted");

    // It goes on where it was.
    page.click(".go-on").await.unwrap();
    page.wait_state("generating", START).await.unwrap();
    let longer = format!(
        "return document.querySelector('{LAST}').innerText.length > {}",
        kept.len() + 40
    );
    browser.wait("more words", ANSWER, &longer).await.unwrap();
    page.click("#stop").await.unwrap();
    page.wait_state("ready", ANSWER).await.unwrap();
    let whole = page.answers().await.unwrap().pop().unwrap();
    assert!(whole.starts_with(&kept), "{whole:?} {kept:?}");
    assert_eq!(page.messages().await.unwrap().len(), 2);
}

/// The worker that works is ended by force, its page is frozen, and its page crashes: each time
/// the other tab goes on, and what comes back follows.
#[tokio::test]
async fn a_killed_a_frozen_and_a_crashed_owner() {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    browser.keep_workers().unwrap();
    let first = browser.shown().await.unwrap();
    first_tab(&browser, &server).await;
    let (second, page) = browser.open_tab(&server.url("")).await.unwrap();
    page.wait_state("ready", START).await.unwrap();

    page.say(STORY).await.unwrap();
    page.wait_text(LAST, ANSWER).await.unwrap();
    browser.show(&first).await.unwrap();
    let start = Instant::now();
    let kill = "window.e2eWorkers.at(-1).terminate()";
    browser.js(kill, &[]).await.unwrap();
    let page = browser.show(&second).await.unwrap();
    wait_role(&browser, "owner").await;
    println!(
        "took over {:?} after the worker was killed",
        start.elapsed()
    );
    page.wait_state("ready", IMPORT).await.unwrap();
    // The tab whose worker it was starts another by itself.
    let other = browser.show(&first).await.unwrap();
    wait_role(&browser, "follower").await;
    other.wait_state("ready", IMPORT).await.unwrap();

    // Now the second tab works, and is frozen in the middle of an answer for the first.
    other.say(STORY).await.unwrap();
    other.wait_text(LAST, ANSWER).await.unwrap();
    browser.show(&second).await.unwrap();
    let start = Instant::now();
    freeze(&browser, "frozen");
    let page = browser.show(&first).await.unwrap();
    wait_role(&browser, "owner").await;
    println!(
        "took over {:?} after the other tab was frozen",
        start.elapsed()
    );
    page.wait_state("ready", IMPORT).await.unwrap();
    page.click("#new-conversation").await.unwrap();
    let answer = page.ask("Name a colour.", ANSWER).await.unwrap();
    assert!(!answer.is_empty());
    browser.show(&second).await.unwrap();
    freeze(&browser, "active");
    let page = browser.show(&second).await.unwrap();
    wait_role(&browser, "follower").await;
    page.wait_state("ready", IMPORT).await.unwrap();
    page.click("#new-conversation").await.unwrap();
    let answer = page.ask("Name another colour.", ANSWER).await.unwrap();
    assert!(!answer.is_empty());

    crash_and_come_back(&browser, &server, &first, &second).await;
}

/// The first tab works, and crashes.
async fn crash_and_come_back(
    browser: &Browser,
    server: &Server,
    first: &WindowHandle,
    second: &WindowHandle,
) {
    browser.show(first).await.unwrap();
    let start = Instant::now();
    crash(browser);
    let page = browser.show(second).await.unwrap();
    wait_role(browser, "owner").await;
    println!(
        "took over {:?} after the other tab crashed",
        start.elapsed()
    );
    page.wait_state("ready", IMPORT).await.unwrap();
    assert_eq!(page.text("#died").await.unwrap(), "");

    // M2, M3: a page that dies of a load does not load again by itself.
    // The driver opens no tab from one that has crashed.
    let spare = browser.new_tab().await.unwrap();
    let page = browser.show(second).await.unwrap();
    let leave = "location.reload()";
    browser.js(leave, &[]).await.unwrap();
    page.wait_state("loading", START).await.unwrap();
    crash(browser);
    browser.show(&spare).await.unwrap();
    let page = Page::open(browser, &server.url("")).await.unwrap();
    let words = page.wait_text("#died", START).await.unwrap();
    assert!(words.contains("SmolLM2"), "{words}");
    assert_eq!(page.state().await.unwrap(), "empty");
    page.click("#load-again").await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();
    assert_eq!(page.text("#died").await.unwrap(), "");
}

fn freeze(browser: &Browser, state: &str) {
    let name = "Page.setWebLifecycleState";
    browser.devtools(name, json!({ "state": state })).unwrap();
}

fn crash(browser: &Browser) {
    // The driver loses the tab before it has an answer.
    browser.devtools("Page.crash", json!({})).ok();
}

//! A person's first visit, from the empty page to a conversation without a network.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use e2e::{Browser, Engine, Options, Page, Profile, Server};

/// The model is fetched, checked and loaded within this on the slowest machine that tests it.
const IMPORT: Duration = Duration::from_secs(180);
const ANSWER: Duration = Duration::from_secs(180);
/// A stop is seen within a step of the engine, which is far shorter than this.
const STOP: Duration = Duration::from_secs(10);

#[tokio::test]
async fn from_the_empty_page_to_a_conversation_without_a_network() {
    visit(Engine::Chromium).await;
}

#[tokio::test]
async fn from_the_empty_page_to_a_conversation_in_firefox() {
    visit(Engine::Firefox).await;
}

async fn visit(engine: Engine) {
    let mut server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();

    get_the_default_model(page).await;
    let lane = page.text("#lane").await.unwrap();
    let name = page.text("#model-name").await.unwrap();
    assert!(name.contains("SmolLM2"), "{name}");
    println!("lane {lane:?}, model {name:?}");

    let answer = page
        .ask("What is the capital of France?", ANSWER)
        .await
        .unwrap();
    assert!(!answer.is_empty());
    println!("answer: {answer}");

    stop_a_long_answer(page).await;

    let before = page.messages().await.unwrap();
    assert_eq!(before.len(), 4, "{before:?}");
    page.reload().await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();
    assert_eq!(
        page.messages().await.unwrap(),
        before,
        "a reload keeps the conversation"
    );

    server.stop();
    page.reload().await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();
    assert_eq!(
        page.messages().await.unwrap(),
        before,
        "also without a network"
    );
    let answer = page.ask("And of Italy?", ANSWER).await.unwrap();
    assert!(!answer.is_empty());
    assert_eq!(page.text("#error").await.unwrap(), "");
}

/// Watches the import's progress, which never goes back within a phase.
async fn get_the_default_model(page: Page<'_>) {
    page.wait_state("empty", Duration::from_secs(60))
        .await
        .unwrap();
    page.click("#get-default").await.unwrap();
    let start = Instant::now();
    let mut seen = Vec::new();
    while page.state().await.unwrap() != "ready" {
        assert!(
            start.elapsed() < IMPORT,
            "no model after {IMPORT:?}; progress was {seen:?}"
        );
        if let Some(percent) = page.import_percent().await.unwrap() {
            seen.push(percent);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!(
        "imported and loaded in {:?}; progress was {seen:?}",
        start.elapsed()
    );
    assert!(seen.is_sorted(), "{seen:?}");
    seen.dedup();
    assert!(seen.len() > 2, "progress was shown only as {seen:?}");
    let stored = page.stored_models().await.unwrap();
    assert!(
        stored.iter().any(|name| name.ends_with(".slm")),
        "{stored:?}"
    );
    assert!(
        !stored.iter().any(|name| name.ends_with(".part")),
        "{stored:?}"
    );
}

/// Stops as soon as the answer has begun; what was written stays.
async fn stop_a_long_answer(page: Page<'_>) {
    page.say("Tell me a very long story about a dragon.")
        .await
        .unwrap();
    page.wait_state("generating", Duration::from_secs(10))
        .await
        .unwrap();
    let last = "#messages .message.assistant:last-of-type .text";
    let begun = page.wait_text(last, ANSWER).await.unwrap();
    assert!(!begun.is_empty());
    page.click("#stop").await.unwrap();
    page.wait_state("ready", STOP).await.unwrap();
    let answers = page.answers().await.unwrap();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(!answers[1].is_empty());
}

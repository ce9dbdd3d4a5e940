//! Files that are no models: a reason is shown, and nothing is kept of them.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::Duration;

use e2e::{Browser, Options, Page, Profile, Server, model_gguf};

const REFUSED: Duration = Duration::from_secs(60);

/// What people drop by mistake, and words that the reason must have.
fn mistakes(folder: &std::path::Path) -> Vec<(PathBuf, &'static str)> {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    // A download that ended at a login page.
    let page = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
    // A download that was cut off.
    let whole = std::fs::read(model_gguf().unwrap()).unwrap();
    vec![
        (write("page.gguf", page), "page"),
        (write("cut.gguf", &whole[..whole.len() / 2]), "cut off"),
        (write("clip.gguf", &clip()), "clip"),
        (write("empty.gguf", b""), ""),
    ]
}

/// A GGUF file of version 3 with no tensors, whose architecture is an image encoder's.
fn clip() -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    const TYPE_STRING: u32 = 8;
    let mut file = b"GGUF".to_vec();
    file.extend_from_slice(&3u32.to_le_bytes());
    file.extend_from_slice(&0u64.to_le_bytes());
    file.extend_from_slice(&1u64.to_le_bytes());
    file.extend(text("general.architecture"));
    file.extend_from_slice(&TYPE_STRING.to_le_bytes());
    file.extend(text("clip"));
    file.resize(4096, 0);
    file
}

#[tokio::test]
async fn what_is_no_model_is_refused_with_a_reason() {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("empty", REFUSED).await.unwrap();
    let before = page.stored_models().await.unwrap();
    for (file, word) in mistakes(folder.path()) {
        page.choose(&file).await.unwrap();
        let reason = page.wait_text("#error", REFUSED).await.unwrap();
        println!("{}: {reason}", file.display());
        assert!(reason.to_lowercase().contains(word), "{reason}");
        page.wait_state("empty", REFUSED).await.unwrap();
        assert_eq!(page.stored_models().await.unwrap(), before);
        page.click("#error button").await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_file_is_judged_like_a_chosen_one() {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("empty", REFUSED).await.unwrap();
    page.drop_file("notes.gguf", "index.html").await.unwrap();
    let reason = page.wait_text("#error", REFUSED).await.unwrap();
    assert!(!reason.is_empty());
    page.wait_state("empty", REFUSED).await.unwrap();
}

//! An interrupted import costs nothing that was checked: the server's log says what was fetched.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::{Browser, Options, Page, Profile, Server, model_slm};

const PIECE_BYTES: u64 = 1024 * 1024;
/// Slow enough to interrupt half way, quick enough for a test. The worker fetches three runs of
/// pieces at once, each at this speed.
const BYTES_PER_SECOND: u64 = 2_500_000;
const INTERRUPT_PERCENT: u64 = 40;
const IMPORT: Duration = Duration::from_secs(180);

/// How a person's import ends before its time.
enum End {
    /// The tab is closed.
    Closed,
    /// The browser is killed.
    Crashed,
}

#[tokio::test]
async fn a_closed_tab_resumes() {
    resumes_after(End::Closed).await;
}

#[tokio::test]
async fn a_crashed_browser_resumes() {
    resumes_after(End::Crashed).await;
}

async fn resumes_after(end: End) {
    let server = Server::start(Options {
        throttle: Some(BYTES_PER_SECOND),
        ..Options::default()
    })
    .unwrap();
    let profile = Profile::fresh().unwrap();
    let mut browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.click("#get-default").await.unwrap();
    page.wait_percent(INTERRUPT_PERCENT, IMPORT).await.unwrap();
    match end {
        End::Closed => {
            let next = browser.client.new_window(true).await.unwrap();
            browser.client.close_window().await.unwrap();
            browser.client.switch_to_window(next.handle).await.unwrap();
        }
        End::Crashed => {
            browser.crash();
            browser = Browser::start(&profile).await.unwrap();
        }
    }

    let fetched_before = server.log().unwrap().len();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.click("#get-default").await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();

    let log = server.log().unwrap();
    let (before, after) = log.split_at(fetched_before);
    let (before, after) = (pieces(before), pieces(after));
    let all = std::fs::metadata(model_slm().unwrap())
        .unwrap()
        .len()
        .div_ceil(PIECE_BYTES);
    println!("{} and {} of {all} pieces", before.len(), after.len());
    let twice: Vec<u64> = after
        .iter()
        .filter(|(_, n)| **n > 1)
        .map(|(at, _)| *at)
        .collect();
    assert!(
        twice.is_empty(),
        "fetched twice after the interruption: {twice:?}"
    );
    let missing = (0..all).find(|at| !before.contains_key(at) && !after.contains_key(at));
    assert_eq!(missing, None, "a piece that was never fetched");
    // Half of what was checked at the interruption may be lost: runs under way and pieces that
    // were not yet recorded. All else must have been kept.
    let kept = all - after.len() as u64;
    assert!(
        kept * 100 >= all * INTERRUPT_PERCENT / 2,
        "only {kept} of {all} pieces were kept"
    );
}

/// How often each piece of the model was asked for.
fn pieces(log: &[e2e::Line]) -> BTreeMap<u64, usize> {
    let mut pieces = BTreeMap::new();
    for line in log.iter().filter(|line| line.path.ends_with(".slm")) {
        // Without a range the whole file was asked for, which no import does.
        let (first, last) = line.range.unwrap_or((0, u64::MAX / 2));
        assert!(
            last < u64::MAX / 2,
            "the whole model was asked for: {line:?}"
        );
        // The head of the file is read first to judge it; it is no whole piece.
        let whole = first.div_ceil(PIECE_BYTES)..=(last / PIECE_BYTES);
        for piece in whole {
            *pieces.entry(piece).or_default() += 1;
        }
    }
    pieces
}

//! The benchmark in the page: every figure, told by what ran; or stopped, and the page goes on.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{Browser, Options, Page, Profile, Server};
use protocol::{BENCH_SCHEMA, BenchBundle, BenchOutcome, BenchPart};

const IMPORT: Duration = Duration::from_secs(180);
/// On a busy machine with the slowest lane.
const WHOLE: Duration = Duration::from_secs(400);
const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_benchmark_writes_its_document() {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.click("#get-default").await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();
    page.click("#nav-about").await.unwrap();

    page.click("#bench-run").await.unwrap();
    page.wait_text("#bench-result dl", WHOLE).await.unwrap();
    let BenchOutcome::Complete(figures) = bundle(&browser).await.outcome else {
        panic!("no figures");
    };
    println!("{figures:?}");
    assert_eq!(page.text("#lane").await.unwrap(), figures.engine.lane);
    assert_eq!(figures.prefill.len(), 3);
    assert!(
        figures
            .prefill
            .iter()
            .all(|run| run.tokens == 128 && run.ms > 0.0)
    );
    assert!(
        figures
            .decode
            .iter()
            .all(|run| run.tokens == 64 && run.ms > 0.0)
    );
    let first = figures.first_token_ms;
    assert!(first.warm > 0.0 && first.cached > 0.0 && first.cold > 0.0);
    let memory = figures.memory;
    let taken = memory.taken.unwrap().total();
    assert_eq!(memory.regions().total(), memory.total);
    assert!(
        taken.abs_diff(memory.total) * 50 <= memory.total,
        "{memory:?}"
    );

    page.click("#bench-run").await.unwrap();
    page.click("#bench-stop").await.unwrap();
    page.wait_text("#bench-result li", SOON).await.unwrap();
    let BenchOutcome::Refused(reasons) = bundle(&browser).await.outcome else {
        panic!("a stopped benchmark has no figures");
    };
    assert_eq!(reasons[0].part, BenchPart::Load);
    page.wait_state("ready", IMPORT).await.unwrap();
}

/// What "Save as a file" would save.
async fn bundle(browser: &Browser) -> BenchBundle {
    let script = "
        const address = document.querySelector('#bench-save').href;
        return decodeURIComponent(address.slice(address.indexOf(',') + 1))";
    let text = browser.js(script, &[]).await.unwrap();
    let bundle: BenchBundle = serde_json::from_str(text.as_str().unwrap()).unwrap();
    assert_eq!(bundle.schema, BENCH_SCHEMA);
    bundle
}

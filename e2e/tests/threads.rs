//! The engine with threads in a browser: its worker dies, it is stopped, it is asked for threads.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::{Browser, Options, Profile, Server, WorkerLink, copy_dist, get};
use format::{Digest, ModelId};
use protocol::{
    Catalogue, Command, Event, Figures, Finish, ImportId, ImportSource, LANES, LaneId, Measure,
    Mode, RequestId, Subject, TrResult, decode, encode,
};
use serde_json::json;

const SLOWEST: Duration = Duration::from_secs(300);
const CONTEXT: u32 = 2304;

/// Stands between the engine and a worker, so that a test can end the worker in its midst.
const END_A_WORKER: &str = "
    const inner = new Worker('pool-itself.js');
    inner.onmessage = ({ data }) => self.postMessage(data);
    self.onmessage = ({ data }) => inner.postMessage(data);
    new BroadcastChannel('end-a-worker').onmessage = () => inner.terminate();";

/// The finished app with another script for the workers of the team.
fn app_with(folder: &Path, pool: &str) -> PathBuf {
    let app = folder.join("app");
    copy_dist(&app).unwrap();
    std::fs::rename(app.join("pool.js"), app.join("pool-itself.js")).unwrap();
    std::fs::write(app.join("pool.js"), pool).unwrap();
    app
}

/// Ids below 256, which every vocabulary has.
fn prompt(len: u32) -> Vec<u32> {
    (0..len).map(|at| (37 * at + 11) % 251).collect()
}

#[derive(Debug, PartialEq)]
struct Answer {
    ids: Vec<u32>,
    logits: Digest,
}

async fn send(worker: WorkerLink<'_>, command: &Command) {
    worker.send(&encode(command).unwrap()).await.unwrap();
}

async fn event(worker: WorkerLink<'_>) -> Event {
    decode(&worker.next(SLOWEST).await.unwrap()).unwrap()
}

/// The first event that `pick` wants; a failure that the worker reports ends the test.
async fn wait<T>(worker: WorkerLink<'_>, pick: impl Fn(Event) -> Option<T>) -> T {
    loop {
        let event = event(worker).await;
        assert!(!matches!(event, Event::Failed { .. }), "{event:?}");
        if let Some(picked) = pick(event) {
            return picked;
        }
    }
}

async fn ready(worker: WorkerLink<'_>) -> (LaneId, Vec<String>) {
    wait(worker, |event| match event {
        Event::Ready {
            lane, downgrades, ..
        } => Some((
            lane.lane,
            downgrades.into_iter().map(|report| report.what).collect(),
        )),
        _ => None,
    })
    .await
}

async fn import(worker: WorkerLink<'_>, server: &Server) -> ModelId {
    let reply = get(&server.host, "/models/catalogue.json", &[]).unwrap();
    let catalogue: Catalogue = serde_json::from_slice(&reply.body).unwrap();
    let source = ImportSource::Catalogue(catalogue.models[0].clone());
    let import = ImportId(1);
    send(worker, &Command::Import { import, source }).await;
    wait(worker, |event| match event {
        Event::Imported { model, .. } => Some(model.id),
        _ => None,
    })
    .await
}

async fn load(worker: WorkerLink<'_>, model: ModelId) {
    let context = CONTEXT;
    send(worker, &Command::Load { model, context }).await;
    let loaded = |event| matches!(event, Event::Loaded { .. }).then_some(());
    wait(worker, loaded).await;
}

/// `reuses` what requests before it left.
async fn begin(
    worker: WorkerLink<'_>,
    number: u32,
    prompt_ids: Vec<u32>,
    max_new: u32,
    reuses: bool,
) {
    let command = Command::Measure {
        request: RequestId(number),
        measure: Measure {
            prompt_ids,
            max_new,
            prefill_tile: 0,
            mode: Mode::Int8V1,
            reuses,
        },
    };
    send(worker, &command).await;
}

async fn answer(worker: WorkerLink<'_>) -> (Answer, Figures) {
    wait(worker, |event| match event {
        Event::Measured {
            ids,
            logits_sha256: logits,
            figures,
            ..
        } => Some((Answer { ids, logits }, figures)),
        _ => None,
    })
    .await
}

async fn prefilling(worker: WorkerLink<'_>, beyond: u32) {
    wait(worker, |event| match event {
        Event::Prefill { done, .. } if done > beyond => Some(()),
        _ => None,
    })
    .await;
}

#[tokio::test]
async fn a_dead_worker_ends_the_request_and_the_page_goes_on_in_a_lower_lane() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        app: Some(app_with(folder.path(), END_A_WORKER)),
        ..Options::default()
    };
    let server = Server::start(options).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    browser.client.goto(&server.url("style.css")).await.unwrap();
    let worker = WorkerLink::start(&browser, "?threads=2").await.unwrap();
    let (lane, downgrades) = ready(worker).await;
    assert_eq!(
        (lane, downgrades),
        (LaneId::RelaxedThreadsWasm32, Vec::new())
    );
    let model = import(worker, &server).await;
    load(worker, model).await;
    begin(worker, 1, prompt(40), 16, false).await;
    let (before, _) = answer(worker).await;

    begin(worker, 2, prompt(2000), 16, false).await;
    prefilling(worker, 64).await;
    let end = "new BroadcastChannel('end-a-worker').postMessage(0)";
    browser.js(end, &[]).await.unwrap();
    let error = loop {
        if let Event::Failed { subject, error } = event(worker).await {
            assert_eq!(subject, Subject::Request(RequestId(2)));
            break error;
        }
    };
    assert_eq!(error.code, TrResult::WorkerFailure);
    assert!(error.what.contains("worker"), "{error:?}");
    wait(worker, |event| {
        matches!(event, Event::Unloaded).then_some(())
    })
    .await;
    let (lane, downgrades) = ready(worker).await;
    assert_eq!(lane, LaneId::RelaxedWasm32);
    assert_eq!(downgrades.len(), 1, "{downgrades:?}");

    load(worker, model).await;
    begin(worker, 3, prompt(40), 16, false).await;
    assert_eq!(answer(worker).await.0, before);
}

#[tokio::test]
async fn a_worker_that_does_not_start_costs_only_the_threads() {
    for (pool, word) in [
        ("throw new Error('injected');", "could not be started"),
        (
            "self.onmessage = () => self.postMessage([1, 'another', 2]);",
            "runs another engine",
        ),
        ("", "did not answer"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            app: Some(app_with(folder.path(), pool)),
            ..Options::default()
        };
        let server = Server::start(options).unwrap();
        let profile = Profile::fresh().unwrap();
        let browser = Browser::start(&profile).await.unwrap();
        browser.client.goto(&server.url("style.css")).await.unwrap();
        let worker = WorkerLink::start(&browser, "?threads=2").await.unwrap();
        let (lane, downgrades) = ready(worker).await;
        assert_eq!(lane, LaneId::RelaxedWasm32);
        assert!(downgrades[0].contains(word), "{downgrades:?}");
    }
}

/// Sends the stop as the page does, and answers with the milliseconds until the request's end.
async fn stop(browser: &Browser, number: u32) -> f64 {
    let request = RequestId(number);
    let done = encode(&Event::Done {
        request,
        finish: Finish::Cancelled,
        figures: Figures::default(),
    });
    let script = "
        const [command, tag, number] = args;
        const worker = window.e2eWorker;
        const start = performance.now();
        const over = new Promise((resolve) => {
            worker.addEventListener('message', ({ data }) => {
                if (!Array.isArray(data) && new Uint8Array(data)[0] === tag)
                    resolve(performance.now() - start);
            });
        });
        if (window.e2eStopWord?.[0]) {
            const [memory, address] = window.e2eStopWord;
            Atomics.store(new Int32Array(memory), address / 4, number);
        }
        worker.postMessage(new Uint8Array(command).buffer);
        return await over;";
    let command = encode(&Command::Stop { request }).unwrap();
    let arguments = [
        json!(command),
        json!(done.unwrap()[0]),
        json!(request.stop_number()),
    ];
    let took = browser.js(script, &arguments).await.unwrap();
    took.as_f64().unwrap()
}

/// In every lane; the times are printed, and `docs/performance.md` says what they were.
#[tokio::test]
async fn a_stop_in_a_long_prefill_leaves_the_conversation_sound() {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    browser.client.goto(&server.url("style.css")).await.unwrap();
    let long = prompt(2000);
    let mut first = None;
    for lane in LANES {
        let query = format!("?lane={}&threads=2", lane.name);
        let worker = WorkerLink::start(&browser, &query).await.unwrap();
        assert_eq!(ready(worker).await.0, lane.id);
        let model = import(worker, &server).await;
        load(worker, model).await;
        let mut slowest = 0.0f64;
        for number in 1..=5 {
            begin(worker, number, long.clone(), 1, false).await;
            prefilling(worker, 0).await;
            slowest = slowest.max(stop(&browser, number).await);
            let finish = wait(worker, |event| match event {
                Event::Done { finish, .. } => Some(finish),
                _ => None,
            })
            .await;
            assert_eq!(finish, Finish::Cancelled);
        }
        // What was committed of the long prompt is the beginning of this one.
        begin(worker, 9, prompt(40), 8, true).await;
        let (answer, figures) = answer(worker).await;
        println!("{}: stopped within {slowest:.1} ms; {figures:?}", lane.name);
        assert!(figures.reused_tokens > 0, "{}: {figures:?}", lane.name);
        assert_eq!(first.get_or_insert(answer.ids.clone()), &answer.ids);
        let undisturbed = first_answer(&browser, &query, model).await;
        assert_eq!(answer, undisturbed);
    }
}

async fn first_answer(browser: &Browser, query: &str, model: ModelId) -> Answer {
    let worker = WorkerLink::start(browser, query).await.unwrap();
    ready(worker).await;
    load(worker, model).await;
    begin(worker, 1, prompt(40), 8, false).await;
    answer(worker).await.0
}

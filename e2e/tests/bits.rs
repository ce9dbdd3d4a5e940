//! The promise: the same bits in every lane, for every number of threads and every prefill tile,
//! in every browser and in the native program.
//!
//! Nothing here needs an expected value: all cells of one matrix are compared with each other. What
//! the values ought to be is the matter of the engine's own tests.
#![allow(clippy::unwrap_used)]

mod matrix;

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::{Browser, Engine, Options, Profile, Server, WorkerLink, get};
use format::ModelId;
use matrix::{Answer, Size, Subject, THREADS};
use protocol::{
    Catalogue, Command, Event, ImportId, ImportSource, LANES, Lane, Measure, Mode, RequestId,
    decode, encode,
};

/// The scalar lane on a slow machine.
const SLOWEST: Duration = Duration::from_secs(300);

#[tokio::test]
async fn tiny_models_give_the_same_bits_in_chromium() {
    agree(Engine::Chromium, matrix::tiny).await;
}

#[tokio::test]
async fn tiny_models_give_the_same_bits_in_firefox() {
    agree(Engine::Firefox, matrix::tiny).await;
}

/// Models stay in memory there, and only lanes without threads and relaxed vectors run.
#[tokio::test]
async fn tiny_models_give_the_same_bits_in_webkit() {
    agree(Engine::WebKit, matrix::tiny).await;
}

#[tokio::test]
async fn the_real_model_gives_the_same_bits_in_chromium() {
    agree(Engine::Chromium, matrix::real).await;
}

#[tokio::test]
async fn the_real_model_gives_the_same_bits_in_firefox() {
    agree(Engine::Firefox, matrix::real).await;
}

/// One row of a matrix: a lane, and threads if it can have more than one.
type Row = (&'static Lane, Option<u32>);

async fn agree(engine: Engine, subjects: fn(&std::path::Path) -> Vec<Subject>) {
    let folder = tempfile::tempdir().unwrap();
    let subjects = subjects(folder.path());
    let mut cells = 0;
    let mut native = BTreeMap::new();
    for (at, subject) in subjects.iter().enumerate() {
        for mode in subject.modes {
            native.insert((at, *mode as u8), subject.native(*mode));
        }
    }
    let server = Server::start(Options {
        models: Some(folder.path().to_owned()),
        ..Options::default()
    })
    .unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    // Any file of the origin will do: the worker needs no page.
    browser.client.goto(&server.url("style.css")).await.unwrap();
    for row in rows(engine) {
        let worker = start(&browser, row).await;
        for (at, subject) in subjects.iter().enumerate() {
            if subject.size == Size::Long && !is_worth_long(row) {
                continue;
            }
            load(worker, &server, subject).await;
            for mode in subject.modes {
                for tile in subject.tiles {
                    let found = measure(worker, subject, *mode, *tile).await;
                    let cell = format!("{engine:?}, {row:?}, {}, {mode:?}, {tile}", subject.name);
                    assert_eq!(found, native[&(at, *mode as u8)], "{cell}");
                    cells += 1;
                }
            }
        }
        println!("{engine:?}: {} with {:?} threads agrees", row.0.name, row.1);
    }
    println!("{engine:?}: {cells} cells agree");
}

fn rows(engine: Engine) -> Vec<Row> {
    let lanes = LANES
        .iter()
        .filter(|lane| engine.has(lane.required_features));
    lanes
        .flat_map(|lane| match lane.has_threads() {
            true => THREADS.map(|threads| (lane, Some(threads))).to_vec(),
            false => vec![(lane, None)],
        })
        .collect()
}

fn is_worth_long((lane, threads): Row) -> bool {
    !lane.required_features.is_empty() && threads.is_none_or(|threads| threads == 2)
}

/// A worker that runs this lane and no other.
async fn start(browser: &Browser, (lane, threads): Row) -> WorkerLink<'_> {
    let mut query = format!("?lane={}", lane.name);
    if let Some(threads) = threads {
        query += &format!("&threads={threads}");
    }
    let worker = WorkerLink::start(browser, &query).await.unwrap();
    let started = wait(worker, |event| match event {
        Event::Ready { lane, .. } => Some(lane.lane),
        _ => None,
    });
    assert_eq!(started.await, lane.id, "{query}");
    worker
}

/// Imports the model, unless this browser has it already, and loads it.
async fn load(worker: WorkerLink<'_>, server: &Server, subject: &Subject) {
    let reply = get(&server.host, "/models/catalogue.json", &[]).unwrap();
    let catalogue: Catalogue = serde_json::from_slice(&reply.body).unwrap();
    let url = format!("{}.slm", subject.name);
    let mut entries = catalogue.models.into_iter();
    let entry = entries.find(|entry| entry.url == url).unwrap();
    let import = Command::Import {
        import: ImportId(1),
        source: ImportSource::Catalogue(entry),
    };
    send(worker, &import).await;
    let imported = wait(worker, |event| match event {
        Event::Imported { model, .. } => Some(model.id),
        _ => None,
    });
    let model: ModelId = imported.await;
    let context = subject.context;
    send(worker, &Command::Load { model, context }).await;
    let is_loaded = |event| matches!(event, Event::Loaded { .. }).then_some(());
    wait(worker, is_loaded).await;
}

async fn measure(worker: WorkerLink<'_>, subject: &Subject, mode: Mode, tile: u32) -> Answer {
    let command = Command::Measure {
        request: RequestId(1),
        measure: Measure {
            prompt_ids: subject.prompt(),
            max_new: subject.steps,
            prefill_tile: tile,
            mode,
            reuses: false,
        },
    };
    send(worker, &command).await;
    wait(worker, |event| match event {
        Event::Measured {
            ids, logits_sha256, ..
        } => Some((ids, logits_sha256)),
        _ => None,
    })
    .await
}

async fn send(worker: WorkerLink<'_>, command: &Command) {
    worker.send(&encode(command).unwrap()).await.unwrap();
}

/// The first event that `pick` wants; a failure that the worker reports ends the test.
async fn wait<T>(worker: WorkerLink<'_>, pick: impl Fn(Event) -> Option<T>) -> T {
    loop {
        let bytes = worker.next(SLOWEST).await.unwrap();
        let event: Event = decode(&bytes).unwrap();
        assert!(!matches!(event, Event::Failed { .. }), "{event:?}");
        if let Some(picked) = pick(event) {
            return picked;
        }
    }
}

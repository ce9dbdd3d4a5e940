//! The promise: the same bits in every lane, for every prefill tile, and in the native program.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{Browser, Options, Profile, Server, WorkerLink, eval, get};
use format::{Digest, ModelId};
use protocol::{
    Catalogue, Command, Event, ImportId, ImportSource, LANES, Measure, Mode, RequestId, decode,
    encode,
};
use serde_json::json;

const STEPS: u32 = 64;
/// One token at a time, a tile that fits nothing, and one that leaves a rest.
const TILES: [u32; 3] = [1, 7, 32];
/// The scalar lane on a slow machine.
const SLOWEST: Duration = Duration::from_secs(300);

/// 40 ids below 256, which every vocabulary has.
fn prompt() -> Vec<u32> {
    (0..40).map(|i| (37 * i + 11) % 251).collect()
}

#[tokio::test]
async fn all_lanes_and_tiles_give_the_native_bits() {
    let native = native();
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    // Any file of the origin will do: the worker needs no page.
    browser.client.goto(&server.url("style.css")).await.unwrap();
    // A lane with threads needs a pool of workers.
    for lane in LANES.iter().filter(|lane| !lane.has_threads()) {
        let query = format!("?lane={}", lane.name);
        let worker = WorkerLink::start(&browser, &query).await.unwrap();
        let ready = wait(worker, |event| match event {
            Event::Ready { lane, .. } => Some(lane.lane),
            _ => None,
        });
        assert_eq!(ready.await, lane.id);
        let model = import(worker, &server).await;
        send(
            worker,
            &Command::Load {
                model,
                context: 512,
            },
        )
        .await;
        wait(worker, |event| {
            matches!(event, Event::Loaded { .. }).then_some(())
        })
        .await;
        for (number, tile) in TILES.into_iter().enumerate() {
            let measured = measure(worker, number as u32, tile).await;
            println!("{} tile {tile}: {}", lane.name, measured.1);
            assert_eq!(measured, native, "{} with tile {tile}", lane.name);
        }
    }
}

/// Ids and the digest of all logits from the native program, which must not depend on the tile.
fn native() -> (Vec<u32>, Digest) {
    let line = json!({ "ids": prompt(), "max_new": STEPS, "ignore_eos": true });
    let mut answers = TILES.map(|tile| {
        let tile = tile.to_string();
        let arguments = ["--prefill-tile", &tile, "--context", "512"];
        let answer = eval(&arguments, std::slice::from_ref(&line))
            .unwrap()
            .remove(0);
        let ids: Vec<u32> = serde_json::from_value(answer["ids"].clone()).unwrap();
        let digest = Digest::from_hex(answer["logits_sha256"].as_str().unwrap()).unwrap();
        (ids, digest)
    });
    assert_eq!(answers[0].0.len(), STEPS as usize);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    std::mem::take(&mut answers[0])
}

async fn import(worker: WorkerLink<'_>, server: &Server) -> ModelId {
    let reply = get(&server.host, "/models/catalogue.json", &[]).unwrap();
    let catalogue: Catalogue = serde_json::from_slice(&reply.body).unwrap();
    let command = Command::Import {
        import: ImportId(1),
        source: ImportSource::Catalogue(catalogue.models[0].clone()),
    };
    send(worker, &command).await;
    wait(worker, |event| match event {
        Event::Imported { model, .. } => Some(model.id),
        _ => None,
    })
    .await
}

async fn measure(worker: WorkerLink<'_>, number: u32, tile: u32) -> (Vec<u32>, Digest) {
    let command = Command::Measure {
        request: RequestId(number),
        measure: Measure {
            prompt_ids: prompt(),
            max_new: STEPS,
            prefill_tile: tile,
            mode: Mode::Int8V1,
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

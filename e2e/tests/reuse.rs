//! What earlier requests computed is taken up again in a browser, and changes no bit: at every
//! split of a prompt and with every format of the cache; and from the disk, after the worker that
//! computed it was ended in the middle of an answer.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{Browser, Engine, Options, Profile, Server, WorkerLink, convert, get, golden, model_slm};
use format::{Digest, ModelId};
use protocol::{
    Catalogue, Command, Event, Figures, ImportId, ImportSource, KvFormat, LANES, Lane, Measure,
    Message, Mode, RequestId, Residency, Role, Sampling, Wish, decode, encode,
};

/// An answer of the slowest lane.
const SLOWEST: Duration = Duration::from_secs(120);
/// Two pages of the cache.
const PROMPT: u32 = 64;
/// The slow lane, and the two that people mostly get.
const OF_INTEREST: [&str; 3] = ["scalar-wasm32", "simd128-wasm32", "relaxed-threads-wasm32"];

#[tokio::test]
async fn every_split_of_a_prompt_gives_the_same_bits_in_chromium() {
    splits(Engine::Chromium).await;
}

#[tokio::test]
async fn every_split_of_a_prompt_gives_the_same_bits_in_firefox() {
    splits(Engine::Firefox).await;
}

async fn splits(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let source = golden().unwrap().join("tiny/llama_gqa_headdim");
    convert(&source, "q8_0", &folder.path().join("tiny.slm")).unwrap();
    let server = serve(folder.path());
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    browser.client.goto(&server.url("style.css")).await.unwrap();
    for lane in LANES.iter().filter(|lane| is_of_interest(engine, lane)) {
        let query = format!("?lane={}&threads=2", lane.name);
        let worker = start(&browser, &query).await;
        let model = import(worker, &server).await;
        for kv_format in KvFormat::ALL {
            load(worker, model, kv_format).await;
            for split in 1..PROMPT {
                // A prompt of its own, so that no more than the split is there to be taken.
                let prompt: Vec<u32> = (0..PROMPT).map(|i| (37 * i + 5 * split) % 251).collect();
                let begun = &prompt[..split as usize];
                let cell = format!("{engine:?}, {}, {kv_format:?}, {split}", lane.name);
                let (_, figures) = measure(worker, begun, 1, true).await;
                assert_eq!(figures.reused_tokens, 0, "{cell}");
                let (warm, figures) = measure(worker, &prompt, 4, true).await;
                assert_eq!(figures.reused_tokens, split, "{cell}");
                let (cold, figures) = measure(worker, &prompt, 4, false).await;
                assert_eq!(figures.reused_tokens, 0, "{cell}");
                assert_eq!(warm, cold, "{cell}");
            }
        }
    }
}

fn is_of_interest(engine: Engine, lane: &Lane) -> bool {
    OF_INTEREST.contains(&lane.name) && engine.has(lane.required_features)
}

#[tokio::test]
async fn a_kept_conversation_goes_on_after_a_crash_in_chromium() {
    from_the_disk(Engine::Chromium).await;
}

#[tokio::test]
async fn a_kept_conversation_goes_on_after_a_crash_in_firefox() {
    from_the_disk(Engine::Firefox).await;
}

async fn from_the_disk(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(model_slm().unwrap(), folder.path().join("smollm2.slm")).unwrap();
    let server = serve(folder.path());
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    browser.client.goto(&server.url("style.css")).await.unwrap();
    let query = "?lane=simd128-threads-wasm32&threads=2";
    let worker = start(&browser, query).await;
    let model = import(worker, &server).await;
    load(worker, model, KvFormat::F16).await;

    let mut talk = vec![message(
        Role::User,
        "Name three fruits and say what they cost.",
    )];
    chat(worker, 1, &talk, Some(7), 24).await;
    let (said, _) = answer(worker).await;
    wait(worker, |event| match event {
        Event::Kept { bytes, .. } => (bytes > 0).then_some(()),
        _ => None,
    })
    .await;
    talk.push(message(Role::Assistant, &said));
    talk.push(message(Role::User, "Which of them is red?"));
    // Its worker is ended while it computes: what was kept before stays what it was.
    chat(worker, 2, &talk, Some(7), 200).await;
    let is_text = |event| matches!(event, Event::Text { .. }).then_some(());
    wait(worker, is_text).await;

    let worker = start(&browser, query).await;
    load(worker, model, KvFormat::F16).await;
    chat(worker, 1, &talk, Some(7), 24).await;
    let (restored, warm) = answer(worker).await;
    let worker = start(&browser, query).await;
    load(worker, model, KvFormat::F16).await;
    chat(worker, 1, &talk, None, 24).await;
    let (computed, cold) = answer(worker).await;
    println!("{engine:?}: {warm:?} instead of {cold:?}");
    assert_eq!(cold.reused_tokens, 0);
    assert!(warm.reused_tokens > 20, "{warm:?}");
    assert_eq!(restored, computed);
}

fn serve(models: &std::path::Path) -> Server {
    Server::start(Options {
        models: Some(models.to_owned()),
        ..Options::default()
    })
    .unwrap()
}

/// A new worker; the one before it, if there was one, is ended.
async fn start<'a>(browser: &'a Browser, query: &str) -> WorkerLink<'a> {
    let worker = WorkerLink::start(browser, query).await.unwrap();
    let is_ready = |event| matches!(event, Event::Ready { .. }).then_some(());
    wait(worker, is_ready).await;
    worker
}

/// The one model of the server, unless this browser has it already.
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

async fn load(worker: WorkerLink<'_>, model: ModelId, kv_format: KvFormat) {
    let wish = Wish {
        context: 256,
        kv_format,
        residency: Residency::Full,
    };
    send(worker, &Command::Prefer(wish)).await;
    send(worker, &Command::Load { model, context: 0 }).await;
    let found = wait(worker, |event| match event {
        Event::Loaded { fit, .. } => Some(fit.kv_format),
        _ => None,
    });
    assert_eq!(found.await, kv_format);
}

/// Digest of the logits, and the figures.
async fn measure(
    worker: WorkerLink<'_>,
    prompt: &[u32],
    max_new: u32,
    reuses: bool,
) -> (Digest, Figures) {
    let command = Command::Measure {
        request: RequestId(1),
        measure: Measure {
            prompt_ids: prompt.to_vec(),
            max_new,
            prefill_tile: 0,
            mode: Mode::Int8V1,
            reuses,
        },
    };
    send(worker, &command).await;
    wait(worker, |event| match event {
        Event::Measured {
            logits_sha256,
            figures,
            ..
        } => Some((logits_sha256, figures)),
        _ => None,
    })
    .await
}

fn message(role: Role, content: &str) -> Message {
    let content = content.to_owned();
    Message { role, content }
}

async fn chat(
    worker: WorkerLink<'_>,
    number: u32,
    messages: &[Message],
    kept_as: Option<u64>,
    max_new: u32,
) {
    let command = Command::Chat {
        request: RequestId(number),
        messages: messages.to_vec(),
        sampling: Sampling {
            max_new,
            ..Sampling::GREEDY
        },
        kept_as,
    };
    send(worker, &command).await;
}

/// All words until the end.
async fn answer(worker: WorkerLink<'_>) -> (String, Figures) {
    let mut words = String::new();
    loop {
        let heard = wait(worker, |event| match event {
            Event::Text { text, .. } => Some(Err(text)),
            Event::Done { figures, .. } => Some(Ok(figures)),
            _ => None,
        });
        match heard.await {
            Err(text) => words += &text,
            Ok(figures) => return (words, figures),
        }
    }
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

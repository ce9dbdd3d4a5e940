//! The memory of a lane in a browser: what is planned is what is taken, it grows no more once a
//! model is there, and a model that does not fit is computed page by page with the same bits.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use e2e::{Browser, Engine, Options, Profile, Server, WorkerLink, eval, get, model_slm};
use format::Digest;
use protocol::{
    Catalogue, Command, Event, Figures, FitReport, ImportId, ImportSource, KvFormat, Measure, Mode,
    ModelSummary, RequestId, Residency, TabRole, Wish, decode, encode,
};
use serde_json::json;

const SLOWEST: Duration = Duration::from_secs(120);
/// What loading may take beside what the plan says.
const LOADING_BYTES: u64 = 8 * 1024 * 1024;
const NEW: u32 = 24;
const SOLO: &str = "?lane=simd128-wasm32";
const THREADS: &str = "?lane=simd128-threads-wasm32&threads=2";
/// Megabytes that the lane is given where the model of 98 MB is not to fit.
const LITTLE: &str = "&memory=80";

#[tokio::test]
async fn planned_is_taken_and_pages_change_no_bit_in_chromium() {
    agree(Engine::Chromium).await;
}

#[tokio::test]
async fn planned_is_taken_and_pages_change_no_bit_in_firefox() {
    agree(Engine::Firefox).await;
}

#[tokio::test]
async fn a_reloaded_page_gets_its_memory_again_in_chromium() {
    reload(Engine::Chromium).await;
}

#[tokio::test]
async fn a_reloaded_page_gets_its_memory_again_in_firefox() {
    reload(Engine::Firefox).await;
}

/// A shared memory is as large as the browser gives it, and is asked for with every start.
async fn reload(engine: Engine) {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..10 {
        browser.client.goto(&server.url("style.css")).await.unwrap();
        let worker = start(&browser, THREADS).await;
        sizes.push(diagnostics(worker).await.0);
    }
    println!("{engine:?}: {sizes:?}");
    assert_eq!(sizes, [sizes[0]; 10]);
}

async fn agree(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(model_slm().unwrap(), folder.path().join("smollm2.slm")).unwrap();
    let server = Server::start(Options {
        models: Some(folder.path().to_owned()),
        ..Options::default()
    })
    .unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    browser.client.goto(&server.url("style.css")).await.unwrap();
    let mut digests: Vec<Digest> = Vec::new();
    for lane in [SOLO, THREADS] {
        let worker = start(&browser, lane).await;
        let model = import(worker, &server).await;
        let full = whole(worker, &model, (engine, lane), &mut digests).await;
        formats(worker, &model, (engine, lane)).await;
        let worker = start(&browser, &format!("{lane}{LITTLE}")).await;
        refused(worker, &model).await;
        for residency in [Residency::Hybrid, Residency::Paged] {
            let wish = Wish {
                context: 256,
                kv_format: KvFormat::F16,
                residency,
            };
            let fit = load(worker, &model, wish).await;
            assert!(fit.total <= 80_000_000, "{fit:?}");
            let (before, _) = diagnostics(worker).await;
            // A memory of its own is as large as what it holds.
            assert!(
                lane == THREADS || before <= 80_000_000 + LOADING_BYTES,
                "{before}"
            );
            for _ in 0..2 {
                let (digest, rate) = measure(worker).await;
                println!(
                    "{engine:?} {lane} {residency:?}, {} of {} layers kept, {} MB a token: {:.1} \
                     tokens/s, {:.2} of full",
                    fit.kept_layers,
                    fit.layers,
                    fit.streamed / 1_000_000,
                    rate,
                    rate / full
                );
                digests.push(digest);
            }
            let (after, read_ahead) = diagnostics(worker).await;
            assert_eq!(after, before, "memory grew after the load");
            println!("{read_ahead} blocks were read ahead");
            // Firefox has no second handle for a reader.
            let has_reader = lane == THREADS && engine == Engine::Chromium;
            assert_eq!(read_ahead > 0, has_reader, "{residency:?}");
        }
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

/// Wholly in memory, with three contexts; tokens a second with the shortest.
async fn whole(
    worker: WorkerLink<'_>,
    model: &ModelSummary,
    (engine, lane): (Engine, &str),
    digests: &mut Vec<Digest>,
) -> f64 {
    let mut rates = Vec::new();
    for context in [256, 2048, 8192] {
        let wish = Wish {
            context,
            ..Wish::USUAL
        };
        let started = Instant::now();
        let fit = load(worker, model, wish).await;
        let load_ms = started.elapsed().as_millis();
        if (lane, context) == (SOLO, 256) {
            // A memory of its own never shrinks, so it is as large as it was at any time.
            let (bytes, _) = diagnostics(worker).await;
            println!("{bytes} bytes of memory for {} planned", fit.total);
            assert!(bytes <= fit.total + LOADING_BYTES, "{bytes}: {fit:?}");
        }
        let (digest, rate) = measure(worker).await;
        println!(
            "{engine:?} {lane}, loaded in {load_ms} ms, context {context}, {} MB: {rate:.1} \
             tokens/s",
            fit.total / 1_000_000
        );
        digests.push(digest);
        rates.push(rate);
    }
    rates[0]
}

/// Every format of the cache in every residency is planned as it is taken, and the bits are those
/// of the native program, whatever the residency.
async fn formats(worker: WorkerLink<'_>, model: &ModelSummary, (engine, lane): (Engine, &str)) {
    for (kv_format, name) in [(KvFormat::F32, "f32"), (KvFormat::Int8, "int8")] {
        let native = native(name);
        for residency in Residency::ALL {
            for context in [2048, 8192, 256] {
                let wish = Wish {
                    context,
                    kv_format,
                    residency,
                };
                let fit = load(worker, model, wish).await;
                assert_eq!(fit.kv_format, kv_format);
            }
            let (digest, _) = measure(worker).await;
            assert_eq!(
                digest, native,
                "{engine:?} {lane} {kv_format:?} {residency:?}"
            );
        }
    }
}

/// Digest of the logits of [`measure`]'s request, with keys and values kept so.
fn native(kv: &str) -> Digest {
    let line = json!({ "ids": prompt(), "max_new": NEW, "ignore_eos": true });
    let arguments = ["--mode", "int8-v1", "--context", "256", "--kv", kv];
    let answer = eval(&model_slm().unwrap(), &arguments, &[line])
        .unwrap()
        .remove(0);
    Digest::from_hex(answer["logits_sha256"].as_str().unwrap()).unwrap()
}

async fn start<'a>(browser: &'a Browser, query: &str) -> WorkerLink<'a> {
    let worker = WorkerLink::start(browser, query).await.unwrap();
    // It has the lock that only an ended worker lets go.
    let is_owner = |event: &Event| match event {
        Event::Role { role, .. } => (*role == TabRole::Owner).then_some(()),
        _ => None,
    };
    wait(worker, is_owner).await;
    let is_ready = |event: &Event| matches!(event, Event::Ready { .. }).then_some(());
    wait(worker, is_ready).await;
    worker
}

async fn import(worker: WorkerLink<'_>, server: &Server) -> ModelSummary {
    let reply = get(&server.host, "/models/catalogue.json", &[]).unwrap();
    let catalogue: Catalogue = serde_json::from_slice(&reply.body).unwrap();
    let source = ImportSource::Catalogue(catalogue.models[0].clone());
    let import = ImportId(1);
    send(worker, &Command::Import { import, source }).await;
    let imported = wait(worker, |event| match event {
        Event::Imported { model, .. } => Some(model.clone()),
        _ => None,
    });
    imported.await
}

/// Loads it so; what was taken is within 2 % of what was planned, in all and part by part.
async fn load(worker: WorkerLink<'_>, model: &ModelSummary, wish: Wish) -> Box<FitReport> {
    send(worker, &Command::Prefer(wish)).await;
    let model = model.id;
    send(worker, &Command::Load { model, context: 0 }).await;
    let fit = wait(worker, |event| match event {
        Event::Loaded { fit, .. } => Some(fit.clone()),
        _ => None,
    });
    let fit = fit.await;
    let taken = fit.taken.expect("the model is loaded");
    assert!(
        taken.total().abs_diff(fit.total) * 50 <= fit.total,
        "{fit:?}"
    );
    for (planned, taken) in [
        (fit.weights, taken.weights),
        (fit.kv, taken.kv),
        (fit.scratch, taken.scratch),
        (fit.metadata, taken.metadata),
        (fit.logits, taken.logits),
        (fit.sampler, taken.sampler),
        (fit.transfer, taken.transfer),
    ] {
        assert!(taken.abs_diff(planned) * 50 <= planned, "{fit:?}");
    }
    assert_eq!((fit.context, fit.residency), (wish.context, wish.residency));
    fit
}

/// Without a wish the model is refused with the ways in which it would fit.
async fn refused(worker: WorkerLink<'_>, model: &ModelSummary) {
    let model = model.id;
    send(worker, &Command::Load { model, context: 0 }).await;
    let fit = wait_even_failures(worker, |event| match event {
        Event::Fit(fit) => Some(fit.clone()),
        _ => None,
    })
    .await;
    assert!(fit.over.is_some());
    let ways: Vec<Residency> = fit
        .levers
        .iter()
        .map(|lever| lever.wish.residency)
        .collect();
    assert!(
        ways.contains(&Residency::Hybrid) && ways.contains(&Residency::Paged),
        "{ways:?}"
    );
    wait_even_failures(worker, |event| {
        matches!(event, Event::Failed { .. }).then_some(())
    })
    .await;
}

fn prompt() -> Vec<u32> {
    (0..100).map(|i| i * 7919 % 49_152).collect()
}

/// Digest of the logits, and tokens a second while answering.
async fn measure(worker: WorkerLink<'_>) -> (Digest, f64) {
    let command = Command::Measure {
        request: RequestId(1),
        measure: Measure {
            prompt_ids: prompt(),
            max_new: NEW,
            prefill_tile: 0,
            mode: Mode::Int8V1,
            reuses: false,
        },
    };
    send(worker, &command).await;
    let measured = wait(worker, |event| match event {
        Event::Measured {
            logits_sha256,
            figures,
            ..
        } => Some((*logits_sha256, *figures)),
        _ => None,
    });
    let (digest, figures): (Digest, Figures) = measured.await;
    let rate = f64::from(figures.new_tokens - 1) / figures.decode_ms * 1e3;
    (digest, rate)
}

/// Bytes of the lane's memory, and blocks that were read ahead.
async fn diagnostics(worker: WorkerLink<'_>) -> (u64, u64) {
    send(worker, &Command::Diagnostics).await;
    let told = wait(worker, |event| match event {
        Event::Diagnostics(told) => Some((told.receipt.observed.memory_bytes, told.read_ahead)),
        _ => None,
    });
    told.await
}

async fn send(worker: WorkerLink<'_>, command: &Command) {
    worker.send(&encode(command).unwrap()).await.unwrap();
}

/// The first event that `pick` wants; a failure that the worker reports ends the test.
async fn wait<T>(worker: WorkerLink<'_>, pick: impl Fn(&Event) -> Option<T>) -> T {
    wait_even_failures(worker, |event| {
        assert!(!matches!(event, Event::Failed { .. }), "{event:?}");
        pick(event)
    })
    .await
}

async fn wait_even_failures<T>(worker: WorkerLink<'_>, pick: impl Fn(&Event) -> Option<T>) -> T {
    loop {
        let bytes = worker.next(SLOWEST).await.unwrap();
        let event: Event = decode(&bytes).unwrap();
        if let Some(picked) = pick(&event) {
            return picked;
        }
    }
}

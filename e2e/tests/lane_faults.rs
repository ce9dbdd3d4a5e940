//! Damaged, forged and wrong lanes: the next lower lane is used, visibly, and the chat works.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use e2e::{Browser, Options, Page, Profile, Server, WorkerLink, copy_dist, signing_seed};
use ed25519_dalek::{Signer, SigningKey};
use format::Digest;
use protocol::{
    Command, Diagnostics, ErrorReport, Event, LANES, Lane, LaneArtifact, LaneId, ManifestFile,
    Signature, TrResult, artifact_message, decode, encode,
};
use serde_json::value::RawValue;

const START: Duration = Duration::from_secs(120);
const IMPORT: Duration = Duration::from_secs(180);
const ANSWER: Duration = Duration::from_secs(180);

type File = ManifestFile<Box<RawValue>>;

/// A copy of the app whose lanes can be spoiled.
struct Spoiled {
    folder: tempfile::TempDir,
}

impl Spoiled {
    fn copy() -> Spoiled {
        let folder = tempfile::tempdir().unwrap();
        copy_dist(folder.path()).unwrap();
        Spoiled { folder }
    }

    fn serve(&self) -> Server {
        Server::start(Options {
            app: Some(self.folder.path().to_owned()),
            ..Options::default()
        })
        .unwrap()
    }

    fn manifest(&self) -> PathBuf {
        self.folder.path().join("lanes/manifest.json")
    }

    fn change_manifest(&self, change: impl FnOnce(&mut File)) {
        let mut file: File = serde_json::from_slice(&fs::read(self.manifest()).unwrap()).unwrap();
        change(&mut file);
        fs::write(self.manifest(), serde_json::to_vec_pretty(&file).unwrap()).unwrap();
    }

    /// Changes a lane's module, and its entry too if the test holds the publisher's key.
    fn change_module(&self, id: LaneId, key: Option<&SigningKey>, change: fn(&mut [u8])) {
        self.change_manifest(|file| {
            let head = file.head.signed.get().to_owned();
            for entry in &mut file.artifacts {
                let mut artifact: LaneArtifact = serde_json::from_str(entry.signed.get()).unwrap();
                if artifact.id != id {
                    continue;
                }
                let path = self.folder.path().join("lanes").join(&artifact.url);
                let mut module = fs::read(&path).unwrap();
                change(&mut module);
                fs::write(&path, &module).unwrap();
                if let Some(key) = key {
                    artifact.sha256 = format::sha256(&module);
                    let json = serde_json::to_string(&artifact).unwrap();
                    let message = artifact_message(&head, &json);
                    entry.signature = Signature(key.sign(&message).to_bytes());
                    entry.signed = RawValue::from_string(json).unwrap();
                }
            }
        });
    }
}

/// A worker's answer to its start.
async fn started(browser: &Browser, query: &str) -> Result<(LaneId, Vec<ErrorReport>), String> {
    let worker = WorkerLink::start(browser, query).await.unwrap();
    loop {
        match decode(&worker.next(START).await.unwrap()).unwrap() {
            Event::Ready {
                lane, downgrades, ..
            } => return Ok((lane.lane, downgrades)),
            Event::Failed { error, .. } => return Err(error.what),
            _ => {}
        }
    }
}

/// Starts a browser on a file of the server, which needs no page to start workers.
async fn visit(profile: &Profile, server: &Server) -> Browser {
    let browser = Browser::start(profile).await.unwrap();
    browser.client.goto(&server.url("style.css")).await.unwrap();
    browser
}

/// The best lane of this browser, and the one that must follow if it cannot be used.
async fn best_and_next() -> (LaneId, LaneId) {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = visit(&profile, &server).await;
    let (best, _) = started(&browser, "").await.unwrap();
    let at = LANES.iter().position(|lane| lane.id == best).unwrap();
    let usable = |lane: &&Lane| LANES[at].has_threads() || !lane.has_threads();
    let next = LANES[at + 1..].iter().find(usable).unwrap();
    (best, next.id)
}

fn told(downgrades: &[ErrorReport], id: LaneId, code: TrResult) -> &ErrorReport {
    let wanted = |report: &&ErrorReport| report.what.contains(id.name()) && report.code == code;
    let found = downgrades.iter().find(wanted);
    found.unwrap_or_else(|| panic!("{code:?} of {} in {downgrades:?}", id.name()))
}

#[tokio::test]
async fn one_flipped_byte_leads_visibly_to_the_next_lane_and_the_chat_works() {
    let (best, next) = best_and_next().await;
    let spoiled = Spoiled::copy();
    spoiled.change_module(best, None, |module| {
        let middle = module.len() / 2;
        module[middle] ^= 1;
    });
    let server = spoiled.serve();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("empty", START).await.unwrap();
    let notice = page.wait_text("#error", START).await.unwrap();
    println!("{notice}");
    assert!(notice.contains(best.name()) && notice.contains("SHA-256"));

    page.click("#get-default").await.unwrap();
    page.wait_state("ready", IMPORT).await.unwrap();
    let answer = page.ask("What is the capital of France?", ANSWER).await;
    assert!(!answer.unwrap().is_empty());

    page.click("#nav-about").await.unwrap();
    let lane = page.wait_text("#lane", START).await.unwrap();
    assert_eq!(lane, next.name());
    let refused = page.wait_text("#downgrades", START).await.unwrap();
    assert!(refused.contains(best.name()), "{refused}");
    let receipt = "return document.querySelector('#receipt')?.textContent";
    let receipt = browser.wait("receipt", START, receipt).await.unwrap();
    let receipt: serde_json::Value = serde_json::from_str(receipt.as_str().unwrap()).unwrap();
    assert_eq!(receipt["schema"], "tinyrustlm.capability-receipt.v1");
    assert_eq!(receipt["selection"]["lane"], next.name());
    assert_eq!(receipt["module"]["artifact_id"], next.name());
}

#[tokio::test]
async fn a_forged_entry_costs_its_lane() {
    let (best, next) = best_and_next().await;
    let spoiled = Spoiled::copy();
    let at = LANES.iter().position(|lane| lane.id == best).unwrap();
    spoiled.change_manifest(|file| file.artifacts[at].signature.0[0] ^= 1);
    let server = spoiled.serve();
    let profile = Profile::fresh().unwrap();
    let browser = visit(&profile, &server).await;
    let (lane, downgrades) = started(&browser, "").await.unwrap();
    assert_eq!(lane, next);
    let report = told(&downgrades, best, TrResult::Source);
    assert!(report.what.contains("signed"), "{report:?}");
}

#[tokio::test]
async fn a_forged_manifest_is_a_clear_error() {
    let spoiled = Spoiled::copy();
    spoiled.change_manifest(|file| file.head.signature.0[0] ^= 1);
    let server = spoiled.serve();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    let notice = page.wait_text("#error", START).await.unwrap();
    assert!(notice.contains("the publisher did not sign it"), "{notice}");
    assert_eq!(page.state().await.unwrap(), "failed");
}

/// The first of the known answers, as it lies in a module.
fn spoil_a_known_answer(module: &mut [u8]) {
    const SOURCE: &str = include_str!("../../runtime/src/self_test.rs");
    let (_, rest) = SOURCE.split_once("vector(functions, 0x").unwrap();
    let digits: String = rest.chars().take_while(|one| *one != ')').collect();
    let answer = u64::from_str_radix(&digits.replace('_', ""), 16).unwrap();
    let bytes = answer.to_le_bytes();
    let mut places = module.windows(8).enumerate();
    let (at, _) = places.find(|(_, window)| *window == bytes).unwrap();
    module[at] ^= 1;
}

/// The module is signed and hashed rightly, and computes what it should not.
#[tokio::test]
async fn a_lane_that_fails_its_self_test_is_remembered_until_it_is_forgotten() {
    let (best, next) = best_and_next().await;
    let spoiled = Spoiled::copy();
    let key = SigningKey::from_bytes(&signing_seed().unwrap());
    spoiled.change_module(best, Some(&key), spoil_a_known_answer);
    let server = spoiled.serve();
    let profile = Profile::fresh().unwrap();
    let browser = visit(&profile, &server).await;
    let fetches = || {
        let log = server.log().unwrap();
        let module = format!("/lanes/{}.", best.name());
        let asked = log.iter().filter(|line| line.path.starts_with(&module));
        asked.count()
    };

    let (lane, downgrades) = started(&browser, "").await.unwrap();
    assert_eq!(lane, next);
    told(&downgrades, best, TrResult::SelfTestFailed);
    assert_eq!(fetches(), 1);

    // The second visit neither fetches nor runs it, and says why.
    let (lane, downgrades) = started(&browser, "").await.unwrap();
    assert_eq!(lane, next);
    let report = told(&downgrades, best, TrResult::WorkerFailure);
    assert!(report.what.contains("self-tests"), "{report:?}");
    assert_eq!(fetches(), 1);

    // A person asks for another try.
    let worker = WorkerLink::start(&browser, "").await.unwrap();
    ask(worker, &Command::ForgetFailures, |event| {
        matches!(event, Event::FailuresForgotten).then_some(())
    })
    .await;
    let (lane, downgrades) = started(&browser, "").await.unwrap();
    assert_eq!(lane, next);
    told(&downgrades, best, TrResult::SelfTestFailed);
}

/// The receipt says what ran: no lane counts what it does not have, and each what it is named for.
#[tokio::test]
async fn receipts_say_what_really_ran() {
    let server = Server::start(Options::default()).unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = visit(&profile, &server).await;
    for lane in LANES {
        // Lanes without threads have no use for the number.
        let query = format!("?lane={}&threads=2", lane.name);
        let worker = WorkerLink::start(&browser, &query).await.unwrap();
        let known = ask(worker, &Command::Diagnostics, diagnostics).await;
        let receipt = known.receipt;
        println!("{}: {:?}", lane.name, receipt.executed_path_evidence);
        assert_eq!(receipt.selection.lane, Some(lane.id));
        assert_eq!(receipt.self_test.failed, 0);
        assert!(receipt.self_test.tests > 0 && receipt.observed.memory_bytes > 0);
        assert_ne!(receipt.self_test.vector_set_sha256, Digest::default());
        assert!(receipt.host_reported.browser.starts_with("Chrome "));
        let module = receipt.module.unwrap();
        assert_eq!(Some(module.sha256), known.lane.unwrap().sha256);
        for probe in &receipt.observed.feature_probes {
            // The browser that runs this has all of them.
            assert!(probe.validates, "{}", probe.name);
        }
        let ran = receipt.executed_path_evidence;
        let has = |feature| lane.required_features.contains(&feature);
        // Every product takes one path, and a lane has one.
        let (relaxed, simd) = (has("relaxed-simd"), has("simd128"));
        let paths = [
            ran.relaxed_kernel_calls,
            ran.simd_kernel_calls,
            ran.scalar_kernel_calls,
        ];
        let wanted = [relaxed, simd && !relaxed, !simd];
        assert_eq!(paths.map(|calls| calls > 0), wanted, "{ran:?}");
        let team: &[u32] = if lane.has_threads() { &[0, 1] } else { &[0] };
        assert_eq!(ran.worker_ids_participating, team);
        assert_eq!(receipt.observed.workers_started as usize, team.len());
    }
}

fn diagnostics(event: &Event) -> Option<Diagnostics> {
    match event {
        Event::Diagnostics(known) => Some((**known).clone()),
        _ => None,
    }
}

/// The answer of a worker that was just started, and is asked as soon as it is ready.
async fn ask<T>(
    worker: WorkerLink<'_>,
    command: &Command,
    wanted: impl Fn(&Event) -> Option<T>,
) -> T {
    loop {
        let event = decode(&worker.next(START).await.unwrap()).unwrap();
        if let Event::Ready { .. } = event {
            worker.send(&encode(command).unwrap()).await.unwrap();
        } else if let Some(found) = wanted(&event) {
            return found;
        }
    }
}

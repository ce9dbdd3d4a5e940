//! Fetching, verifying and starting a compiled lane.

mod threaded;

use js_sys::{Date, Uint8Array, WebAssembly};
use protocol::{
    CapabilityReceipt, ErrorReport, Executed, HostReported, LANES, Lane, LaneId, LaneReport,
    MemoryMode, ModuleFacts, Observed, PROBES, Probe, ProbeOutcome, RECEIPT_SCHEMA, Selection,
    SelfTestFacts, abi,
};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{DedicatedWorkerGlobalScope, Response};

use self::threaded::TeamFacts;
use super::remembered::Remembered;
use super::{BrowserEngine, cross_origin_isolated};
use crate::PublicKey;
use crate::engine::Engine;
use crate::engine::module::{Imports, ModuleEngine};
use crate::lane::{self, Candidate, LaneRefusal, Manifest};

/// Folder of the lanes, relative to the worker's script.
const FOLDER: &str = "lanes/";
const MANIFEST: &str = "manifest.json";
/// Whose signatures are believed.
pub const PUBLISHER: PublicKey = match PublicKey::from_hex(env!(
    "TINYRUSTLM_PUBLIC_KEY",
    "build the worker with `cargo xtask dist`, which makes or reads the publisher's key"
)) {
    Some(key) => key,
    None => panic!("TINYRUSTLM_PUBLIC_KEY must have 64 lower-case hexadecimal digits"),
};

pub struct Loaded {
    pub engine: BrowserEngine,
    pub report: LaneReport,
    pub downgrades: Vec<ErrorReport>,
    pub receipt: CapabilityReceipt,
}

pub struct LaneFailure {
    pub error: ErrorReport,
    pub downgrades: Vec<ErrorReport>,
}

/// What is known before a lane is looked for.
pub struct Wish<'a> {
    /// The lane that the page's address names.
    pub forced: Option<&'a str>,
    /// Lanes that trapped since the worker started.
    pub lost: &'a [LaneId],
    pub remembered: &'a Remembered,
}

/// A lane that computes rightly.
struct Started {
    engine: BrowserEngine,
    report: LaneReport,
    tested: SelfTestFacts,
    team: TeamFacts,
}

/// The first lane that this browser takes. Lanes that failed before are passed over, unless
/// nothing slower is left.
pub async fn load(
    scope: &DedicatedWorkerGlobalScope,
    wish: Wish<'_>,
) -> Result<Loaded, LaneFailure> {
    let mut downgrades = Vec::new();
    let fail = |refusal: &LaneRefusal, downgrades| LaneFailure {
        error: refusal.report(),
        downgrades,
    };
    let lanes = match lane::order(wish.forced) {
        Ok(lanes) => lanes,
        Err(refusal) => return Err(fail(&refusal, downgrades)),
    };
    let manifest = match fetch_manifest(scope).await {
        Ok(manifest) => manifest,
        Err(refusal) => return Err(fail(&refusal, downgrades)),
    };
    wish.remembered.keep_current(&manifest.digests());
    let probed: Vec<ProbeOutcome> = PROBES.iter().map(outcome).collect();
    for (at, lane) in lanes.iter().enumerate() {
        let is_last = at + 1 == lanes.len();
        let passed_over = passed_over(&manifest, lane, &wish).filter(|_| !is_last);
        let tried = match passed_over {
            Some(refusal) => Err(refusal),
            None => try_lane(scope, &manifest, lane, &probed).await,
        };
        match tried {
            Ok(started) => {
                let receipt = receipt(&manifest, &started, probed, &downgrades, &wish);
                return Ok(Loaded {
                    engine: started.engine,
                    report: started.report,
                    downgrades,
                    receipt,
                });
            }
            Err(refusal) => {
                if let (true, Ok(artifact)) = (refusal.is_lasting(), manifest.artifact(lane.id)) {
                    wish.remembered.add(artifact.sha256, refusal.report().what);
                }
                downgrades.push(refusal.report());
            }
        }
    }
    Err(fail(&LaneRefusal::NoneLeft, downgrades))
}

async fn fetch_manifest(scope: &DedicatedWorkerGlobalScope) -> Result<Manifest, LaneRefusal> {
    let bytes = fetch(scope, MANIFEST, "the list of engines").await?;
    Manifest::read(&bytes, &PUBLISHER)
}

/// Why a lane is not even tried: it failed before.
fn passed_over(manifest: &Manifest, lane: &Lane, wish: &Wish<'_>) -> Option<LaneRefusal> {
    if wish.lost.contains(&lane.id) {
        return Some(LaneRefusal::Broken(lane.id));
    }
    let artifact = manifest.artifact(lane.id).ok()?;
    let what = wish.remembered.of(artifact.sha256)?;
    Some(LaneRefusal::Remembered {
        lane: lane.id,
        what,
    })
}

async fn try_lane(
    scope: &DedicatedWorkerGlobalScope,
    manifest: &Manifest,
    lane: &'static Lane,
    probed: &[ProbeOutcome],
) -> Result<Started, LaneRefusal> {
    let id = lane.id;
    for probe in lane.probes {
        let has = |outcome: &ProbeOutcome| outcome.name == probe.name && outcome.validates;
        if !probed.iter().any(has) {
            let probe = probe.name;
            return Err(LaneRefusal::Probe { lane: id, probe });
        }
    }
    let candidate = lane::candidate(manifest, lane)?;
    let bytes = fetch(scope, &candidate.artifact.url, lane.name).await?;
    lane::verify(&candidate, &bytes)?;
    let (mut engine, team) = match lane.has_threads() {
        true => {
            let sha256 = candidate.artifact.sha256;
            threaded::start(scope, id, &bytes, sha256).await?
        }
        false => {
            let module = compile(id, &bytes).await?;
            (instantiate(id, &module, None).await?, TeamFacts::SOLO)
        }
    };
    let result = engine.self_tests().map_err(|_| LaneRefusal::Broken(id))?;
    // A shared memory was made as large as it will be.
    let granted = match lane.has_threads() {
        true => engine.memory_bytes(),
        false => threaded::memory_granted(),
    };
    let limit = threaded::memory_asked(scope).map_or(granted, |asked| asked.min(granted));
    engine.limit(limit).map_err(|_| LaneRefusal::Broken(id))?;
    if result.failed > 0 {
        return Err(LaneRefusal::SelfTest {
            lane: id,
            failed: result.failed,
            tests: result.tests,
            first: result.first_failure,
        });
    }
    Ok(Started {
        engine,
        report: report(&candidate, result.tests),
        tested: tested(&result),
        team,
    })
}

/// Whether this browser has what the probe asks for.
fn outcome(probe: &Probe) -> ProbeOutcome {
    let bytes = Uint8Array::from(probe.bytes);
    ProbeOutcome {
        name: probe.name.into(),
        version: probe.version,
        sha256: format::sha256(probe.bytes),
        validates: WebAssembly::validate(&bytes).unwrap_or(false),
    }
}

async fn compile(id: LaneId, bytes: &[u8]) -> Result<WebAssembly::Module, LaneRefusal> {
    let compiled = WebAssembly::compile(&Uint8Array::from(bytes));
    let module = JsFuture::from(compiled).await;
    let module = module.map_err(|_| LaneRefusal::Compile(id))?;
    Ok(module.unchecked_into())
}

/// One instance, over its own memory or over `shared`.
async fn instantiate(
    id: LaneId,
    module: &WebAssembly::Module,
    shared: Option<WebAssembly::Memory>,
) -> Result<BrowserEngine, LaneRefusal> {
    let refused = |_: JsValue| LaneRefusal::Compile(id);
    let imports = Imports::default();
    let object = imports.object(shared.as_ref()).map_err(refused)?;
    let instance = WebAssembly::instantiate_module(module, &object);
    let instance = JsFuture::from(instance).await.map_err(refused)?;
    ModuleEngine::new(instance.unchecked_ref(), imports, shared).map_err(|found| match found {
        Some(found) => LaneRefusal::Abi { lane: id, found },
        None => LaneRefusal::Broken(id),
    })
}

fn report(candidate: &Candidate<'_>, self_tests: u32) -> LaneReport {
    LaneReport {
        lane: candidate.lane.id,
        sha256: Some(candidate.artifact.sha256),
        self_tests,
        cross_origin_isolated: cross_origin_isolated(),
    }
}

fn tested(result: &abi::SelfTest) -> SelfTestFacts {
    let mut digest = [0; 32];
    let parts = [
        result.vectors_a,
        result.vectors_b,
        result.vectors_c,
        result.vectors_d,
    ];
    for (bytes, part) in digest.chunks_exact_mut(8).zip(parts) {
        bytes.copy_from_slice(&part.to_le_bytes());
    }
    SelfTestFacts {
        vector_set_sha256: format::Digest(digest),
        tests: result.tests,
        failed: result.failed,
    }
}

/// All but what will have run by the time it is asked for.
fn receipt(
    manifest: &Manifest,
    started: &Started,
    feature_probes: Vec<ProbeOutcome>,
    downgrades: &[ErrorReport],
    wish: &Wish<'_>,
) -> CapabilityReceipt {
    let lane = started.report.lane;
    let module = manifest.artifact(lane).ok().map(|artifact| ModuleFacts {
        artifact_id: lane,
        sha256: artifact.sha256,
        build_manifest_sha256: manifest.sha256,
        rustc: manifest.head.rustc.clone(),
        compile_features: artifact.required_features.clone(),
    });
    CapabilityReceipt {
        schema: RECEIPT_SCHEMA.into(),
        created_utc: Date::new_0().to_iso_string().into(),
        runtime_semantics: abi::RUNTIME_SEMANTICS,
        abi_version: abi::ABI_VERSION,
        host_reported: HostReported {
            browser: lane::browser_name(wish.remembered.browser()),
        },
        module,
        observed: Observed {
            cross_origin_isolated: started.report.cross_origin_isolated,
            feature_probes,
            workers_requested: started.team.requested,
            workers_started: started.team.started,
            memory_mode: match LANES.iter().any(|row| row.id == lane && row.has_threads()) {
                true => MemoryMode::SharedFixed,
                false => MemoryMode::Growing,
            },
            memory_bytes: 0,
        },
        selection: Selection {
            lane: Some(lane),
            numerical_mode: None,
            refused: downgrades.to_vec(),
        },
        self_test: started.tested.clone(),
        executed_path_evidence: Executed {
            worker_ids_participating: started.team.participants(),
            ..Executed::default()
        },
    }
}

async fn fetch(
    scope: &DedicatedWorkerGlobalScope,
    name: &str,
    what: &'static str,
) -> Result<Vec<u8>, LaneRefusal> {
    let unreachable = |_: JsValue| LaneRefusal::Fetch { what, status: None };
    let address = super::tabs::of_this_build(scope, &format!("{FOLDER}{name}"));
    let response = JsFuture::from(scope.fetch_with_str(&address))
        .await
        .map_err(unreachable)?;
    let response: Response = response.unchecked_into();
    if !response.ok() {
        let status = Some(response.status());
        return Err(LaneRefusal::Fetch { what, status });
    }
    let body = response.array_buffer().map_err(unreachable)?;
    let body = JsFuture::from(body).await.map_err(unreachable)?;
    Ok(Uint8Array::new(&body).to_vec())
}

//! Fetching, verifying and starting a compiled lane.

mod threaded;

use js_sys::{Uint8Array, WebAssembly};
use protocol::{ErrorReport, Lane, LaneId, LaneManifest, LaneReport};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{DedicatedWorkerGlobalScope, Response};

use super::{BrowserEngine, cross_origin_isolated};
use crate::engine::module::{Imports, ModuleEngine};
use crate::lane::{self, Candidate, LaneRefusal, Threads};

/// Folder of the lanes, relative to the worker's script.
const FOLDER: &str = "lanes/";
const MANIFEST: &str = "manifest.json";

pub struct Loaded {
    pub engine: BrowserEngine,
    pub report: LaneReport,
    pub downgrades: Vec<ErrorReport>,
}

pub struct LaneFailure {
    pub error: ErrorReport,
    pub downgrades: Vec<ErrorReport>,
}

/// The first lane that this browser takes. `lost` lanes trapped before and are passed over, unless
/// nothing slower is left.
pub async fn load(
    scope: &DedicatedWorkerGlobalScope,
    forced: Option<&str>,
    lost: &[LaneId],
) -> Result<Loaded, LaneFailure> {
    let mut downgrades = Vec::new();
    let fail = |refusal: &LaneRefusal, downgrades| LaneFailure {
        error: refusal.report(),
        downgrades,
    };
    // TRANSITION: until threads are tried in every browser they are used when they are asked for.
    let threads = match threaded::asked(scope) {
        Some(_) => Threads::Possible,
        None => Threads::Absent,
    };
    let lanes = match lane::order(forced, threads) {
        Ok(lanes) => lanes,
        Err(refusal) => return Err(fail(&refusal, downgrades)),
    };
    let manifest = match fetch_manifest(scope).await {
        Ok(manifest) => manifest,
        Err(refusal) => return Err(fail(&refusal, downgrades)),
    };
    for (at, lane) in lanes.iter().enumerate() {
        let is_last = at + 1 == lanes.len();
        let tried = match lost.contains(&lane.id) && !is_last {
            true => Err(LaneRefusal::Broken(lane.id)),
            false => try_lane(scope, &manifest, lane).await,
        };
        match tried {
            Ok((engine, report)) => {
                return Ok(Loaded {
                    engine,
                    report,
                    downgrades,
                });
            }
            Err(refusal) => downgrades.push(refusal.report()),
        }
    }
    Err(fail(&LaneRefusal::NoneLeft, downgrades))
}

async fn fetch_manifest(scope: &DedicatedWorkerGlobalScope) -> Result<LaneManifest, LaneRefusal> {
    let bytes = fetch(scope, MANIFEST, "the list of engines").await?;
    lane::manifest(&bytes)
}

async fn try_lane(
    scope: &DedicatedWorkerGlobalScope,
    manifest: &LaneManifest,
    lane: &'static Lane,
) -> Result<(BrowserEngine, LaneReport), LaneRefusal> {
    let id = lane.id;
    for probe in lane.probes {
        let bytes = Uint8Array::from(probe.bytes);
        if !WebAssembly::validate(&bytes).unwrap_or(false) {
            let probe = probe.name;
            return Err(LaneRefusal::Probe { lane: id, probe });
        }
    }
    let candidate = lane::candidate(manifest, lane)?;
    let bytes = fetch(scope, &candidate.artifact.url, lane.name).await?;
    lane::verify(&candidate, &bytes)?;
    let mut engine = match lane.has_threads() {
        true => {
            let sha256 = candidate.artifact.sha256;
            threaded::start(scope, id, &bytes, sha256).await?
        }
        false => instantiate(id, &compile(id, &bytes).await?, None).await?,
    };
    let result = engine.self_tests().map_err(|_| LaneRefusal::Broken(id))?;
    if result.failed > 0 {
        return Err(LaneRefusal::SelfTest {
            lane: id,
            failed: result.failed,
            tests: result.tests,
            first: result.first_failure,
        });
    }
    let report = report(&candidate, result.tests);
    Ok((engine, report))
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

async fn fetch(
    scope: &DedicatedWorkerGlobalScope,
    name: &str,
    what: &'static str,
) -> Result<Vec<u8>, LaneRefusal> {
    let unreachable = |_: JsValue| LaneRefusal::Fetch { what, status: None };
    let response = JsFuture::from(scope.fetch_with_str(&format!("{FOLDER}{name}")))
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

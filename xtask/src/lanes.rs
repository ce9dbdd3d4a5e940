//! Builds the engine once per row of the table of lanes, and refuses a build that is not what
//! its row says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use protocol::{
    LANES, Lane, LaneArtifact, LaneManifest, MANIFEST_SCHEMA, ManifestFile, PROBES, Probe,
    ProbeRecord, SHARED_LINK_ARGS, Signed, abi, artifact_message, head_message,
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::bindings;
use crate::error::{LaneFault, Result, XtaskError};
use crate::exact;
use crate::inventory::{self, Inventory, Sections};
use crate::keys::Key;
use crate::places::Places;
use crate::stamp::{self, Fingerprint};
use crate::toolchain::{self, TARGET, WasmToolchain};

/// What the engine is compiled from.
pub const SOURCES: &[&str] = &[
    "format/src",
    "format/Cargo.toml",
    "protocol/src",
    "protocol/Cargo.toml",
    "runtime/src",
    "runtime/Cargo.toml",
    "xtask/src",
    "Cargo.toml",
    "Cargo.lock",
];
/// The engine needs no more of the standard library, and this much builds in a third of the time.
const STD_CRATES: &str = "core,alloc";
/// The engine keeps its buffers on the heap; this is what calls and their locals may take.
const STACK_BYTES: u32 = 1024 * 1024;
const MANIFEST_FILE: &str = "manifest.json";

/// The lanes that the app ships, and their signed manifest, in `out`.
pub fn build(places: &Places, key: &Key, out: &Path) -> Result<()> {
    let toolchain = WasmToolchain::find()?;
    let mut artifacts = Vec::new();
    empty(out)?;
    for lane in LANES {
        let module = compile(places, &toolchain, lane, false)?;
        artifacts.push(place(lane, &module, out)?);
    }
    let head = LaneManifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        runtime_semantics: abi::RUNTIME_SEMANTICS,
        abi_version: abi::ABI_VERSION,
        rustc: toolchain.version.clone(),
        probes: PROBES.iter().map(record).collect(),
    };
    let path = out.join(MANIFEST_FILE);
    let json = signed(&head, &artifacts, key).map_err(|source| XtaskError::Json {
        path: path.clone(),
        source,
    })?;
    fs::write(&path, json + "\n").map_err(XtaskError::io(&path))
}

fn record(probe: &Probe) -> ProbeRecord {
    ProbeRecord {
        name: probe.name.to_owned(),
        version: probe.version,
        sha256: format::Digest(Sha256::digest(probe.bytes).into()),
    }
}

/// The manifest's text: every part as it will be read, with a signature of its bytes.
fn signed(
    head: &LaneManifest,
    artifacts: &[LaneArtifact],
    key: &Key,
) -> serde_json::Result<String> {
    let head = RawValue::from_string(serde_json::to_string(head)?)?;
    let mut file = ManifestFile {
        head: Signed {
            signature: key.sign(&head_message(head.get())),
            signed: head.clone(),
        },
        artifacts: Vec::new(),
    };
    for artifact in artifacts {
        let artifact = RawValue::from_string(serde_json::to_string(artifact)?)?;
        file.artifacts.push(Signed {
            signature: key.sign(&artifact_message(head.get(), artifact.get())),
            signed: artifact,
        });
    }
    serde_json::to_string_pretty(&file)
}

/// The same lanes with the kernel suite inside, as `NAME.wasm` in `out`, and the storage with its
/// suite.
pub fn build_suite(places: &Places, out: &Path) -> Result<()> {
    let toolchain = WasmToolchain::find()?;
    let mut inputs = Fingerprint::default();
    inputs.add_text(&toolchain.version);
    for source in SOURCES.iter().chain(&["store/src", "store/Cargo.toml"]) {
        inputs.add_path(&places.root, source)?;
    }
    let inputs = inputs.finish();
    if stamp::is_current(out, inputs) {
        println!("suite lanes are up to date: {}", out.display());
        return Ok(());
    }
    empty(out)?;
    for lane in LANES {
        let module = compile(places, &toolchain, lane, true)?;
        let path = out.join(format!("{}.wasm", lane.name));
        fs::write(&path, module).map_err(XtaskError::io(&path))?;
    }
    let key = Key::find(places)?;
    bindings::build(places, &toolchain, &key, &bindings::STORE_SUITE, out)?;
    stamp::write(out, inputs)
}

/// Builds lanes twice, each time in a fresh clone with build folders of its own, and compares the
/// bytes. What is not committed is not in a clone.
pub fn verify_reproducible(places: &Places, only: Option<&str>) -> Result<()> {
    let toolchain = WasmToolchain::find()?;
    let chosen = |lane: &&Lane| only.is_none_or(|name| lane.name == name);
    let lanes: Vec<&'static Lane> = LANES.iter().filter(chosen).collect();
    if let (true, Some(name)) = (lanes.is_empty(), only) {
        let name = name.to_owned();
        return Err(XtaskError::NoLane { name });
    }
    // Names of other lengths, so that a path that slipped in would show.
    let clones = ["first", "second-clone"].map(|name| places.target.join("clones").join(name));
    for lane in lanes {
        let mut digests = Vec::new();
        for root in &clones {
            let places = clone(places, root)?;
            let module = compile(&places, &toolchain, lane, false)?;
            digests.push(format::Digest(Sha256::digest(&module).into()));
            // One clone's build folder is as large as all that is kept.
            fs::remove_dir_all(root).map_err(XtaskError::io(root))?;
        }
        if digests[0] != digests[1] {
            return Err(XtaskError::NotReproducible {
                lane: lane.name,
                first: digests[0],
                second: digests[1],
            });
        }
        println!("lane {}: twice {}", lane.name, digests[0]);
    }
    Ok(())
}

fn clone(places: &Places, root: &Path) -> Result<Places> {
    if root.exists() {
        fs::remove_dir_all(root).map_err(XtaskError::io(root))?;
    }
    let mut command = std::process::Command::new("git");
    command.args(["clone", "--quiet", "--no-hardlinks"]);
    command.arg(&places.root).arg(root);
    toolchain::finish(command, "clone the checkout")?;
    Ok(Places {
        root: root.to_owned(),
        target: root.join("target"),
    })
}

/// One lane's finished module: compiled, judged, stripped, judged again.
fn compile(
    places: &Places,
    toolchain: &WasmToolchain,
    lane: &'static Lane,
    suite: bool,
) -> Result<Vec<u8>> {
    let target_dir = places.wasm_target(lane.name);
    let mut flags = toolchain.remaps(&places.root, &target_dir);
    flags.push(format!("-Ctarget-cpu={}", lane.target_cpu));
    flags.push(format!("-Ctarget-feature={}", lane.target_features));
    flags.push("-Cpanic=abort".to_owned());
    flags.push(format!("-Clink-arg=-zstack-size={STACK_BYTES}"));
    if lane.has_threads() {
        let arguments = SHARED_LINK_ARGS.iter();
        flags.extend(arguments.map(|argument| format!("-Clink-arg={argument}")));
    }

    let mut command = toolchain.cargo(&target_dir, STD_CRATES, &flags);
    command.current_dir(&places.root);
    command.args(["rustc", "--quiet", "--locked", "--release", "--lib"]);
    command.args(["--package", "runtime", "--crate-type", "cdylib"]);
    command.args(["--target", TARGET]);
    if suite {
        command.args(["--features", "suite"]);
    }
    // The linker's strip would also drop the list of features, which is judged first.
    command.env("CARGO_PROFILE_RELEASE_STRIP", "none");
    toolchain::finish(command, "build a lane")?;

    let path = target_dir.join(TARGET).join("release/runtime.wasm");
    let linked = fs::read(&path).map_err(|_| XtaskError::NoModule { path })?;
    judge(lane, &linked, suite).map_err(|reason| XtaskError::Lane {
        lane: lane.name,
        reason,
    })
}

fn judge(lane: &Lane, linked: &[u8], suite: bool) -> std::result::Result<Vec<u8>, LaneFault> {
    Inventory::of(linked)?.check_listed(lane)?;
    let module = exact::restored(&inventory::stripped(linked)?)?;
    inventory::validate(&module, lane)?;
    let seen = Inventory::of(&module)?;
    let again = Sections::of(&module).map_err(|at| LaneFault::Invalid {
        at,
        words: "a section is not what it says".to_owned(),
    })?;
    again.agree(&seen)?;
    seen.check(lane, &inventory::doors(lane), suite)?;
    check_paths(&module)?;
    let instructions: u64 = seen.instructions.values().sum();
    println!(
        "lane {}{}: {} bytes, {} functions, {instructions} instructions {:?}",
        lane.name,
        if suite { " with suite" } else { "" },
        module.len(),
        seen.functions,
        seen.instructions,
    );
    Ok(module)
}

/// No folder of this machine may be inside: it would tell where the module was built, and two
/// machines would not build the same bytes.
fn check_paths(module: &[u8]) -> std::result::Result<(), LaneFault> {
    let homes: BTreeSet<PathBuf> = ["HOME", "CARGO_HOME"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .filter(|home| home.components().count() > 1)
        .collect();
    for home in homes {
        let path = format!("{}/", home.display());
        if module
            .windows(path.len())
            .any(|bytes| bytes == path.as_bytes())
        {
            return Err(LaneFault::LeaksPath { path });
        }
    }
    Ok(())
}

/// Writes a module under the name that its bytes give it.
fn place(lane: &Lane, module: &[u8], out: &Path) -> Result<LaneArtifact> {
    let sha256 = format::Digest(Sha256::digest(module).into());
    let url = format!("{}.{}.wasm", lane.name, &sha256.to_string()[..16]);
    let path = out.join(&url);
    fs::write(&path, module).map_err(XtaskError::io(&path))?;
    let owned = |features: &[&str]| features.iter().map(|name| name.to_string()).collect();
    Ok(LaneArtifact {
        id: lane.id,
        url,
        sha256,
        bytes: module.len() as u64,
        required_features: owned(lane.required_features),
        forbidden_features: owned(lane.forbidden_features),
    })
}

/// Old lanes have other names; they must not stay beside the new ones.
fn empty(out: &Path) -> Result<()> {
    if out.exists() {
        fs::remove_dir_all(out).map_err(XtaskError::io(out))?;
    }
    fs::create_dir_all(out).map_err(XtaskError::io(out))
}

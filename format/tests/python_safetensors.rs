//! The Python package `safetensors` opens a `.slm` file: the promise that any safetensors tool can
//! list it. Needs `python3` with `venv`; the package is installed once into the target folder.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod fixture;

use std::path::{Path, PathBuf};
use std::process::Command;

use fixture::{file, manifest};
use format::*;

const PACKAGES: [&str; 2] = ["safetensors==0.8.0", "numpy==2.4.6"];

/// Prints the metadata and, for each tensor, its dtype, shape and the SHA-256 of its bytes.
const SCRIPT: &str = r#"
import hashlib, json, sys
from safetensors import safe_open
with safe_open(sys.argv[1], framework="np") as file:
    tensors = {}
    for name in file.keys():
        array = file.get_tensor(name)
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        tensors[name] = [str(array.dtype), list(array.shape), digest]
    print(json.dumps({"metadata": file.metadata(), "tensors": tensors}))
"#;

#[track_caller]
fn run(program: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{} {arguments:?}: {errors}",
        program.display()
    );
    output.stdout
}

/// The interpreter of an environment that has [`PACKAGES`].
fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGES.join("-").replace("==", "-"));
    let python = folder.join("bin/python");
    // Written last, so that an interrupted installation is done again.
    let complete = folder.join("complete");
    if !complete.exists() {
        run(
            Path::new("python3"),
            &["-m", "venv", "--clear", folder.to_str().unwrap()],
        );
        let install = [
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
        ];
        run(&python, &[&install[..], &PACKAGES[..]].concat());
        std::fs::write(&complete, "").unwrap();
    }
    python
}

#[test]
fn the_python_package_reads_every_tensor_and_the_manifest() {
    let manifest = manifest(fixture::architecture(), Kind::Model, Layout::Q4_1R4);
    let header = Header::layout(manifest).unwrap();
    let bytes = file(&header);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python_safetensors.slm");
    std::fs::write(&path, &bytes).unwrap();
    let printed = run(&python(), &["-c", SCRIPT, path.to_str().unwrap()]);
    let found: serde_json::Value = serde_json::from_slice(&printed).unwrap();

    let text = found["metadata"]["slm.manifest"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Manifest>(text).unwrap(),
        header.manifest
    );
    assert_eq!(found["metadata"].as_object().unwrap().len(), 1);
    for tensor in &header.tensors {
        let range = tensor.range.start as usize..tensor.range.end as usize;
        let Shape { rows, cols } = tensor.shape;
        let (dtype, shape) = match tensor.layout {
            Layout::F32 => ("float32", serde_json::json!([rows, cols])),
            Layout::F16 => ("float16", serde_json::json!([rows, cols])),
            _ => ("uint8", serde_json::json!([range.len()])),
        };
        let digest = sha256(&bytes[range]).to_string();
        let expected = serde_json::json!([dtype, shape, digest]);
        assert_eq!(found["tensors"][&tensor.name], expected, "{}", tensor.name);
    }
    let fillers = header.fillers().count();
    let count = found["tensors"].as_object().unwrap().len();
    assert_eq!(count, header.tensors.len() + fillers);
}

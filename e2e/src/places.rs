//! What must have been built before a browser test can run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{E2eError, Result};

const TEST: &str = "./test";

/// The finished app.
pub fn dist() -> Result<PathBuf> {
    existing(checkout().join("dist"), "index.html")
}

/// The secret half of the key that signed the app's lanes, so that a test can sign others.
pub fn signing_seed() -> Result<[u8; 32]> {
    let path = match (
        env("TINYRUSTLM_SIGNING_KEY"),
        env("XDG_CACHE_HOME"),
        env("HOME"),
    ) {
        (Some(path), ..) => path,
        (None, Some(cache), _) => cache.join("tinyrustlm/signing.key"),
        (None, None, home) => home
            .unwrap_or_default()
            .join(".cache/tinyrustlm/signing.key"),
    };
    let text = std::fs::read_to_string(&path).map_err(E2eError::io(&path))?;
    let mut seed = [0; 32];
    for (byte, digits) in seed.iter_mut().zip(text.trim().as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).map_err(|_| E2eError::Shape {
            what: "a signing key",
            found: path.display().to_string(),
        })?;
    }
    Ok(seed)
}

fn env(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// A lane with the kernel suite inside.
pub fn suite_lane(name: &str) -> Result<PathBuf> {
    existing(
        target()?.join("suite-lanes").join(format!("{name}.wasm")),
        "",
    )
}

/// Glue and module of the storage with its suite.
pub fn store_suite() -> Result<[PathBuf; 2]> {
    let folder = target()?.join("suite-lanes");
    let file = |name: &str| existing(folder.join(name), "");
    Ok([file("store_suite.js")?, file("store_suite_bg.wasm")?])
}

/// The default model as its makers publish it.
pub fn model_gguf() -> Result<PathBuf> {
    existing(models()?.join("SmolLM2-135M-Instruct.Q4_1.gguf"), "")
}

/// The same, converted.
pub fn model_slm() -> Result<PathBuf> {
    existing(models()?.join("SmolLM2-135M-Instruct.slm"), "")
}

/// The folder of expected values beside the checkout.
pub fn golden() -> Result<PathBuf> {
    let path = checkout().join("../shared/golden");
    match path.is_dir() {
        true => Ok(path),
        false => Err(E2eError::Missing {
            path,
            made_by: "the checkout with its folder of golden data",
        }),
    }
}

/// Copies the finished app to the folder `to`, where a test can spoil it.
pub fn copy_dist(to: &Path) -> Result<()> {
    copy(&dist()?, to)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(E2eError::io(to))?;
    for entry in fs::read_dir(from).map_err(E2eError::io(from))? {
        let from = entry.map_err(E2eError::io(from))?.path();
        let to = to.join(from.file_name().unwrap_or_default());
        match from.is_dir() {
            true => copy(&from, &to)?,
            false => drop(fs::copy(&from, &to).map_err(E2eError::io(&from))?),
        }
    }
    Ok(())
}

pub fn tinyrustlm() -> Result<PathBuf> {
    existing(target()?.join("release/tinyrustlm"), "")
}

fn checkout() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A test runs from `TARGET/PROFILE/deps/`, a program from `TARGET/PROFILE/`.
fn target() -> Result<PathBuf> {
    let here = std::env::current_exe().map_err(E2eError::io(Path::new("this program")))?;
    let folder = here.parent().and_then(Path::file_name);
    let is_below = folder.is_some_and(|folder| folder == "deps" || folder == "examples");
    let depth = if is_below { 3 } else { 2 };
    let target = here.ancestors().nth(depth).map(Path::to_owned);
    target.ok_or(E2eError::Missing {
        path: here,
        made_by: "cargo",
    })
}

fn models() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("TINYRUSTLM_MODELS") {
        return Ok(PathBuf::from(folder));
    }
    let home = std::env::var_os("HOME").ok_or(E2eError::Missing {
        path: PathBuf::from("the home folder"),
        made_by: TEST,
    })?;
    Ok(PathBuf::from(home).join(".cache/tinyrustlm/models"))
}

fn existing(path: PathBuf, file: &str) -> Result<PathBuf> {
    match path.join(file).exists() || (file.is_empty() && path.exists()) {
        true => Ok(path),
        false => Err(E2eError::Missing {
            path,
            made_by: TEST,
        }),
    }
}

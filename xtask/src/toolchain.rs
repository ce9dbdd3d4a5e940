//! Finds a compiler that can build for the browser, standard library included.
//!
//! Every Wasm build compiles the standard library itself, because its instructions must obey the
//! lane's features too. So the compiler needs its library's source: rustup's component `rust-src`
//! or Debian's package `rust-web-src`. Neither is a nightly compiler, hence `RUSTC_BOOTSTRAP`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Result, XtaskError};

pub const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's packages `rustc-web` and `cargo-web` live here, whatever PATH says.
const DEBIAN_BIN: &str = "/usr/bin";

pub struct WasmToolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// `rustc --version`.
    pub version: String,
    /// Root of compiler and library; its source is under `lib/rustlib/src/rust`.
    sysroot: PathBuf,
    /// None: the compiler has its own `rust-lld`.
    linker: Option<PathBuf>,
}

impl WasmToolchain {
    /// The compiler on PATH if it has its library's source, else Debian's.
    pub fn find() -> Result<WasmToolchain> {
        let mut looked_at = Vec::new();
        for (cargo, rustc) in [("cargo", "rustc"), ("/usr/bin/cargo", "/usr/bin/rustc")] {
            match WasmToolchain::probe(Path::new(cargo), Path::new(rustc)) {
                Some(toolchain) => return Ok(toolchain),
                None => looked_at.push(rustc.to_owned()),
            }
        }
        Err(XtaskError::NoWasmCompiler { looked_at })
    }

    fn probe(cargo: &Path, rustc: &Path) -> Option<WasmToolchain> {
        let sysroot = PathBuf::from(answer(rustc, &["--print", "sysroot"])?);
        let library = sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs");
        if !library.exists() {
            return None;
        }
        let version = answer(rustc, &["--version"])?;
        let host = answer(rustc, &["--version", "--verbose"])?;
        let host = host
            .lines()
            .find_map(|line| line.strip_prefix("host: "))?
            .to_owned();
        let own = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
        let linker = match own.exists() {
            true => None,
            false => Some(debian_linker()?),
        };
        Some(WasmToolchain {
            cargo: cargo.to_owned(),
            rustc: rustc.to_owned(),
            version,
            sysroot,
            linker,
        })
    }

    /// A cargo command that compiles for the browser into `target_dir` with `flags`.
    ///
    /// What the surrounding cargo set is taken out of its environment: it would choose another
    /// compiler or change the flags.
    pub fn cargo(&self, target_dir: &Path, std_crates: &str, flags: &[String]) -> Command {
        let mut command = Command::new(&self.cargo);
        for name in ["CARGO", "RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET"] {
            command.env_remove(name);
        }
        if self.cargo.starts_with(DEBIAN_BIN) {
            command.env_remove("RUSTUP_TOOLCHAIN");
            command.env("RUSTC", &self.rustc);
        }
        if let Some(linker) = &self.linker {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_UNSTABLE_BUILD_STD", std_crates)
            .env("CARGO_ENCODED_RUSTFLAGS", encoded(flags))
            .env("CARGO_TARGET_DIR", target_dir)
            .stdin(Stdio::null());
        command
    }

    /// Flags that keep this machine's folders out of the module, so that two machines with one
    /// compiler build the same bytes.
    pub fn remaps(&self, root: &Path, target_dir: &Path) -> Vec<String> {
        let mut from = vec![
            (root.to_owned(), "/tinyrustlm"),
            (target_dir.to_owned(), "/target"),
            (self.sysroot.join("lib/rustlib/src/rust"), "/rust"),
        ];
        // Debian's source folder is a link, and the compiler sees through it.
        if let Ok(source) = self.sysroot.join("lib/rustlib/src/rust").canonicalize() {
            from.push((source, "/rust"));
        }
        if let Some(home) = cargo_home() {
            from.push((home, "/cargo"));
        }
        from.iter()
            .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
            .collect()
    }
}

/// Runs a command to its end; its output goes where ours goes.
pub fn finish(mut command: Command, doing: &'static str) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let status = command.status().map_err(|source| XtaskError::Start {
        program: program.clone(),
        source,
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(XtaskError::Refused { program, doing }),
    }
}

pub fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

/// Cargo's own separator, because a flag may hold a space.
fn encoded(flags: &[String]) -> OsString {
    flags.join("\u{1f}").into()
}

fn answer(program: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    if program.starts_with(DEBIAN_BIN) {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    let output = command.args(words).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Debian names its linkers by version; the newest is taken.
fn debian_linker() -> Option<PathBuf> {
    let versioned = |name: &str| -> Option<u32> { name.strip_prefix("wasm-ld-")?.parse().ok() };
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir(DEBIAN_BIN)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = versioned(entry.file_name().to_str()?)?;
            entry.path().exists().then(|| (version, entry.path()))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

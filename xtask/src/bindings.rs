//! Compiles the page and the worker, and writes the glue between them and the browser.

use std::path::Path;

use wasm_bindgen_cli_support::Bindgen;

use crate::error::{Result, XtaskError};
use crate::keys::{self, Key};
use crate::places::Places;
use crate::toolchain::{self, TARGET, WasmToolchain};

const STD_CRATES: &str = "std,panic_abort";
const PROFILE: &str = "web";

/// A crate that runs in the browser, and the name of its glue.
pub struct Module {
    pub package: &'static str,
    /// `NAME.js` and `NAME_bg.wasm`.
    pub out_name: &'static str,
    pub features: &'static [&'static str],
}

/// The storage with its suite, for the browser tests.
pub const STORE_SUITE: Module = Module {
    package: "store",
    out_name: "store_suite",
    features: &["suite"],
};

pub const MODULES: &[Module] = &[
    Module {
        package: "app",
        out_name: "app",
        features: &[],
    },
    Module {
        package: "worker",
        out_name: "worker_glue",
        features: &[],
    },
];

/// Compiles one module and writes its glue into `out`.
pub fn build(
    places: &Places,
    toolchain: &WasmToolchain,
    key: &Key,
    module: &Module,
    out: &Path,
) -> Result<()> {
    let target_dir = places.wasm_target(PROFILE);
    let flags = toolchain.remaps(&places.root, &target_dir);
    let mut command = toolchain.cargo(&target_dir, STD_CRATES, &flags);
    command.current_dir(&places.root);
    command.args([
        "rustc",
        "--quiet",
        "--locked",
        "--profile",
        PROFILE,
        "--lib",
    ]);
    command.args(["--package", module.package, "--crate-type", "cdylib"]);
    command.args(["--target", TARGET]);
    for feature in module.features {
        command.args(["--features", feature]);
    }
    // The linker's strip would drop the list of features, from which the glue is chosen.
    command.env("CARGO_PROFILE_WEB_STRIP", "none");
    command.env(keys::PUBLIC_VARIABLE, key.public_hex());
    toolchain::finish(command, "build a module for the page")?;

    let linked = target_dir
        .join(TARGET)
        .join(PROFILE)
        .join(format!("{}.wasm", module.package));
    if !linked.exists() {
        return Err(XtaskError::NoModule { path: linked });
    }
    glue(module, &linked, out).map_err(|error| XtaskError::Bindings {
        module: module.package,
        words: format!("{error:#}"),
    })
}

fn glue(
    module: &Module,
    linked: &Path,
    out: &Path,
) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(linked)
        .out_name(module.out_name)
        .web(true)?
        .typescript(false)
        // The glue finds its module beside itself, so that the page need not name it.
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen.generate(out)?;
    Ok(())
}

//! Clippy over the code that the native check never sees, because it is compiled for the browser.

use crate::error::Result;
use crate::keys::{self, Key};
use crate::places::Places;
use crate::toolchain::{self, TARGET, WasmToolchain};

const STD_CRATES: &str = "std,panic_abort";
/// Rooms with code of their own for the browser, by what they are compiled with: the engine has no
/// standard library, and must not meet one through a dependency of the others.
const ROOMS: [&[&str]; 2] = [&["runtime"], &["store", "p2p", "worker", "app"]];

pub fn run(places: &Places) -> Result<()> {
    let toolchain = WasmToolchain::find()?;
    let key = Key::find(places)?;
    for rooms in ROOMS {
        // Without flags: the lint looks at the code, not at the instructions.
        let mut command = toolchain.cargo(&places.wasm_target("lint"), STD_CRATES, &[]);
        command.current_dir(&places.root);
        command.env(keys::PUBLIC_VARIABLE, key.public_hex());
        command.args(["clippy", "--quiet", "--locked", "--lib", "--target", TARGET]);
        for room in rooms {
            command.args(["--package", room]);
        }
        command.args(["--", "-Dwarnings"]);
        toolchain::finish(command, "lint the browser's code")?;
    }
    Ok(())
}

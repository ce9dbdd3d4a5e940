//! `cargo xtask`: builds what the browser runs, and checks the house rules.
//!
//! Reading order: `command` (what can be asked), `places` (where things lie), `toolchain`,
//! `lanes` with `inventory` and `keys`, `dist` with `bindings` and `precache`, `tidy`.

mod bindings;
mod command;
mod dist;
mod error;
mod exact;
mod inventory;
mod keys;
mod lanes;
mod lint;
mod places;
mod precache;
mod published;
mod sizes;
mod source;
mod stamp;
mod tidy;
mod toolchain;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match command::run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Runs this engine and others on the same prompts, in turns, and says how they compare.
//!
//! Reading order: `task` (what is compared, and what is wanted of it), `machine` (what processes
//! use), `program` and `page` (one file for each kind of engine), `contest` (who takes part, and
//! in what order), `bundle` (the results), `report` (medians, ratios, the table).

mod arguments;
mod bundle;
mod contest;
mod error;
mod hold;
mod machine;
mod page;
mod program;
mod report;
mod site;
mod task;

use clap::Parser;

use arguments::Arguments;

/// Browsers and programs are ended in good order when a person interrupts this one.
async fn until_interrupted(arguments: &Arguments) -> error::Result<bundle::Bundle> {
    tokio::select! {
        ended = contest::hold(arguments) => ended,
        _ = tokio::signal::ctrl_c() => Err(error::BenchError::Interrupted),
    }
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let ended = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(until_interrupted(&arguments)),
        Err(error) => Err(error::BenchError::io(std::path::Path::new("threads"))(
            error,
        )),
    };
    match ended {
        Ok(bundle) => {
            println!("{}", report::markdown(&bundle));
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

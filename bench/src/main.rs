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

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let ended = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(contest::hold(&arguments)),
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

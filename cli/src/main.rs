//! `tinyrustlm`: the native program for the same model files that the browser app runs.

mod args;
mod bench;
mod convert;
mod eval;
mod failure;
mod fit;
mod inspect;
mod interrupt;
mod lines;
mod model;
mod output;
mod run;
mod serve;
mod share;
mod tokenize;
mod torrent;
mod words;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match &cli.command {
        Command::Convert(args) => convert::convert(args),
        Command::Inspect(args) => inspect::inspect(args),
        Command::Fit(args) => fit::fit(args),
        Command::Run(args) => run::run(args),
        Command::Eval(args) => eval::eval(args),
        Command::Tokenize(args) => tokenize::tokenize(args),
        Command::Bench(args) => bench::bench(args),
        Command::Serve(args) => serve::serve(args),
        Command::Seed(args) => share::seed::seed(args),
        Command::Fetch(args) => share::fetch::fetch(args),
        Command::Torrent(args) => torrent::torrent(args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tinyrustlm: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

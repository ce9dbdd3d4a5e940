//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::task::Work;

/// Compares this engine with others on this machine.
#[derive(Parser)]
#[command(max_term_width = 100)]
pub struct Arguments {
    /// Folder of the installed engines, made by bench/setup.
    #[arg(long)]
    pub peers: PathBuf,
    /// Folder for the results: comparison.json and comparison.md.
    #[arg(long)]
    pub out: PathBuf,
    /// Models by their names in the folder of engines.
    #[arg(long, value_delimiter = ',', default_value = "as-it-comes,q8_0,q4_0")]
    pub models: Vec<String>,
    /// Only engines whose names contain one of these.
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// Only these numbers of threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    pub threads: Vec<usize>,
    /// Repetitions after a warm-up.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Repetitions of work that takes an engine longer than --long seconds.
    #[arg(long, default_value_t = 5)]
    pub long_runs: usize,
    #[arg(long, default_value_t = 15.0)]
    pub long: f64,
    /// Starts of a new browser process with the model stored; for the first model only.
    #[arg(long, default_value_t = 5)]
    pub starts: usize,
    /// Lock these files while something is measured, so that other programs which honour the
    /// locks stay away.
    #[arg(long, value_delimiter = ',')]
    pub lock: Vec<PathBuf>,
    /// Seconds after which locks are given up for a moment.
    #[arg(long, default_value_t = 45.0)]
    pub turn: f64,
    /// Only these pieces of work.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Work::ALL)]
    pub works: Vec<Work>,
    /// Report again what an earlier run measured.
    #[arg(long)]
    pub report: bool,
}

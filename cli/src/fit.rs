//! Whether a model would fit, from its header alone.

use std::path::Path;

use protocol::abi::Plan;
use protocol::{CONTEXT_LEAST, FitReport, Lever, Over, Regions, Wish, ways_to_fit};
use runtime::{Options, RuntimeError, Surroundings, measure};
use serde_json::{Value, json};

use crate::args::Fit;
use crate::failure::Failure;
use crate::model::{limit, options, read_header};
use crate::words::{megabytes, refuse, region, too_much};

/// No block that this program allocates is too large in itself.
const BLOCK_MAX: u64 = u64::MAX;

pub fn fit(args: &Fit) -> Result<(), Failure> {
    let header = read_header(&args.model)?;
    let asked = options(&args.engine, &header);
    let limit = limit(&args.engine);
    let around = Surroundings {
        // As `run` does.
        windows: 2,
        ..Surroundings::native(usize::from(args.engine.threads))
    };
    let plan = |wish: Wish| -> Result<Plan, RuntimeError> {
        let options = Options {
            context: wish.context,
            kv_format: wish.kv_format,
            residency: wish.residency,
            ..asked
        };
        Ok(measure(&header, &options, &around, limit)?.0)
    };
    let wish = Wish {
        context: asked.context,
        kv_format: asked.kv_format,
        residency: asked.residency,
    };
    let refused = |error: RuntimeError| refuse(&header.tensors, error);
    let asked = plan(wish).map_err(refused)?;
    let over = asked.over(BLOCK_MAX);
    let ways = match over {
        None => Vec::new(),
        Some(_) => ways_to_fit(wish, BLOCK_MAX, plan).map_err(refused)?,
    };
    let report = FitReport::of(&asked, None);
    match args.json {
        true => println!("{}", told(&report, over, &ways)),
        false => show(&args.model, &report),
    }
    match over {
        Some(over) => {
            if !args.json {
                list(&ways, wish);
            }
            Err(does_not_fit(over, &ways, wish))
        }
        None => {
            if !args.json {
                println!("It fits.");
            }
            Ok(())
        }
    }
}

fn told(report: &FitReport, over: Option<Over>, ways: &[Lever]) -> Value {
    let over = over.map(|over| {
        let region = region(over.region);
        json!({ "region": region, "left": over.left, "needed": over.needed })
    });
    let levers: Vec<_> = ways.iter().map(|way| way.report).collect();
    json!({ "fits": over.is_none(), "plan": report, "over": over, "levers": levers })
}

/// The ways beside each other, with what they take.
fn list(ways: &[Lever], asked: Wish) {
    for way in ways {
        let report = &way.report;
        let streamed = match report.streamed {
            0 => String::new(),
            bytes => format!(", slower: {} are read for a token", megabytes(bytes)),
        };
        println!(
            "It would fit with {}: {}, {} positions{streamed}.",
            call(way.wish, asked),
            megabytes(report.total),
            report.context,
        );
    }
}

/// The mildest way is the advice.
fn does_not_fit(over: Over, ways: &[Lever], asked: Wish) -> Failure {
    let remedy = match ways.first() {
        Some(way) => format!("Call it with {}.", call(way.wish, asked)),
        None => format!(
            "No --kv and --residency make it fit with {CONTEXT_LEAST} positions; take a smaller \
             model or a larger --memory-limit."
        ),
    };
    Failure::refused(format!("it does not fit: {}", too_much(over)), remedy)
}

/// The options that are to be other than they are.
fn call(way: Wish, asked: Wish) -> String {
    let mut words = Vec::new();
    if way.residency != asked.residency {
        words.push(format!("--residency {}", way.residency.name()));
    }
    if way.kv_format != asked.kv_format {
        words.push(format!("--kv {}", way.kv_format.name()));
    }
    if way.context != asked.context {
        words.push(format!("--context {}", way.context));
    }
    words.join(" ")
}

fn show(path: &Path, report: &FitReport) {
    let Regions {
        weights,
        metadata,
        kv,
        scratch,
        logits,
        sampler,
        transfer,
        ..
    } = report.regions();
    let megabytes = |bytes: u64| format!("{:>10.3} MB", bytes as f64 / 1e6);
    println!("{}", path.display());
    for (name, bytes) in [
        ("weights", weights),
        ("kv", kv),
        ("scratch", scratch),
        ("logits", logits),
        ("sampler", sampler),
        ("metadata", metadata),
        ("transfer", transfer),
        ("total", report.total),
        ("decode", report.decode),
    ] {
        println!("{name:10}{}", megabytes(bytes));
    }
    println!(
        "{} positions, {:?} keys and values, {:?}: {} of {} layers in memory, {} read a token",
        report.context,
        report.kv_format,
        report.residency,
        report.kept_layers,
        report.layers,
        megabytes(report.streamed).trim_start()
    );
}

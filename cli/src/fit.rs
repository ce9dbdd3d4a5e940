//! Whether a model would fit, from its header alone.

use std::path::Path;

use format::Header;
use protocol::{FitReport, Regions};
use runtime::{KvFormat, Options, Plan, Residency, RuntimeError, Surroundings, measure};

use crate::args::Fit;
use crate::failure::Failure;
use crate::model::{limit, options, read_header, refuse};

/// Fewer positions than this are no conversation.
const CONTEXT_LEAST: u32 = 512;

pub fn fit(args: &Fit) -> Result<(), Failure> {
    let header = read_header(&args.model)?;
    let asked = options(&args.engine, &header);
    let limit = limit(&args.engine);
    let workers = usize::from(args.engine.threads);
    let asker = Asker {
        header: &header,
        workers,
        limit,
    };
    let refused = |error: RuntimeError| refuse(&header.tensors, error);
    let plan = asker.plan(&asked).map_err(refused)?;
    let over = plan.over(u64::MAX);
    let levers = match over {
        None => Vec::new(),
        Some(_) => asker.levers(&asked).map_err(refused)?,
    };
    let report = FitReport::of(&plan, None);
    if args.json {
        let levers: Vec<_> = levers
            .iter()
            .map(|(_, plan)| FitReport::of(plan, None))
            .collect();
        let line = serde_json::json!({
            "fits": over.is_none(),
            "plan": report,
            "levers": levers,
        });
        println!("{line}");
        return Ok(());
    }
    show(&args.model, &report);
    match over {
        None => println!("It fits."),
        Some(over) => {
            println!(
                "It does not fit: region {} needs {} bytes, and {} are left.",
                over.region, over.needed, over.left
            );
            for (words, plan) in &levers {
                println!(
                    "{words} would take {:.1} MB, with {} positions, reading {:.1} MB a token",
                    plan.total as f64 / 1e6,
                    plan.context,
                    plan.streamed as f64 / 1e6
                );
            }
            if levers.is_empty() {
                println!("Nothing here helps; take a smaller model or a larger --memory-limit.");
            }
        }
    }
    Ok(())
}

struct Asker<'a> {
    header: &'a Header,
    workers: usize,
    limit: u64,
}

impl Asker<'_> {
    fn plan(&self, options: &Options) -> Result<Plan, RuntimeError> {
        let around = Surroundings::native(self.workers);
        Ok(measure(self.header, options, &around, self.limit)?.0)
    }

    /// What fits of: fewer positions, smaller keys and values, weights read as they are needed.
    fn levers(&self, asked: &Options) -> Result<Vec<(String, Plan)>, RuntimeError> {
        let mut found = Vec::new();
        let mut context = asked.context;
        while context / 2 >= CONTEXT_LEAST {
            context /= 2;
            let shorter = Options { context, ..*asked };
            let plan = self.plan(&shorter)?;
            if plan.over(u64::MAX).is_none() {
                found.push((format!("--context {context}"), plan));
                break;
            }
        }
        let int8 = KvFormat::Int8;
        let ways = [
            (
                "--kv int8",
                Options {
                    kv_format: int8,
                    ..*asked
                },
            ),
            ("--residency hybrid", held(asked, Residency::Hybrid)),
            ("--residency paged", held(asked, Residency::Paged)),
        ];
        for (words, options) in ways {
            let plan = self.plan(&options)?;
            if plan.over(u64::MAX).is_none() {
                found.push((words.into(), plan));
            }
        }
        Ok(found)
    }
}

fn held(asked: &Options, residency: Residency) -> Options {
    Options {
        residency,
        kept_layers: 0,
        ..*asked
    }
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

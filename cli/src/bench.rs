//! What this machine can do with a model: the document `tinyrustlm.bench.v1`.

use std::time::{Duration, Instant};

use protocol::{
    BENCH_SCHEMA, BENCH_SHORT, BenchBundle, BenchEngine, BenchFigures, BenchFirstToken, BenchModel,
    BenchOutcome, BenchPart, BenchReason, BenchRun, FitReport, abi, bench_prompt,
};
use runtime::{Request, kernels};

use crate::args::{self, Bench};
use crate::failure::Failure;
use crate::model::{Opened, hash_file};
use crate::words::refuse;

/// Tokens of the prompt that is stopped in the middle.
const LONG_PROMPT: u32 = 2000;
/// Of reading it before the wish to stop comes.
const BEFORE_STOP: Duration = Duration::from_millis(100);
/// Number of the request that is stopped.
const STOPPED: u32 = 1;

type Refused = (BenchPart, Failure);

pub fn bench(args: &Bench) -> Result<(), Failure> {
    let (outcome, failure) = match measure(args) {
        Ok(figures) => (BenchOutcome::Complete(Box::new(figures)), None),
        Err((part, failure)) => {
            let what = failure.to_string();
            let code = None;
            let reasons = vec![BenchReason { part, what, code }];
            (BenchOutcome::Refused(reasons), Some(failure))
        }
    };
    let bundle = BenchBundle {
        schema: BENCH_SCHEMA.into(),
        program: env!("CARGO_PKG_VERSION").into(),
        outcome,
    };
    if args.json {
        let text = serde_json::to_string(&bundle);
        println!(
            "{}",
            text.map_err(|error| Failure::Machine(error.to_string()))?
        );
    } else if let BenchOutcome::Complete(figures) = &bundle.outcome {
        show(figures);
    }
    failure.map_or(Ok(()), Err)
}

fn measure(args: &Bench) -> Result<BenchFigures, Refused> {
    let refused = |part| move |failure| (part, failure);
    let first_token = |opened: &mut Opened, started: Instant| {
        let ids = bench_prompt(BENCH_SHORT, vocab(opened));
        once(opened, &ids, 1).map_err(refused(BenchPart::FirstToken))?;
        Ok(milliseconds(started.elapsed()))
    };
    let open = || {
        let started = Instant::now();
        let opened = Opened::open(&args.model, &args.engine).map_err(refused(BenchPart::Load))?;
        Ok((opened, started, milliseconds(started.elapsed())))
    };

    let (mut opened, started, cold_load) = open()?;
    let cold = first_token(&mut opened, started)?;
    drop(opened);
    let (mut opened, started, cached_load) = open()?;
    let cached = first_token(&mut opened, started)?;
    let warm = first_token(&mut opened, Instant::now())?;

    let ids = bench_prompt(args.prompt, vocab(&opened));
    let short = bench_prompt(BENCH_SHORT, vocab(&opened));
    let mut prefill = Vec::new();
    let mut decode = Vec::new();
    for _ in 0..args.runs {
        let read = once(&mut opened, &ids, 1).map_err(refused(BenchPart::Prefill))?;
        prefill.push(read.prefill);
        let written = once(&mut opened, &short, args.decode).map_err(refused(BenchPart::Decode))?;
        decode.push(written.decode);
    }
    let cancel_ms = (0..args.runs)
        .map(|_| stop(&mut opened).map_err(refused(BenchPart::Cancel)))
        .collect::<Result<_, _>>()?;

    let calls = kernels::calls();
    let id = hash_file(&args.model).map_err(refused(BenchPart::Load))?.id;
    Ok(BenchFigures {
        model: BenchModel {
            name: opened.model.header().manifest.name.clone(),
            id,
        },
        engine: BenchEngine {
            lane: opened.kernels.into(),
            sha256: None,
            mode: match args.engine.mode {
                args::Mode::StrictF32V1 => protocol::Mode::StrictF32V1,
                args::Mode::Int8V1 => protocol::Mode::Int8V1,
            },
            threads: args.engine.threads.into(),
            scalar_calls: calls.scalar,
            simd_calls: calls.simd,
            relaxed_calls: calls.relaxed,
        },
        load_ms: vec![cold_load, cached_load],
        first_token_ms: BenchFirstToken { cold, cached, warm },
        prefill,
        decode,
        memory: FitReport::of(opened.model.plan(), Some(&opened.model.memory())),
        cancel_ms,
    })
}

struct Runs {
    prefill: BenchRun,
    decode: BenchRun,
}

/// A cold prompt and its continuation; the first token's time belongs to prefill.
fn once(opened: &mut Opened, ids: &[u32], max_new: u32) -> Result<Runs, Failure> {
    begin(opened, ids, max_new)?;
    let (started, cpu) = (Instant::now(), cpu_ms());
    let mut first = None;
    loop {
        let step = step(opened)?;
        if step.has_token == 1 {
            first.get_or_insert_with(|| (Instant::now(), cpu_ms()));
        }
        if step.status == abi::STEP_DONE {
            let (ended, cpu_ended) = (Instant::now(), cpu_ms());
            let (between, cpu_between) = first.unwrap_or((ended, cpu_ended));
            let run = |tokens, time, from: Option<f64>, to: Option<f64>| BenchRun {
                tokens,
                ms: milliseconds(time),
                cpu_ms: to.zip(from).map(|(to, from)| to - from),
            };
            return Ok(Runs {
                prefill: run(ids.len() as u32, between - started, cpu, cpu_between),
                decode: run(max_new - 1, ended - between, cpu_between, cpu_ended),
            });
        }
    }
}

/// Milliseconds from a wish to stop, which comes from another thread while a long prompt is read,
/// to the end of the request.
fn stop(opened: &mut Opened) -> Result<f64, Failure> {
    let context = opened.model.plan().context;
    let ids = bench_prompt(LONG_PROMPT.min(context.saturating_sub(1)), vocab(opened));
    let request = Request {
        number: STOPPED,
        cold: true,
        ..opened.greedy(&ids, 1)
    };
    let begun = opened.model.begin(request);
    begun.map_err(|error| refuse(&opened.model.header().tensors, error))?;
    let stopper = opened.stopper.clone();
    let wish = std::thread::spawn(move || {
        std::thread::sleep(BEFORE_STOP);
        let wished = Instant::now();
        stopper.stop(STOPPED);
        wished
    });
    let last = loop {
        let step = step(opened)?;
        if step.status == abi::STEP_DONE {
            break step;
        }
    };
    let ended = Instant::now();
    match (wish.join(), last.finish) {
        (Ok(wished), abi::FINISH_CANCELLED) => Ok(milliseconds(ended - wished)),
        // A small model reads faster than anyone can stop it: nobody waits for its end.
        (Ok(_), _) => Ok(0.0),
        (Err(_), _) => Err(Failure::Machine("no thread to stop from".into())),
    }
}

fn begin(opened: &mut Opened, ids: &[u32], max_new: u32) -> Result<(), Failure> {
    let request = Request {
        ignore_eos: true,
        cold: true,
        ..opened.greedy(ids, max_new)
    };
    let begun = opened.model.begin(request);
    begun.map_err(|error| refuse(&opened.model.header().tensors, error))
}

fn step(opened: &mut Opened) -> Result<runtime::Step, Failure> {
    let stepped = opened.step();
    stepped.map_err(|error| refuse(&opened.model.header().tensors, error))
}

fn vocab(opened: &Opened) -> u32 {
    opened.model.header().manifest.architecture.vocab
}

/// What all threads of this program spent on a core, where the system tells it.
fn cpu_ms() -> Option<f64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let spent = threads.flatten().map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    Some(spent.sum::<Option<f64>>()? / 1e6)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn show(figures: &BenchFigures) {
    let BenchFigures { engine, .. } = figures;
    let rate = |runs: &[BenchRun]| {
        let mut runs = runs.to_vec();
        runs.sort_by(|a, b| a.ms.total_cmp(&b.ms));
        let middle = runs[runs.len() / 2];
        (middle.tokens, f64::from(middle.tokens) / middle.ms * 1e3)
    };
    let ((read, prefill), (written, decode)) = (rate(&figures.prefill), rate(&figures.decode));
    let BenchFirstToken { cold, cached, warm } = figures.first_token_ms;
    println!(
        "{}: {:?}, {} kernels, {} threads, median of {}\n\
         prefill      {prefill:.1} tokens/s ({read} tokens)\n\
         decode       {decode:.1} tokens/s ({written} tokens)\n\
         load         {:.0} ms, then {:.0} ms\n\
         first token  {cold:.0} ms cold, {cached:.0} ms cached, {warm:.0} ms warm\n\
         stop         {:.1} ms at most\n\
         memory       {:.1} MB",
        figures.model.name,
        engine.mode,
        engine.lane,
        engine.threads,
        figures.prefill.len(),
        figures.load_ms[0],
        figures.load_ms[1],
        figures.cancel_ms.iter().copied().fold(0.0, f64::max),
        figures.memory.total as f64 / 1e6,
    );
}

//! Prefill and decode speed with a fixed prompt.

use std::time::{Duration, Instant};

use protocol::abi;
use runtime::Request;
use serde_json::json;

use crate::args::{self, Bench};
use crate::failure::Failure;
use crate::model::{Opened, refuse};
use crate::run::rate;

struct Times {
    prefill: Duration,
    decode: Duration,
}

pub fn bench(args: &Bench) -> Result<(), Failure> {
    if args.prompt == 0 || args.decode < 2 {
        return Err(Failure::Usage(
            "--prompt must be at least 1 and --decode at least 2".into(),
        ));
    }
    let mut opened = Opened::open(&args.model, &args.engine)?;
    let vocab = opened.model.header().manifest.architecture.vocab;
    let ids: Vec<u32> = (0..args.prompt)
        .map(|position| (position * 37 + 11) % vocab)
        .collect();
    let mut runs = (0..args.runs)
        .map(|_| once(&mut opened, &ids, args.decode))
        .collect::<Result<Vec<Times>, Failure>>()?;
    let middle = runs.len() / 2;
    runs.sort_by_key(|times| times.prefill);
    let prefill = rate(args.prompt, runs[middle].prefill);
    runs.sort_by_key(|times| times.decode);
    let decode = rate(args.decode - 1, runs[middle].decode);
    let model = &opened.model;
    let mode = match args.engine.mode {
        args::Mode::StrictF32V1 => "strict-f32-v1",
        args::Mode::Int8V1 => "int8-v1",
    };
    if args.json {
        println!(
            "{}",
            json!({
                "model": model.header().manifest.name,
                "mode": mode,
                "kernels": opened.kernels,
                "threads": args.engine.threads,
                "prompt_tokens": args.prompt,
                "new_tokens": args.decode,
                "runs": args.runs,
                "prefill_tokens_per_s": prefill,
                "decode_tokens_per_s": decode,
            })
        );
    } else {
        println!(
            "{}: {mode}, {} kernels, {} threads, median of {}: prefill {prefill:.1} tokens/s \
             ({} tokens), decode {decode:.1} tokens/s ({} tokens)",
            model.header().manifest.name,
            opened.kernels,
            args.engine.threads,
            args.runs,
            args.prompt,
            args.decode,
        );
    }
    Ok(())
}

/// A cold prompt and its continuation; the first token's time belongs to prefill.
fn once(opened: &mut Opened, ids: &[u32], decode: u32) -> Result<Times, Failure> {
    let request = Request {
        ignore_eos: true,
        cold: true,
        ..opened.greedy(ids, decode)
    };
    let model = &mut opened.model;
    let tensors = model.header().tensors.clone();
    let refused = |error| refuse(&tensors, error);
    model.begin(request).map_err(refused)?;
    let started = Instant::now();
    let mut first = None;
    loop {
        let step = model.step().map_err(refused)?;
        if step.has_token == 1 {
            first.get_or_insert_with(|| started.elapsed());
        }
        if step.status == abi::STEP_DONE {
            let prefill = first.unwrap_or_else(|| started.elapsed());
            return Ok(Times {
                prefill,
                decode: started.elapsed().saturating_sub(prefill),
            });
        }
    }
}

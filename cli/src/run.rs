//! One prompt, one streamed answer.

use std::io::Write;
use std::time::{Duration, Instant};

use prompt::{ChatMessage, Generation, Prompter};
use protocol::abi;
use runtime::Request;
use runtime::sampler::Settings;

use crate::args::Run;
use crate::failure::Failure;
use crate::model::{Opened, refuse_prompt};
use crate::words::refuse;

pub fn run(args: &Run) -> Result<(), Failure> {
    let mut opened = Opened::open(&args.model, &args.engine)?;
    let ids = prompt_ids(opened.prompter()?, args)?;
    let header = opened.model.header();
    let tensors = header.tensors.clone();
    let recommended = header.manifest.generation.clone();
    let greedy = opened.greedy(&ids, args.max_new);
    let sampling = Settings {
        temperature: args.temperature.or(recommended.temperature).unwrap_or(0.0),
        top_k: args.top_k.or(recommended.top_k).unwrap_or(0),
        top_p: args.top_p.or(recommended.top_p).unwrap_or(1.0),
        min_p: recommended.min_p.unwrap_or(0.0),
        repetition_penalty: recommended.repetition_penalty.unwrap_or(1.0),
        seed: args.seed,
        ..greedy.sampling
    };
    let request = Request { sampling, ..greedy };
    opened
        .model
        .begin(request)
        .map_err(|error| refuse(&tensors, error))?;

    let started = Instant::now();
    let mut first = None;
    let mut new_tokens = 0u32;
    let Opened {
        prompter,
        model,
        source,
        kernels,
        ..
    } = &mut opened;
    let prompter = prompter
        .as_ref()
        .ok_or_else(|| refuse_prompt(prompt::PromptError::NoTokenizer))?;
    let mut stream = prompt::TextStream::default();
    loop {
        let step = model
            .step_from(source)
            .map_err(|error| refuse(&tensors, error))?;
        if step.has_token == 1 {
            first.get_or_insert_with(|| started.elapsed());
            new_tokens += 1;
            show(&stream.push(prompter, step.token).map_err(refuse_prompt)?)?;
        }
        if step.status == abi::STEP_DONE {
            break;
        }
    }
    show(&stream.finish(prompter).map_err(refuse_prompt)?)?;
    show("\n")?;
    // An answer may end before its first token.
    let prefill = first.unwrap_or_else(|| started.elapsed());
    let decode = started.elapsed().saturating_sub(prefill);
    eprintln!(
        "{} prompt tokens at {:.1} tokens/s, {} new tokens at {:.1} tokens/s ({}, {} threads)",
        ids.len(),
        rate(ids.len() as u32, prefill),
        new_tokens,
        rate(new_tokens.saturating_sub(1), decode),
        kernels,
        args.engine.threads,
    );
    Ok(())
}

fn prompt_ids(prompter: &Prompter, args: &Run) -> Result<Vec<u32>, Failure> {
    if args.complete {
        return prompter.complete(&args.prompt).map_err(refuse_prompt);
    }
    let system = args.system.as_deref().map(|content| ChatMessage {
        role: "system",
        content,
    });
    let user = ChatMessage {
        role: "user",
        content: &args.prompt,
    };
    let messages: Vec<_> = system.into_iter().chain([user]).collect();
    prompter
        .chat(&messages, Generation::Open)
        .map_err(refuse_prompt)
}

/// Tokens a second; 0 for no tokens.
pub fn rate(tokens: u32, time: Duration) -> f64 {
    if tokens == 0 {
        0.0
    } else {
        f64::from(tokens) / time.as_secs_f64().max(1e-9)
    }
}

fn show(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::Machine(error.to_string()))
}

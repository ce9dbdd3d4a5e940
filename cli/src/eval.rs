//! Greedy continuations and logits, for comparison with a reference.

use prompt::Generation;
use serde::Deserialize;
use serde_json::{Value, json};

use protocol::abi;
use runtime::Request;

use crate::args::Eval;
use crate::failure::Failure;
use crate::lines::{self, Message};
use crate::model::{Opened, refuse_prompt};
use crate::words::refuse;

const MAX_NEW_DEFAULT: u32 = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Value,
    ids: Option<Vec<u32>>,
    messages: Option<Vec<Message>>,
    text: Option<String>,
    max_new: Option<u32>,
    #[serde(default)]
    ignore_eos: bool,
    #[serde(default)]
    logits: bool,
    #[serde(default)]
    argmax: bool,
}

pub fn eval(args: &Eval) -> Result<(), Failure> {
    let mut opened = Opened::open(&args.model, &args.engine)?;
    lines::answer(|line: Line| answer(&mut opened, &line))
}

fn answer(opened: &mut Opened, line: &Line) -> Result<Value, Failure> {
    let prompt_ids = prompt_ids(opened, line)?;
    let request = Request {
        ignore_eos: line.ignore_eos,
        digest: true,
        argmax: line.argmax,
        ..opened.greedy(&prompt_ids, line.max_new.unwrap_or(MAX_NEW_DEFAULT))
    };
    let Opened { model, source, .. } = opened;
    let tensors = model.header().tensors.clone();
    let refused = |error| refuse(&tensors, error);
    model.begin(request).map_err(refused)?;
    let mut ids = Vec::new();
    let mut last_logits = None;
    let finish = loop {
        let step = model.step_from(source).map_err(refused)?;
        // The logits that chose the first new token are those of the last prompt position.
        if line.logits && last_logits.is_none() && step.status != abi::STEP_MORE {
            last_logits = Some(model.logits().to_vec());
        }
        ids.extend((step.has_token == 1).then_some(step.token));
        if step.status == abi::STEP_DONE {
            break step.finish;
        }
    };
    let mut reply = json!({
        "id": line.id,
        "prompt_ids": prompt_ids,
        "ids": ids,
        "finish": match finish {
            abi::FINISH_STOP => "stop",
            abi::FINISH_LENGTH => "length",
            abi::FINISH_CANCELLED => "cancelled",
            _ => "numerical_collapse",
        },
        "logits_sha256": model.digest().to_string(),
    });
    if let Some(logits) = last_logits {
        reply["last_logits"] = json!(logits);
    }
    if line.argmax {
        reply["argmax"] = json!(model.argmax());
    }
    Ok(reply)
}

fn prompt_ids(opened: &Opened, line: &Line) -> Result<Vec<u32>, Failure> {
    match (&line.ids, &line.messages, &line.text) {
        (Some(ids), None, None) => Ok(ids.clone()),
        (None, Some(messages), None) => {
            let messages: Vec<_> = messages.iter().map(Message::as_prompt).collect();
            opened
                .prompter()?
                .chat(&messages, Generation::Open)
                .map_err(refuse_prompt)
        }
        (None, None, Some(text)) => opened.prompter()?.complete(text).map_err(refuse_prompt),
        _ => Err(Failure::refused(
            "a line needs exactly one of ids, messages and text",
            "Give one of them.",
        )),
    }
}

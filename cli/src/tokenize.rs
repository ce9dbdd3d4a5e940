//! Token ids of text and of conversations.

use serde::Deserialize;
use serde_json::{Value, json};

use prompt::{ControlText, Generation, Prompter};

use crate::args::Tokenize;
use crate::failure::Failure;
use crate::lines::{self, Message};
use crate::model::{open_prompter, read_header, refuse_prompt};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Value,
    text: Option<String>,
    /// Whether text that spells a control token is that token.
    #[serde(default)]
    special: bool,
    messages: Option<Vec<Message>>,
    #[serde(default)]
    add_generation_prompt: bool,
}

pub fn tokenize(args: &Tokenize) -> Result<(), Failure> {
    let header = read_header(&args.model)?;
    let prompter = open_prompter(&args.model, &header)?
        .ok_or_else(|| refuse_prompt(prompt::PromptError::NoTokenizer))?;
    lines::answer(|line: Line| {
        let ids = ids(&prompter, &line)?;
        let text = prompter.decode(&ids).map_err(refuse_prompt)?;
        Ok(json!({ "id": line.id, "ids": ids, "text": text }))
    })
}

fn ids(prompter: &Prompter, line: &Line) -> Result<Vec<u32>, Failure> {
    match (&line.text, &line.messages) {
        (Some(text), None) => {
            let control = if line.special {
                ControlText::Recognised
            } else {
                ControlText::Ordinary
            };
            prompter.encode(text, control).map_err(refuse_prompt)
        }
        (None, Some(messages)) => {
            let messages: Vec<_> = messages.iter().map(Message::as_prompt).collect();
            let generation = if line.add_generation_prompt {
                Generation::Open
            } else {
                Generation::Closed
            };
            prompter.chat(&messages, generation).map_err(refuse_prompt)
        }
        _ => Err(Failure::refused(
            "a line needs either text or messages",
            "Give one of them.",
        )),
    }
}

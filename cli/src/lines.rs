//! JSON lines in, JSON lines out, one for one.

use std::io::{BufRead, Write};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::Failure;

/// A line longer than this is refused: it is longer than any prompt.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub role: String,
    pub content: String,
}

impl Message {
    pub fn as_prompt(&self) -> prompt::ChatMessage<'_> {
        prompt::ChatMessage {
            role: &self.role,
            content: &self.content,
        }
    }
}

/// Answers every line of standard input. A refused line gives `{"id", "error"}` in its place; the
/// rest is still answered, and the whole ends as refused.
pub fn answer<T: DeserializeOwned>(
    mut answer: impl FnMut(T) -> Result<Value, Failure>,
) -> Result<(), Failure> {
    let mut refused = 0;
    let mut output = std::io::stdout().lock();
    let machine = |error: std::io::Error| Failure::Machine(error.to_string());
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(machine)?;
        if line.trim().is_empty() {
            continue;
        }
        let reply = match parse(&line).and_then(&mut answer) {
            Ok(reply) => reply,
            Err(Failure::Machine(what)) => return Err(Failure::Machine(what)),
            Err(failure) => {
                refused += 1;
                let id = serde_json::from_str::<Value>(&line).ok();
                let id = id
                    .and_then(|value| value.get("id").cloned())
                    .unwrap_or(Value::Null);
                json!({ "id": id, "error": failure.to_string() })
            }
        };
        writeln!(output, "{reply}")
            .and_then(|()| output.flush())
            .map_err(machine)?;
    }
    match refused {
        0 => Ok(()),
        1 => Err(Failure::refused(
            "one line was refused",
            "Its answer names the reason.",
        )),
        n => Err(Failure::refused(
            format!("{n} lines were refused"),
            "Their answers name the reasons.",
        )),
    }
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, Failure> {
    if line.len() > LINE_BYTES_MAX {
        let what = format!(
            "a line of {} bytes; at most {LINE_BYTES_MAX} are read",
            line.len()
        );
        return Err(Failure::refused(what, "Split the input."));
    }
    serde_json::from_str(line).map_err(|error| {
        Failure::refused(
            format!("the line is not understood: {error}"),
            "See --help for its form.",
        )
    })
}

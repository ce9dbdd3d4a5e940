//! Text of a stream of token ids, kept between inputs.
//!
//! A `TextStream` borrows its `Prompter`, so none can be kept beside it. This keeps the ids whose
//! text is not out yet, and a few before them for context, and streams those anew for every id.

use prompt::{PromptError, Prompter};

/// Ids held back at most. A character has at most four bytes; beyond that the ids are control
/// tokens, which have no text.
const HELD_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Tail {
    /// Ids whose text is out.
    context: Vec<u32>,
    /// Ids whose text is not.
    held: Vec<u32>,
}

impl Tail {
    /// The whole characters that this id completes.
    pub fn push(&mut self, prompter: &Prompter, id: u32) -> Result<String, PromptError> {
        self.held.push(id);
        let mut stream = prompter.stream();
        for id in &self.context {
            // This text is out already.
            stream.push(*id)?;
        }
        let mut text = String::new();
        for id in &self.held {
            text += &stream.push(*id)?;
        }
        if !text.is_empty() || self.held.len() >= HELD_MAX {
            self.context = std::mem::take(&mut self.held);
        }
        Ok(text)
    }

    /// What is left, with U+FFFD for an unfinished character.
    pub fn finish(&mut self, prompter: &Prompter) -> Result<String, PromptError> {
        let mut stream = prompter.stream();
        for id in self.context.iter().chain(&self.held) {
            stream.push(*id)?;
        }
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(String::new());
        }
        stream.finish()
    }
}

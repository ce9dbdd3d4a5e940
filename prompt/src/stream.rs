//! A stream of token ids becomes whole characters.
//!
//! A character may be spread over several tokens. Text is held back while it ends in U+FFFD, which
//! is how the decoder shows an unfinished character, and given out once the next token settles it.

use crate::{PromptError, Prompter};

/// A UTF-8 character has at most four bytes, so at most four byte tokens. Held text beyond that is
/// not an unfinished character: the model really produced bytes that are not UTF-8.
const HELD_TOKENS_MAX: usize = 4;

/// Turns a stream of token ids into whole UTF-8. It belongs to one answer, and is given the same
/// prompter each time, so that it can be kept beside it.
#[derive(Debug, Default)]
pub struct TextStream {
    /// Tokens whose text is not all given out, after those that give the decoder its context.
    ids: Vec<u32>,
    /// How many of `ids` are context.
    context: usize,
    /// Text of the context tokens.
    given: String,
}

impl TextStream {
    /// The whole characters that this token completes; control tokens give nothing.
    pub fn push(&mut self, prompter: &Prompter, id: u32) -> Result<String, PromptError> {
        self.ids.push(id);
        let text = prompter.text_of(&self.ids, true)?;
        let held = self.ids.len() - self.context;
        if text.ends_with(char::REPLACEMENT_CHARACTER) && held < HELD_TOKENS_MAX {
            return Ok(String::new());
        }
        let new = self.new_text(&text);
        self.ids.drain(..self.context);
        self.context = self.ids.len();
        self.given = prompter.text_of(&self.ids, true)?;
        Ok(new)
    }

    /// What is left at the end of the stream, with U+FFFD for an unfinished character.
    pub fn finish(self, prompter: &Prompter) -> Result<String, PromptError> {
        let text = prompter.text_of(&self.ids, true)?;
        Ok(self.new_text(&text))
    }

    fn new_text(&self, text: &str) -> String {
        text.get(self.given.len()..).unwrap_or_default().to_owned()
    }
}

//! From words to token ids and back: tokenizer, chat template, control-token safety.

use format::Manifest;

/// To be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptError {
    NotATokenizer,
    NoTemplate,
}

/// One message as a template sees it.
#[derive(Clone, Copy, Debug)]
pub struct ChatMessage<'a> {
    pub role: &'a str,
    pub content: &'a str,
}

/// How text that spells a control token is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlText {
    /// As ordinary text: what people write.
    Ordinary,
    /// As the control token: what the program itself writes.
    Recognised,
}

/// A model's tokenizer and chat template.
pub struct Prompter {}

/// Turns a stream of token ids into whole UTF-8.
pub struct TextStream<'a> {
    _prompter: &'a Prompter,
}

impl Prompter {
    /// `payload` is the tokenizer tensor's bytes (a `tokenizer.json`).
    pub fn open(manifest: &Manifest, payload: &[u8]) -> Result<Prompter, PromptError> {
        let _ = (manifest, payload);
        todo!()
    }

    /// Number of ids the tokenizer knows.
    pub fn vocab(&self) -> u32 {
        todo!()
    }

    /// Ids of a conversation, rendered by the model's template. Message content never becomes a
    /// control token.
    pub fn chat(
        &self,
        messages: &[ChatMessage<'_>],
        generation: Generation,
    ) -> Result<Vec<u32>, PromptError> {
        let _ = (messages, generation);
        todo!()
    }

    /// Ids of plain text, without BOS.
    pub fn encode(&self, text: &str, control: ControlText) -> Result<Vec<u32>, PromptError> {
        let _ = (text, control);
        todo!()
    }

    /// Ids of plain text for completion: BOS first if the model wants it.
    pub fn complete(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        let _ = text;
        todo!()
    }

    /// Text of the ids, control tokens included as their text.
    pub fn decode(&self, ids: &[u32]) -> Result<String, PromptError> {
        let _ = ids;
        todo!()
    }

    pub fn stream(&self) -> TextStream<'_> {
        TextStream { _prompter: self }
    }
}

/// Whether the rendered conversation ends with the opening of the assistant's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    Open,
    Closed,
}

impl TextStream<'_> {
    /// The whole characters that this token completes; control tokens give nothing.
    pub fn push(&mut self, id: u32) -> Result<String, PromptError> {
        let _ = id;
        todo!()
    }

    /// What is left at the end of the stream, with U+FFFD for an unfinished character.
    pub fn finish(self) -> String {
        todo!()
    }
}

//! From words to token ids and back: tokenizer, chat template, control-token safety.
//!
//! Reading order: `prompter` (the door), `template` (a conversation becomes text), `control`
//! (which parts of that text may be control tokens), `stream` (ids become whole characters).
//!
//! Invariant: only the template's own words become control tokens. What a person or a model wrote
//! is ordinary text, whatever it spells.

mod control;
mod error;
mod prompter;
mod stream;
mod template;

pub use error::PromptError;
pub use prompter::{ChatMessage, ControlText, Generation, Prompter, TEXT_BYTES_MAX};
pub use stream::TextStream;

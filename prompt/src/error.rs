//! Every way from words to ids can fail.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptError {
    /// The payload is not a tokenizer that this build understands.
    Tokenizer { reason: String },
    /// The model has weights only.
    NoTokenizer,
    /// The source had no chat template.
    NoTemplate,
    /// The template does not parse, or failed on this conversation.
    Template { line: Option<usize>, reason: String },
    /// The template ran longer than [`crate::template::FUEL`] steps.
    TemplateSteps { limit: u64 },
    /// The template wrote more than its limit.
    TemplateOutput { limit: usize },
    /// A role that no template knows.
    Role { message: usize, found: String },
    /// Text too long to be tokenized.
    TextTooLong { limit: usize, found: usize },
    /// An id beyond the vocabulary.
    TokenId { limit: u32, found: u32 },
}

impl PromptError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            PromptError::Tokenizer { .. } => {
                "Convert the model again from its source, with this version of the converter."
            }
            PromptError::NoTokenizer => "Choose a model that has a tokenizer.",
            PromptError::NoTemplate => "Choose an instruction-tuned model, or complete plain text.",
            PromptError::Template { .. }
            | PromptError::TemplateSteps { .. }
            | PromptError::TemplateOutput { .. } => {
                "The model's own chat template is at fault; choose another model."
            }
            PromptError::Role { .. } => "Use the roles system, user, assistant or tool.",
            PromptError::TextTooLong { .. } => "Shorten the text or start a new conversation.",
            PromptError::TokenId { .. } => "Use ids of this model's vocabulary.",
        }
    }
}

impl fmt::Display for PromptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PromptError::Tokenizer { reason } => {
                write!(f, "the tokenizer cannot be used: {reason}")
            }
            PromptError::NoTokenizer => f.write_str("this model has no tokenizer"),
            PromptError::NoTemplate => f.write_str("this model has no chat template"),
            PromptError::Template {
                line: Some(line),
                reason,
            } => {
                write!(f, "the chat template fails at line {line}: {reason}")
            }
            PromptError::Template { line: None, reason } => {
                write!(f, "the chat template fails: {reason}")
            }
            PromptError::TemplateSteps { limit } => {
                write!(f, "the chat template ran for more than {limit} steps")
            }
            PromptError::TemplateOutput { limit } => {
                write!(f, "the chat template wrote more than {limit} bytes")
            }
            PromptError::Role { message, found } => {
                write!(f, "message {message} has the unknown role {found:?}")
            }
            PromptError::TextTooLong { limit, found } => {
                write!(f, "the text has {found} bytes; at most {limit} can be read")
            }
            PromptError::TokenId { limit, found } => {
                write!(f, "token id {found} is beyond the vocabulary of {limit}")
            }
        }
    }
}

impl std::error::Error for PromptError {}

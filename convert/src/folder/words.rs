//! Everything of a folder that is about words: tokenizer, template, generation defaults.

use format::{Digest, Generation};

use super::fields::{Fields, parse};
use super::skim::{Ids, PostProcessor, TokenizerConfig, TokenizerJson};
use crate::error::{ConvertError, shown};
use crate::limits;

#[derive(Default)]
pub(crate) struct Words {
    pub generation: Generation,
    /// Ids of `generation_config.json`, which rule over those of `config.json`.
    pub bos: Vec<u32>,
    pub eos: Vec<u32>,
    pub pad: Vec<u32>,
    pub chat_template: Option<String>,
    pub tokenizer: Option<TokenizerFile>,
    /// The text of the token that begins a text.
    bos_token: Option<String>,
    add_bos: Option<bool>,
}

/// What is known of `tokenizer.json`.
pub(crate) struct TokenizerFile {
    /// Index of the file.
    pub file: u32,
    pub len: u64,
    pub sha256: Digest,
    /// One more than the greatest id.
    pub tokens: u64,
    /// The token that its post-processor puts first.
    first: Option<String>,
}

impl Words {
    pub fn parse_generation(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        let fields = Fields::parse(super::GENERATION, bytes)?;
        let real = |key| Ok::<_, ConvertError>(fields.real(key)?.map(|value| value as f32));
        self.generation = Generation {
            temperature: real("temperature")?,
            top_k: fields.count("top_k")?,
            top_p: real("top_p")?,
            min_p: real("min_p")?,
            repetition_penalty: real("repetition_penalty")?,
        };
        self.bos = fields.ids("bos_token_id")?;
        self.eos = fields.ids("eos_token_id")?;
        self.pad = fields.ids("pad_token_id")?;
        Ok(())
    }

    pub fn parse_tokenizer_config(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        let config: TokenizerConfig = parse(super::TOKENIZER_CONFIG, bytes)?;
        self.add_bos = config.add_bos_token;
        self.bos_token = config.bos_token.0;
        if let Some(text) = config.chat_template.0 {
            let found = text.len() as u64;
            if found > limits::TEXT_BYTES_MAX {
                return Err(ConvertError::Limit {
                    what: "bytes",
                    place: "chat_template".into(),
                    found,
                    max: limits::TEXT_BYTES_MAX,
                });
            }
            self.chat_template = Some(text);
        }
        Ok(())
    }

    /// The file of its own, which newer folders have, rules over the configuration.
    pub fn parse_template(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ConvertError::NotUtf8 {
            place: super::TEMPLATE.into(),
        })?;
        self.chat_template = Some(text.into());
        Ok(())
    }

    pub fn parse_tokenizer(&mut self, file: u32, bytes: &[u8]) -> Result<(), ConvertError> {
        let text: TokenizerJson = parse(super::TOKENIZER, bytes)?;
        let Ids(added) = text.added_tokens.unwrap_or_default();
        let Ids(own) = text.model.vocab;
        self.tokenizer = Some(TokenizerFile {
            file,
            len: bytes.len() as u64,
            sha256: format::sha256(bytes),
            tokens: added.max(own),
            first: text.post_processor.and_then(PostProcessor::first),
        });
        Ok(())
    }

    /// Whether plain text is preceded by the token that begins a text.
    pub fn add_bos(&self) -> bool {
        let first = self.tokenizer.as_ref().and_then(|t| t.first.as_ref());
        let by_processor = match (first, &self.bos_token) {
            (Some(first), Some(bos)) => first == bos,
            (first, _) => first.is_some(),
        };
        self.add_bos.unwrap_or(by_processor)
    }
}

impl TokenizerFile {
    /// The number of tokens, which a vocabulary of the model bounds.
    pub fn count(&self, vocab: u32) -> Result<u32, ConvertError> {
        match u32::try_from(self.tokens) {
            Ok(tokens) if tokens <= vocab => Ok(tokens),
            _ => Err(ConvertError::BadValue {
                key: shown(super::TOKENIZER),
                found: format!("a vocabulary of {} tokens", self.tokens),
                expected: "at most vocab_size tokens",
            }),
        }
    }
}

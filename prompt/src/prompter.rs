//! A model's tokenizer and chat template.

use format::Manifest;
use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer,
    TokenizerImpl,
};

use crate::PromptError;
use crate::control::{ControlTokens, Marks, Part};
use crate::template::Template;

/// Text longer than this is refused: it fits no context, and token counts must fit 32 bits.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

/// One message as a template sees it.
#[derive(Clone, Copy, Debug)]
pub struct ChatMessage<'a> {
    /// `system`, `user`, `assistant` or `tool`.
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

/// Whether the rendered conversation ends with the opening of the assistant's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    Open,
    Closed,
}

/// A model's tokenizer and chat template.
pub struct Prompter {
    tokenizer: Tokenizer,
    control: ControlTokens,
    template: Option<Template>,
    bos: Option<u32>,
    vocab: u32,
}

impl Prompter {
    /// `payload` is the tokenizer tensor's bytes (a `tokenizer.json`).
    pub fn open(manifest: &Manifest, payload: &[u8]) -> Result<Prompter, PromptError> {
        if manifest.tokenizer.is_none() {
            return Err(PromptError::NoTokenizer);
        }
        let unusable = |reason: String| PromptError::Tokenizer { reason };
        let mut tokenizer = read(payload).map_err(|error| unusable(error.to_string()))?;
        // The crate itself never turns text into control tokens; `ControlTokens` does.
        tokenizer.set_encode_special_tokens(true);
        let vocab = vocabulary(&tokenizer);
        let rows = manifest.architecture.vocab;
        if vocab > rows {
            return Err(unusable(format!(
                "it knows {vocab} ids, the model has {rows} rows"
            )));
        }
        let control = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| token.special)
            .map(|(id, token)| (token.content, id))
            .collect();
        let text_of = |id: Option<u32>| {
            id.and_then(|id| tokenizer.id_to_token(id))
                .unwrap_or_default()
        };
        let special = &manifest.special;
        let (bos, eos) = (text_of(special.bos), text_of(special.eos));
        let template = match &manifest.chat_template {
            Some(source) => Some(Template::parse(source, bos, eos)?),
            None => None,
        };
        Ok(Prompter {
            control: ControlTokens::new(control)?,
            template,
            bos: special.bos.filter(|_| special.add_bos),
            vocab,
            tokenizer,
        })
    }

    /// Ids that the tokenizer knows are below this number.
    pub fn vocab(&self) -> u32 {
        self.vocab
    }

    /// Whether the model has a chat template.
    pub fn can_chat(&self) -> bool {
        self.template.is_some()
    }

    /// Ids of a conversation, rendered by the model's template. Message content never becomes a
    /// control token.
    pub fn chat(
        &self,
        messages: &[ChatMessage<'_>],
        generation: Generation,
    ) -> Result<Vec<u32>, PromptError> {
        let template = self.template.as_ref().ok_or(PromptError::NoTemplate)?;
        check_roles(messages)?;
        check_length(messages.iter().map(|message| message.content.len()).sum())?;
        let texts = messages.iter().map(|message| message.content);
        let mut marks =
            Marks::new(texts.chain([template.source()])).ok_or_else(|| PromptError::Template {
                line: None,
                reason: "no private character is free".into(),
            })?;
        let hidden: Vec<_> = messages
            .iter()
            .map(|message| (message.role, marks.hide(&self.control, message.content)))
            .collect();
        let hidden: Vec<_> = hidden
            .iter()
            .map(|(role, text)| (*role, text.as_ref()))
            .collect();
        let rendered = template.render(&hidden, generation == Generation::Open)?;
        let mut ids = Vec::new();
        for part in self.control.split(&rendered) {
            match part {
                Part::Control(id) => ids.push(id),
                Part::Ordinary(text) => self.push_ordinary(&marks.reveal(text), &mut ids)?,
            }
        }
        Ok(ids)
    }

    /// Ids of plain text, without BOS.
    pub fn encode(&self, text: &str, control: ControlText) -> Result<Vec<u32>, PromptError> {
        let mut ids = Vec::new();
        match control {
            ControlText::Ordinary => self.push_ordinary(text, &mut ids)?,
            ControlText::Recognised => {
                check_length(text.len())?;
                for part in self.control.split(text) {
                    match part {
                        Part::Control(id) => ids.push(id),
                        Part::Ordinary(text) => self.push_ordinary(text, &mut ids)?,
                    }
                }
            }
        }
        Ok(ids)
    }

    /// Ids of plain text for completion: BOS first if the model wants it.
    pub fn complete(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        let mut ids: Vec<u32> = self.bos.into_iter().collect();
        self.push_ordinary(text, &mut ids)?;
        Ok(ids)
    }

    /// Text of the ids, control tokens included as their text. Bytes that are not UTF-8 become
    /// U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> Result<String, PromptError> {
        self.text_of(ids, false)
    }

    pub(crate) fn text_of(&self, ids: &[u32], skip_control: bool) -> Result<String, PromptError> {
        if let Some(&found) = ids.iter().find(|id| **id >= self.vocab) {
            return Err(PromptError::TokenId {
                limit: self.vocab,
                found,
            });
        }
        self.tokenizer
            .decode(ids, skip_control)
            .map_err(|error| PromptError::Tokenizer {
                reason: error.to_string(),
            })
    }

    fn push_ordinary(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), PromptError> {
        check_length(text.len())?;
        let encoding =
            self.tokenizer
                .encode_fast(text, false)
                .map_err(|error| PromptError::Tokenizer {
                    reason: error.to_string(),
                })?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }
}

/// A tokenizer whose model is named before it is read.
type Known<M> =
    TokenizerImpl<M, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Whatever the file has. Nearly all have byte pairs, which are read as they stand: to find out
/// what a model is, the crate copies the whole vocabulary more than once.
fn read(payload: &[u8]) -> tokenizers::Result<Tokenizer> {
    match serde_json::from_slice::<Known<BPE>>(payload) {
        Ok(tokenizer) => Ok(tokenizer.into()),
        Err(_) => Tokenizer::from_bytes(payload),
    }
}

/// One above the greatest id.
fn vocabulary(tokenizer: &Tokenizer) -> u32 {
    let greatest = tokenizer.get_vocab(true).into_values().max();
    greatest.map_or(0, |id| id.saturating_add(1))
}

fn check_roles(messages: &[ChatMessage<'_>]) -> Result<(), PromptError> {
    match messages
        .iter()
        .position(|message| !ROLES.contains(&message.role))
    {
        None => Ok(()),
        Some(index) => {
            let found = messages[index].role.chars().take(32).collect();
            Err(PromptError::Role {
                message: index,
                found,
            })
        }
    }
}

fn check_length(found: usize) -> Result<(), PromptError> {
    if found > TEXT_BYTES_MAX {
        return Err(PromptError::TextTooLong {
            limit: TEXT_BYTES_MAX,
            found,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crate's own reader says what a file of each kind is; there is no other short way in.
    #[test]
    fn every_kind_is_read_as_the_crate_reads_it() {
        let models = [
            r#"{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}"#,
            r#"{"type":"BPE","dropout":null,"unk_token":"a","continuing_subword_prefix":null,
                "end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,
                "ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}"#,
            r#"{"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}"#,
            r#"{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"-",
                "max_input_chars_per_word":100,"vocab":{"a":0,"-b":1}}"#,
            r#"{"type":"WordLevel","vocab":{"a":0,"b":1},"unk_token":"a"}"#,
            r#"{"type":"Unigram","unk_id":0,"vocab":[["a",0.0],["b",-1.0]],"byte_fallback":false}"#,
            // None of these is a tokenizer.
            r#"{"type":"BPE","vocab":{"a":0},"merges":["a b"]}"#,
            r#"{"type":"BPE","vocab":{"a":0}"#,
            r#"{"type":"Other","vocab":{"a":0},"merges":[]}"#,
        ];
        let mut refused = 0;
        for model in models {
            let file = format!(
                r#"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
                    "normalizer":null,"pre_tokenizer":null,"post_processor":null,
                    "decoder":null,"model":{model}}}"#
            );
            let text = |read: tokenizers::Result<Tokenizer>| {
                let read = read.map_err(|error| error.to_string())?;
                read.to_string(false).map_err(|error| error.to_string())
            };
            let expected = text(Tokenizer::from_bytes(&file));
            refused += usize::from(expected.is_err());
            assert_eq!(text(read(file.as_bytes())), expected, "{model}");
        }
        assert_eq!(refused, 3);
    }
}

//! Everything of a folder that is about words: tokenizer, template, generation defaults.

use std::fmt;

use format::{Digest, Generation};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::fields::{Fields, parse, wrong_type};
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
        let fields = Fields::parse(super::TOKENIZER_CONFIG, bytes)?;
        self.add_bos = fields.flag("add_bos_token")?;
        self.bos_token = match fields.get("bos_token") {
            Some(Value::String(text)) => Some(text.clone()),
            // Older files describe the whole token.
            Some(Value::Object(token)) => {
                let content = token.get("content").and_then(Value::as_str);
                content.map(String::from)
            }
            _ => None,
        };
        let template = match fields.get("chat_template") {
            None => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(Value::Array(list)) => default_template(list),
            Some(other) => return Err(wrong_type("chat_template", "a text", other)),
        };
        if let Some(text) = template {
            let found = text.len() as u64;
            if found > limits::TEXT_BYTES_MAX {
                return Err(ConvertError::Limit {
                    what: "bytes",
                    place: "chat_template".into(),
                    found,
                    max: limits::TEXT_BYTES_MAX,
                });
            }
            self.chat_template = Some(text.into());
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

/// Of several named templates, the one for plain conversation.
fn default_template(list: &[Value]) -> Option<&str> {
    let is_default = |value: &&Value| value.get("name").and_then(Value::as_str) == Some("default");
    list.iter().find(is_default)?.get("template")?.as_str()
}

/// The parts of `tokenizer.json` that concern the model file; nothing of it is kept in memory.
#[derive(serde::Deserialize)]
struct TokenizerJson {
    model: TokenizerModel,
    added_tokens: Option<Ids>,
    post_processor: Option<PostProcessor>,
}

#[derive(serde::Deserialize)]
struct TokenizerModel {
    vocab: Ids,
}

/// One more than the greatest id of a vocabulary (`{"text": id}`), of a list of added tokens
/// (`[{"id": id}]`), or of a scored vocabulary (`[["text", score]]`, where the place is the id).
#[derive(Default)]
struct Ids(u64);

impl<'de> Deserialize<'de> for Ids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ids, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Item {
            Added { id: u32 },
            Scored(IgnoredAny, IgnoredAny),
        }
        struct Greatest;
        impl<'de> Visitor<'de> for Greatest {
            type Value = Ids;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary or a list of tokens")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ids, A::Error> {
                let mut ids = Ids(0);
                while let Some((IgnoredAny, id)) = map.next_entry::<IgnoredAny, u32>()? {
                    ids.0 = ids.0.max(u64::from(id) + 1);
                }
                Ok(ids)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ids, A::Error> {
                let mut ids = Ids(0);
                while let Some(item) = list.next_element::<Item>()? {
                    ids.0 = match item {
                        Item::Added { id } => ids.0.max(u64::from(id) + 1),
                        Item::Scored(..) => ids.0 + 1,
                    };
                }
                Ok(ids)
            }
        }
        deserializer.deserialize_any(Greatest)
    }
}

/// A post-processor, of which only the token it puts first matters.
#[derive(serde::Deserialize)]
struct PostProcessor {
    #[serde(default)]
    single: First,
    #[serde(default)]
    processors: First,
}

/// The first special token of a template or of a sequence of processors.
#[derive(Default)]
struct First(Option<String>);

impl PostProcessor {
    fn first(self) -> Option<String> {
        self.single.0.or(self.processors.0)
    }
}

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<First, D::Error> {
        #[derive(serde::Deserialize)]
        struct Token {
            id: String,
        }
        #[derive(serde::Deserialize)]
        struct Item {
            #[serde(rename = "SpecialToken")]
            token: Option<Token>,
            #[serde(default)]
            single: First,
        }
        struct Find;
        impl<'de> Visitor<'de> for Find {
            type Value = First;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a template")
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<First, E> {
                Ok(First(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First, A::Error> {
                let mut first = First(None);
                let mut index = 0;
                while let Some(item) = list.next_element::<Item>()? {
                    // A template begins with its first piece; of processors any may be one.
                    if index == 0
                        && let Some(token) = item.token
                    {
                        first.0 = Some(token.id);
                    }
                    first.0 = first.0.or(item.single.0);
                    index += 1;
                }
                Ok(first)
            }
        }
        deserializer.deserialize_any(Find)
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

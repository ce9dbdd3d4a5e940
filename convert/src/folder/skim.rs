//! Large JSON files of which a few words are wanted: read without keeping the rest in memory.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The parts of `tokenizer_config.json` that concern the model file.
#[derive(serde::Deserialize)]
pub(crate) struct TokenizerConfig {
    pub add_bos_token: Option<bool>,
    #[serde(default)]
    pub bos_token: Text,
    #[serde(default)]
    pub chat_template: Text,
}

/// A text, the content of a token, or of several named templates the one for plain conversation.
#[derive(Default)]
pub(crate) struct Text(pub Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
            template: String,
        }
        struct Find;
        impl<'de> Visitor<'de> for Find {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_unit<E: Error>(self) -> Result<Text, E> {
                Ok(Text(None))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(Some(text.into())))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                let mut text = Text(None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "content" => text = Text(Some(map.next_value()?)),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(text)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text, A::Error> {
                let mut text = Text(None);
                while let Some(item) = list.next_element::<Named>()? {
                    if item.name == "default" {
                        text = Text(Some(item.template));
                    }
                }
                Ok(text)
            }
        }
        deserializer.deserialize_any(Find)
    }
}

/// The parts of `tokenizer.json` that concern the model file.
#[derive(serde::Deserialize)]
pub(crate) struct TokenizerJson {
    pub model: TokenizerModel,
    pub added_tokens: Option<Ids>,
    pub post_processor: Option<PostProcessor>,
}

#[derive(serde::Deserialize)]
pub(crate) struct TokenizerModel {
    pub vocab: Ids,
}

/// One more than the greatest id of a vocabulary (`{"text": id}`), of a list of added tokens
/// (`[{"id": id}]`), or of a scored vocabulary (`[["text", score]]`, where the place is the id).
#[derive(Default)]
pub(crate) struct Ids(pub u64);

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
pub(crate) struct PostProcessor {
    #[serde(default)]
    single: First,
    #[serde(default)]
    processors: First,
}

/// The first special token of a template or of a sequence of processors.
#[derive(Default)]
struct First(Option<String>);

impl PostProcessor {
    pub fn first(self) -> Option<String> {
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

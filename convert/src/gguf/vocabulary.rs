//! Tokens and merges of a GGUF file, checked.

use std::hash::{DefaultHasher, Hasher};

use super::keys::Keys;
use super::texts::Texts;
use crate::error::{ConvertError, shown};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";

/// Token types, by their numbers in `tokenizer.ggml.token_type`.
const NORMAL: u8 = 1;
const UNKNOWN: u8 = 2;
const CONTROL: u8 = 3;
const USER_DEFINED: u8 = 4;
const UNUSED: u8 = 5;

/// How text is cut before tokens are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cutting {
    /// The pattern of GPT-2.
    Gpt2,
    /// Single digits first, then the pattern of GPT-2.
    SmolLm,
    /// The pattern of Llama 3; whole pieces that are tokens need no merges.
    Llama3,
    /// The pattern of Qwen 2, after normalization to NFC.
    Qwen2,
}

/// A byte-level BPE vocabulary in which every merge joins tokens to a token.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub cutting: Cutting,
    texts: Texts,
    types: Vec<u8>,
    pub merges: Texts,
    /// One more than the last id in use.
    pub tokens: u32,
}

impl Vocabulary {
    /// `None` if the file has no tokenizer.
    pub fn new(keys: &mut Keys) -> Result<Option<Vocabulary>, ConvertError> {
        let texts = keys.take_texts(TOKENS);
        let model = match (keys.text(MODEL), &texts) {
            // llama.cpp calls a model without tokens so.
            (None | Some("none" | "no_vocab"), None) => return Ok(None),
            (None, Some(_)) => return Err(ConvertError::MissingKey { key: MODEL }),
            (Some(model), _) => model,
        };
        if model != "gpt2" {
            return Err(unsupported(MODEL, model, "gpt2 (byte-level BPE)"));
        }
        if keys.flag("tokenizer.ggml.add_space_prefix") == Some(true) {
            let key = "tokenizer.ggml.add_space_prefix";
            return Err(unsupported(key, "true", "false"));
        }
        let cutting = cutting(keys)?;
        let texts = texts.ok_or(ConvertError::MissingKey { key: TOKENS })?;
        let types = keys
            .take_codes(TYPES)
            .ok_or(ConvertError::MissingKey { key: TYPES })?;
        let merges = keys
            .take_texts(MERGES)
            .ok_or(ConvertError::MissingKey { key: MERGES })?;
        if types.len() != texts.len() {
            return Err(ConvertError::TokenCount {
                key: TYPES,
                expected: texts.len() as u64,
                found: types.len() as u64,
            });
        }
        for (token, kind) in types.iter().enumerate() {
            if !(NORMAL..=UNUSED).contains(kind) {
                let (token, found) = (token as u32, i64::from(*kind));
                return Err(ConvertError::TokenType { token, found });
            }
        }
        let last = types.iter().rposition(|kind| *kind != UNUSED);
        let vocabulary = Vocabulary {
            cutting,
            texts,
            types,
            merges,
            tokens: last.map_or(0, |last| last as u32 + 1),
        };
        vocabulary.check()?;
        Ok(Some(vocabulary))
    }

    /// The text of a token; `None` for ids that only fill the list.
    pub fn text(&self, token: u32) -> Option<&str> {
        let used = self.types[token as usize] != UNUSED;
        used.then(|| self.texts.get(token as usize))
    }

    /// Whether a token is found in text before the text is cut: `Some(true)` for control tokens,
    /// `Some(false)` for added words.
    pub fn added(&self, token: u32) -> Option<bool> {
        match self.types[token as usize] {
            CONTROL | UNKNOWN => Some(true),
            USER_DEFINED => Some(false),
            _ => None,
        }
    }

    /// Length of the list in the file, unused ids included.
    pub fn listed(&self) -> u32 {
        self.texts.len() as u32
    }

    fn check(&self) -> Result<(), ConvertError> {
        let index = Index::new(self)?;
        let mut joined = String::new();
        for (merge, text) in self.merges.iter().enumerate() {
            let merge = merge as u32;
            let (left, right) = split(text).ok_or(ConvertError::BadMerge { merge })?;
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            if ![left, right, &joined]
                .iter()
                .all(|part| index.has(self, part))
            {
                return Err(ConvertError::MergeOutsideVocabulary { merge });
            }
        }
        Ok(())
    }
}

/// The two parts of a merge. A space inside a part is impossible: byte-level texts have none.
pub(crate) fn split(merge: &str) -> Option<(&str, &str)> {
    let (left, right) = merge.split_once(' ')?;
    (!left.is_empty() && !right.is_empty()).then_some((left, right))
}

fn cutting(keys: &Keys) -> Result<Cutting, ConvertError> {
    match keys.text(PRE) {
        Some("gpt2" | "gpt-2") => Ok(Cutting::Gpt2),
        Some("smollm") => Ok(Cutting::SmolLm),
        Some("llama-bpe" | "llama3" | "llama-v3") => Ok(Cutting::Llama3),
        Some("qwen2") => Ok(Cutting::Qwen2),
        Some(other) => Err(unsupported(PRE, other, "gpt-2, smollm, llama-bpe, qwen2")),
        None => Err(ConvertError::MissingKey { key: PRE }),
    }
}

fn unsupported(key: &str, found: &str, supported: &'static str) -> ConvertError {
    ConvertError::Unsupported {
        key: key.into(),
        found: shown(found),
        supported,
    }
}

/// Token ids by text: open addressing, at most half full.
struct Index {
    slots: Vec<u32>,
    seed: [u8; 32],
}

const FREE: u32 = u32::MAX;

impl Index {
    /// Refuses two tokens of one text.
    fn new(vocabulary: &Vocabulary) -> Result<Index, ConvertError> {
        let size = (vocabulary.texts.len() * 2).next_power_of_two();
        let mut index = Index {
            slots: vec![FREE; size],
            // A seed from the content: nobody can choose texts that collide under it.
            seed: format::sha256(vocabulary.texts.as_bytes()).0,
        };
        for token in 0..vocabulary.tokens {
            let Some(text) = vocabulary.text(token) else {
                continue;
            };
            let slot = index.slot(vocabulary, text);
            let first = index.slots[slot];
            if first != FREE {
                let second = token;
                return Err(ConvertError::DuplicateToken { first, second });
            }
            index.slots[slot] = token;
        }
        Ok(index)
    }

    fn has(&self, vocabulary: &Vocabulary, text: &str) -> bool {
        self.slots[self.slot(vocabulary, text)] != FREE
    }

    /// The slot of a text, or the free one where it belongs.
    fn slot(&self, vocabulary: &Vocabulary, text: &str) -> usize {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.seed);
        hasher.write(text.as_bytes());
        let mask = self.slots.len() - 1;
        let mut slot = hasher.finish() as usize & mask;
        loop {
            let token = self.slots[slot];
            if token == FREE || vocabulary.text(token) == Some(text) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }
}

//! A vocabulary as a Hugging Face `tokenizer.json`, written in portions.
//!
//! The text may have tens of megabytes, so it is never held whole: it is written once to be
//! hashed and once to be stored, and both times comes out the same.

use format::Digest;
use sha2::{Digest as _, Sha256};

use super::vocabulary::{Cutting, Vocabulary, split};

/// Bytes after which a portion ends.
const PORTION: usize = 64 * 1024;

/// The pattern of Llama 3 and Qwen 2 up to how many digits stand together.
const PATTERN: [&str; 2] = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

/// The writer, between two portions.
#[derive(Debug)]
pub(crate) struct TokenizerText {
    vocabulary: Vocabulary,
    next: Part,
}

/// What is written next. The numbers count tokens or merges already looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    Added { token: u32, comma: bool },
    Middle,
    Vocabulary { token: u32, comma: bool },
    Between,
    Merges { merge: u32 },
    Tail,
    End,
}

impl TokenizerText {
    pub fn new(vocabulary: Vocabulary) -> TokenizerText {
        TokenizerText {
            vocabulary,
            next: Part::Head,
        }
    }

    /// Length and SHA-256 of the whole text; the writer stands at its beginning afterwards.
    pub fn measure(&mut self) -> (u64, Digest) {
        self.next = Part::Head;
        let (mut len, mut hash, mut portion) = (0, Sha256::new(), Vec::new());
        while self.write(&mut portion) {
            len += portion.len() as u64;
            hash.update(&portion);
            portion.clear();
        }
        self.next = Part::Head;
        (len, Digest(hash.finalize().into()))
    }

    /// Appends the next portion; `false` if there was none.
    pub fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        while self.next != Part::End && out.len() - start < PORTION {
            self.next = self.part(self.next, out);
        }
        out.len() > start
    }

    fn part(&self, part: Part, out: &mut Vec<u8>) -> Part {
        let tokens = self.vocabulary.tokens;
        match part {
            Part::Head => {
                let head = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":["#;
                out.extend_from_slice(head.as_bytes());
                let (token, comma) = (0, false);
                Part::Added { token, comma }
            }
            Part::Added { token, .. } if token == tokens => Part::Middle,
            Part::Added { token, comma } => {
                let added = self.added(token, comma, out);
                let (token, comma) = (token + 1, comma || added);
                Part::Added { token, comma }
            }
            Part::Middle => {
                self.middle(out);
                let (token, comma) = (0, false);
                Part::Vocabulary { token, comma }
            }
            Part::Vocabulary { token, .. } if token == tokens => Part::Between,
            Part::Vocabulary { token, comma } => {
                let used = self.vocabulary.text(token);
                if let Some(text) = used {
                    separate(comma, out);
                    quote(text, out);
                    out.extend_from_slice(format!(":{token}").as_bytes());
                }
                let (token, comma) = (token + 1, comma || used.is_some());
                Part::Vocabulary { token, comma }
            }
            Part::Between => {
                out.extend_from_slice(br#"},"merges":["#);
                Part::Merges { merge: 0 }
            }
            Part::Merges { merge } if merge as usize == self.vocabulary.merges.len() => Part::Tail,
            Part::Merges { merge } => {
                let text = self.vocabulary.merges.get(merge as usize);
                let (left, right) = split(text).unwrap_or((text, ""));
                separate(merge > 0, out);
                out.push(b'[');
                quote(left, out);
                out.push(b',');
                quote(right, out);
                out.push(b']');
                Part::Merges { merge: merge + 1 }
            }
            Part::Tail => {
                out.extend_from_slice(b"]}}");
                Part::End
            }
            Part::End => Part::End,
        }
    }

    /// Writes a token that is found in text before the text is cut, if it is one.
    fn added(&self, token: u32, comma: bool, out: &mut Vec<u8>) -> bool {
        let Some(special) = self.vocabulary.added(token) else {
            return false;
        };
        separate(comma, out);
        out.extend_from_slice(format!("{{\"id\":{token},\"content\":").as_bytes());
        quote(self.vocabulary.text(token).unwrap_or_default(), out);
        let rest = format!(
            ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\
             \"normalized\":false,\"special\":{special}}}"
        );
        out.extend_from_slice(rest.as_bytes());
        true
    }

    /// Everything between the added tokens and the vocabulary.
    fn middle(&self, out: &mut Vec<u8>) {
        let cutting = self.vocabulary.cutting;
        let normalizer = match cutting {
            Cutting::Qwen2 => r#"{"type":"NFC"}"#,
            _ => "null",
        };
        let ignore_merges = cutting == Cutting::Llama3;
        let text = format!(
            "],\"normalizer\":{normalizer},\"pre_tokenizer\":{},\"post_processor\":null,\
             \"decoder\":{},\
             \"model\":{{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\
             \"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\
             \"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":{ignore_merges},\
             \"vocab\":{{",
            pre_tokenizer(cutting),
            byte_level(true),
        );
        out.extend_from_slice(text.as_bytes());
    }
}

fn pre_tokenizer(cutting: Cutting) -> String {
    let first = match cutting {
        Cutting::Gpt2 => return byte_level(true),
        Cutting::SmolLm => r#"{"type":"Digits","individual_digits":true}"#.into(),
        Cutting::Llama3 => pattern(r"\p{N}{1,3}"),
        Cutting::Qwen2 => pattern(r"\p{N}"),
    };
    // The pattern of GPT-2 is part of the byte-level step.
    let second = byte_level(cutting == Cutting::SmolLm);
    format!(r#"{{"type":"Sequence","pretokenizers":[{first},{second}]}}"#)
}

fn pattern(digits: &str) -> String {
    let mut quoted = Vec::new();
    quote(&[PATTERN[0], digits, PATTERN[1]].concat(), &mut quoted);
    let quoted = String::from_utf8_lossy(&quoted);
    format!(
        r#"{{"type":"Split","pattern":{{"Regex":{quoted}}},"behavior":"Isolated","invert":false}}"#
    )
}

fn byte_level(use_regex: bool) -> String {
    format!(
        "{{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\
         \"use_regex\":{use_regex}}}"
    )
}

fn separate(comma: bool, out: &mut Vec<u8>) {
    if comma {
        out.push(b',');
    }
}

/// Appends a JSON string.
fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

//! SmolLM2's tokenizer and chat template against the reference.
//!
//! Expected ids are from the `tokenizers` package and llama.cpp, which agree on every case; texts
//! are from transformers (`shared/golden/README.md`).

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use convert::{Converter, DriveError, Options};
use format::{Header, TOKENIZER_TENSOR};
use prompt::{ChatMessage, ControlText, Generation, Prompter, TextStream};
use serde_json::Value;

const MODEL: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

fn model_path() -> PathBuf {
    let folder = std::env::var_os("TINYRUSTLM_MODELS")
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            let home = std::env::var_os("HOME").expect("HOME is set");
            Path::new(&home).join(".cache/tinyrustlm/models")
        });
    let path = folder.join(MODEL);
    assert!(
        path.is_file(),
        "{} is missing: run ./test, which fetches it",
        path.display()
    );
    path
}

fn golden(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden/smollm2-135m");
    let text = fs::read_to_string(path.join(name)).expect("the golden folder lies beside us");
    let value: Value = serde_json::from_str(&text).unwrap();
    value["cases"].as_array().unwrap().clone()
}

/// Converts the real file, as far as the tokenizer goes: it is the first tensor.
fn prompter() -> Prompter {
    let file = fs::File::open(model_path()).unwrap();
    let len = file.metadata().unwrap().len();
    let mut converter = Converter::gguf(MODEL, len, Options::default()).unwrap();
    let mut out = Vec::new();
    let ended: Result<_, DriveError<&str>> = convert::drive(
        &mut converter,
        |need, into| file.read_exact_at(into, need.at).map_err(|_| "read"),
        |bytes| {
            out.extend_from_slice(bytes);
            if out.len() > 4 << 20 {
                Err("enough")
            } else {
                Ok(())
            }
        },
        |_| {},
    );
    assert_eq!(ended, Err(DriveError::Write("enough")));
    let header: &Header = converter.header().unwrap();
    let range = &header.tensor(TOKENIZER_TENSOR).unwrap().range;
    let payload = &out[range.start as usize..range.end as usize];
    Prompter::open(&header.manifest, payload).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap() as u32)
        .collect()
}

/// What the stream gives for the ids, token by token.
fn streamed(prompter: &Prompter, ids: &[u32]) -> String {
    let mut stream = TextStream::default();
    let mut text = String::new();
    for id in ids {
        text.push_str(&stream.push(prompter, *id).unwrap());
    }
    text + &stream.finish(prompter).unwrap()
}

#[test]
fn every_tokenizer_case() {
    let prompter = prompter();
    let cases = golden("tokenizer.json");
    assert_eq!(cases.len(), 200);
    for case in &cases {
        let text = case["text"].as_str().unwrap();
        let want = ids(&case["ids"]);
        let plain = case.get("ids_plain").map_or_else(|| want.clone(), ids);
        let decoded = case
            .get("decoded")
            .map_or(text, |decoded| decoded.as_str().unwrap());
        let encode = |control| prompter.encode(text, control).unwrap();
        assert_eq!(encode(ControlText::Recognised), want, "{text:?}");
        assert_eq!(
            encode(ControlText::Ordinary),
            plain,
            "{text:?} as ordinary text"
        );
        assert_eq!(prompter.decode(&want).unwrap(), decoded, "{text:?}");
        if want == plain {
            assert_eq!(streamed(&prompter, &want), decoded, "{text:?} streamed");
        }
    }
}

#[test]
fn every_template_case() {
    let prompter = prompter();
    let cases = golden("chat_template.json");
    assert_eq!(cases.len(), 20);
    let mut forged = 0;
    for case in &cases {
        let messages = case["messages"].as_array().unwrap();
        let messages: Vec<_> = messages
            .iter()
            .map(|message| ChatMessage {
                role: message["role"].as_str().unwrap(),
                content: message["content"].as_str().unwrap(),
            })
            .collect();
        let open = case["add_generation_prompt"].as_bool().unwrap();
        let generation = if open {
            Generation::Open
        } else {
            Generation::Closed
        };
        let found = prompter.chat(&messages, generation).unwrap();
        let text = case["text"].as_str().unwrap();
        assert_eq!(prompter.decode(&found).unwrap(), text);
        let want = ids(&case["ids"]);
        if messages
            .iter()
            .any(|message| message.content.contains("<|im_end|>"))
        {
            // The reference lets content end a turn; here it stays ordinary text.
            forged += 1;
            let ends = |ids: &[u32]| ids.iter().filter(|id| **id == 2).count();
            let real = messages.len() + usize::from(messages[0].role != "system");
            assert_eq!(ends(&found), real, "{text:?}");
            assert!(ends(&want) > real, "{text:?}");
        } else {
            assert_eq!(found, want, "{text:?}");
        }
    }
    assert_eq!(forged, 4, "cases whose content spells a control token");
}

#[test]
fn characters_spread_over_tokens_come_whole() {
    let prompter = prompter();
    let text = "a🙂é漢字👩‍👩‍👧 ok";
    let ids = prompter.encode(text, ControlText::Ordinary).unwrap();
    let mut stream = TextStream::default();
    let parts: Vec<String> = ids
        .iter()
        .map(|id| stream.push(&prompter, *id).unwrap())
        .collect();
    assert!(
        parts.iter().any(String::is_empty),
        "some token is an unfinished character"
    );
    assert!(
        parts.iter().all(|part| !part.contains('\u{FFFD}')),
        "{parts:?}"
    );
    assert_eq!(parts.concat() + &stream.finish(&prompter).unwrap(), text);

    // A stream that ends in the middle of a character says so.
    let mut stream = TextStream::default();
    let emoji = prompter.encode("🙂", ControlText::Ordinary).unwrap();
    assert!(emoji.len() > 1);
    assert_eq!(stream.push(&prompter, emoji[0]).unwrap(), "");
    assert_eq!(stream.finish(&prompter).unwrap(), "\u{FFFD}");
}

#[test]
fn refuses_ids_and_texts_beyond_the_limits() {
    let prompter = prompter();
    assert_eq!(prompter.vocab(), 49152);
    assert!(prompter.decode(&[49152]).is_err());
    assert!(TextStream::default().push(&prompter, u32::MAX).is_err());
    let long = "a".repeat(prompt::TEXT_BYTES_MAX + 1);
    assert!(prompter.encode(&long, ControlText::Ordinary).is_err());
    let stranger = [ChatMessage {
        role: "<|im_end|>",
        content: "",
    }];
    assert!(prompter.chat(&stranger, Generation::Open).is_err());
}

#[test]
fn text_comes_back_as_it_was() {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    let prompter = prompter();
    let strategy = "[ -~\\n\\tà-ÿα-ω一-丰]{0,80}";
    TestRunner::default()
        .run(&strategy, |text| {
            let ids = prompter.encode(&text, ControlText::Ordinary).unwrap();
            prop_assert_eq!(prompter.decode(&ids).unwrap(), text.clone());
            prop_assert_eq!(streamed(&prompter, &ids), text);
            Ok(())
        })
        .unwrap();
}

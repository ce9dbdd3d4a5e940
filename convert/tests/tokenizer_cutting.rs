//! The ways of cutting text that a GGUF file can name, as the `tokenizers` crate runs the payload
//! written for each. Expected pieces follow from the published patterns, by hand.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod gguf_writer;
mod in_memory;

use gguf_writer::{ARRAY, Gguf, I32, array, texts};
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, Tokenizer};

fn tokenizer(change: impl FnOnce(&mut Gguf)) -> (Tokenizer, format::Manifest) {
    let mut file = Gguf::small();
    change(&mut file);
    let made = in_memory::gguf(&file.write()).unwrap_or_else(|error| panic!("{error}"));
    let header = in_memory::header(&made.bytes);
    let range = &header.tensor(format::TOKENIZER_TENSOR).unwrap().range;
    let payload = &made.bytes[range.start as usize..range.end as usize];
    header.check_tokenizer(payload).unwrap();
    (Tokenizer::from_bytes(payload).unwrap(), header.manifest)
}

/// The pieces of a text before tokens are looked for.
fn pieces(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let mut cut = PreTokenizedString::from(text);
    let cutter = tokenizer.get_pre_tokenizer().unwrap();
    cutter.pre_tokenize(&mut cut).unwrap();
    let splits = cut.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits
        .into_iter()
        .map(|(_, (start, end), _)| text[start..end].to_string())
        .collect()
}

#[test]
fn each_name_cuts_as_its_pattern_does() {
    let text = "I'LL pay 1234 dollars\n\n  now";
    let gpt2 = ["I", "'", "LL", " pay", " 1234", " dollars", "\n\n ", " now"];
    let smollm = [
        "I", "'", "LL", " pay", " ", "1", "2", "3", "4", " dollars", "\n\n ", " now",
    ];
    let llama = [
        "I", "'LL", " pay", " ", "123", "4", " dollars", "\n\n", " ", " now",
    ];
    let qwen = [
        "I", "'LL", " pay", " ", "1", "2", "3", "4", " dollars", "\n\n", " ", " now",
    ];
    for (name, expected) in [
        ("gpt2", &gpt2[..]),
        ("gpt-2", &gpt2),
        ("smollm", &smollm),
        ("llama-bpe", &llama),
        ("llama3", &llama),
        ("llama-v3", &llama),
        ("qwen2", &qwen),
    ] {
        let (tokenizer, _) = tokenizer(|file| file.set_text("tokenizer.ggml.pre", name));
        assert_eq!(pieces(&tokenizer, text), expected, "{name}");
    }
}

#[test]
fn whole_tokens_need_no_merges_in_llama_3_only() {
    for (name, expected) in [("llama-bpe", vec![5]), ("qwen2", vec![4, 3])] {
        let (tokenizer, _) = tokenizer(|file| {
            file.set_text("tokenizer.ggml.pre", name);
            file.set("tokenizer.ggml.merges", ARRAY, texts(&["a b"]));
        });
        let found = tokenizer.encode("abc", false).unwrap();
        assert_eq!(found.get_ids(), expected, "{name}");
    }
}

#[test]
fn only_qwen_normalizes() {
    for (name, expected) in [("qwen2", true), ("smollm", false)] {
        let (tokenizer, _) = tokenizer(|file| file.set_text("tokenizer.ggml.pre", name));
        assert_eq!(tokenizer.get_normalizer().is_some(), expected, "{name}");
    }
}

/// Control tokens and added words are found in text; ids that only fill the list are no tokens.
#[test]
fn token_types_decide_what_is_found_in_text() {
    let types = [3, 1, 4, 1, 1, 5].map(|kind: i32| kind.to_le_bytes().to_vec());
    let tokens = ["<|\"end\\|>", "a", "\tx \u{1}", "b", "ab", "[PAD5]"];
    let (tokenizer, manifest) = tokenizer(|file| {
        file.set("tokenizer.ggml.tokens", ARRAY, texts(&tokens));
        file.set("tokenizer.ggml.token_type", ARRAY, array(I32, &types));
        file.set("tokenizer.ggml.merges", ARRAY, texts(&["a b"]));
    });
    assert_eq!(manifest.tokenizer.map(|t| t.tokens), Some(5));
    let found = tokenizer.encode("ab<|\"end\\|>a\tx \u{1}b", false).unwrap();
    assert_eq!(found.get_ids(), [4, 0, 1, 2, 3]);
    let special = tokenizer.get_added_tokens_decoder();
    let flags: Vec<(u32, bool)> = special.iter().map(|(id, t)| (*id, t.special)).collect();
    assert_eq!(flags.len(), 2);
    assert!(flags.contains(&(0, true)) && flags.contains(&(2, false)));
}

#[test]
fn llama_3_begins_texts_unless_the_file_says_otherwise() {
    let add_bos = |change: fn(&mut Gguf)| {
        let (_, manifest) = tokenizer(|file| {
            file.set_u32("tokenizer.ggml.bos_token_id", 1);
            change(file);
        });
        manifest.special.add_bos
    };
    let llama = |file: &mut Gguf| file.set_text("tokenizer.ggml.pre", "llama-bpe");
    assert!(add_bos(llama));
    assert!(!add_bos(|_| ()));
    assert!(!add_bos(|file| {
        file.set_text("tokenizer.ggml.pre", "llama-bpe");
        file.set("tokenizer.ggml.add_bos_token", 7, vec![0]);
    }));
}

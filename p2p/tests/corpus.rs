//! What the fuzzer knows, without the fuzzer: every file of `fuzz/corpus` is run as it would run
//! it, and so is every file with one byte less or one bit changed.

#![allow(clippy::unwrap_used)]

mod drive;

use std::path::Path;

use p2p::Message;
use proptest::collection::vec;
use proptest::prelude::*;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let entries = std::fs::read_dir(folder.join(target)).unwrap();
    let files: Vec<Vec<u8>> = entries
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert!(files.len() >= 12, "the corpus of {target} is gone");
    files
}

fn read(bytes: &[u8]) {
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
}

#[test]
fn messages_of_the_corpus() {
    for bytes in corpus("wire") {
        read(&bytes);
        for len in 0..bytes.len().min(300) {
            read(&bytes[..len]);
        }
        for at in 0..bytes.len().min(80) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            read(&changed);
        }
    }
}

#[test]
fn conversations_of_the_corpus() {
    for bytes in corpus("swarm") {
        drive::run(&bytes);
        for at in (0..bytes.len().min(400)).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            drive::run(&changed);
            drive::run(&bytes[..at]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_a_message_or_none(bytes in vec(any::<u8>(), 0..300)) {
        read(&bytes);
    }

    /// Kinds and small numbers, so that most of them are messages.
    #[test]
    fn any_conversation_ends_well(
        choice in any::<u8>(),
        words in vec((0u8..13, vec(0u8..4, 0..9)), 0..40),
    ) {
        let mut bytes = vec![choice | 0x20];
        for (kind, fields) in words {
            bytes.extend((fields.len() as u16 + 1).to_le_bytes());
            bytes.push(kind);
            bytes.extend(fields);
        }
        drive::run(&bytes);
    }
}

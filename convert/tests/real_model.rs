//! SmolLM2-135M-Instruct as published in GGUF: converted whole, compared with the source, and its
//! tokenizer against the golden ids.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod in_memory;

use std::io::{Read, Seek, SeekFrom};
use std::sync::LazyLock;

use format::{Codec, Kind, Layout};
use in_memory::{gguf_file, golden, header, real_model, row};
use tokenizers::Tokenizer;

/// The converted file; 97 MB.
static CONVERTED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    let outcome = gguf_file(&real_model(), |portion| bytes.extend_from_slice(portion));
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.file_len, bytes.len() as u64);
    bytes
});

#[test]
fn manifest_says_what_the_file_says() {
    let header = header(&CONVERTED);
    let manifest = &header.manifest;
    // From `golden/README.md`.
    let sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
    assert_eq!(manifest.source.sha256.to_string(), sha256);
    assert_eq!(manifest.kind, Kind::Model);
    assert_eq!(manifest.licence.as_deref(), Some("apache-2.0"));
    let architecture = &manifest.architecture;
    assert_eq!(
        (architecture.hidden, architecture.ffn, architecture.vocab),
        (576, 1536, 49152)
    );
    assert_eq!(
        (
            architecture.heads,
            architecture.kv_heads,
            architecture.head_dim
        ),
        (9, 3, 64)
    );
    assert_eq!(
        (architecture.layers.len(), architecture.context),
        (30, 8192)
    );
    assert_eq!(architecture.rope.base, 100_000.0);
    assert!(architecture.tied_head);
    let special = &manifest.special;
    assert_eq!(
        (special.bos, special.eos, special.pad),
        (Some(1), Some(2), None)
    );
    assert_eq!(
        (special.stop.as_slice(), special.add_bos),
        (&[2][..], false)
    );
    let golden: serde_json::Value =
        serde_json::from_slice(&golden("smollm2-135m/chat_template.json")).unwrap();
    assert_eq!(
        manifest.chat_template.as_deref(),
        golden["template"].as_str()
    );
}

/// Places in the source from its own directory, which another reader printed: name, columns,
/// rows, codec, offset from the start of data.
#[test]
fn weights_of_some_tensors_equal_the_source() {
    /// End of the header (1,785,664 is a multiple of 32).
    const DATA: u64 = 1_785_664;
    let mut source = std::fs::File::open(real_model()).unwrap();
    let header = header(&CONVERTED);
    for (canonical, cols, rows, codec, offset) in [
        ("embed", 576, 49152, Codec::Q8_0, 0),
        ("layers.0.down", 1536, 576, Codec::Q4_1, 30_083_328),
        ("layers.0.k", 576, 192, Codec::Q4_1, 31_744_512),
        ("layers.0.q", 576, 576, Codec::Q4_1, 32_020_992),
        ("layers.1.gate", 576, 1536, Codec::Q4_1, 32_852_736),
        ("layers.9.v", 576, 192, Codec::Q4_1, 96_505_344),
    ] {
        let tensor = header.tensor(canonical).unwrap();
        let row_bytes = cols / 32 * codec.block_bytes().unwrap() as usize;
        let mut bytes = vec![0; row_bytes * rows];
        source.seek(SeekFrom::Start(DATA + offset)).unwrap();
        source.read_exact(&mut bytes).unwrap();
        let mut expected = vec![0.0; cols];
        for (index, blocks) in bytes.chunks(row_bytes).enumerate().step_by(7) {
            format::dequantize(codec, blocks, &mut expected).unwrap();
            let found = row(&CONVERTED, tensor, index as u32);
            let same = expected
                .iter()
                .zip(&found)
                .all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{canonical} row {index}");
        }
    }
    let norm = header.tensor("norm").unwrap();
    assert_eq!(norm.layout, Layout::F32);
    let mut bytes = vec![0; 576 * 4];
    source.seek(SeekFrom::Start(DATA + 96_574_464)).unwrap();
    source.read_exact(&mut bytes).unwrap();
    assert_eq!(
        CONVERTED[norm.range.start as usize..norm.range.end as usize],
        bytes
    );
}

/// All 200 golden texts, both ways.
#[test]
fn tokenizer_gives_the_golden_ids() {
    let header = header(&CONVERTED);
    let place = &header.tensor(format::TOKENIZER_TENSOR).unwrap().range;
    let payload = &CONVERTED[place.start as usize..place.end as usize];
    header.check_tokenizer(payload).unwrap();
    let mut tokenizer = Tokenizer::from_bytes(payload).unwrap();
    assert_eq!(tokenizer.get_vocab_size(true), 49152);

    let golden: serde_json::Value =
        serde_json::from_slice(&golden("smollm2-135m/tokenizer.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 200);
    let ids = |value: &serde_json::Value| -> Vec<u32> {
        let list = value.as_array().unwrap().iter();
        list.map(|id| id.as_u64().unwrap() as u32).collect()
    };
    for plain in [false, true] {
        tokenizer.set_encode_special_tokens(plain);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            let expected = match case.get("ids_plain") {
                Some(plain_ids) if plain => ids(plain_ids),
                _ => ids(&case["ids"]),
            };
            let found = tokenizer.encode(text, false).unwrap();
            assert_eq!(found.get_ids(), expected, "{text:?}, plain: {plain}");
            if !plain {
                let decoded = case.get("decoded").and_then(|d| d.as_str()).unwrap_or(text);
                assert_eq!(tokenizer.decode(&expected, false).unwrap(), decoded);
            }
        }
    }
}

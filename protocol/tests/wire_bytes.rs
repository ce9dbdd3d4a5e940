//! The bytes of messages, frozen. Expected values were made by a second encoder, written by hand
//! from the postcard 1.x wire specification (varints, little-endian floats, lengths before
//! strings and lists, variants by number).
//!
//! A page and a worker of one build always agree; these bytes catch a reordered field or variant
//! between a cached page and a newer worker, which only the service worker's version stops.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

use format::{Digest, ModelId, Root};
use protocol::*;
use std::fmt::Debug;

use serde::{Serialize, de::DeserializeOwned};

/// Encodes to `hex`, decodes from it, and is refused with a byte less or a byte more.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: T, hex: &str) {
    let bytes = encode(&message).unwrap();
    let found: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, hex);
    assert_eq!(decode::<T>(&bytes), Ok(message));
    assert_eq!(decode::<T>(&bytes[..bytes.len() - 1]), Err(WireError));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(decode::<T>(&longer), Err(WireError));
}

fn model() -> ModelId {
    let root = Root(Digest(std::array::from_fn(|i| i as u8)));
    ModelId {
        root,
        length: 98_362_432,
    }
}

fn digest() -> Digest {
    Digest(std::array::from_fn(|i| 255 - i as u8))
}

fn entry() -> CatalogueEntry {
    CatalogueEntry {
        name: "Tiny".into(),
        licence: Some("MIT".into()),
        root: model().root,
        length: 300,
        url: "tiny.slm".into(),
        pieces_url: "tiny.slm.pieces".into(),
        others: Vec::new(),
    }
}

fn report(code: TrResult, stage: Stage) -> ErrorReport {
    ErrorReport {
        code,
        stage,
        what: "what".into(),
        remedy: "do".into(),
    }
}

const FIGURES: Figures = Figures {
    prompt_tokens: 31,
    reused_tokens: 0,
    new_tokens: 128,
    prefill_ms: 1.5,
    decode_ms: -0.25,
};

#[test]
fn commands_without_fields() {
    check(Command::Catalogue { newest: 7 }, "0007");
    check(Command::ListModels, "01");
    check(Command::Unload, "06");
    check(
        Command::Stop {
            request: RequestId(9),
        },
        "0809",
    );
    check(Command::Diagnostics, "0a");
    check(Command::ForgetFailures, "0c");
}

#[test]
fn commands_about_models() {
    let source = ImportSource::File {
        name: "a.gguf".into(),
        length: 98_362_432,
    };
    let import = ImportId(300);
    check(
        Command::Import { import, source },
        "02ac020006612e67677566c0c8f32e",
    );
    let (import, source) = (ImportId(1), ImportSource::Catalogue(entry()));
    check(
        Command::Import { import, source },
        "0201010454696e7901034d4954000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e\
         1fac020874696e792e736c6d0f74696e792e736c6d2e70696563657300",
    );
    check(
        Command::CancelImport {
            import: ImportId(7),
            discard: true,
        },
        "030701",
    );
    check(
        Command::DeleteModel { model: model() },
        "04000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc0c8f32e",
    );
    check(
        Command::Load {
            model: model(),
            context: 2048,
        },
        "05000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc0c8f32e8010",
    );
}

#[test]
fn commands_that_generate() {
    let message = |role, content: &str| Message {
        role,
        content: content.into(),
    };
    let messages = vec![
        message(Role::System, "s"),
        message(Role::User, "héllo"),
        message(Role::Assistant, ""),
    ];
    let sampling = Sampling {
        seed: u64::MAX,
        temperature: 0.7,
        top_k: 40,
        top_p: 0.9,
        min_p: 0.05,
        repetition_penalty: 1.1,
        presence_penalty: 0.0,
        frequency_penalty: -0.5,
        max_new: 512,
    };
    check(
        Command::Chat {
            request: RequestId(9),
            messages,
            sampling,
            kept_as: Some(5),
        },
        "070903000173010668c3a96c6c6f0200ffffffffffffffffff013333333f286666663fcdcc4c3dcdcc8c3f0000\
         0000000000bf80040105",
    );
    let measure = Measure {
        prompt_ids: vec![1, 49151, u32::MAX],
        max_new: 16,
        prefill_tile: 8,
        mode: Mode::Int8V1,
        reuses: true,
    };
    check(
        Command::Measure {
            request: RequestId(3),
            measure: measure.clone(),
        },
        "09030301ffff02ffffffff0f10080101",
    );
    check(
        Command::Time {
            request: RequestId(3),
            measure,
        },
        "0b030301ffff02ffffffff0f10080101",
    );
}

#[test]
fn events_about_models() {
    let lane = LaneReport {
        lane: LaneId::Simd128Wasm32,
        sha256: Some(digest()),
        self_tests: 42,
        cross_origin_isolated: true,
    };
    let downgrades = vec![report(TrResult::SelfTestFailed, Stage::Start)];
    check(
        Event::Ready {
            lane,
            downgrades,
            storage: StorageKind::Memory,
        },
        "000101fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e02a0101110004776861\
         7402646f01",
    );
    let summary = ModelSummary {
        id: model(),
        name: "Tiny".into(),
        licence: None,
        source: "tiny.gguf".into(),
        context: 2048,
        chat: ChatAbility::NoTemplate,
        partial: Some(1 << 20),
        damaged: false,
        borrowed: false,
    };
    check(
        Event::ImportOpened {
            import: ImportId(1),
            model: summary.clone(),
        },
        "1a01000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc0c8f32e0454696e7900\
         0974696e792e67677566801002018080400000",
    );
    check(
        Event::Models(vec![summary]),
        "0201000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc0c8f32e0454696e7900\
         0974696e792e67677566801002018080400000",
    );
    let progress = ImportProgress {
        import: ImportId(1),
        phase: ImportPhase::Receiving,
        bytes: 3 << 20,
        bytes_total: 98_362_432,
        pieces: 3,
        pieces_total: 94,
    };
    check(Event::Import(progress), "0301028080c001c0c8f32e035e");
    check(
        Event::Failed {
            subject: Subject::Load(model()),
            error: report(TrResult::IllegalState, Stage::Prompt),
        },
        "0e02000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc0c8f32e180b04776861\
         7402646f",
    );
}

#[test]
fn events_of_a_request() {
    let request = RequestId(9);
    check(
        Event::Text {
            request,
            text: "né".into(),
        },
        "0a09036ec3a9",
    );
    check(
        Event::Done {
            request,
            finish: Finish::Length,
            figures: FIGURES,
        },
        "0b09011f008001000000000000f83f000000000000d0bf",
    );
    check(
        Event::Measured {
            request: RequestId(3),
            figures: FIGURES,
            logits_sha256: digest(),
            ids: vec![5, 6],
        },
        "0c031f008001000000000000f83f000000000000d0bffffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebea\
         e9e8e7e6e5e4e3e2e1e0020506",
    );
}

#[test]
fn what_is_no_message_is_refused() {
    for bytes in [
        &[][..],
        &[13],                                    // no such command
        &[2, 1, 7],                               // no such source
        &[3, 7, 2],                               // neither false nor true
        &[8, 0xff, 0xff, 0xff, 0xff, 0x1f],       // more than 32 bits
        &[2, 1, 0, 1, 0xff, 0],                   // a name that is not UTF-8
        &[9, 3, 0xff, 0xff, 0xff, 0xff, 0x0f, 1], // a list longer than the message
    ] {
        assert_eq!(decode::<Command>(bytes), Err(WireError), "{bytes:?}");
    }
}

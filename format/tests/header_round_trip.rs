//! A header that is written is the header that is read, and nothing else is read as one.

#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{PAYLOAD, architecture, file, manifest, model, region};
use format::*;
use proptest::prelude::*;
use safetensors::SafeTensors;

#[test]
fn layout_then_parse_gives_the_same_header() {
    for kind in [Kind::Model, Kind::Bare] {
        let header = Header::layout(manifest(architecture(), kind, Layout::Q8_0R4)).unwrap();
        let bytes = header.to_bytes();
        assert_eq!(bytes.len() as u64, header.data_start);
        let first = *bytes.first_chunk().unwrap();
        assert_eq!(header_len(first, header.file_len), Ok(header.data_start));
        assert_eq!(Header::parse(&bytes, header.file_len), Ok(header));
    }
}

/// The whole text of a small header, so that the spelling cannot change unnoticed.
#[test]
fn the_spelling_is_fixed() {
    let mut small = architecture();
    small.vocab = 5;
    small.tied_head = true;
    (small.qkv_bias, small.o_bias, small.ffn_bias) = (false, false, false);
    let mut bare = manifest(small, Kind::Bare, Layout::Q4_0R4);
    bare.name = "tiny".into();
    bare.chat_template = None;
    bare.special = SpecialTokens::default();
    bare.generation = Generation::default();
    let text = include_str!("fixture/small_header.json").trim_end();
    let header = Header::layout(bare).unwrap();
    let spelled = header.to_bytes();
    assert_eq!(
        std::str::from_utf8(&spelled[8..])
            .unwrap()
            .trim_end_matches(' '),
        text
    );
    assert_eq!(spelled, region(text));
    // 5 rows are two groups: 2 x 72 bytes, then 48 to the next multiple of 64.
    assert_eq!(
        header.fillers().next(),
        Some(header.data_start + 144..header.data_start + 192)
    );
}

#[test]
fn fillers_are_what_no_tensor_owns() {
    let header = Header::layout(model()).unwrap();
    let mut owned = vec![0u8; header.file_len as usize];
    owned[..header.data_start as usize].fill(1);
    for range in header.tensors.iter().map(|tensor| tensor.range.clone()) {
        assert!(range.start.is_multiple_of(64));
        owned[range.start as usize..range.end as usize]
            .iter_mut()
            .for_each(|byte| *byte += 1);
    }
    for range in header.fillers() {
        assert!(!range.is_empty() && range.end - range.start < 64);
        owned[range.start as usize..range.end as usize]
            .iter_mut()
            .for_each(|byte| *byte += 1);
    }
    assert!(owned.iter().all(|owners| *owners == 1));
}

/// The safetensors crate (0.8) opens the file and finds every tensor where the header has it.
#[test]
fn the_safetensors_crate_reads_it() {
    let header = Header::layout(model()).unwrap();
    let bytes = file(&header);
    let peer = SafeTensors::deserialize(&bytes).unwrap();
    for tensor in &header.tensors {
        let view = peer.tensor(&tensor.name).unwrap();
        let range = tensor.range.start as usize..tensor.range.end as usize;
        assert_eq!(view.data(), &bytes[range], "{}", tensor.name);
    }
    assert_eq!(peer.len(), header.tensors.len() + header.fillers().count());
    assert_eq!(peer.tensor("tokenizer").unwrap().data(), PAYLOAD);
    assert_eq!(peer.tensor("norm").unwrap().shape(), [1, 32]);
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let text = &metadata.metadata().as_ref().unwrap()["slm.manifest"];
    assert_eq!(
        serde_json::from_str::<Manifest>(text).unwrap(),
        header.manifest
    );
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let header = Header::layout(model()).unwrap();
    let bytes = header.to_bytes();
    for file_len in 0..header.file_len {
        let known = &bytes[..bytes.len().min(file_len as usize)];
        assert!(Header::parse(known, file_len).is_err(), "{file_len}");
    }
}

fn scaling() -> impl Strategy<Value = RopeScaling> {
    prop_oneof![
        Just(RopeScaling::None),
        (1.0..100.0f64).prop_map(|factor| RopeScaling::Linear { factor }),
        (1.0..100.0f64, 0.1..2.0f64, 2.1..9.0f64, 1u32..10000).prop_map(
            |(factor, low_freq_factor, high_freq_factor, original_context)| RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_context,
            }
        ),
        (
            1.0..100.0f64,
            0.1..2.0f64,
            0.1..2.0f64,
            1u32..10000,
            any::<bool>()
        )
            .prop_map(
                |(factor, beta_slow, attention_factor, original_context, truncate)| {
                    RopeScaling::Yarn {
                        factor,
                        beta_fast: beta_slow * 32.0,
                        beta_slow,
                        original_context,
                        attention_factor,
                        truncate,
                    }
                }
            ),
    ]
}

prop_compose! {
    fn architectures()(
        (vocab, hidden, ffn) in (3u32..200, 1u32..200, 1u32..200),
        (kv_heads, per, half) in (1u32..4, 1u32..4, 1u32..20),
        (eps, base) in (SETTING_MIN..1.0, 1.5..1e9f64),
        scaling in scaling(),
        pairing in prop_oneof![Just(RopePairing::Half), Just(RopePairing::Interleaved)],
        (qkv_bias, o_bias, ffn_bias, tied_head) in any::<(bool, bool, bool, bool)>(),
        context in 1u32..100_000,
        layers in 1usize..5,
    ) -> Architecture {
        Architecture {
            vocab, hidden, ffn, kv_heads, qkv_bias, o_bias, ffn_bias, tied_head, context,
            heads: kv_heads * per,
            head_dim: half * 2,
            norm: Norm { kind: NormKind::Rms, eps },
            rope: Rope { base, pairing, dim: half * 2, scaling },
            layers: vec![architecture().layers[0]; layers],
            ..architecture()
        }
    }
}

proptest! {
    #[test]
    fn any_valid_header_round_trips(
        architecture in architectures(),
        kind in prop_oneof![Just(Kind::Model), Just(Kind::Bare)],
        layout in prop_oneof![Just(Layout::F32), Just(Layout::Q8_0R4), Just(Layout::Q4_1R4)],
        name in "[^\\p{Cc}]{1,60}",
        template in proptest::option::of(".*"),
        temperature in proptest::option::of(0.0f32..5.0),
    ) {
        let mut manifest = manifest(architecture, kind, layout);
        manifest.name = name;
        manifest.chat_template = template;
        manifest.generation.temperature = temperature;
        manifest.special = SpecialTokens { stop: vec![0, 2], ..SpecialTokens::default() };
        if let Some(tokenizer) = &mut manifest.tokenizer {
            tokenizer.tokens = manifest.architecture.vocab;
        }
        let header = Header::layout(manifest).unwrap();
        let bytes = header.to_bytes();
        prop_assert_eq!(Header::parse(&bytes, header.file_len).unwrap(), header);
    }

    /// Any byte changed to anything: refused, or read as a header that is itself writable.
    #[test]
    fn a_changed_byte_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let header = Header::layout(model()).unwrap();
        let mut bytes = header.to_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(parsed) = Header::parse(&bytes, header.file_len) {
            let again = Header::parse(&parsed.to_bytes(), header.file_len);
            prop_assert_eq!(again, Ok(parsed));
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[\\[\\]{}:,\"a-c0-2._ -]{0,200}") {
        let region = region(&format!("{{{text}}}"));
        prop_assert!(Header::parse(&region, 1 << 20).is_err());
    }

    /// The real numbers of a header are read back with the bits they were written with.
    #[test]
    fn numbers_round_trip_exactly(
        eps in SETTING_MIN.to_bits()..=0x3f80_0000,
        base in 1.0f64.to_bits() + 1..0x7ff0 << 48,
    ) {
        let mut manifest = manifest(architecture(), Kind::Bare, Layout::F16);
        manifest.architecture.norm.eps = f32::from_bits(eps);
        manifest.architecture.rope.base = f64::from_bits(base);
        let header = Header::layout(manifest).unwrap();
        let back = Header::parse(&header.to_bytes(), header.file_len).unwrap();
        prop_assert_eq!(back.manifest.architecture.norm.eps.to_bits(), eps);
        prop_assert_eq!(back.manifest.architecture.rope.base.to_bits(), base);
    }
}

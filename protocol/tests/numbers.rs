//! Numbers that cross the C boundary, frozen: codes and stages (contract, section 9, and the
//! table in `result.rs`), and the bytes of the structs.

use protocol::abi::*;
use protocol::{Residency, Stage, TrResult};

#[test]
fn result_codes() {
    let expected = [
        (0, TrResult::Ok),
        (1, TrResult::InvalidArgument),
        (2, TrResult::UnsupportedAbi),
        (3, TrResult::UnsupportedFeature),
        (4, TrResult::InvalidHandle),
        (5, TrResult::StaleHandle),
        (6, TrResult::Bounds),
        (7, TrResult::Alignment),
        (8, TrResult::IntegerOverflow),
        (9, TrResult::OutOfMemory),
        (10, TrResult::InvalidModel),
        (11, TrResult::HashMismatch),
        (12, TrResult::UnsupportedQuantization),
        (13, TrResult::UnsupportedShape),
        (14, TrResult::ContextExceeded),
        (15, TrResult::Cancelled),
        (16, TrResult::WorkerFailure),
        (17, TrResult::SelfTestFailed),
        (18, TrResult::NumericalFailure),
        (19, TrResult::TrapRecoveredByHost),
        (20, TrResult::InternalInvariant),
        (21, TrResult::HostRead),
        (22, TrResult::Storage),
        (23, TrResult::Source),
        (24, TrResult::IllegalState),
        (25, TrResult::ForeignHandle),
    ];
    for (code, result) in expected {
        assert_eq!(result as i32, code);
        assert_eq!(TrResult::from_code(code), Some(result));
    }
    assert_eq!(TrResult::ALL.len(), expected.len());
    for code in [-1, 26, i32::MIN, i32::MAX] {
        assert_eq!(TrResult::from_code(code), None);
    }
}

#[test]
fn stages() {
    let expected = [
        Stage::Start,
        Stage::Parse,
        Stage::Plan,
        Stage::Allocate,
        Stage::Load,
        Stage::Prefill,
        Stage::Decode,
        Stage::Sample,
        Stage::Import,
        Stage::Convert,
        Stage::Store,
        Stage::Prompt,
    ];
    for (code, stage) in expected.into_iter().enumerate() {
        assert_eq!(stage as usize, code);
        assert_eq!(Stage::from_code(code as u32), Some(stage));
    }
    assert_eq!(Stage::ALL.len(), expected.len());
    assert_eq!(Stage::from_code(expected.len() as u32), None);
    assert_eq!(Stage::from_code(u32::MAX), None);
}

/// Any bytes are a struct, and the struct is those bytes: `$size` is the frozen size.
macro_rules! round_trip {
    ($($name:ident $size:literal)*) => {$(
        assert_eq!($name::BYTES, $size, stringify!($name));
        assert_eq!(size_of::<$name>(), $size, stringify!($name));
        let bytes: [u8; $size] = std::array::from_fn(|i| i as u8 + 1);
        assert_eq!($name::from_bytes(&bytes).to_bytes(), bytes, stringify!($name));
        assert_eq!($name::default().to_bytes(), [0; $size], stringify!($name));
    )*};
}

#[test]
fn structs_are_their_bytes() {
    round_trip! {
        Options 32
        Plan 144
        Opened 24
        Request 72
        Step 32
        Span 8
        SelfTest 48
        Counters 32
        ErrorPlace 40
    }
}

/// Offsets of the fields, by hand: a host in another language reads the same bytes.
#[test]
fn fields_lie_where_they_are_declared() {
    let bytes: [u8; 72] = std::array::from_fn(|i| i as u8);
    let word = |at: u8| u32::from_le_bytes([at, at + 1, at + 2, at + 3]);
    let request = Request::from_bytes(&bytes);
    assert_eq!(request.seed, u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(
        request.stream,
        u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15])
    );
    let words = [request.ids, request.ids_len, request.max_new, request.flags];
    assert_eq!(words, [word(16), word(20), word(24), word(28)]);
    let floats = [request.temperature, request.top_p, request.min_p];
    assert_eq!(floats.map(f32::to_bits), [word(32), word(36), word(40)]);
    assert_eq!(request.top_k, word(44));
    let floats = [
        request.repetition_penalty,
        request.presence_penalty,
        request.frequency_penalty,
    ];
    assert_eq!(floats.map(f32::to_bits), [word(48), word(52), word(56)]);
    assert_eq!(request.vocab, word(60));

    let place = ErrorPlace {
        code: -2,
        stage: 3,
        item: u32::MAX,
        detail: DETAIL_CODE,
        expected: 5,
        found: 6,
        at: 1 << 32,
    };
    let mut expected = [0; 40];
    expected[..4].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff]);
    (
        expected[4],
        expected[12],
        expected[16],
        expected[24],
        expected[36],
    ) = (3, 4, 5, 6, 1);
    expected[8..12].fill(0xff);
    assert_eq!(place.to_bytes(), expected);
}

/// Numbers that both sides compile in, so a changed one is a new [`ABI_VERSION`].
#[test]
fn constants() {
    assert_eq!([ABI_VERSION, RUNTIME_SEMANTICS], [3, 1]);
    assert_eq!(
        [MODE_STRICT_F32_V1, MODE_INT8_V1, KV_F32, KV_F16, KV_INT8],
        [0, 1, 0, 1, 2]
    );
    let flags = [FLAG_IGNORE_EOS, FLAG_DIGEST, FLAG_MASK_MALFORMED, FLAG_COLD];
    assert_eq!(flags, [1, 2, 4, 8]);
    assert_eq!([STEP_MORE, STEP_TOKEN, STEP_DONE], [0, 1, 2]);
    let finishes = [
        FINISH_STOP,
        FINISH_LENGTH,
        FINISH_CANCELLED,
        FINISH_NUMERICAL_COLLAPSE,
    ];
    assert_eq!(finishes, [0, 1, 2, 3]);
    let details = [
        DETAIL_NONE,
        DETAIL_BYTES,
        DETAIL_POSITIONS,
        DETAIL_TOKEN_ID,
        DETAIL_CODE,
    ];
    assert_eq!(details, [0, 1, 2, 3, 4]);
    assert_eq!([DETAIL_REGION, DETAIL_REFUSED], [5, 6]);
    let residencies = [RESIDENCY_FULL, RESIDENCY_HYBRID, RESIDENCY_PAGED];
    assert_eq!(residencies, [0, 1, 2]);
    assert_eq!(Residency::ALL.map(Residency::code), residencies);
    assert_eq!(Residency::from_code(3), None);
    let regions = [
        REGION_WEIGHTS,
        REGION_METADATA,
        REGION_KV,
        REGION_SCRATCH,
        REGION_LOGITS,
        REGION_SAMPLER,
        REGION_TOKENIZER,
        REGION_CONTROL,
        REGION_STACKS,
        REGION_TRANSFER,
    ];
    assert_eq!(regions, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

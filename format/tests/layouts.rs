//! Sizes, finite checks and refusals of packing.

#![allow(clippy::unwrap_used)]

use format::*;
use proptest::prelude::*;

const ALL: [Layout; 7] = [
    Layout::F32,
    Layout::F16,
    Layout::Bf16,
    Layout::Q8_0R4,
    Layout::Q4_0R4,
    Layout::Q4_1R4,
    Layout::Bytes,
];

/// Bytes of 5 rows of 64 columns, by hand: two groups of four rows, two blocks each.
#[test]
fn tensor_bytes() {
    let expected = [1280, 640, 640, 4 * 136, 4 * 72, 4 * 80, 320];
    for (layout, expected) in ALL.into_iter().zip(expected) {
        assert_eq!(layout.tensor_bytes(5, 64), Some(expected), "{layout:?}");
        let odd = layout.tensor_bytes(5, 33).is_some();
        assert_eq!(odd, layout.group_block_bytes().is_none(), "{layout:?}");
        assert_eq!(layout.tensor_bytes(u64::MAX, 1 << 32), None, "{layout:?}");
        assert_eq!(layout.tensor_bytes(1 << 63, 64), None, "{layout:?}");
    }
}

#[test]
fn names_are_the_manifest_ids() {
    for layout in ALL {
        let quoted = format!("\"{}\"", layout.name());
        assert_eq!(serde_json::to_string(&layout).unwrap(), quoted);
        assert_eq!(serde_json::from_str::<Layout>(&quoted).unwrap(), layout);
    }
}

/// Bit patterns around the edge of finite, at every place of a run longer than two scan chunks.
#[test]
fn non_finite_floats_are_found_wherever_they_are() {
    let cases: [(Layout, usize, &[u32], &[u32]); 3] = [
        (
            Layout::F32,
            4,
            &[0x7f80_0000, 0xff80_0000, 0x7f80_0001, 0xffff_ffff],
            &[0x7f7f_ffff, 0xff7f_ffff, 0, 0x8000_0001],
        ),
        (
            Layout::F16,
            2,
            &[0x7c00, 0xfc00, 0x7c01, 0xffff],
            &[0x7bff, 0xfbff, 0, 0x8001],
        ),
        (
            Layout::Bf16,
            2,
            &[0x7f80, 0xff80, 0x7f81, 0xffff],
            &[0x7f7f, 0xff7f, 0, 0x8001],
        ),
    ];
    for (layout, size, bad, good) in cases {
        for count in [1, 1023, 1024, 1025, 2500] {
            for place in [0, count / 2, count - 1] {
                let with = |bits: u32| {
                    let mut run = vec![0; count * size];
                    run[place * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
                    check_finite(layout, &run, 64)
                };
                let error = FormatError::NonFinite {
                    at: 64 + (place * size) as u64,
                };
                for bits in bad {
                    assert_eq!(with(*bits), Err(error.clone()), "{layout:?} {bits:x}");
                }
                for bits in good {
                    assert_eq!(with(*bits), Ok(()), "{layout:?} {bits:x}");
                }
            }
        }
    }
}

#[test]
fn every_code_place_and_every_half_place_is_checked() {
    for (layout, codes) in [
        (Layout::Q8_0R4, 128),
        (Layout::Q4_0R4, 64),
        (Layout::Q4_1R4, 64),
    ] {
        let group = layout.group_block_bytes().unwrap() as usize;
        for place in 0..3 * group {
            let mut run = vec![0; 3 * group];
            run[place] = 0x80;
            let code = layout == Layout::Q8_0R4 && place % group < codes;
            let expected = match code {
                true => Err(FormatError::CodeRefused {
                    at: 7 + place as u64,
                }),
                false => Ok(()),
            };
            assert_eq!(
                check_finite(layout, &run, 7),
                expected,
                "{layout:?} {place}"
            );
            // The upper byte of each half, as infinity.
            run[place] = 0x7c;
            let within = place % group;
            let expected = match within >= codes && within % 2 == 1 {
                true => Err(FormatError::NonFinite {
                    at: 7 + place as u64 - 1,
                }),
                false => Ok(()),
            };
            assert_eq!(
                check_finite(layout, &run, 7),
                expected,
                "{layout:?} {place}"
            );
        }
    }
}

#[test]
fn runs_that_are_not_whole() {
    for (layout, len) in [(Layout::F32, 6), (Layout::F16, 3), (Layout::Q4_0R4, 71)] {
        let error = FormatError::PartialRun { layout, len };
        assert_eq!(check_finite(layout, &vec![0; len as usize], 0), Err(error));
    }
    assert_eq!(check_finite(Layout::Bytes, &[0xff; 5], 0), Ok(()));
    assert_eq!(check_filler(&[0; 63], 9), Ok(()));
    assert_eq!(
        check_filler(&[0, 0, 1], 9),
        Err(FormatError::FillerNotZero { at: 11 })
    );
}

#[test]
fn buffers_of_the_wrong_length_are_refused() {
    let (layout, codec) = (Layout::Q4_0R4, Codec::Q4_0);
    let block = [0; 18];
    let length = |expected, found| Err(FormatError::BufferLength { expected, found });
    let pack = |rows: [Option<&[u8]>; 4], len: usize| pack_r4(layout, rows, &mut vec![0; len]);
    assert_eq!(
        pack([None; 4], 73),
        Err(FormatError::PartialRun { layout, len: 73 })
    );
    assert_eq!(
        pack([None, None, None, Some(&block[1..])], 72),
        length(18, 17)
    );
    assert_eq!(pack([Some(&block), None, None, None], 144), length(36, 18));
    let unsupported = |layout| Err(FormatError::LayoutUnsupported { layout });
    assert_eq!(
        pack_r4(Layout::F16, [None; 4], &mut []),
        unsupported(Layout::F16)
    );

    let mut out = [0.0; 32];
    assert_eq!(unpack_row(layout, &[0; 71], 0, &mut out), length(72, 71));
    assert_eq!(unpack_row(layout, &[0; 72], 4, &mut out), length(144, 72));
    assert_eq!(
        unpack_row(Layout::F32, &[0; 128], 1, &mut out),
        length(256, 128)
    );
    let partial = Err(FormatError::PartialRun { layout, len: 31 });
    assert_eq!(unpack_row(layout, &[0; 72], 0, &mut out[1..]), partial);
    assert_eq!(
        unpack_row(Layout::Bytes, &[0; 32], 0, &mut out),
        unsupported(Layout::Bytes)
    );

    assert_eq!(dequantize(codec, &block[1..], &mut out), length(18, 17));
    assert_eq!(
        dequantize(Codec::F16, &block, &mut out),
        unsupported(Layout::F16)
    );
    assert_eq!(quantize(codec, &out, &mut [0; 19]), length(18, 19));
    assert_eq!(quantize(codec, &out[1..], &mut [0; 18]), partial);
    for bad in [f32::NAN, f32::NEG_INFINITY] {
        out[3] = bad;
        assert_eq!(
            quantize(codec, &out, &mut [0; 18]),
            Err(FormatError::NonFinite { at: 12 })
        );
    }
}

proptest! {
    /// Packing moves rows and changes none: what is unpacked is what the source blocks mean.
    #[test]
    fn packing_changes_no_weight(
        case in 0usize..3,
        rows in 1usize..=4,
        blocks in 1usize..4,
        source in proptest::collection::vec(any::<u8>(), 4 * 3 * 34),
    ) {
        let layout = [Layout::Q8_0R4, Layout::Q4_0R4, Layout::Q4_1R4][case];
        let row_bytes = blocks * layout.codec().block_bytes().unwrap() as usize;
        let mut four = [None; 4];
        for (slot, row) in four.iter_mut().zip(source.chunks_exact(row_bytes)).take(rows) {
            *slot = Some(row);
        }
        let cols = blocks * 32;
        let mut packed = vec![0; layout.tensor_bytes(4, cols as u64).unwrap() as usize];
        pack_r4(layout, four, &mut packed).unwrap();
        for (index, row) in four.iter().enumerate() {
            let zeros = vec![0; row_bytes];
            let (mut want, mut have) = (vec![0.0; cols], vec![0.0; cols]);
            dequantize(layout.codec(), row.unwrap_or(&zeros), &mut want).unwrap();
            unpack_row(layout, &packed, index as u32, &mut have).unwrap();
            for (want, have) in want.iter().zip(&have) {
                prop_assert!(want.to_bits() == have.to_bits() || want.is_nan() && have.is_nan());
            }
        }
    }

    /// A step is at most the block's range over the number of steps, and half a step is the
    /// error, plus what rounding the scale (and the minimum) to f16 adds at the far end.
    #[test]
    fn quantization_errs_by_at_most_half_a_step(
        row in proptest::collection::vec(-100.0f32..100.0, 32),
        case in 0usize..3,
    ) {
        let (codec, steps, halves) =
            [(Codec::Q8_0, 254.0, 1.0), (Codec::Q4_0, 8.0, 1.0), (Codec::Q4_1, 15.0, 2.0)][case];
        let mut blocks = vec![0; codec.block_bytes().unwrap() as usize];
        quantize(codec, &row, &mut blocks).unwrap();
        let mut back = vec![0.0; 32];
        dequantize(codec, &blocks, &mut back).unwrap();
        let largest = row.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
        // q4_0 has one code less on the side away from its extreme: a whole step there.
        let allowed = largest * 2.0 / steps / 2.0 + halves * largest * 0.001 + 1e-6;
        for (x, y) in row.iter().zip(&back) {
            prop_assert!((x - y).abs() <= allowed, "{x} became {y}, more than {allowed} away");
        }
    }
}

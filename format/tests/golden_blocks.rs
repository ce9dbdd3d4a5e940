//! Block formats against `golden/ops`: dequantization is bit-equal to ggml's C code (as its README
//! states), quantization to the `gguf` 0.19.0 package, 16-bit floats to exact conversion.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

use format::float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use format::{Codec, FormatError, Layout, check_finite, dequantize, pack_r4, quantize, unpack_row};
use safetensors::SafeTensors;

type Widen = fn(u16) -> f32;
type Narrow = fn(f32) -> u16;

const CASES: [(&str, Codec, Layout); 3] = [
    ("Q8_0", Codec::Q8_0, Layout::Q8_0R4),
    ("Q4_0", Codec::Q4_0, Layout::Q4_0R4),
    ("Q4_1", Codec::Q4_1, Layout::Q4_1R4),
];

fn golden(file: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../shared/golden/ops/{file}.safetensors",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("golden file {path}: {error}"))
}

fn bytes<'a>(file: &SafeTensors<'a>, name: &str) -> &'a [u8] {
    file.tensor(name).unwrap().data()
}

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let (values, []) = bytes(file, name).as_chunks::<4>() else {
        panic!("{name} is not f32");
    };
    values
        .iter()
        .map(|bits| f32::from_le_bytes(*bits))
        .collect()
}

fn halves(file: &SafeTensors<'_>, name: &str) -> Vec<u16> {
    let (values, []) = bytes(file, name).as_chunks::<2>() else {
        panic!("{name} is not 16 bits wide");
    };
    values
        .iter()
        .map(|bits| u16::from_le_bytes(*bits))
        .collect()
}

/// Equal bits; any NaN equals any NaN.
#[track_caller]
fn assert_bits(place: &str, expected: &[f32], found: &[f32]) {
    assert_eq!(expected.len(), found.len(), "{place}");
    for (index, (want, have)) in expected.iter().zip(found).enumerate() {
        let same = want.to_bits() == have.to_bits() || (want.is_nan() && have.is_nan());
        assert!(
            same,
            "{place} element {index}: expected {want:e}, found {have:e}"
        );
    }
}

/// Packs `rows` of ggml blocks into a whole `r4` tensor.
fn pack_tensor(layout: Layout, rows: &[&[u8]], cols: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for group in rows.chunks(4) {
        let mut four = [None; 4];
        for (slot, row) in four.iter_mut().zip(group) {
            *slot = Some(*row);
        }
        let mut packed = vec![0xaa; layout.tensor_bytes(4, cols as u64).unwrap() as usize];
        pack_r4(layout, four, &mut packed).unwrap();
        out.extend(packed);
    }
    assert_eq!(
        out.len() as u64,
        layout.tensor_bytes(rows.len() as u64, cols as u64).unwrap()
    );
    out
}

#[test]
fn packed_blocks_unpack_to_the_reference_values() {
    let data = golden("dequant");
    let file = SafeTensors::deserialize(&data).unwrap();
    for (name, codec, layout) in CASES {
        for kind in ["", ".nonfinite"] {
            let raw = bytes(&file, &format!("{name}{kind}.raw"));
            let expected = floats(&file, &format!("{name}{kind}.f32"));
            let block = codec.block_bytes().unwrap() as usize;
            let mut values = vec![0.0; expected.len()];
            dequantize(codec, raw, &mut values).unwrap();
            assert_bits(&format!("{name}{kind}"), &expected, &values);

            // The same blocks as rows of two blocks each, and as rows of one, so that both whole
            // groups and groups with missing rows occur.
            for blocks_a_row in [1, 2] {
                let (row_bytes, cols) = (block * blocks_a_row, 32 * blocks_a_row);
                let rows: Vec<&[u8]> = raw.chunks_exact(row_bytes).collect();
                let packed = pack_tensor(layout, &rows, cols);
                for (row, expected) in expected.chunks_exact(cols).enumerate() {
                    let mut values = vec![0.0; cols];
                    unpack_row(layout, &packed, row as u32, &mut values).unwrap();
                    assert_bits(&format!("{name}{kind} row {row}"), expected, &values);
                }
            }
        }
    }
}

#[test]
fn missing_rows_are_zero_bytes() {
    for (name, codec, layout) in CASES {
        let row = vec![0xff; codec.block_bytes().unwrap() as usize];
        let mut packed = vec![0xaa; layout.group_block_bytes().unwrap() as usize];
        pack_r4(layout, [None, Some(&row), None, None], &mut packed).unwrap();
        assert_eq!(
            packed.iter().filter(|byte| **byte == 0xff).count(),
            row.len(),
            "{name}"
        );
        assert_eq!(
            packed.iter().filter(|byte| **byte == 0).count(),
            packed.len() - row.len(),
            "{name}"
        );
    }
}

#[test]
fn quantized_rows_have_the_reference_bits() {
    let data = golden("quantize");
    let file = SafeTensors::deserialize(&data).unwrap();
    let input = floats(&file, "input.f32");
    for (name, codec, layout) in CASES {
        let expected = bytes(&file, &format!("{name}.raw"));
        let row_bytes = 256 / 32 * codec.block_bytes().unwrap() as usize;
        for (index, row) in input.chunks_exact(256).enumerate() {
            let mut found = vec![0; row_bytes];
            quantize(codec, row, &mut found).unwrap();
            assert_eq!(
                found,
                expected[index * row_bytes..][..row_bytes],
                "{name} row {index}"
            );
            let mut packed = vec![0; layout.tensor_bytes(1, 256).unwrap() as usize];
            pack_r4(layout, [Some(&found), None, None, None], &mut packed).unwrap();
            let mut values = vec![0.0; 256];
            unpack_row(layout, &packed, 0, &mut values).unwrap();
            let back = &floats(&file, &format!("{name}.f32"))[index * 256..][..256];
            assert_bits(&format!("{name} row {index}"), back, &values);
        }
    }
}

#[test]
fn every_16_bit_float_widens_exactly() {
    let data = golden("dequant");
    let file = SafeTensors::deserialize(&data).unwrap();
    let cases: [(&str, Widen, Layout); 2] = [
        ("F16", f16_to_f32, Layout::F16),
        ("BF16", bf16_to_f32, Layout::Bf16),
    ];
    for (name, widen, layout) in cases {
        let raw = bytes(&file, &format!("{name}.raw"));
        let expected = floats(&file, &format!("{name}.f32"));
        assert_eq!(expected.len(), 65536);
        let bits = halves(&file, &format!("{name}.raw"));
        let values: Vec<f32> = bits.iter().map(|bits| widen(*bits)).collect();
        assert_bits(name, &expected, &values);
        let mut values = vec![0.0; 32768];
        for row in [0, 1] {
            unpack_row(layout, raw, row, &mut values).unwrap();
            assert_bits(name, &expected[row as usize * 32768..][..32768], &values);
        }
    }
}

#[test]
fn narrowing_rounds_to_nearest_even() {
    let data = golden("quantize");
    let file = SafeTensors::deserialize(&data).unwrap();
    let input = floats(&file, "to16.input.f32");
    let cases: [(&str, Narrow, Widen); 2] = [
        ("F16", f32_to_f16, f16_to_f32),
        ("BF16", f32_to_bf16, bf16_to_f32),
    ];
    for (name, narrow, widen) in cases {
        let expected = halves(&file, &format!("to16.{name}.bits"));
        for (value, want) in input.iter().zip(expected) {
            let have = narrow(*value);
            let both_nan = value.is_nan() && widen(have).is_nan() && widen(want).is_nan();
            assert!(
                have == want || both_nan,
                "{name} of {value:e}: {want:04x}, not {have:04x}"
            );
        }
        // Every 16-bit number comes back from its own f32.
        for bits in 0..=u16::MAX {
            let value = widen(bits);
            match value.is_nan() {
                true => assert!(widen(narrow(value)).is_nan(), "{name} {bits:04x}"),
                false => assert_eq!(narrow(value), bits, "{name}"),
            }
        }
    }
}

/// The golden non-finite blocks have a scale (or a minimum) of infinity or NaN; each one is
/// refused at the byte of that f16, and each finite one passes.
#[test]
fn blocks_with_non_finite_halves_are_refused() {
    let data = golden("dequant");
    let file = SafeTensors::deserialize(&data).unwrap();
    for (name, codec, layout) in CASES {
        let block = codec.block_bytes().unwrap() as usize;
        let mut packed = vec![0; layout.group_block_bytes().unwrap() as usize];
        for raw in bytes(&file, &format!("{name}.raw")).chunks_exact(block) {
            pack_r4(layout, [None, None, Some(raw), None], &mut packed).unwrap();
            let code = codec == Codec::Q8_0 && raw[2..].contains(&0x80);
            match check_finite(layout, &packed, 0) {
                Ok(()) => assert!(!code, "{name}: -128 passed"),
                Err(error) => assert!(code, "{name}: {error}"),
            }
        }
        for raw in bytes(&file, &format!("{name}.nonfinite.raw")).chunks_exact(block) {
            pack_r4(layout, [None, None, Some(raw), None], &mut packed).unwrap();
            let bad = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]) & 0x7c00 == 0x7c00;
            let codes = if codec == Codec::Q8_0 { 128 } else { 64 };
            let at = if bad(0) { codes + 4 } else { codes + 12 };
            assert!(bad(0) || codec == Codec::Q4_1 && bad(2), "{name}");
            let expected = FormatError::NonFinite {
                at: 1000 + at as u64,
            };
            assert_eq!(check_finite(layout, &packed, 1000), Err(expected), "{name}");
        }
    }
}

//! Kernels against `golden/ops`, whose README gives definitions and tolerances.

use std::vec;
use std::vec::Vec;
use std::{format, fs};

use format::{Layout, RopePairing};
use serde_json::Value;

use super::suite::operands::product;
use super::vectors::exponentials;
use super::*;

fn read(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden/ops");
    fs::read(format!("{folder}/{name}")).expect("golden file")
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&read(name)).expect("JSON")
}

/// Numbers, or the names of the non-finite ones.
fn float(value: &Value) -> f32 {
    match value.as_str() {
        Some(name) => name
            .replace("Infinity", "inf")
            .parse()
            .expect("a number's name"),
        None => value.as_f64().expect("number") as f32,
    }
}

/// Flattens arrays of any depth.
fn floats(value: &Value) -> Vec<f32> {
    match value.as_array() {
        Some(array) => array.iter().flat_map(floats).collect(),
        None => vec![float(value)],
    }
}

fn size(value: &Value) -> usize {
    value.as_u64().expect("size") as usize
}

fn every() -> [Kernels; 2] {
    [Kernels::SCALAR, Kernels::best()]
}

struct Safetensors {
    header: Value,
    data: Vec<u8>,
}

impl Safetensors {
    fn read(name: &str) -> Safetensors {
        let mut bytes = read(name);
        let len = u64::from_le_bytes(bytes[..8].try_into().expect("length")) as usize;
        let data = bytes.split_off(8 + len);
        Safetensors {
            header: serde_json::from_slice(&bytes[8..]).expect("header"),
            data,
        }
    }

    fn bytes(&self, name: &str) -> &[u8] {
        let offsets = &self.header[name]["data_offsets"];
        &self.data[size(&offsets[0])..size(&offsets[1])]
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        let (fours, _) = self.bytes(name).as_chunks::<4>();
        fours.iter().map(|x| f32::from_le_bytes(*x)).collect()
    }
}

const BLOCK_TYPES: [(&str, Layout, usize); 3] = [
    ("Q8_0", Layout::Q8_0R4, 34),
    ("Q4_0", Layout::Q4_0R4, 18),
    ("Q4_1", Layout::Q4_1R4, 20),
];

/// Rows of ggml blocks as four interleaved rows, from the table in `format::layout`.
fn packed(layout: Layout, block: usize, rows: &[&[u8]]) -> Vec<u8> {
    let blocks = rows[0].len() / block;
    let halves = if layout == Layout::Q4_1R4 { 2 } else { 1 };
    let mut bytes = Vec::new();
    for group in rows.chunks(4) {
        for b in 0..blocks {
            let of = |r: usize| group.get(r).map(|row| &row[b * block..][..block]);
            let codes = block - 2 * halves;
            for vector in 0..codes / 4 {
                for r in 0..4 {
                    let at = 2 * halves + 4 * vector;
                    bytes.extend(of(r).map_or(&[0; 4][..], |row| &row[at..at + 4]));
                }
            }
            for half in 0..halves {
                for r in 0..4 {
                    bytes.extend(of(r).map_or(&[0; 2][..], |row| &row[2 * half..2 * half + 2]));
                }
            }
        }
    }
    bytes
}

#[test]
fn dequantization_is_exact() {
    let golden = Safetensors::read("dequant.safetensors");
    for (name, layout, block) in BLOCK_TYPES {
        for kind in ["", ".nonfinite"] {
            let raw = golden.bytes(&format!("{name}{kind}.raw"));
            let want = golden.floats(&format!("{name}{kind}.f32"));
            let rows: Vec<&[u8]> = raw.chunks_exact(block).collect();
            let bytes = packed(layout, block, &rows);
            let w = Matrix::new(layout, rows.len(), 32, &bytes).expect("matrix");
            // The random q8_0 codes have -128 among them.
            let malformed = kind == ".nonfinite" || layout == Layout::Q8_0R4;
            assert_eq!(w.first_malformed().is_some(), malformed);
            matrix_is(&w, &want, name);
        }
    }
    for (name, layout) in [("F16", Layout::F16), ("BF16", Layout::Bf16)] {
        let w = Matrix::new(layout, 256, 256, golden.bytes(&format!("{name}.raw")));
        matrix_is(
            &w.expect("matrix"),
            &golden.floats(&format!("{name}.f32")),
            name,
        );
    }
}

fn matrix_is(w: &Matrix<'_>, want: &[f32], name: &str) {
    let mut row = vec![0.0; w.cols()];
    for (r, want) in want.chunks_exact(w.cols()).enumerate() {
        for kernels in every() {
            kernels.row(w, r, &mut row);
            for (got, want) in row.iter().zip(want) {
                let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
                assert!(same, "{name}, row {r}: {got} for {want}");
            }
        }
    }
}

/// Strict: 512 rounded sums of rounded products, within 2e-6 of the sum of magnitudes. Int8: each
/// activation is off by at most half a step of its block, `amax / 254`.
#[test]
fn products_meet_float64() {
    let golden = Safetensors::read("gemv.safetensors");
    let x = golden.floats("x.f32");
    let matrix = |name: &str, layout: Layout, block: usize| -> Vec<u8> {
        let raw = golden.bytes(&format!("{name}.raw"));
        match layout.group_block_bytes() {
            None => raw.to_vec(),
            Some(_) => packed(
                layout,
                block,
                &raw.chunks_exact(raw.len() / 12).collect::<Vec<_>>(),
            ),
        }
    };
    let float_types = [("F16", Layout::F16, 2), ("BF16", Layout::Bf16, 2)];
    for (name, layout, block) in BLOCK_TYPES.into_iter().chain(float_types) {
        let bytes = matrix(name, layout, block);
        let w = Matrix::new(layout, 12, 512, &bytes).expect("matrix");
        let (want, scale) = (
            golden.floats(&format!("{name}.y")),
            golden.floats(&format!("{name}.abs_y")),
        );
        for kernels in every() {
            let (strict, int8) = (
                product(kernels, &w, &x, false, 1),
                product(kernels, &w, &x, true, 1),
            );
            let mut row = vec![0.0; 512];
            for r in 0..12 {
                kernels.row(&w, r, &mut row);
                let steps = x.chunks(32).zip(row.chunks(32)).map(|(x, w)| {
                    let most = x.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                    w.iter().map(|w| w.abs()).sum::<f32>() * most / 254.0
                });
                let (rounding, step) = (2e-6 * scale[r], steps.sum::<f32>());
                let off = (strict[r] - want[r]).abs();
                assert!(off <= rounding, "{name} strict, row {r}: off by {off}");
                let off = (int8[r] - want[r]).abs();
                assert!(
                    off <= rounding + step * 1.001,
                    "{name} int8, row {r}: off by {off}"
                );
            }
        }
    }
}

/// PyTorch's f32 is within 9e-8.
#[test]
fn softmax() {
    let golden = json("softmax.json");
    for case in golden["cases"].as_array().expect("cases") {
        let (mut x, want) = (floats(&case["x"]), floats(&case["expected"]));
        let z = exponentials(&mut x).expect("softmax");
        for (e, want) in x.iter().zip(want) {
            assert!(
                (e / z - want).abs() <= 1.5e-7,
                "{}: {} for {want}",
                case["label"],
                e / z
            );
        }
    }
}

/// PyTorch's f32 is within 2.1e-7 of the largest component.
#[test]
fn rms_norm() {
    let golden = json("norm.json");
    let mut seen = 0;
    for case in golden["cases"].as_array().expect("cases") {
        let one = match case["op"].as_str() {
            Some("rms") => 0.0,
            Some("rms_one_plus_w") => 1.0,
            _ => continue,
        };
        let (x, want) = (floats(&case["x"]), floats(&case["expected"]));
        let weight: Vec<f32> = floats(&case["weight"]).iter().map(|w| w + one).collect();
        let mut out = vec![0.0; x.len()];
        Kernels::best().rms_norm(&x, &weight, float(&case["eps"]), &mut out);
        let largest = want.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        for (got, want) in out.iter().zip(&want) {
            assert!(
                (got - want).abs() <= 4e-7 * largest,
                "case {seen}: {got} for {want}"
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 43);
}

/// Angles in f64, rounded to f32 tables: what remains is the rounding of table and products.
#[test]
fn rotation() {
    let golden = json("rope.json");
    for case in golden["cases"].as_array().expect("cases") {
        let (head_dim, dim) = (size(&case["head_dim"]), size(&case["rotary_dim"]));
        let theta = case["theta"].as_f64().expect("theta");
        let position = case["position"].as_f64().expect("position");
        let angle = |i: usize| position * libm::pow(theta, -2.0 * i as f64 / dim as f64);
        let cos: Vec<f32> = (0..dim / 2).map(|i| libm::cos(angle(i)) as f32).collect();
        let sin: Vec<f32> = (0..dim / 2).map(|i| libm::sin(angle(i)) as f32).collect();
        let pairing = match case["style"].as_str() {
            Some("half") => RopePairing::Half,
            _ => RopePairing::Interleaved,
        };
        let (mut x, want) = (floats(&case["x"]), floats(&case["expected"]));
        Kernels::best().rope(&mut x, head_dim, pairing, &cos, &sin);
        for (got, want) in x.iter().zip(want) {
            assert!(
                (got - want).abs() <= 6e-7,
                "{}: {got} for {want}",
                case["style"]
            );
        }
    }
}

/// PyTorch's f32 is within 1.4e-6. Sinks are not for this kernel.
#[test]
fn attention() {
    let golden = json("attention.json");
    let mut seen = 0;
    for case in golden["cases"].as_array().expect("cases") {
        if case["sinks"].is_null() {
            for kernels in every() {
                attention_case(kernels, case);
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 6);
}

fn attention_case(kernels: Kernels, case: &Value) {
    let of = |name: &str| size(&case[name]);
    let (heads, kv_heads, head_dim) = (of("n_heads"), of("n_kv_heads"), of("head_dim"));
    let (q_len, kv_len) = (of("q_len"), of("kv_len"));
    let (q, k, v) = (floats(&case["q"]), floats(&case["k"]), floats(&case["v"]));
    let want = floats(&case["expected"]);
    for head in 0..heads {
        let kv = head * kv_heads / heads * kv_len * head_dim;
        let mut keys = vec![0.0; KV_BLOCK * head_dim];
        let mut values = keys.clone();
        for (p, d) in (0..kv_len).flat_map(|p| (0..head_dim).map(move |d| (p, d))) {
            keys[d * KV_BLOCK + p] = k[kv + p * head_dim + d];
            values[p * head_dim + d] = v[kv + p * head_dim + d];
        }
        for i in 0..q_len {
            let end = kv_len - q_len + i + 1;
            let window = case["window"]
                .as_u64()
                .map_or(end, |window| window as usize);
            let at = (head * q_len + i) * head_dim;
            let job = Attention {
                queries: &q[at..at + head_dim],
                positions: 1,
                kv: KvHead {
                    keys: Cells::F32(&keys),
                    values: Cells::F32(&values),
                    pages: &[0],
                    stride: KV_BLOCK * head_dim,
                    head_dim,
                },
                span: end.saturating_sub(window)..end,
                scale: float(&case["scale"]),
                softcap: case["logit_softcap"].as_f64().unwrap_or(0.0) as f32,
            };
            let mut out = vec![0.0; head_dim];
            let mut scratch = vec![0.0; Attention::scratch_len(1, 0..KV_BLOCK, head_dim)];
            kernels
                .attention(&job, &mut scratch, &mut out)
                .expect("attention");
            for (got, want) in out.iter().zip(&want[at..]) {
                let off = (got - want).abs();
                assert!(
                    off <= 3e-6,
                    "{} head {head}, query {i}: off by {off}",
                    kernels.name()
                );
            }
        }
    }
}

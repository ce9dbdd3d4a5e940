//! Shapes and places at which a wide loop begins, ends or starts anew.

use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;

use format::{Layout, RopePairing};

use super::operands::{Digest, Random, product, same};
use crate::functions::{silu_v1, sqrt};
use crate::kernels::{Kernels, Matrix};

type Outcome = Result<u64, &'static str>;

const LAYOUTS: [Layout; 6] = [
    Layout::Q8_0R4,
    Layout::Q4_0R4,
    Layout::Q4_1R4,
    Layout::F16,
    Layout::Bf16,
    Layout::F32,
];

/// One to five blocks a row, rows that fill no group, and tokens around every size of a tile.
pub fn tiles(kernels: Kernels) -> Outcome {
    let mut random = Random(21);
    let mut digest = Digest::new();
    for layout in LAYOUTS {
        for blocks in 1..=5 {
            let (rows, cols) = (4 * blocks + 1 + blocks % 3, 32 * blocks);
            let bytes = random.weights(layout, rows, cols);
            let w = Matrix::new(layout, rows, cols, &bytes).map_err(|_| "matrix refused")?;
            for tokens in [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33] {
                let x = random.units(tokens * cols, 4.0);
                for int8 in [true, false] {
                    let got = product(kernels, &w, &x, int8, 1);
                    digest.floats(&got);
                    if !same(&got, &product(Kernels::SCALAR, &w, &x, int8, 1)) {
                        return Err("a product differs from the scalar one");
                    }
                }
            }
        }
    }
    Ok(digest.0)
}

/// Weights at any byte and activations at any float.
pub fn unaligned(kernels: Kernels) -> Outcome {
    let mut random = Random(22);
    let mut digest = Digest::new();
    let (rows, cols, tokens) = (7, 96, 5);
    for layout in LAYOUTS {
        let bytes = random.weights(layout, rows, cols);
        let x = random.units(tokens * cols, 3.0);
        let w = Matrix::new(layout, rows, cols, &bytes).map_err(|_| "matrix refused")?;
        let want = [true, false].map(|int8| product(Kernels::SCALAR, &w, &x, int8, 1));
        for shift in 0..16 {
            let shifted = [&vec![0xa5; shift][..], &bytes[..]].concat();
            let floats = [&vec![f32::NAN; shift % 4][..], &x[..]].concat();
            let w = Matrix::new(layout, rows, cols, &shifted[shift..]);
            let w = w.map_err(|_| "matrix refused")?;
            for (int8, want) in [true, false].into_iter().zip(&want) {
                let got = product(kernels, &w, &floats[shift % 4..], int8, 1);
                digest.floats(&got);
                if !same(&got, want) {
                    return Err("a product depends on where its operands lie");
                }
            }
        }
    }
    Ok(digest.0)
}

/// Every length from 1 to 67, and every start within four floats: no element is left out, taken
/// twice or written beyond the end.
pub fn lengths(kernels: Kernels) -> Outcome {
    let mut random = Random(23);
    let mut digest = Digest::new();
    for len in 1..=67 {
        for start in 0..4 {
            let (x, up) = (
                random.units(start + len, 6.0),
                random.units(start + len, 2.0),
            );
            let (x, up) = (&x[start..], &up[start..]);
            // A rest behind the result, which nothing may touch.
            let mut out = vec![7.5; len + 4];
            kernels.silu_mul(x, up, &mut out[..len]);
            digest.floats(&out);
            let want = x
                .iter()
                .zip(up)
                .map(|(x, up)| silu_v1(black_box(*x)) * black_box(*up));
            is(&out, want.collect())?;
            kernels.add_assign(&mut out[..len], x);
            let want = x.iter().zip(up).map(|(x, up)| {
                let product = silu_v1(black_box(*x)) * black_box(*up);
                black_box(product) + x
            });
            is(&out, want.collect())?;
            kernels.rms_norm(x, up, 1e-6, &mut out[..len]);
            digest.floats(&out);
            is(&out, norm(x, up))?;
            turn(kernels, x, &mut digest)?;
        }
    }
    Ok(digest.0)
}

fn is(out: &[f32], mut want: Vec<f32>) -> Result<(), &'static str> {
    want.extend([7.5; 4]);
    match same(out, &want) {
        true => Ok(()),
        false => Err("a row differs from its elements one by one"),
    }
}

fn norm(x: &[f32], weight: &[f32]) -> Vec<f32> {
    let mut stripes = [0.0f32; 4];
    for (at, x) in x.iter().enumerate() {
        stripes[at % 4] = black_box(stripes[at % 4] + black_box(x * x));
    }
    let mean = ((stripes[0] + stripes[1]) + (stripes[2] + stripes[3])) / x.len() as f32;
    let inverse = 1.0 / sqrt(mean + 1e-6);
    let weighted = x
        .iter()
        .zip(weight)
        .map(|(x, w)| black_box(x * inverse) * w);
    weighted.collect()
}

/// One head of this length, all of whose pairs turn.
fn turn(kernels: Kernels, x: &[f32], digest: &mut Digest) -> Result<(), &'static str> {
    let pairs = x.len() / 2;
    if pairs == 0 {
        return Ok(());
    }
    let angles: Vec<f32> = (0..pairs).map(|at| at as f32 / pairs as f32).collect();
    let cos: Vec<f32> = angles.iter().map(|at| 1.0 - at * at).collect();
    for pairing in [RopePairing::Half, RopePairing::Interleaved] {
        let mut out = x.to_vec();
        kernels.rope(&mut out, x.len(), pairing, &cos, &angles);
        digest.floats(&out);
        let mut want = x.to_vec();
        for pair in 0..pairs {
            let (a, b) = match pairing {
                RopePairing::Half => (pair, pair + pairs),
                RopePairing::Interleaved => (2 * pair, 2 * pair + 1),
            };
            let (c, s) = (cos[pair], angles[pair]);
            want[a] = black_box(x[a] * c) - black_box(x[b] * s);
            want[b] = black_box(x[b] * c) + black_box(x[a] * s);
        }
        if !same(&out, &want) {
            return Err("a rotation differs from its pairs one by one");
        }
    }
    Ok(())
}

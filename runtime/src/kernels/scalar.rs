//! The matrix products that define the bits: every other implementation copies their association.
//!
//! Four rows go side by side through the columns, so that a compiler may put a row in a lane
//! without changing a bit; several tokens share one decoding of a block.

use format::Layout;

use super::blocks::{Codec, Q4, Q4Min, Q8};
use super::half::f16_to_f32;
use super::matrix::{COLS, Matrix, Q4_0_BYTES, Q4_1_BYTES, Q8_0_BYTES};
use super::quantized::{Codes, Input};
use super::shared::Part;

/// Tokens that share one decoding of a weight block.
const TILE: usize = 8;

pub fn matmul(w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
    match (w.layout(), x.codes()) {
        (Layout::Q8_0R4, Some(codes)) => int8::<Q8, Q8_0_BYTES>(w, codes, y),
        (Layout::Q4_0R4, Some(codes)) => int8::<Q4, Q4_0_BYTES>(w, codes, y),
        (Layout::Q4_1R4, Some(codes)) => int8::<Q4Min, Q4_1_BYTES>(w, codes, y),
        (Layout::Q8_0R4, None) => strict::<Q8, Q8_0_BYTES>(w, x, y),
        (Layout::Q4_0R4, None) => strict::<Q4, Q4_0_BYTES>(w, x, y),
        (Layout::Q4_1R4, None) => strict::<Q4Min, Q4_1_BYTES>(w, x, y),
        (Layout::F32, _) => floats(w, x, y, f32::from_le_bytes),
        (Layout::F16, _) => floats(w, x, y, read_f16),
        (Layout::Bf16, _) => floats(w, x, y, read_bf16),
        (Layout::Bytes, _) => unreachable!("Matrix::new refuses opaque bytes"),
    }
}

/// `acc = acc + (isum as f32) * (s_w * s_x)`, then `acc = acc + min_w * (s_x * isum_x as f32)`.
///
/// The integer sums are at most 32 * 128 * 127 = 520,192 in magnitude: exact in i32 and as f32.
fn int8<C: Codec<BYTES>, const BYTES: usize>(w: &Matrix<'_>, x: Codes<'_>, y: &mut Part<'_>) {
    for group in groups(y) {
        let (blocks, _) = w.group(group).as_chunks::<BYTES>();
        for token in 0..x.tokens() {
            let mut acc = [0.0f32; 4];
            for (w, x) in blocks.iter().zip(x.row(token)) {
                let sums = C::dot(w, x);
                let scales = C::scales(w);
                for r in 0..4 {
                    acc[r] += sums[r] as f32 * (scales[r] * x.scale);
                }
                if let Some(mins) = C::mins(w) {
                    for r in 0..4 {
                        acc[r] += mins[r] * x.scaled_sum;
                    }
                }
            }
            store(y, group, token, &[acc]);
        }
    }
}

/// `acc = acc + x[k] * (q[k] as f32 * scale)`, with a minimum `x[k] * (q[k] as f32 * scale + min)`.
fn strict<C: Codec<BYTES>, const BYTES: usize>(w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
    for group in groups(y) {
        let (blocks, _) = w.group(group).as_chunks::<BYTES>();
        for first in (0..x.tokens()).step_by(TILE) {
            let count = TILE.min(x.tokens() - first);
            let mut acc = [[0.0f32; 4]; TILE];
            for (b, bytes) in blocks.iter().enumerate() {
                let weights = dequantize::<C, BYTES>(bytes);
                for (t, acc) in acc[..count].iter_mut().enumerate() {
                    let x = &x.row(first + t)[b * COLS..][..COLS];
                    for (weights, x) in weights.iter().zip(x) {
                        for r in 0..4 {
                            acc[r] += x * weights[r];
                        }
                    }
                }
            }
            store(y, group, first, &acc[..count]);
        }
    }
}

/// Weights `[k][r]` of a block.
#[inline(always)]
fn dequantize<C: Codec<BYTES>, const BYTES: usize>(block: &[u8; BYTES]) -> [[f32; 4]; COLS] {
    let (scales, mins) = (C::scales(block), C::mins(block));
    let mut weights = [[0.0; 4]; COLS];
    for (k, weights) in weights.iter_mut().enumerate() {
        for r in 0..4 {
            let product = C::code(block, k, r) as f32 * scales[r];
            weights[r] = match mins {
                Some(mins) => product + mins[r],
                None => product,
            };
        }
    }
    weights
}

/// `acc = acc + x[k] * w[k]`.
fn floats<const SIZE: usize>(
    w: &Matrix<'_>,
    x: Input<'_>,
    y: &mut Part<'_>,
    read: impl Fn([u8; SIZE]) -> f32,
) {
    for group in groups(y) {
        // Rows beyond the last are the last again; their sums are dropped.
        let rows = [0, 1, 2, 3].map(|r| {
            let row = (group * 4 + r).min(w.rows() - 1);
            w.float_row(row).as_chunks::<SIZE>().0
        });
        for first in (0..x.tokens()).step_by(TILE) {
            let count = TILE.min(x.tokens() - first);
            let mut acc = [[0.0f32; 4]; TILE];
            for k in 0..w.cols() {
                let weights = rows.map(|row| read(row[k]));
                for (t, acc) in acc[..count].iter_mut().enumerate() {
                    let x = x.row(first + t)[k];
                    for r in 0..4 {
                        acc[r] += x * weights[r];
                    }
                }
            }
            store(y, group, first, &acc[..count]);
        }
    }
}

/// Row `row` of `w` as floats.
pub fn row(w: &Matrix<'_>, row: usize, out: &mut [f32]) {
    match w.layout() {
        Layout::Q8_0R4 => block_row::<Q8, Q8_0_BYTES>(w, row, out),
        Layout::Q4_0R4 => block_row::<Q4, Q4_0_BYTES>(w, row, out),
        Layout::Q4_1R4 => block_row::<Q4Min, Q4_1_BYTES>(w, row, out),
        Layout::F32 => float_row(w, row, out, f32::from_le_bytes),
        Layout::F16 => float_row(w, row, out, read_f16),
        Layout::Bf16 => float_row(w, row, out, read_bf16),
        Layout::Bytes => unreachable!("Matrix::new refuses opaque bytes"),
    }
}

fn block_row<C: Codec<BYTES>, const BYTES: usize>(w: &Matrix<'_>, row: usize, out: &mut [f32]) {
    let (blocks, _) = w.group(row / 4).as_chunks::<BYTES>();
    for (block, out) in blocks.iter().zip(out.chunks_exact_mut(COLS)) {
        let weights = dequantize::<C, BYTES>(block);
        for (out, weights) in out.iter_mut().zip(weights) {
            *out = weights[row % 4];
        }
    }
}

fn float_row<const SIZE: usize>(
    w: &Matrix<'_>,
    row: usize,
    out: &mut [f32],
    read: impl Fn([u8; SIZE]) -> f32,
) {
    for (out, bytes) in out.iter_mut().zip(w.float_row(row).as_chunks::<SIZE>().0) {
        *out = read(*bytes);
    }
}

fn read_f16(bytes: [u8; 2]) -> f32 {
    f16_to_f32(u16::from_le_bytes(bytes))
}

fn read_bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

/// Groups of four rows that a part covers.
fn groups(y: &Part<'_>) -> core::ops::Range<usize> {
    y.columns().start / 4..y.columns().end.div_ceil(4)
}

/// Writes the sums of a group for the tokens from `first` on; rows beyond the last are dropped.
fn store(y: &mut Part<'_>, group: usize, first: usize, acc: &[[f32; 4]]) {
    let at = group * 4 - y.columns().start;
    for (t, acc) in acc.iter().enumerate() {
        let out = &mut y.row_mut(first + t)[at..];
        let rows = out.len().min(4);
        out[..rows].copy_from_slice(&acc[..rows]);
    }
}

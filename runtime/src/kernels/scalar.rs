//! The matrix products that define the bits: every other implementation copies their association.
//!
//! Four rows go side by side through the columns, so that a compiler may put a row in a lane
//! without changing a bit; several tokens share one decoding of a block.

use format::Layout;

use super::half::f16_to_f32;
use super::matrix::{Block, COLS, Matrix, Q4_0_BYTES, Q4_1_BYTES, Q8_0_BYTES};
use super::quantized::{Input, Quantized, QuantizedBlock};
use super::shared::Part;

/// Tokens that share one decoding of a weight block.
const TILE: usize = 8;

pub fn matmul(w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
    let q8_0 = |bytes: &[u8; Q8_0_BYTES]| Block::q8_0(bytes);
    let q4_0 = |bytes: &[u8; Q4_0_BYTES]| Block::q4_0(bytes);
    let q4_1 = |bytes: &[u8; Q4_1_BYTES]| Block::q4_1(bytes);
    match (w.layout(), x.codes()) {
        (Layout::Q8_0R4, Some(codes)) => int8::<Q8_0_BYTES, false>(w, codes, y, q8_0),
        (Layout::Q4_0R4, Some(codes)) => int8::<Q4_0_BYTES, false>(w, codes, y, q4_0),
        (Layout::Q4_1R4, Some(codes)) => int8::<Q4_1_BYTES, true>(w, codes, y, q4_1),
        (Layout::Q8_0R4, None) => strict::<Q8_0_BYTES, false>(w, x, y, q8_0),
        (Layout::Q4_0R4, None) => strict::<Q4_0_BYTES, false>(w, x, y, q4_0),
        (Layout::Q4_1R4, None) => strict::<Q4_1_BYTES, true>(w, x, y, q4_1),
        (Layout::F32, _) => floats(w, x, y, |b: [u8; 4]| f32::from_le_bytes(b)),
        (Layout::F16, _) => floats(w, x, y, |b: [u8; 2]| f16_to_f32(u16::from_le_bytes(b))),
        (Layout::Bf16, _) => floats(w, x, y, bf16_to_f32),
        (Layout::Bytes, _) => unreachable!("Matrix::new refuses opaque bytes"),
    }
}

/// `acc = acc + (isum as f32) * (s_w * s_x)`, then `acc = acc + min_w * (s_x * isum_x as f32)`.
fn int8<const BYTES: usize, const MIN: bool>(
    w: &Matrix<'_>,
    x: &Quantized,
    y: &mut Part<'_>,
    decode: impl Fn(&[u8; BYTES]) -> Block,
) {
    for group in groups(y) {
        let (blocks, _) = w.group(group).as_chunks::<BYTES>();
        for first in (0..x.tokens()).step_by(TILE) {
            let count = TILE.min(x.tokens() - first);
            let mut acc = [[0.0f32; 4]; TILE];
            for (b, bytes) in blocks.iter().enumerate() {
                let block = decode(bytes);
                for (t, acc) in acc[..count].iter_mut().enumerate() {
                    int8_block::<MIN>(&block, &x.row(first + t)[b], acc);
                }
            }
            store(y, group, first, &acc[..count]);
        }
    }
}

#[inline(always)]
fn int8_block<const MIN: bool>(w: &Block, x: &QuantizedBlock, acc: &mut [f32; 4]) {
    // At most 32 * 128 * 127 = 520,192 in magnitude: exact in i32, and as f32.
    let mut sum = [0i32; 4];
    for (codes, x) in w.codes.iter().zip(x.codes) {
        for r in 0..4 {
            sum[r] += i32::from(codes[r]) * i32::from(x);
        }
    }
    for r in 0..4 {
        acc[r] += sum[r] as f32 * (w.scales[r] * x.scale);
        if MIN {
            acc[r] += w.mins[r] * x.scaled_sum;
        }
    }
}

/// `acc = acc + x[k] * (q[k] as f32 * scale)`, with a minimum `x[k] * (q[k] as f32 * scale + min)`.
fn strict<const BYTES: usize, const MIN: bool>(
    w: &Matrix<'_>,
    x: Input<'_>,
    y: &mut Part<'_>,
    decode: impl Fn(&[u8; BYTES]) -> Block,
) {
    for group in groups(y) {
        let (blocks, _) = w.group(group).as_chunks::<BYTES>();
        for first in (0..x.tokens()).step_by(TILE) {
            let count = TILE.min(x.tokens() - first);
            let mut acc = [[0.0f32; 4]; TILE];
            for (b, bytes) in blocks.iter().enumerate() {
                let weights = dequantize::<MIN>(&decode(bytes));
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

#[inline(always)]
fn dequantize<const MIN: bool>(block: &Block) -> [[f32; 4]; COLS] {
    let mut weights = [[0.0; 4]; COLS];
    for (weights, codes) in weights.iter_mut().zip(block.codes) {
        for r in 0..4 {
            let product = f32::from(codes[r]) * block.scales[r];
            weights[r] = if MIN {
                product + block.mins[r]
            } else {
                product
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
        Layout::Q8_0R4 => block_row::<Q8_0_BYTES, false>(w, row, out, Block::q8_0),
        Layout::Q4_0R4 => block_row::<Q4_0_BYTES, false>(w, row, out, Block::q4_0),
        Layout::Q4_1R4 => block_row::<Q4_1_BYTES, true>(w, row, out, Block::q4_1),
        Layout::F32 => float_row(w, row, out, |b: [u8; 4]| f32::from_le_bytes(b)),
        Layout::F16 => float_row(w, row, out, |b: [u8; 2]| f16_to_f32(u16::from_le_bytes(b))),
        Layout::Bf16 => float_row(w, row, out, bf16_to_f32),
        Layout::Bytes => unreachable!("Matrix::new refuses opaque bytes"),
    }
}

fn block_row<const BYTES: usize, const MIN: bool>(
    w: &Matrix<'_>,
    row: usize,
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES]) -> Block,
) {
    let (blocks, _) = w.group(row / 4).as_chunks::<BYTES>();
    for (bytes, out) in blocks.iter().zip(out.chunks_exact_mut(COLS)) {
        let weights = dequantize::<MIN>(&decode(bytes));
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

fn bf16_to_f32(bytes: [u8; 2]) -> f32 {
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

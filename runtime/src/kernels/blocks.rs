//! Blocks of four interleaved rows, read with plain integers.
//!
//! In an 8-byte word of codes lie four columns of one row, then the same four columns of the next.
//! Shifting and masking the word gives one column of both rows, 32 bits apart, so one 64-bit
//! multiplication makes two products and one addition adds both: twice the speed of bytes where
//! there are no vector instructions.

use super::half::f16_to_f32;
use super::matrix::{COLS, Q4_0_BYTES, Q4_1_BYTES, Q8_0_BYTES};
use super::quantized::QuantizedBlock;

/// How a group block of `BYTES` bytes stores 32 columns of four rows.
pub(super) trait Codec<const BYTES: usize> {
    /// For each row the sum over the columns of code times activation.
    fn dot(block: &[u8; BYTES], x: &QuantizedBlock) -> [i32; 4];
    /// The code of row `r`, column `k`.
    fn code(block: &[u8; BYTES], k: usize, r: usize) -> i32;
    fn scales(block: &[u8; BYTES]) -> [f32; 4];
    /// `None` for layouts without minima.
    fn mins(block: &[u8; BYTES]) -> Option<[f32; 4]>;
}

pub(super) struct Q8;

impl Codec<Q8_0_BYTES> for Q8 {
    /// With 128 added the codes are unsigned; the sum of activations takes it out again.
    #[inline(always)]
    fn dot(block: &[u8; Q8_0_BYTES], x: &QuantizedBlock) -> [i32; 4] {
        let mut pairs = [0i64; 2];
        for j in 0..8 {
            for (pair, sum) in pairs.iter_mut().enumerate() {
                let word = word(block, 16 * j + 8 * pair) ^ 0x8080_8080_8080_8080;
                for c in 0..4 {
                    let codes = (word >> (8 * c)) & 0x0000_00ff_0000_00ff;
                    *sum += codes as i64 * i64::from(x.codes[4 * j + c]);
                }
            }
        }
        four(pairs).map(|sum| sum - 128 * x.sum)
    }

    #[inline(always)]
    fn code(block: &[u8; Q8_0_BYTES], k: usize, r: usize) -> i32 {
        i32::from(block[k / 4 * 16 + r * 4 + k % 4] as i8)
    }

    #[inline(always)]
    fn scales(block: &[u8; Q8_0_BYTES]) -> [f32; 4] {
        halves(block, 128)
    }

    #[inline(always)]
    fn mins(_: &[u8; Q8_0_BYTES]) -> Option<[f32; 4]> {
        None
    }
}

pub(super) struct Q4;

impl Codec<Q4_0_BYTES> for Q4 {
    /// The codes are stored with 8 added.
    #[inline(always)]
    fn dot(block: &[u8; Q4_0_BYTES], x: &QuantizedBlock) -> [i32; 4] {
        nibbles(block, x).map(|sum| sum - 8 * x.sum)
    }

    #[inline(always)]
    fn code(block: &[u8; Q4_0_BYTES], k: usize, r: usize) -> i32 {
        nibble(block, k, r) - 8
    }

    #[inline(always)]
    fn scales(block: &[u8; Q4_0_BYTES]) -> [f32; 4] {
        halves(block, 64)
    }

    #[inline(always)]
    fn mins(_: &[u8; Q4_0_BYTES]) -> Option<[f32; 4]> {
        None
    }
}

pub(super) struct Q4Min;

impl Codec<Q4_1_BYTES> for Q4Min {
    #[inline(always)]
    fn dot(block: &[u8; Q4_1_BYTES], x: &QuantizedBlock) -> [i32; 4] {
        nibbles(block, x)
    }

    #[inline(always)]
    fn code(block: &[u8; Q4_1_BYTES], k: usize, r: usize) -> i32 {
        nibble(block, k, r)
    }

    #[inline(always)]
    fn scales(block: &[u8; Q4_1_BYTES]) -> [f32; 4] {
        halves(block, 64)
    }

    #[inline(always)]
    fn mins(block: &[u8; Q4_1_BYTES]) -> Option<[f32; 4]> {
        Some(halves(block, 72))
    }
}

#[inline(always)]
fn nibbles(block: &[u8], x: &QuantizedBlock) -> [i32; 4] {
    let mut pairs = [0i64; 2];
    for j in 0..4 {
        for (pair, sum) in pairs.iter_mut().enumerate() {
            let word = word(block, 16 * j + 8 * pair);
            for c in 0..4 {
                let low = (word >> (8 * c)) & 0x0000_000f_0000_000f;
                let high = (word >> (8 * c + 4)) & 0x0000_000f_0000_000f;
                *sum += low as i64 * i64::from(x.codes[4 * j + c]);
                *sum += high as i64 * i64::from(x.codes[COLS / 2 + 4 * j + c]);
            }
        }
    }
    four(pairs)
}

#[inline(always)]
fn nibble(block: &[u8], k: usize, r: usize) -> i32 {
    let byte = block[k % 16 / 4 * 16 + r * 4 + k % 4];
    i32::from(if k < COLS / 2 { byte & 15 } else { byte >> 4 })
}

#[inline(always)]
fn word(block: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// The two sums in each of two numbers `low + high * 2^32`, all within i32.
#[inline(always)]
fn four(pairs: [i64; 2]) -> [i32; 4] {
    let low = pairs.map(|pair| pair as i32);
    let high = [0, 1].map(|at: usize| ((pairs[at] - i64::from(low[at])) >> 32) as i32);
    [low[0], high[0], low[1], high[1]]
}

/// Four f16 from byte `at` on.
#[inline(always)]
fn halves(block: &[u8], at: usize) -> [f32; 4] {
    [0, 2, 4, 6].map(|i| f16_to_f32(u16::from_le_bytes([block[at + i], block[at + i + 1]])))
}

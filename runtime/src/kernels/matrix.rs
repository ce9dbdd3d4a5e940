//! Weight matrices as they lie in memory.

use format::{BLOCK, Layout};
use protocol::TrResult;

/// Columns in a quantization block.
pub(super) const COLS: usize = BLOCK as usize;

/// A `[rows][cols]` weight matrix borrowed where it lies, its length checked.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    layout: Layout,
    rows: usize,
    cols: usize,
    bytes: &'a [u8],
    subnormals: Subnormals,
}

/// How many blocks of a matrix have a scale or minimum that is subnormal as f16. Only speed
/// depends on it: some machines take a hundred times as long to multiply such a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subnormals {
    /// Under one in [`RARE`].
    Rare,
    /// More, or nobody has looked.
    Likely,
}

/// A product of this many blocks takes longer than the one slow multiplication among them.
const RARE: usize = 64;

/// Blocks of one call. A browser runs a function's first, slow code until the next call, and
/// workers share runs.
const RUN: usize = 4096;

/// Blocks of `block` bytes with a subnormal half after the codes.
#[inline(never)]
fn subnormal_blocks(bytes: &[u8], block: usize, codes: usize) -> usize {
    let is_subnormal = |half: &[u8; 2]| matches!(u16::from_le_bytes(*half) & 0x7fff, 1..0x400);
    let blocks = bytes.chunks_exact(block);
    blocks
        .filter(|block| block[codes..].as_chunks().0.iter().any(is_subnormal))
        .count()
}

impl<'a> Matrix<'a> {
    /// `UnsupportedQuantization` for opaque bytes, `UnsupportedShape` if a dimension is zero or
    /// `cols` is no whole number of blocks, `Bounds` if the length is wrong.
    pub fn new(
        layout: Layout,
        rows: usize,
        cols: usize,
        bytes: &'a [u8],
    ) -> Result<Matrix<'a>, TrResult> {
        if layout == Layout::Bytes {
            return Err(TrResult::UnsupportedQuantization);
        }
        if rows == 0 || cols == 0 {
            return Err(TrResult::UnsupportedShape);
        }
        let want = layout.tensor_bytes(rows as u64, cols as u64);
        if want.ok_or(TrResult::UnsupportedShape)? != bytes.len() as u64 {
            return Err(TrResult::Bounds);
        }
        Ok(Matrix {
            layout,
            rows,
            cols,
            bytes,
            subnormals: Subnormals::Likely,
        })
    }

    /// The same matrix with what [`Matrix::judge`] says.
    pub fn with(self, subnormals: Subnormals) -> Matrix<'a> {
        Matrix { subnormals, ..self }
    }

    /// Runs of blocks, for [`Matrix::subnormal_blocks`]; none in float layouts.
    pub fn runs(&self) -> usize {
        let of_block = |(block, _)| self.bytes.len().div_ceil(block * RUN);
        self.block_and_codes().map_or(0, of_block)
    }

    /// Blocks of one run with a scale or minimum that is subnormal.
    pub fn subnormal_blocks(&self, run: usize) -> usize {
        let Some((block, codes)) = self.block_and_codes() else {
            return 0;
        };
        let run = self.bytes.chunks(block * RUN).nth(run);
        run.map_or(0, |run| subnormal_blocks(run, block, codes))
    }

    /// What so many blocks with subnormal numbers in all runs mean.
    pub fn judge(&self, found: usize) -> Subnormals {
        match self.block_and_codes() {
            Some((block, _)) if found * RARE <= self.bytes.len() / block => Subnormals::Rare,
            _ => Subnormals::Likely,
        }
    }

    /// Bytes of a block of four rows, and how many of them are codes. `None` for float layouts.
    fn block_and_codes(&self) -> Option<(usize, usize)> {
        match self.layout {
            Layout::Q8_0R4 => Some((Q8_0_BYTES, 4 * COLS)),
            Layout::Q4_0R4 => Some((Q4_0_BYTES, 2 * COLS)),
            Layout::Q4_1R4 => Some((Q4_1_BYTES, 2 * COLS)),
            Layout::F32 | Layout::F16 | Layout::Bf16 | Layout::Bytes => None,
        }
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What [`Matrix::with`] was told.
    pub fn is_rarely_subnormal(&self) -> bool {
        self.subnormals == Subnormals::Rare
    }

    /// Blocks of 32 columns in a row.
    #[cfg(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    ))]
    pub(super) fn blocks(&self) -> usize {
        self.cols / COLS
    }

    /// The bytes of four interleaved rows, all their blocks. For layouts with blocks.
    #[inline(always)]
    pub(super) fn group(&self, group: usize) -> &'a [u8] {
        let len = self.bytes.len() / self.rows.div_ceil(4);
        &self.bytes[group * len..][..len]
    }

    /// The bytes of one row. For float layouts.
    #[inline(always)]
    pub(super) fn float_row(&self, row: usize) -> &'a [u8] {
        let len = self.bytes.len() / self.rows;
        &self.bytes[row * len..][..len]
    }

    /// Byte offset of the first scale, minimum or float element that is NaN or infinite, or of the
    /// first `q8_0` code -128 (a sign change would wrap).
    pub fn first_malformed(&self) -> Option<usize> {
        let two = |at: usize| u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]);
        let halves_from = |start: usize, end: usize, exponent: u16| {
            (start..end)
                .step_by(2)
                .find(|at| two(*at) & exponent == exponent)
        };
        match self.layout {
            Layout::F32 => {
                let elements = self.bytes.chunks_exact(4);
                let bad = |x: &[u8]| !f32::from_le_bytes([x[0], x[1], x[2], x[3]]).is_finite();
                return elements
                    .enumerate()
                    .find(|(_, x)| bad(x))
                    .map(|(i, _)| i * 4);
            }
            Layout::F16 => return halves_from(0, self.bytes.len(), 0x7c00),
            Layout::Bf16 => return halves_from(0, self.bytes.len(), 0x7f80),
            Layout::Q8_0R4 | Layout::Q4_0R4 | Layout::Q4_1R4 | Layout::Bytes => {}
        }
        let (block, codes) = self.block_and_codes()?;
        (0..self.bytes.len()).step_by(block).find_map(|start| {
            let wraps = self.layout == Layout::Q8_0R4;
            let code = self.bytes[start..start + codes]
                .iter()
                .position(|b| wraps && *b == 0x80);
            code.map(|at| start + at)
                .or_else(|| halves_from(start + codes, start + block, 0x7c00))
        })
    }
}

pub(super) const Q8_0_BYTES: usize = 136;
pub(super) const Q4_0_BYTES: usize = 72;
pub(super) const Q4_1_BYTES: usize = 80;

const _: () = {
    assert!(matches!(Layout::Q8_0R4.group_block_bytes(), Some(136)));
    assert!(matches!(Layout::Q4_0R4.group_block_bytes(), Some(72)));
    assert!(matches!(Layout::Q4_1R4.group_block_bytes(), Some(80)));
};

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn matrices_that_cannot_be_are_refused() {
        let bytes = [0u8; 136];
        let new = |layout, rows, cols, len: usize| Matrix::new(layout, rows, cols, &bytes[..len]);
        let refusal = |matrix: Result<Matrix<'_>, TrResult>| matrix.err();
        assert!(new(Layout::Q8_0R4, 3, 32, 136).is_ok());
        assert_eq!(
            refusal(new(Layout::Q8_0R4, 3, 32, 135)),
            Some(TrResult::Bounds)
        );
        assert_eq!(
            refusal(new(Layout::Q8_0R4, 3, 31, 136)),
            Some(TrResult::UnsupportedShape)
        );
        assert_eq!(
            refusal(new(Layout::F32, 0, 4, 0)),
            Some(TrResult::UnsupportedShape)
        );
        assert_eq!(
            refusal(new(Layout::F32, usize::MAX, 9, 4)),
            Some(TrResult::UnsupportedShape)
        );
        assert_eq!(
            refusal(new(Layout::Bytes, 1, 4, 4)),
            Some(TrResult::UnsupportedQuantization)
        );
    }

    #[test]
    fn subnormal_scales_are_counted() {
        let blocks = 2 * RARE;
        for (layout, len, at) in [
            (Layout::Q8_0R4, 136, 128),
            (Layout::Q4_0R4, 72, 70),
            (Layout::Q4_1R4, 80, 78),
        ] {
            let found = |half: u16, blocks_with: usize| {
                let mut bytes = vec![0x3c; len * blocks];
                for block in bytes.chunks_exact_mut(len).take(blocks_with) {
                    block[at..at + 2].copy_from_slice(&half.to_le_bytes());
                }
                let w = Matrix::new(layout, 4, 32 * blocks, &bytes).expect("matrix");
                w.judge((0..w.runs()).map(|run| w.subnormal_blocks(run)).sum())
            };
            // The smallest normal f16 is 0x0400; zeros are as fast.
            for half in [0x0400, 0x8400, 0, 0x8000, 0x3c00] {
                assert_eq!(found(half, blocks), Subnormals::Rare, "{layout:?} {half:x}");
            }
            for half in [0x03ff, 0x83ff, 1, 0x8001] {
                assert_eq!(found(half, 2), Subnormals::Rare, "{layout:?} {half:x}");
                assert_eq!(found(half, 3), Subnormals::Likely, "{layout:?} {half:x}");
            }
        }
    }

    #[test]
    fn malformed_bytes_are_found() {
        let found = |layout, rows, cols, at: usize, bad: &[u8]| {
            let len = Layout::tensor_bytes(layout, rows, cols).expect("shape") as usize;
            let mut bytes = vec![0; len];
            bytes[at..at + bad.len()].copy_from_slice(bad);
            let w = Matrix::new(layout, rows as usize, cols as usize, &bytes).expect("matrix");
            w.first_malformed()
        };
        let nan = f32::NAN.to_le_bytes();
        for (layout, at, bad, want) in [
            (Layout::F32, 12, &nan[..], Some(12)),
            (Layout::F16, 6, &[0x00, 0x7c][..], Some(6)),
            (Layout::Bf16, 6, &[0x80, 0xff][..], Some(6)),
            (Layout::F16, 6, &[0xff, 0x7b][..], None),
            // The second block: a code, a scale, a minimum.
            (Layout::Q8_0R4, 136 + 5, &[0x80][..], Some(136 + 5)),
            (
                Layout::Q8_0R4,
                136 + 130,
                &[0x00, 0xfc][..],
                Some(136 + 130),
            ),
            (Layout::Q4_0R4, 72 + 5, &[0x80][..], None),
            (Layout::Q4_0R4, 72 + 70, &[0x01, 0x7c][..], Some(72 + 70)),
            (Layout::Q4_1R4, 80 + 78, &[0x00, 0x7c][..], Some(80 + 78)),
        ] {
            assert_eq!(found(layout, 4, 64, at, bad), want, "{layout:?}");
        }
    }
}

//! Activations, as floats and quantized to 8 bits by blocks of 32.

use alloc::vec::Vec;

use protocol::TrResult;

use super::matrix::COLS;

/// Quantized activations `[tokens][cols]` in memory taken once.
pub struct Quantized {
    tokens: usize,
    blocks: usize,
    store: Vec<QuantizedBlock>,
}

/// 32 neighbouring activations of one token: `x[k]` is about `codes[k] * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct QuantizedBlock {
    /// -127..=127, in order.
    pub codes: [i8; COLS],
    /// `amax / 127`; 0 for a block of zeros; NaN or infinity if an activation was.
    pub scale: f32,
    /// Sum of the codes: at most 127 * 32.
    pub sum: i32,
    /// `scale * sum as f32`: what a weight's minimum is multiplied by.
    pub scaled_sum: f32,
    pub reserved: u32,
}

const _: () = assert!(size_of::<QuantizedBlock>() == 48);

impl QuantizedBlock {
    pub const ZERO: QuantizedBlock = QuantizedBlock {
        codes: [0; COLS],
        scale: 0.0,
        sum: 0,
        scaled_sum: 0.0,
        reserved: 0,
    };

    /// The block for codes and a scale.
    #[inline(always)]
    pub fn of(codes: [i8; COLS], scale: f32) -> QuantizedBlock {
        let mut sum = 0;
        for code in codes {
            sum += i32::from(code);
        }
        QuantizedBlock {
            codes,
            scale,
            sum,
            scaled_sum: scale * sum as f32,
            reserved: 0,
        }
    }
}

impl Quantized {
    /// Room for `tokens` rows of `cols` elements, or any shape with no more elements in all.
    /// `OutOfMemory`.
    pub fn new(tokens: usize, cols: usize) -> Result<Quantized, TrResult> {
        let len = tokens
            .checked_mul(cols.div_ceil(COLS))
            .ok_or(TrResult::IntegerOverflow)?;
        let mut store = Vec::new();
        store
            .try_reserve_exact(len)
            .map_err(|_| TrResult::OutOfMemory)?;
        store.resize(len, QuantizedBlock::ZERO);
        Ok(Quantized {
            tokens: 0,
            blocks: 0,
            store,
        })
    }

    /// Bytes that [`Quantized::new`] takes.
    pub fn bytes(tokens: usize, cols: usize) -> u64 {
        (tokens as u64)
            .saturating_mul(cols.div_ceil(COLS) as u64)
            .saturating_mul(size_of::<QuantizedBlock>() as u64)
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        (self.store.capacity() * size_of::<QuantizedBlock>()) as u64
    }

    /// What is held now.
    pub fn codes(&self) -> Codes<'_> {
        Codes {
            blocks: &self.store[..self.tokens * self.blocks],
            per_token: self.blocks,
        }
    }

    /// All blocks of a new shape, to be filled. Panics if there is no room.
    pub(crate) fn reshape(&mut self, tokens: usize, cols: usize) -> &mut [QuantizedBlock] {
        assert!(cols > 0 && cols.is_multiple_of(COLS));
        (self.tokens, self.blocks) = (tokens, cols / COLS);
        &mut self.store[..tokens * self.blocks]
    }
}

/// Codes of `[tokens][cols]` activations.
#[derive(Clone, Copy)]
pub struct Codes<'a> {
    blocks: &'a [QuantizedBlock],
    per_token: usize,
}

impl<'a> Codes<'a> {
    /// Panics if `blocks` are no whole number of rows of `cols` activations.
    pub fn new(blocks: &'a [QuantizedBlock], cols: usize) -> Codes<'a> {
        assert!(cols > 0 && cols.is_multiple_of(COLS) && blocks.len().is_multiple_of(cols / COLS));
        Codes {
            blocks,
            per_token: cols / COLS,
        }
    }

    pub fn tokens(&self) -> usize {
        self.blocks.len() / self.per_token
    }

    pub fn cols(&self) -> usize {
        self.per_token * COLS
    }

    /// The blocks of row `token`.
    #[inline(always)]
    pub fn row(&self, token: usize) -> &'a [QuantizedBlock] {
        &self.blocks[token * self.per_token..][..self.per_token]
    }
}

/// What enters a matrix product: `[tokens][cols]` floats, and in mode `int8-v1` their codes.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    x: &'a [f32],
    cols: usize,
    codes: Option<Codes<'a>>,
}

impl<'a> Input<'a> {
    /// Mode `strict-f32-v1`. Panics if `x` is no whole number of rows.
    pub fn strict(x: &'a [f32], cols: usize) -> Input<'a> {
        assert!(cols > 0 && x.len().is_multiple_of(cols));
        Input {
            x,
            cols,
            codes: None,
        }
    }

    /// Mode `int8-v1`: `codes` are what `quantize` made of `x`. Float layouts still read `x`.
    /// Panics if the shapes differ.
    pub fn int8(x: &'a [f32], codes: Codes<'a>) -> Input<'a> {
        assert!(codes.cols() > 0 && x.len() == codes.blocks.len() * COLS);
        Input {
            x,
            cols: codes.cols(),
            codes: Some(codes),
        }
    }

    pub fn tokens(&self) -> usize {
        self.x.len() / self.cols
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `token` as floats.
    #[inline(always)]
    pub(super) fn row(&self, token: usize) -> &'a [f32] {
        &self.x[token * self.cols..][..self.cols]
    }

    pub(super) fn codes(&self) -> Option<Codes<'a>> {
        self.codes
    }
}

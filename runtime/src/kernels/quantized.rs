//! Activations, as floats and quantized to 8 bits by blocks of 32.

use protocol::TrResult;

/// Memory for quantized activations `[tokens][cols]`, taken once.
pub struct Quantized {
    tokens: usize,
}

impl Quantized {
    /// Room for `tokens` rows of `cols` elements, or any shape with no more elements in all.
    pub fn new(tokens: usize, cols: usize) -> Result<Quantized, TrResult> {
        todo!("{tokens}{cols}")
    }

    /// Bytes that [`Quantized::new`] takes.
    pub fn bytes(tokens: usize, cols: usize) -> u64 {
        todo!("{tokens}{cols}")
    }

    /// Rows held now.
    pub fn tokens(&self) -> usize {
        self.tokens
    }
}

/// What enters a matrix product: `[tokens][cols]` floats, and in mode `int8-v1` their codes.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    x: &'a [f32],
    cols: usize,
    codes: Option<&'a Quantized>,
}

impl<'a> Input<'a> {
    /// Mode `strict-f32-v1`.
    pub fn strict(x: &'a [f32], cols: usize) -> Input<'a> {
        Input {
            x,
            cols,
            codes: None,
        }
    }

    /// Mode `int8-v1`: `codes` are what `quantize` made of `x`. Float layouts still read `x`.
    pub fn int8(x: &'a [f32], codes: &'a Quantized) -> Input<'a> {
        Input {
            x,
            cols: 1,
            codes: Some(codes),
        }
    }

    pub fn tokens(&self) -> usize {
        let _ = self.codes;
        self.x.len() / self.cols
    }
}

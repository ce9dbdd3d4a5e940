//! Weight matrices as they lie in memory.

use format::Layout;
use protocol::TrResult;

/// A `[rows][cols]` weight matrix borrowed where it lies, its length checked.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    layout: Layout,
    rows: usize,
    cols: usize,
    bytes: &'a [u8],
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
        Ok(Matrix {
            layout,
            rows,
            cols,
            bytes,
        })
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

    /// Byte offset of the first scale, minimum or float element that is NaN or infinite, or of the
    /// first `q8_0` code -128 (which no kernel may meet).
    pub fn first_malformed(&self) -> Option<usize> {
        todo!()
    }
}

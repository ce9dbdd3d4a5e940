//! What the bytes of a tensor mean: a codec (how a number is stored) and a packing (how rows lie).
//!
//! `row` packing is the source order: row 0, then row 1. `r4` interleaves four rows, so that one
//! SIMD lane owns one row and a row's sum is taken in the naive order at any vector width.
//! In `r4` the rows are padded with zero rows to a multiple of four, and a group of four rows is a
//! run of `cols / 32` group blocks:
//!
//! | codec | group block (four rows, 32 columns) | bytes |
//! |---|---|---|
//! | `q8_0` | 8 vectors of 16 codes: vector `j` holds columns `4j..4j+3` of row 0, then of rows 1, 2, 3; then four f16 scales | 136 |
//! | `q4_0` | 4 vectors of 16 bytes: the low nibbles of vector `j` are columns `4j..4j+3` of rows 0, 1, 2, 3, the high nibbles columns `16+4j..16+4j+3`; then four f16 scales; weight = `(code - 8) * scale` | 72 |
//! | `q4_1` | as `q4_0`, then four f16 minima; weight = `code * scale + min` | 80 |

use serde::{Deserialize, Serialize};

/// Columns in a quantization block.
pub const BLOCK: u32 = 32;

/// Layout ids as they stand in the manifest. Float matrices and vectors lie in source order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Layout {
    #[serde(rename = "f32")]
    F32,
    #[serde(rename = "f16")]
    F16,
    #[serde(rename = "bf16")]
    Bf16,
    #[serde(rename = "q8_0.r4")]
    Q8_0R4,
    #[serde(rename = "q4_0.r4")]
    Q4_0R4,
    #[serde(rename = "q4_1.r4")]
    Q4_1R4,
    /// Opaque bytes: the tokenizer payload.
    #[serde(rename = "bytes")]
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    F32,
    F16,
    Bf16,
    Q8_0,
    Q4_0,
    Q4_1,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    Row,
    R4,
}

impl Layout {
    /// The id as it stands in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::F32 => "f32",
            Layout::F16 => "f16",
            Layout::Bf16 => "bf16",
            Layout::Q8_0R4 => "q8_0.r4",
            Layout::Q4_0R4 => "q4_0.r4",
            Layout::Q4_1R4 => "q4_1.r4",
            Layout::Bytes => "bytes",
        }
    }

    pub const fn codec(self) -> Codec {
        match self {
            Layout::F32 => Codec::F32,
            Layout::F16 => Codec::F16,
            Layout::Bf16 => Codec::Bf16,
            Layout::Q8_0R4 => Codec::Q8_0,
            Layout::Q4_0R4 => Codec::Q4_0,
            Layout::Q4_1R4 => Codec::Q4_1,
            Layout::Bytes => Codec::Bytes,
        }
    }

    pub const fn packing(self) -> Packing {
        match self {
            Layout::Q8_0R4 | Layout::Q4_0R4 | Layout::Q4_1R4 => Packing::R4,
            _ => Packing::Row,
        }
    }

    /// Bytes of one group block: four rows of 32 columns. `None` for layouts without blocks.
    pub const fn group_block_bytes(self) -> Option<u32> {
        match self {
            Layout::Q8_0R4 => Some(136),
            Layout::Q4_0R4 => Some(72),
            Layout::Q4_1R4 => Some(80),
            _ => None,
        }
    }

    /// Bytes of one element, for layouts without blocks.
    pub const fn element_bytes(self) -> Option<u32> {
        match self {
            Layout::F32 => Some(4),
            Layout::F16 | Layout::Bf16 => Some(2),
            Layout::Bytes => Some(1),
            Layout::Q8_0R4 | Layout::Q4_0R4 | Layout::Q4_1R4 => None,
        }
    }

    /// Bytes of a `rows x cols` tensor, or `None` if `cols` is not a whole number of blocks or the
    /// product does not fit 64 bits.
    pub const fn tensor_bytes(self, rows: u64, cols: u64) -> Option<u64> {
        let (count, unit) = match self.group_block_bytes() {
            Some(group) => {
                if !cols.is_multiple_of(BLOCK as u64) {
                    return None;
                }
                match rows.div_ceil(4).checked_mul(cols / BLOCK as u64) {
                    Some(blocks) => (blocks, group as u64),
                    None => return None,
                }
            }
            None => {
                let size = match self {
                    Layout::F32 => 4,
                    Layout::F16 | Layout::Bf16 => 2,
                    _ => 1,
                };
                match rows.checked_mul(cols) {
                    Some(elements) => (elements, size),
                    None => return None,
                }
            }
        };
        count.checked_mul(unit)
    }
}

impl Codec {
    /// Bytes of one ggml block: 32 columns of one source row. `None` for codecs without blocks.
    ///
    /// `q8_0`: f16 scale, 32 signed codes. `q4_0`: f16 scale, 16 bytes; `q4_1`: f16 scale, f16
    /// minimum, 16 bytes; byte `i` holds column `i` in its low nibble and `16 + i` in its high.
    pub const fn block_bytes(self) -> Option<u32> {
        match self {
            Codec::Q8_0 => Some(34),
            Codec::Q4_0 => Some(18),
            Codec::Q4_1 => Some(20),
            Codec::F32 | Codec::F16 | Codec::Bf16 | Codec::Bytes => None,
        }
    }
}

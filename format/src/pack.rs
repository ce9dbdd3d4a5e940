//! Rows of ggml blocks to `r4` group blocks, and back to numbers.
//!
//! Packing moves bits and changes no weight. Unpacking is the definition of what a weight is; the
//! engine's kernels are checked against it.

use crate::float::{bf16_to_f32, f16_to_f32};
use crate::{BLOCK, Codec, FormatError, Layout, Packing};

const COLS: usize = BLOCK as usize;

/// Packs one group of four source rows. Each row is a run of ggml blocks
/// ([`Codec::block_bytes`]) of equal number; a missing row is all zero bytes.
/// `out` has [`Layout::group_block_bytes`] for every block of a row.
pub fn pack_r4(
    layout: Layout,
    rows: [Option<&[u8]>; 4],
    out: &mut [u8],
) -> Result<(), FormatError> {
    let (Some(group), Some(block)) = (layout.group_block_bytes(), layout.codec().block_bytes())
    else {
        return Err(FormatError::LayoutUnsupported { layout });
    };
    let (group, block) = (group as usize, block as usize);
    if !out.len().is_multiple_of(group) {
        return Err(FormatError::PartialRun {
            layout,
            len: out.len() as u64,
        });
    }
    let row_bytes = out.len() / group * block;
    for row in rows.into_iter().flatten() {
        check_len(row_bytes, row.len())?;
    }
    out.fill(0);
    for (index, row) in rows.into_iter().enumerate() {
        let Some(row) = row else { continue };
        for (source, target) in row.chunks_exact(block).zip(out.chunks_exact_mut(group)) {
            match layout.codec() {
                Codec::Q8_0 => place_q8(source, index, target),
                _ => place_q4(source, index, target),
            }
        }
    }
    Ok(())
}

/// One row's block of 34 bytes into its group block of 136.
fn place_q8(source: &[u8], row: usize, target: &mut [u8]) {
    let (scale, codes) = source.split_at(2);
    for (vector, four) in codes.chunks_exact(4).enumerate() {
        target[vector * 16 + row * 4..][..4].copy_from_slice(four);
    }
    target[128 + row * 2..][..2].copy_from_slice(scale);
}

/// One row's block of 18 or 20 bytes into its group block of 72 or 80. The nibbles keep their
/// halves: byte `i` has columns `i` and `16 + i` in both forms.
fn place_q4(source: &[u8], row: usize, target: &mut [u8]) {
    let (halves, codes) = source.split_at(source.len() - 16);
    for (vector, four) in codes.chunks_exact(4).enumerate() {
        target[vector * 16 + row * 4..][..4].copy_from_slice(four);
    }
    // Scale, then for q4_1 the minimum: four of the one, then four of the other.
    for (kind, half) in halves.chunks_exact(2).enumerate() {
        target[64 + kind * 8 + row * 2..][..2].copy_from_slice(half);
    }
}

/// One row of a tensor as f32. `tensor` holds all its bytes; `out` has one element a column.
pub fn unpack_row(
    layout: Layout,
    tensor: &[u8],
    row: u32,
    out: &mut [f32],
) -> Result<(), FormatError> {
    if layout == Layout::Bytes {
        return Err(FormatError::LayoutUnsupported { layout });
    }
    let cols = out.len() as u64;
    let partial = || FormatError::PartialRun { layout, len: cols };
    match layout.packing() {
        Packing::Row => {
            let row_bytes = layout.tensor_bytes(1, cols).ok_or_else(partial)?;
            unpack_floats(layout, run(tensor, u64::from(row), row_bytes)?, out);
        }
        Packing::R4 => {
            let group_bytes = layout.tensor_bytes(4, cols).ok_or_else(partial)?;
            let group = run(tensor, u64::from(row / 4), group_bytes)?;
            unpack_group_row(layout, group, (row % 4) as usize, out);
        }
    }
    Ok(())
}

/// The `index`-th run of `len` bytes.
fn run(bytes: &[u8], index: u64, len: u64) -> Result<&[u8], FormatError> {
    let found = bytes.len() as u64;
    let end = (index + 1).saturating_mul(len);
    if end > found {
        return Err(FormatError::BufferLength {
            expected: end,
            found,
        });
    }
    Ok(&bytes[(end - len) as usize..end as usize])
}

fn unpack_floats(layout: Layout, bytes: &[u8], out: &mut [f32]) {
    match layout {
        Layout::F32 => {
            for (value, bits) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*bits);
            }
        }
        _ => {
            let convert = if layout == Layout::F16 {
                f16_to_f32
            } else {
                bf16_to_f32
            };
            for (value, bits) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *value = convert(u16::from_le_bytes(*bits));
            }
        }
    }
}

/// Takes one row back out of its group as ggml blocks, and reads those.
fn unpack_group_row(layout: Layout, group: &[u8], row: usize, out: &mut [f32]) {
    let codec = layout.codec();
    let codes = if codec == Codec::Q8_0 { 128 } else { 64 };
    let group_bytes = layout.group_block_bytes().unwrap_or(1) as usize;
    let mut block = [0; 34];
    for (source, target) in group
        .chunks_exact(group_bytes)
        .zip(out.chunks_exact_mut(COLS))
    {
        let mut len = 0;
        for half in source[codes..].chunks_exact(8) {
            block[len..len + 2].copy_from_slice(&half[row * 2..][..2]);
            len += 2;
        }
        for vector in source[..codes].chunks_exact(16) {
            block[len..len + 4].copy_from_slice(&vector[row * 4..][..4]);
            len += 4;
        }
        read_block(codec, &block[..len], target);
    }
}

/// One row of ggml blocks as f32; `out` has one element a column.
pub fn dequantize(codec: Codec, row: &[u8], out: &mut [f32]) -> Result<(), FormatError> {
    let (block, _) = row_form(codec, out.len(), row.len())?;
    for (source, target) in row.chunks_exact(block).zip(out.chunks_exact_mut(COLS)) {
        read_block(codec, source, target);
    }
    Ok(())
}

/// Block size and number of blocks of a row of `cols` columns in ggml blocks.
pub(crate) fn row_form(
    codec: Codec,
    cols: usize,
    row_bytes: usize,
) -> Result<(usize, usize), FormatError> {
    let (block, layout) = match codec {
        Codec::Q8_0 => (34, Layout::Q8_0R4),
        Codec::Q4_0 => (18, Layout::Q4_0R4),
        Codec::Q4_1 => (20, Layout::Q4_1R4),
        Codec::F32 => {
            return Err(FormatError::LayoutUnsupported {
                layout: Layout::F32,
            });
        }
        Codec::F16 => {
            return Err(FormatError::LayoutUnsupported {
                layout: Layout::F16,
            });
        }
        Codec::Bf16 => {
            return Err(FormatError::LayoutUnsupported {
                layout: Layout::Bf16,
            });
        }
        Codec::Bytes => {
            return Err(FormatError::LayoutUnsupported {
                layout: Layout::Bytes,
            });
        }
    };
    if !cols.is_multiple_of(COLS) {
        return Err(FormatError::PartialRun {
            layout,
            len: cols as u64,
        });
    }
    check_len(cols / COLS * block, row_bytes)?;
    Ok((block, cols / COLS))
}

pub(crate) fn check_len(expected: usize, found: usize) -> Result<(), FormatError> {
    match expected == found {
        true => Ok(()),
        false => {
            let (expected, found) = (expected as u64, found as u64);
            Err(FormatError::BufferLength { expected, found })
        }
    }
}

/// One ggml block as 32 numbers; products and sums are rounded separately.
fn read_block(codec: Codec, block: &[u8], out: &mut [f32]) {
    let half = |at: usize| f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]]));
    let scale = half(0);
    if codec == Codec::Q8_0 {
        for (value, code) in out.iter_mut().zip(&block[2..]) {
            *value = f32::from(*code as i8) * scale;
        }
        return;
    }
    let (codes, centre, min) = match codec {
        Codec::Q4_1 => (&block[4..], 0.0, half(2)),
        // Adding -0.0 changes no number, not even a zero's sign.
        _ => (&block[2..], 8.0, -0.0),
    };
    let (low, high) = out.split_at_mut(COLS / 2);
    for ((low, high), code) in low.iter_mut().zip(high).zip(codes) {
        *low = (f32::from(code & 15) - centre) * scale + min;
        *high = (f32::from(code >> 4) - centre) * scale + min;
    }
}

//! The check of a model's bytes: no NaN, no infinity, no code that cannot be negated.
//!
//! A hundred megabytes pass on every load, so the inner loops take no branches and gather one
//! flag a chunk; the place is looked for only when the flag is up.

use crate::{FormatError, Layout};

/// Elements whose flag is gathered before it is looked at.
const CHUNK: usize = 1024;
/// Units of one call. A browser runs a function's first, slow code until the next call, so a
/// tensor of thirty megabytes must not be one.
const RUN: usize = 16 * CHUNK;

/// Checks a run of whole elements or whole group blocks, as it lies in a tensor. `at` is the file
/// offset of its first byte and only names the place of an error.
pub fn check_finite(layout: Layout, bytes: &[u8], at: u64) -> Result<(), FormatError> {
    let unit = match (layout.element_bytes(), layout.group_block_bytes()) {
        (Some(bytes), _) | (None, Some(bytes)) => bytes as usize,
        (None, None) => 1,
    };
    if !bytes.len().is_multiple_of(unit) {
        return Err(FormatError::PartialRun {
            layout,
            len: bytes.len() as u64,
        });
    }
    for (index, run) in bytes.chunks(unit * RUN).enumerate() {
        check_run(layout, run, at + (index * unit * RUN) as u64)?;
    }
    Ok(())
}

#[inline(never)]
fn check_run(layout: Layout, bytes: &[u8], at: u64) -> Result<(), FormatError> {
    match layout {
        Layout::Bytes => Ok(()),
        Layout::F32 => check_f32(bytes, at),
        Layout::F16 => check_halves(bytes, 0x7c00, at),
        Layout::Bf16 => check_halves(bytes, 0x7f80, at),
        Layout::Q8_0R4 => check_groups::<136, 128>(bytes, at),
        Layout::Q4_0R4 => check_groups::<72, 64>(bytes, at),
        Layout::Q4_1R4 => check_groups::<80, 64>(bytes, at),
    }
}

/// Checks that a filler holds zero bytes only.
pub fn check_filler(bytes: &[u8], at: u64) -> Result<(), FormatError> {
    match bytes.iter().position(|byte| *byte != 0) {
        Some(index) => Err(FormatError::FillerNotZero {
            at: at + index as u64,
        }),
        None => Ok(()),
    }
}

fn check_f32(bytes: &[u8], at: u64) -> Result<(), FormatError> {
    const EXPONENT: u32 = 0x7f80_0000;
    let bad = |bits: &[u8; 4]| u32::from_le_bytes(*bits) & EXPONENT == EXPONENT;
    let (elements, _) = bytes.as_chunks::<4>();
    for (index, chunk) in elements.chunks(CHUNK).enumerate() {
        if chunk.iter().fold(false, |any, bits| any | bad(bits)) {
            let first = chunk.iter().position(bad).unwrap_or(0);
            return Err(FormatError::NonFinite {
                at: at + ((index * CHUNK + first) * 4) as u64,
            });
        }
    }
    Ok(())
}

/// `exponent` is the mask of the exponent bits.
fn check_halves(bytes: &[u8], exponent: u16, at: u64) -> Result<(), FormatError> {
    let bad = |bits: &[u8; 2]| u16::from_le_bytes(*bits) & exponent == exponent;
    let (elements, _) = bytes.as_chunks::<2>();
    for (index, chunk) in elements.chunks(CHUNK).enumerate() {
        if chunk.iter().fold(false, |any, bits| any | bad(bits)) {
            let first = chunk.iter().position(bad).unwrap_or(0);
            return Err(FormatError::NonFinite {
                at: at + ((index * CHUNK + first) * 2) as u64,
            });
        }
    }
    Ok(())
}

/// Group blocks of `GROUP` bytes whose first `CODES` are codes and whose rest is f16.
fn check_groups<const GROUP: usize, const CODES: usize>(
    bytes: &[u8],
    at: u64,
) -> Result<(), FormatError> {
    let bad_half = |bits: &[u8; 2]| u16::from_le_bytes(*bits) & 0x7c00 == 0x7c00;
    // Only whole bytes are signed codes: nibbles have no -128.
    let signed = CODES == 128;
    let (groups, _) = bytes.as_chunks::<GROUP>();
    for (index, group) in groups.iter().enumerate() {
        let (codes, halves) = group.split_at(CODES);
        let (halves, _) = halves.as_chunks::<2>();
        let place = |offset: usize| at + (index * GROUP + offset) as u64;
        if halves.iter().fold(false, |any, bits| any | bad_half(bits)) {
            let first = halves.iter().position(bad_half).unwrap_or(0);
            return Err(FormatError::NonFinite {
                at: place(CODES + first * 2),
            });
        }
        if signed && codes.iter().fold(false, |any, code| any | (*code == 0x80)) {
            let first = codes.iter().position(|code| *code == 0x80).unwrap_or(0);
            return Err(FormatError::CodeRefused { at: place(first) });
        }
    }
    Ok(())
}

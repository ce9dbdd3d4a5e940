//! Float rows to ggml blocks, with the bits of ggml's reference quantizers.

use crate::float::f32_to_f16;
use crate::pack::row_form;
use crate::{BLOCK, Codec, FormatError};

/// Quantizes one row into ggml blocks. `out` has [`Codec::block_bytes`] for every 32 elements.
///
/// NaN and infinity are refused; `at` then counts bytes from the start of the row. A scale too
/// large for f16 becomes infinity and is refused by `check_finite` on the packed block.
pub fn quantize(codec: Codec, row: &[f32], out: &mut [u8]) -> Result<(), FormatError> {
    let (block, _) = row_form(codec, row.len(), out.len())?;
    if let Some(index) = row.iter().position(|value| !value.is_finite()) {
        return Err(FormatError::NonFinite {
            at: index as u64 * 4,
        });
    }
    let (sources, _) = row.as_chunks::<{ BLOCK as usize }>();
    for (source, target) in sources.iter().zip(out.chunks_exact_mut(block)) {
        match codec {
            Codec::Q8_0 => quantize_q8_0(source, target),
            Codec::Q4_0 => quantize_q4_0(source, target),
            _ => quantize_q4_1(source, target),
        }
    }
    Ok(())
}

/// `1 / d`, and 0 for 0.
fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

fn quantize_q8_0(source: &[f32; 32], target: &mut [u8]) {
    let largest = source.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
    let scale = largest / 127.0;
    let inverse = inverse(scale);
    target[..2].copy_from_slice(&f32_to_f16(scale).to_le_bytes());
    for (code, x) in target[2..].iter_mut().zip(source) {
        // Half away from zero; in f64 the sum is exact where it matters.
        let x = f64::from(x * inverse);
        *code = (x + if x < 0.0 { -0.5 } else { 0.5 }) as i8 as u8;
    }
}

/// The element of largest magnitude (the first of equals) becomes code 0, that is -8.
fn quantize_q4_0(source: &[f32; 32], target: &mut [u8]) {
    let extreme = source
        .iter()
        .fold(0.0, |m: f32, x| if x.abs() > m.abs() { *x } else { m });
    let scale = extreme / -8.0;
    let inverse = f64::from(inverse(scale));
    target[..2].copy_from_slice(&f32_to_f16(scale).to_le_bytes());
    // The reference is compiled with a fused multiply-add: product and sum are rounded once.
    write_nibbles(source, &mut target[2..], |x| f64::from(x) * inverse + 8.5);
}

fn quantize_q4_1(source: &[f32; 32], target: &mut [u8]) {
    let min = source.iter().fold(f32::INFINITY, |m, x| m.min(*x));
    let max = source.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
    let scale = (max - min) / 15.0;
    let inverse = inverse(scale);
    target[..2].copy_from_slice(&f32_to_f16(scale).to_le_bytes());
    target[2..4].copy_from_slice(&f32_to_f16(min).to_le_bytes());
    write_nibbles(source, &mut target[4..], |x| {
        f64::from((x - min) * inverse + 0.5)
    });
}

/// Code `i` in the low nibble of byte `i`, code `16 + i` in the high one; cut to 0..=15.
fn write_nibbles(source: &[f32; 32], target: &mut [u8], code: impl Fn(f32) -> f64) {
    let (low, high) = source.split_at(16);
    for ((byte, low), high) in target.iter_mut().zip(low).zip(high) {
        let nibble = |x: &f32| (code(*x) as f32 as u8).min(15);
        *byte = nibble(low) | nibble(high) << 4;
    }
}

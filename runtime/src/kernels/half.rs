//! 16-bit floats.

/// Exact.
pub fn f16_to_f32(bits: u16) -> f32 {
    todo!("{bits}")
}

/// Round to nearest, ties to even; too large gives infinity; NaN stays NaN.
pub fn f16_from_f32(x: f32) -> u16 {
    todo!("{x}")
}

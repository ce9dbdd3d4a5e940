//! 16-bit floats, by integer operations and exact arithmetic.

/// Exact, infinities and NaN included.
///
/// With the exponent rebiased the bits are `t`, right for normal numbers. A subnormal has no
/// leading one: it is `2 t - 2^-14`, which is below `t` exactly for subnormals, so the lesser of
/// the two is right for both. No step has a subnormal operand, which would cost a hundred cycles.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = (u32::from(bits) & 0x7fff) << 13;
    let t = f32::from_bits(magnitude + (112 << 23));
    let without_one = f32::from_bits(magnitude + (113 << 23)) - f32::from_bits(113 << 23);
    let finite = if without_one < t { without_one } else { t };
    // Infinity and NaN have the highest exponent in both formats.
    let special = if magnitude >= 0x0f80_0000 {
        0x7f80_0000
    } else {
        0
    };
    f32::from_bits(finite.to_bits() | special | ((u32::from(bits) & 0x8000) << 16))
}

/// Round to nearest, ties to even; too large gives infinity; NaN stays NaN.
///
/// All ways are computed and one is taken, so that a loop becomes vector code.
#[inline(always)]
pub fn f16_from_f32(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Below 2^-14 the last place of f16 is 2^-24, which is the last place of floats in 0.5..1:
    // adding 0.5 rounds there.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0x3f00_0000);
    // Rebias, then half a unit less one, plus the last kept bit: ties go to even.
    let last = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(0x3800_0000 - 0x0fff - last) >> 13;
    let finite = if magnitude < 0x3880_0000 {
        small
    } else {
        normal
    };
    // From halfway between the greatest f16 and 2^16 on.
    let rounded = if magnitude >= 0x477f_f000 {
        0x7c00
    } else {
        finite
    };
    let rounded = if magnitude > 0x7f80_0000 {
        0x7e00
    } else {
        rounded
    };
    (sign | rounded) as u16
}

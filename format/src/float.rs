//! 16-bit floats, exactly and the same everywhere.

/// The f32 of the same value. NaN stays NaN with its payload moved to the upper bits.
pub const fn f16_to_f32(bits: u16) -> f32 {
    let sign = (bits as u32 & 0x8000) << 16;
    let magnitude = (bits as u32 & 0x7fff) << 13;
    if magnitude >= 0x7c00 << 13 {
        // Infinity or NaN: the exponent becomes all ones in f32, too.
        return f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x007f_ffff));
    }
    // Read with the exponent bias of f32, the value is too small by 2^112. Below the normal f16
    // that is a subnormal f32, and the product is still exact.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(sign | scaled.to_bits())
}

pub const fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// Rounds to nearest, ties to even; too large becomes infinity; NaN becomes a quiet NaN.
pub const fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | ((magnitude >> 13) as u16 & 0x01ff);
    }
    // 65520 is half way from the largest f16 to 2^16, and rounds up.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if magnitude >= 0x3880_0000 {
        // Normal: move the bias from 127 to 15 and drop 13 bits.
        return sign | round_shift(magnitude - (112 << 23), 13);
    }
    // Subnormal: the unit is 2^-24. Below 2^-25 everything rounds to zero.
    let exponent = magnitude >> 23;
    if exponent < 102 {
        return sign;
    }
    let mantissa = (magnitude & 0x007f_ffff) | 0x0080_0000;
    sign | round_shift(mantissa, 126 - exponent)
}

/// Rounds to nearest, ties to even; NaN becomes a quiet NaN.
pub const fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7fc0 | (magnitude >> 16) as u16;
    }
    sign | round_shift(magnitude, 16)
}

/// `value / 2^shift`, to nearest, ties to even. A carry into the exponent is right as it is.
const fn round_shift(value: u32, shift: u32) -> u16 {
    let half = (1 << (shift - 1)) - 1;
    let odd = (value >> shift) & 1;
    ((value + half + odd) >> shift) as u16
}

//! What an instruction set must offer so that the loops in `wide` run on it.
//!
//! A vector is one or two groups of four lanes. In a matrix product a lane is an output row and a
//! group of lanes is a group of four interleaved rows; in attention a lane is a position or an
//! element. Every float operation is lane by lane, rounded by itself, so any width gives the same
//! bits; integer sums are exact in any order.
#![allow(unsafe_code)]

use super::quantized::QuantizedBlock;

/// Groups of the widest vector.
pub(super) const GROUPS_MAX: usize = 2;

/// Where each group of a vector is read from; the second is ignored by vectors of one group.
pub(super) type Places = [*const u8; GROUPS_MAX];

/// # Safety
///
/// Every method needs the instruction set to be there, and every pointer to be readable (for
/// `store`, writable) for the bytes that the method names, at any alignment.
pub(super) trait Lanes: Copy {
    /// Groups of four lanes: 1 or 2.
    const GROUPS: usize;
    const LEN: usize = 4 * Self::GROUPS;
    /// As many i32.
    type Ints: Copy;

    unsafe fn splat(x: f32) -> Self;
    /// Of four equal floats, which can be loaded as they are.
    #[inline(always)]
    unsafe fn spread(x: *const [f32; 4]) -> Self {
        // SAFETY: the trait's contract.
        unsafe { Self::splat((*x)[0]) }
    }
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;

    /// `LEN` floats.
    unsafe fn load(from: *const f32) -> Self;
    /// `LEN` floats.
    unsafe fn store(self, to: *mut f32);
    /// `2 * LEN` f16, exactly, infinities and NaN included.
    unsafe fn load_two_f16(from: *const u16) -> [Self; 2];
    /// What [`Lanes::load_two_finite_f16`] needs, made once for a loop.
    type Halves: Copy;
    unsafe fn halves() -> Self::Halves;
    /// `2 * LEN` finite f16, exactly.
    unsafe fn load_two_finite_f16(from: *const u16, halves: Self::Halves) -> [Self; 2];
    /// `2 * LEN` signed bytes.
    unsafe fn load_two_i8(from: *const i8) -> [Self; 2];

    /// Asks for the memory at these places, which need not be there, where an instruction does so
    /// without waiting for it.
    #[inline(always)]
    unsafe fn fetch(_from: Places) {}

    /// Four floats (16 bytes) for each group.
    unsafe fn groups_f32(from: Places) -> Self;
    /// Four finite f16 (8 bytes) for each group, exactly: weights and scales that are not finite
    /// are refused when a model is loaded.
    unsafe fn groups_f16(from: Places) -> Self;
    /// Twice four finite f16 (16 bytes) for each group, exactly.
    unsafe fn groups_two_f16(from: Places) -> (Self, Self);
    /// As `groups_f16`; slow where one is subnormal.
    #[inline(always)]
    unsafe fn groups_normal_f16(from: Places) -> Self {
        // SAFETY: the trait's contract.
        unsafe { Self::groups_f16(from) }
    }
    /// As `groups_two_f16`; slow where one is subnormal.
    #[inline(always)]
    unsafe fn groups_two_normal_f16(from: Places) -> (Self, Self) {
        // SAFETY: the trait's contract.
        unsafe { Self::groups_two_f16(from) }
    }
    /// Four bf16 (8 bytes) for each group, exactly.
    unsafe fn groups_bf16(from: Places) -> Self;
    /// In each group, lane `r` of vector `c` and lane `c` of vector `r` change places.
    unsafe fn transpose(rows: [Self; 4]) -> [Self; 4];

    /// 16 code bytes for each group: four of each row.
    unsafe fn groups_codes(from: Places) -> Self::Ints;
    /// Byte `column` (0..4) of each lane, signed.
    unsafe fn byte(codes: Self::Ints, column: usize) -> Self::Ints;
    /// The four bits of each lane from bit `4 * nibble` (0..8) on.
    unsafe fn nibble(codes: Self::Ints, nibble: usize) -> Self::Ints;
    unsafe fn subtract(ints: Self::Ints, x: i32) -> Self::Ints;
    /// Exact for magnitudes up to 2^24.
    unsafe fn floats(ints: Self::Ints) -> Self;
}

/// A block's activations for one token, as a [`Dot`] wants them; floats stand four times.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct PackedBlock<C> {
    pub codes: C,
    pub scale: [f32; 4],
    pub scaled_sum: [f32; 4],
    pub sum: i32,
}

pub(super) type Ints<D> = <<D as Dot>::L as Lanes>::Ints;

/// Integer sums of codes times activations: exact, so every way to make them is the same.
///
/// # Safety
///
/// As for [`Lanes`]; `x` are the blocks of `T` tokens.
pub(super) trait Dot: Sized {
    type L: Lanes;
    /// 32 activations in the order and width of the products.
    type Codes: Copy;

    fn codes(x: &QuantizedBlock) -> Self::Codes;

    /// Sums of signed codes times activations over one `q8_0` block (128 code bytes a group), for
    /// `T` tokens.
    unsafe fn bytes<const T: usize>(
        from: Places,
        x: *const PackedBlock<Self::Codes>,
    ) -> [Ints<Self>; T];
    /// Sums of unsigned codes times activations over one `q4` block (64 code bytes a group), for
    /// `T` tokens.
    unsafe fn nibbles<const T: usize>(
        from: Places,
        x: *const PackedBlock<Self::Codes>,
    ) -> [Ints<Self>; T];
    /// As `bytes` for four vectors of rows and one token.
    #[inline(always)]
    unsafe fn bytes_of_four(
        from: [Places; 4],
        x: *const PackedBlock<Self::Codes>,
    ) -> [Ints<Self>; 4] {
        // SAFETY: the trait's contract.
        unsafe {
            let [[a], [b]] = [Self::bytes(from[0], x), Self::bytes(from[1], x)];
            let [[c], [d]] = [Self::bytes(from[2], x), Self::bytes(from[3], x)];
            [a, b, c, d]
        }
    }
    /// As `nibbles` for four vectors of rows and one token.
    #[inline(always)]
    unsafe fn nibbles_of_four(
        from: [Places; 4],
        x: *const PackedBlock<Self::Codes>,
    ) -> [Ints<Self>; 4] {
        // SAFETY: the trait's contract.
        unsafe {
            let [[a], [b]] = [Self::nibbles(from[0], x), Self::nibbles(from[1], x)];
            let [[c], [d]] = [Self::nibbles(from[2], x), Self::nibbles(from[3], x)];
            [a, b, c, d]
        }
    }
}

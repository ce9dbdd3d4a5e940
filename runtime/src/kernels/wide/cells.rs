//! How the elements of a key/value cache become vectors.
#![allow(unsafe_code)]

use crate::kernels::half::f16_to_f32;
use crate::kernels::lanes::Lanes;

/// Vectors that are loaded at once: halves come two by two.
pub const WIDE: usize = 2;

/// A kind of elements of a cache, readable as vectors.
pub trait Element {
    type Cell: Copy;
    /// Reading one costs more than reading a float.
    const PACKED: bool;

    /// # Safety
    ///
    /// As for [`Lanes`]: `2 * LEN` elements.
    unsafe fn load<L: Lanes>(from: *const Self::Cell, halves: L::Halves) -> [L; WIDE];

    fn exact(cell: Self::Cell) -> f32;
}

pub struct Single;

impl Element for Single {
    type Cell = f32;
    const PACKED: bool = false;

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f32, _: L::Halves) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { [L::load(from), L::load(from.add(L::LEN))] }
    }

    #[inline(always)]
    fn exact(cell: f32) -> f32 {
        cell
    }
}

pub struct Half;

impl Element for Half {
    type Cell = u16;
    const PACKED: bool = true;

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u16, _: L::Halves) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { L::load_two_f16(from) }
    }

    #[inline(always)]
    fn exact(cell: u16) -> f32 {
        f16_to_f32(cell)
    }
}

pub struct FiniteHalf;

impl Element for FiniteHalf {
    type Cell = u16;
    const PACKED: bool = true;

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u16, halves: L::Halves) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { L::load_two_finite_f16(from, halves) }
    }

    #[inline(always)]
    fn exact(cell: u16) -> f32 {
        f16_to_f32(cell)
    }
}

pub struct Code;

impl Element for Code {
    type Cell = i8;
    const PACKED: bool = true;

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const i8, _: L::Halves) -> [L; WIDE] {
        // SAFETY: the caller's contract.
        unsafe { L::load_two_i8(from) }
    }

    #[inline(always)]
    fn exact(cell: i8) -> f32 {
        f32::from(cell)
    }
}

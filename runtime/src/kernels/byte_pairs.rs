//! Integer products with AVX2, alone and with AVX-VNNI.
#![allow(unsafe_code)]
// Tokens and vectors are counted: several arrays have the same index.
#![allow(clippy::needless_range_loop)]

extern crate std;

use core::arch::x86_64::*;

use super::avx2::{Avx2, Eight};
use super::lanes::{Dot, Lanes, PackedBlock, Places};
use super::matrix::{COLS, Matrix};
use super::quantized::{Input, QuantizedBlock};
use super::shared::Part;
use super::wide;

impl Avx2 {
    pub fn matmul(self, w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
        #[target_feature(enable = "avx2,f16c")]
        fn enabled(w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
            // SAFETY: the features are enabled here.
            unsafe { wide::matmul::<Maddubs>(w, x, y) }
        }
        // SAFETY: an `Avx2` exists only where both features were detected.
        unsafe { enabled(w, x, y) }
    }
}

/// Proof that the machine has AVX-VNNI besides AVX2 and F16C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnni(Avx2);

impl Vnni {
    pub fn detect() -> Option<Vnni> {
        let avx2 = Avx2::detect()?;
        std::is_x86_feature_detected!("avxvnni").then_some(Vnni(avx2))
    }

    pub fn matmul(self, w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
        #[target_feature(enable = "avx2,f16c,avxvnni")]
        fn enabled(w: &Matrix<'_>, x: Input<'_>, y: &mut Part<'_>) {
            // SAFETY: the features are enabled here.
            unsafe { wide::matmul::<FourPairs>(w, x, y) }
        }
        // SAFETY: a `Vnni` exists only where the features were detected.
        unsafe { enabled(w, x, y) }
    }

    pub fn avx2(self) -> Avx2 {
        self.0
    }
}

type Block = PackedBlock<[i8; COLS]>;

/// `maddubs`: unsigned by signed bytes, neighbours added in 16 bits.
struct Maddubs;

impl Dot for Maddubs {
    type L = Eight;
    type Codes = [i8; COLS];

    #[inline(always)]
    fn codes(x: &QuantizedBlock) -> [i8; COLS] {
        x.codes
    }

    /// `|w|` is at most 128 and the activation, with the sign of `w`, at most 127, so a pair is at
    /// most 32,512 and nothing saturates.
    #[inline(always)]
    unsafe fn bytes<const T: usize>(from: Places, x: *const Block) -> [__m256i; T] {
        // SAFETY: the trait's contract; `4 * j + 4 <= 32` codes.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut sums = [_mm256_setzero_si256(); T];
            for j in 0..8 {
                let w = codes(from, j);
                let magnitudes = _mm256_abs_epi8(w);
                for t in 0..T {
                    let signed = _mm256_sign_epi8(four_codes(x.add(t), 4 * j), w);
                    let pairs = _mm256_maddubs_epi16(magnitudes, signed);
                    let fours = _mm256_madd_epi16(pairs, ones);
                    sums[t] = _mm256_add_epi32(sums[t], fours);
                }
            }
            sums
        }
    }

    /// Eight pairs of products are summed in 16 bits: at most 8 * 2 * 15 * 127 = 30,480.
    #[inline(always)]
    unsafe fn nibbles<const T: usize>(from: Places, x: *const Block) -> [__m256i; T] {
        // SAFETY: the trait's contract; `16 + 4 * j + 4 <= 32` codes.
        unsafe {
            let mut sums = [_mm256_setzero_si256(); T];
            for j in 0..4 {
                let (low, high) = low_and_high(codes(from, j));
                for t in 0..T {
                    let a = _mm256_maddubs_epi16(low, four_codes(x.add(t), 4 * j));
                    let b = _mm256_maddubs_epi16(high, four_codes(x.add(t), 16 + 4 * j));
                    sums[t] = _mm256_add_epi16(sums[t], _mm256_add_epi16(a, b));
                }
            }
            let ones = _mm256_set1_epi16(1);
            sums.map(|sum| _mm256_madd_epi16(sum, ones))
        }
    }
}

/// `dpbusd`: unsigned by signed bytes, four products added in 32 bits, which nothing saturates.
struct FourPairs;

impl Dot for FourPairs {
    type L = Eight;
    type Codes = [i8; COLS];

    #[inline(always)]
    fn codes(x: &QuantizedBlock) -> [i8; COLS] {
        x.codes
    }

    /// With 128 added the codes are unsigned; the sum of activations takes it out again.
    #[inline(always)]
    unsafe fn bytes<const T: usize>(from: Places, x: *const Block) -> [__m256i; T] {
        // SAFETY: the trait's contract; `4 * j + 4 <= 32` codes.
        unsafe {
            let offset = _mm256_set1_epi8(-128);
            let mut sums = [_mm256_setzero_si256(); T];
            for j in 0..8 {
                let w = _mm256_xor_si256(codes(from, j), offset);
                for t in 0..T {
                    sums[t] = _mm256_dpbusd_avx_epi32(sums[t], w, four_codes(x.add(t), 4 * j));
                }
            }
            for t in 0..T {
                sums[t] = Eight::subtract(sums[t], 128 * (*x.add(t)).sum);
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn nibbles<const T: usize>(from: Places, x: *const Block) -> [__m256i; T] {
        // SAFETY: the trait's contract; `16 + 4 * j + 4 <= 32` codes.
        unsafe {
            let mut sums = [_mm256_setzero_si256(); T];
            for j in 0..4 {
                let (low, high) = low_and_high(codes(from, j));
                for t in 0..T {
                    let a = four_codes(x.add(t), 4 * j);
                    let b = four_codes(x.add(t), 16 + 4 * j);
                    sums[t] = _mm256_dpbusd_avx_epi32(sums[t], low, a);
                    sums[t] = _mm256_dpbusd_avx_epi32(sums[t], high, b);
                }
            }
            sums
        }
    }
}

/// 16 code bytes of each group, `j` times 16 further on.
///
/// # Safety
///
/// As for [`Lanes`].
#[inline(always)]
unsafe fn codes(from: Places, j: usize) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe { Eight::groups_codes([from[0].add(16 * j), from[1].add(16 * j)]) }
}

/// The lower and the upper four bits of each byte.
///
/// # Safety
///
/// As for [`Lanes`].
#[inline(always)]
unsafe fn low_and_high(w: __m256i) -> (__m256i, __m256i) {
    // SAFETY: the caller's contract.
    unsafe {
        let bits = _mm256_set1_epi8(15);
        let high = _mm256_srli_epi16::<4>(w);
        (_mm256_and_si256(w, bits), _mm256_and_si256(high, bits))
    }
}

/// Four neighbouring codes in each lane.
///
/// # Safety
///
/// As for [`Lanes`]; `at + 4 <= 32`.
#[inline(always)]
unsafe fn four_codes(x: *const Block, at: usize) -> __m256i {
    // SAFETY: the caller's contract; `codes` is the block's first field and 32 bytes long.
    unsafe { _mm256_set1_epi32(x.cast::<u8>().add(at).cast::<i32>().read_unaligned()) }
}

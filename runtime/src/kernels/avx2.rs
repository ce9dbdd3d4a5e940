//! x86-64 with AVX2 and F16C: two groups of four rows in a vector.
//!
//! No fused multiplication: `_mm256_fmadd_ps` would round once where the contract rounds twice.
#![allow(unsafe_code)]

extern crate std;

use core::arch::x86_64::*;

use protocol::TrResult;

use super::attention::{Attention, Sums, attention};
use super::lanes::{Lanes, Places};
use super::wide;

/// Proof that the machine has AVX2 and F16C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    pub fn detect() -> Option<Avx2> {
        let has = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("f16c");
        has.then_some(Avx2(()))
    }

    /// Runs what is inlined into `work` as AVX2 code.
    #[inline(always)]
    pub fn with<T>(self, work: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "avx2,f16c")]
        fn enabled<T>(work: impl FnOnce() -> T) -> T {
            work()
        }
        // SAFETY: an `Avx2` exists only where both features were detected.
        unsafe { enabled(work) }
    }

    pub fn attention(
        self,
        job: &Attention<'_>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), TrResult> {
        attention(&self, job, scratch, out)
    }
}

impl Sums for Avx2 {
    fn scores(&self, job: &Attention<'_>, scores: &mut [f32], block: &mut [f32]) {
        #[target_feature(enable = "avx2,f16c")]
        fn enabled(job: &Attention<'_>, scores: &mut [f32], block: &mut [f32]) {
            // SAFETY: the features are enabled here.
            unsafe { wide::scores::<Eight>(job, scores, block) }
        }
        // SAFETY: an `Avx2` exists only where both features were detected.
        unsafe { enabled(job, scores, block) }
    }

    fn values(&self, job: &Attention<'_>, e: &[f32], block: &mut [f32], out: &mut [f32]) {
        #[target_feature(enable = "avx2,f16c")]
        fn enabled(job: &Attention<'_>, e: &[f32], block: &mut [f32], out: &mut [f32]) {
            // SAFETY: the features are enabled here.
            unsafe { wide::values::<Eight>(job, e, block, out) }
        }
        // SAFETY: an `Avx2` exists only where both features were detected.
        unsafe { enabled(job, e, block, out) }
    }

    fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        Avx2::with(*self, work)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Eight(__m256);

// SAFETY comments below: the trait asks its caller for the instruction set and for readable
// memory; each body uses only AVX, AVX2 and F16C instructions and unaligned loads of the size that
// the trait names.
impl Lanes for Eight {
    const GROUPS: usize = 2;
    type Ints = __m256i;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Eight {
        // SAFETY: the trait's contract.
        unsafe { Eight(_mm256_set1_ps(x)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Eight) -> Eight {
        // SAFETY: the trait's contract.
        unsafe { Eight(_mm256_add_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Eight) -> Eight {
        // SAFETY: the trait's contract.
        unsafe { Eight(_mm256_mul_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Eight {
        // SAFETY: the trait's contract.
        unsafe { Eight(_mm256_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn load_two_f16(from: *const u16) -> [Eight; 2] {
        // SAFETY: the trait's contract.
        unsafe {
            [from, from.add(8)].map(|from| Eight(_mm256_cvtph_ps(_mm_loadu_si128(from.cast()))))
        }
    }

    type Halves = ();

    #[inline(always)]
    unsafe fn halves() {}

    /// One instruction has no easy cases.
    #[inline(always)]
    unsafe fn load_two_finite_f16(from: *const u16, _: ()) -> [Eight; 2] {
        // SAFETY: the trait's contract.
        unsafe { Eight::load_two_f16(from) }
    }

    #[inline(always)]
    unsafe fn load_two_i8(from: *const i8) -> [Eight; 2] {
        // SAFETY: the trait's contract.
        unsafe {
            [from, from.add(8)].map(|from| {
                let bytes = _mm_loadl_epi64(from.cast());
                Eight(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)))
            })
        }
    }

    #[inline(always)]
    unsafe fn fetch(from: Places) {
        for from in from {
            // SAFETY: the trait's contract; this instruction reads nothing and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
        }
    }

    #[inline(always)]
    unsafe fn groups_f32(from: Places) -> Eight {
        // SAFETY: the trait's contract.
        unsafe { Eight(_mm256_loadu2_m128(from[1].cast(), from[0].cast())) }
    }

    #[inline(always)]
    unsafe fn groups_f16(from: Places) -> Eight {
        // SAFETY: the trait's contract.
        unsafe { Eight(_mm256_cvtph_ps(two_halves(from))) }
    }

    #[inline(always)]
    unsafe fn groups_two_f16(from: Places) -> (Eight, Eight) {
        // SAFETY: the trait's contract.
        unsafe {
            let [a, b] = from.map(|from| _mm_loadu_si128(from.cast()));
            let (first, second) = (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
            (
                Eight(_mm256_cvtph_ps(first)),
                Eight(_mm256_cvtph_ps(second)),
            )
        }
    }

    #[inline(always)]
    unsafe fn groups_bf16(from: Places) -> Eight {
        // SAFETY: the trait's contract.
        unsafe {
            let bits = _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(two_halves(from)));
            Eight(_mm256_castsi256_ps(bits))
        }
    }

    #[inline(always)]
    unsafe fn transpose(rows: [Eight; 4]) -> [Eight; 4] {
        // SAFETY: the trait's contract.
        unsafe {
            let low = [0, 2]
                .map(|r: usize| _mm256_castps_pd(_mm256_unpacklo_ps(rows[r].0, rows[r + 1].0)));
            let high = [0, 2]
                .map(|r: usize| _mm256_castps_pd(_mm256_unpackhi_ps(rows[r].0, rows[r + 1].0)));
            [
                _mm256_unpacklo_pd(low[0], low[1]),
                _mm256_unpackhi_pd(low[0], low[1]),
                _mm256_unpacklo_pd(high[0], high[1]),
                _mm256_unpackhi_pd(high[0], high[1]),
            ]
            .map(|column| Eight(_mm256_castpd_ps(column)))
        }
    }

    #[inline(always)]
    unsafe fn groups_codes(from: Places) -> __m256i {
        // SAFETY: the trait's contract.
        unsafe { _mm256_loadu2_m128i(from[1].cast(), from[0].cast()) }
    }

    #[inline(always)]
    unsafe fn byte(codes: __m256i, column: usize) -> __m256i {
        // SAFETY: the trait's contract.
        unsafe {
            let up = _mm_cvtsi32_si128(24 - 8 * column as i32);
            _mm256_srai_epi32::<24>(_mm256_sll_epi32(codes, up))
        }
    }

    #[inline(always)]
    unsafe fn nibble(codes: __m256i, nibble: usize) -> __m256i {
        // SAFETY: the trait's contract.
        unsafe {
            let down = _mm_cvtsi32_si128(4 * nibble as i32);
            _mm256_and_si256(_mm256_srl_epi32(codes, down), _mm256_set1_epi32(15))
        }
    }

    #[inline(always)]
    unsafe fn subtract(ints: __m256i, x: i32) -> __m256i {
        // SAFETY: the trait's contract.
        unsafe { _mm256_sub_epi32(ints, _mm256_set1_epi32(x)) }
    }

    #[inline(always)]
    unsafe fn floats(ints: __m256i) -> Eight {
        // SAFETY: the trait's contract.
        unsafe { Eight(_mm256_cvtepi32_ps(ints)) }
    }
}

/// 8 bytes from each place.
///
/// # Safety
///
/// As for [`Lanes`].
#[inline(always)]
unsafe fn two_halves(from: Places) -> __m128i {
    // SAFETY: the caller's contract.
    unsafe {
        let low = _mm_loadl_epi64(from[0].cast());
        _mm_unpacklo_epi64(low, _mm_loadl_epi64(from[1].cast()))
    }
}

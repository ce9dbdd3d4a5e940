//! The inner loops, for each instruction set that is worth it.
//!
//! Reading order: `matrix` and `quantized` (what goes in), `shared` (where it goes), `blocks` and
//! `scalar` (the matrix products that define the bits), `vectors` (operations along one vector),
//! `attention`; then the instruction sets, and `suite`, which holds each of them to `scalar` bit
//! for bit.

mod matrix;
mod quantized;
mod shared;

mod attention;
mod blocks;
mod counters;
mod half;
mod scalar;
mod vectors;

#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod lanes;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod wide;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod byte_pairs;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(
    target_arch = "wasm32",
    target_feature = "simd128",
    not(target_feature = "relaxed-simd")
))]
mod pairs;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
mod relaxed;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

#[cfg(test)]
mod golden;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
#[cfg(all(target_arch = "wasm32", feature = "suite"))]
mod suite_exports;

pub use attention::{Attention, Cells, KV_BLOCK, KvHead};
pub use counters::{Calls, calls};
pub use half::{f16_from_f32, f16_to_f32};
pub use matrix::{Matrix, Subnormals};
pub use quantized::{Codes, Input, Quantized, QuantizedBlock};
pub use shared::{Part, SharedRows};
pub(crate) use vectors::{divide, exponentials, greatest, head_code, head_scale};

use format::RopePairing;
use protocol::TrResult;

/// A capability: if you hold it, the instructions exist. Every value gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels(Isa);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
    #[cfg(target_arch = "x86_64")]
    Vnni(byte_pairs::Vnni),
    #[cfg(all(
        target_arch = "wasm32",
        target_feature = "simd128",
        not(target_feature = "relaxed-simd")
    ))]
    Simd128(simd128::Simd128),
    #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
    Relaxed(relaxed::Relaxed),
}

impl Kernels {
    pub const SCALAR: Kernels = Kernels(Isa::Scalar);

    /// The fastest implementation that this machine and build have.
    pub fn best() -> Kernels {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = byte_pairs::Vnni::detect() {
            return Kernels(Isa::Vnni(isa));
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(kernels) = Kernels::avx2() {
            return kernels;
        }
        #[cfg(target_arch = "aarch64")]
        return Kernels(Isa::Neon(neon::Neon::HERE));
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        return Kernels(Isa::Relaxed(relaxed::Relaxed::HERE));
        #[cfg(all(
            target_arch = "wasm32",
            target_feature = "simd128",
            not(target_feature = "relaxed-simd")
        ))]
        return Kernels(Isa::Simd128(simd128::Simd128::HERE));
        #[allow(unreachable_code, reason = "where a build has one implementation")]
        Kernels::SCALAR
    }

    /// Plain AVX2, also where there is more.
    #[cfg(target_arch = "x86_64")]
    pub fn avx2() -> Option<Kernels> {
        Some(Kernels(Isa::Avx2(avx2::Avx2::detect()?)))
    }

    pub fn name(self) -> &'static str {
        match self.0 {
            Isa::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => "avx2",
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => "neon",
            #[cfg(target_arch = "x86_64")]
            Isa::Vnni(_) => "avx2-vnni",
            #[cfg(all(
                target_arch = "wasm32",
                target_feature = "simd128",
                not(target_feature = "relaxed-simd")
            ))]
            Isa::Simd128(_) => "simd128",
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Isa::Relaxed(_) => "relaxed",
        }
    }

    /// Quantizes `x` `[tokens][cols]` by 32-blocks into `out`. `cols` is a multiple of 32; `out`
    /// has room.
    pub fn quantize(self, x: &[f32], cols: usize, out: &mut Quantized) {
        assert!(x.len().is_multiple_of(cols));
        self.quantize_blocks(x, out.reshape(x.len() / cols, cols));
    }

    /// Quantizes `x` into as many blocks as it has.
    pub fn quantize_blocks(self, x: &[f32], blocks: &mut [QuantizedBlock]) {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        if self != Kernels::SCALAR {
            return simd128::Simd128::HERE.quantize(x, blocks);
        }
        self.with(|| vectors::quantize(x, blocks));
    }

    /// `y[t][r] = sum over k of w[r][k] * x[t][k]` for the rows `r` of `y`'s part.
    ///
    /// The integer form is used if the input has one and the layout is quantized. The part begins
    /// at a multiple of four rows; input, matrix and output agree in tokens, columns and rows.
    pub fn matmul(self, w: &Matrix<'_>, x: Input<'_>, mut y: Part<'_>) {
        let columns = y.columns();
        assert!(x.cols() == w.cols() && x.tokens() == y.tokens());
        assert!(columns.start.is_multiple_of(4) && columns.end <= w.rows());
        if columns.is_empty() {
            return;
        }
        match self.0 {
            Isa::Scalar => {
                counters::count_scalar();
                scalar::matmul(w, x, &mut y);
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(isa) => {
                counters::count_simd();
                isa.matmul(w, x, &mut y);
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(isa) => {
                counters::count_simd();
                isa.matmul(w, x, &mut y);
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Vnni(isa) => {
                counters::count_simd();
                isa.matmul(w, x, &mut y);
            }
            #[cfg(all(
                target_arch = "wasm32",
                target_feature = "simd128",
                not(target_feature = "relaxed-simd")
            ))]
            Isa::Simd128(isa) => {
                counters::count_simd();
                isa.matmul(w, x, &mut y);
            }
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Isa::Relaxed(isa) => {
                counters::count_relaxed();
                isa.matmul(w, x, &mut y);
            }
        }
    }

    /// Row `row` of `w` as f32 (`[cols]`).
    pub fn row(self, w: &Matrix<'_>, row: usize, out: &mut [f32]) {
        assert!(row < w.rows() && out.len() == w.cols());
        scalar::row(w, row, out);
    }

    /// `out = x * (1 / sqrt(mean(x^2) + eps)) * weight`, all of one length.
    pub fn rms_norm(self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        self.with(|| vectors::rms_norm(x, weight, eps, out));
    }

    /// `out = silu_v1(gate) * up`.
    pub fn silu_mul(self, gate: &[f32], up: &[f32], out: &mut [f32]) {
        self.with(|| vectors::silu_mul(gate, up, out));
    }

    /// `y += x`.
    pub fn add_assign(self, y: &mut [f32], x: &[f32]) {
        self.with(|| vectors::add_assign(y, x));
    }

    /// Rotates the leading `2 * cos.len()` elements of every head of one position.
    /// `x` is `[heads][head_dim]`; `cos` and `sin` are that position's table rows.
    pub fn rope(
        self,
        x: &mut [f32],
        head_dim: usize,
        pairing: RopePairing,
        cos: &[f32],
        sin: &[f32],
    ) {
        self.with(|| vectors::rope(x, head_dim, pairing, cos, sin));
    }

    /// Attention of query heads of neighbouring positions over one key/value head; `out` is shaped
    /// as the queries, `scratch` has at least [`Attention::scratch_len`] elements.
    ///
    /// `InvalidArgument` for a span without keys, `Bounds` if the cache or a buffer is too short,
    /// `NumericalFailure` if a score is NaN or the sum of exponentials is not finite and positive.
    pub fn attention(
        self,
        job: &Attention<'_>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), TrResult> {
        match self.0 {
            Isa::Scalar => attention::attention(&attention::ScalarSums, job, scratch, out),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(isa) => isa.attention(job, scratch, out),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(isa) => isa.attention(job, scratch, out),
            #[cfg(target_arch = "x86_64")]
            Isa::Vnni(isa) => isa.avx2().attention(job, scratch, out),
            #[cfg(all(
                target_arch = "wasm32",
                target_feature = "simd128",
                not(target_feature = "relaxed-simd")
            ))]
            Isa::Simd128(isa) => isa.attention(job, scratch, out),
            #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
            Isa::Relaxed(_) => simd128::Simd128::HERE.attention(job, scratch, out),
        }
    }

    /// Runs what is inlined into `work` on the widest vectors; elsewhere a build has one width.
    #[inline(always)]
    pub(crate) fn with<T>(self, work: impl FnOnce() -> T) -> T {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(isa) => isa.with(work),
            #[cfg(target_arch = "x86_64")]
            Isa::Vnni(isa) => isa.avx2().with(work),
            _ => work(),
        }
    }
}

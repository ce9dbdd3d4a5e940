//! The inner loops.

mod attention;
mod counters;
mod half;
mod matrix;
mod quantized;
mod shared;

pub use attention::{Attention, Cells, KV_BLOCK, KvHead};
pub use counters::{Calls, calls};
pub use half::{f16_from_f32, f16_to_f32};
pub use matrix::Matrix;
pub use quantized::{Input, Quantized};
pub use shared::{Part, SharedRows};

use format::RopePairing;
use protocol::TrResult;

/// A capability: if you hold it, the instructions exist. Every value gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels(Isa);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    Scalar,
}

impl Kernels {
    pub const SCALAR: Kernels = Kernels(Isa::Scalar);

    /// The fastest implementation that this machine and build have.
    pub fn best() -> Kernels {
        Kernels::SCALAR
    }

    pub fn name(self) -> &'static str {
        "scalar"
    }

    /// Quantizes `x` `[tokens][cols]` by 32-blocks into `out`. `cols` is a multiple of 32.
    pub fn quantize(self, x: &[f32], cols: usize, out: &mut Quantized) {
        todo!("{x:?} {cols} {}", out.tokens())
    }

    /// `y[t][r] = sum over k of w[r][k] * x[t][k]` for the rows `r` of `y`'s part.
    ///
    /// The integer form is used if the input has one and the layout is quantized.
    pub fn matmul(self, w: &Matrix<'_>, x: Input<'_>, y: Part<'_>) {
        todo!("{} {} {:?}", w.rows(), x.tokens(), y.columns())
    }

    /// Row `row` of `w` as f32 (`[cols]`).
    pub fn row(self, w: &Matrix<'_>, row: usize, out: &mut [f32]) {
        todo!("{} {row} {out:?}", w.rows())
    }

    /// `out = x * (1 / sqrt(mean(x^2) + eps)) * weight`, all of one length.
    pub fn rms_norm(self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        todo!("{x:?}{weight:?}{eps}{out:?}")
    }

    /// `out = silu_v1(gate) * up`.
    pub fn silu_mul(self, gate: &[f32], up: &[f32], out: &mut [f32]) {
        todo!("{gate:?}{up:?}{out:?}")
    }

    /// `y += x`.
    pub fn add_assign(self, y: &mut [f32], x: &[f32]) {
        todo!("{x:?}{y:?}")
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
        todo!("{x:?}{head_dim}{pairing:?}{cos:?}{sin:?}")
    }

    /// Attention of one or more query heads of one position over one key/value head.
    pub fn attention(
        self,
        job: &Attention<'_>,
        scores: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), TrResult> {
        todo!("{:?}{scores:?}{out:?}", job.span)
    }
}

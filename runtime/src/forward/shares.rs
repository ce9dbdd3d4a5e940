//! What the workers do between two meetings for one position or a few: each its own rows of a
//! matrix or its own heads, and everything that can be done with these alone.

use core::ops::Range;

use format::{Activation, NormKind};
use protocol::{Mode, TrResult};

use super::{Graph, Tile};
use crate::functions::rsqrt;
use crate::kernels::{Attention, Codes, Input, Part, Quantized, SharedRows};
use crate::kv::Cache;
use crate::scratch::Lengths;
use crate::weights::{LayerWeights, Linear, MatrixAt, VectorAt};

/// Multiply-adds of a worker between two looks at the stop word: under two milliseconds with SIMD,
/// ten without, and enough that a look costs nothing.
const WORK_BETWEEN_LOOKS: usize = 1 << 23;
/// Rows of a product's matrix go to workers by whole groups of four, as they lie in memory.
pub(super) const ROW_GROUP: usize = 4;
/// Parts of a tile's work for each worker of several. Many even out better, few cost less. The work
/// for one position has one part a worker: weights come in faster in long streams.
const PARTS_OF_TILE: usize = 4;
/// `SharedRows` knows no more.
const PARTS_MAX: usize = 64;
/// Activations in one block of codes.
pub(super) const BLOCK: usize = format::BLOCK as usize;

/// What enters a product: `[count][cols]`, with codes if they were made.
pub(super) fn input<'a>(x: &'a [f32], cols: usize, codes: Option<Codes<'a>>) -> Input<'a> {
    match codes {
        Some(codes) => Input::int8(x, codes),
        None => Input::strict(x, cols),
    }
}

/// Buffers of the gated half of an FFN, `[count][ffn]` each.
pub(super) struct Gated<'a> {
    pub gate: &'a mut [f32],
    pub up: &'a mut [f32],
    pub activated: &'a mut [f32],
    pub codes: Option<&'a mut Quantized>,
}

/// Query heads of a tile, and what they attend to.
pub(super) struct Heads<'a> {
    pub layer: usize,
    pub tile: Tile,
    pub cache: &'a Cache,
    /// `[count][heads][head_dim]`, not yet turned.
    pub q: &'a [f32],
    /// `[count][pairs]`, and more after them.
    pub cos: &'a [f32],
    pub sin: &'a [f32],
}

impl Graph {
    pub(super) fn workers(&self) -> usize {
        self.team.workers()
    }

    /// Parts into which the work for `count` positions is cut.
    pub(super) fn parts(&self, count: usize) -> usize {
        match (self.workers(), count) {
            (1, _) => 1,
            (workers, 1) => workers,
            (workers, _) => (workers * PARTS_OF_TILE).min(PARTS_MAX),
        }
    }

    /// Whether any of these reads codes of its input.
    pub(super) fn coded<const N: usize>(&self, readers: [&MatrixAt; N]) -> bool {
        self.mode == Mode::Int8V1 && readers.iter().any(|matrix| matrix.is_quantized())
    }

    /// Normalizes every row of `x`, with codes if they are read. Workers share a tile's rows; one
    /// row is less than a meeting costs.
    pub(super) fn norm(
        &self,
        weight: &VectorAt,
        x: &[f32],
        out: &mut [f32],
        codes: Option<&mut Quantized>,
    ) -> Result<(), TrResult> {
        let cols = self.architecture.hidden as usize;
        let count = x.len() / cols;
        let parts = if count == 1 { 1 } else { self.parts(count) };
        let normed = SharedRows::new(out, x.len(), cols, parts);
        let blocks = codes.map(|codes| {
            let blocks = codes.reshape(count, cols);
            SharedRows::new(blocks, x.len() / BLOCK, cols / BLOCK, parts)
        });
        let work = |part| {
            let mut normed = normed.part(part);
            let x = &x[normed.columns()];
            let normed = normed.row_mut(0);
            self.norm_rows(weight, x, normed);
            if let Some(blocks) = &blocks {
                let mut blocks = blocks.part(part);
                self.kernels.quantize_blocks(normed, blocks.row_mut(0));
            }
            Ok(())
        };
        match parts {
            1 => work(0),
            _ => self.team.share(parts, work),
        }
    }

    /// Normalizes every row of `x`.
    pub(super) fn norm_rows(&self, weight: &VectorAt, x: &[f32], out: &mut [f32]) {
        let weight = self.weights.vector(weight);
        let NormKind::Rms = self.architecture.norm.kind;
        let eps = self.architecture.norm.eps;
        let rows = x.chunks_exact(weight.len());
        for (x, out) in rows.zip(out.chunks_exact_mut(weight.len())) {
            self.kernels.rms_norm(x, weight, eps, out);
        }
    }

    /// Several projections of one input, `y = W x (+ b)`; workers share the rows of each.
    pub(super) fn project<const N: usize>(
        &self,
        jobs: [(&Linear, &mut [f32]); N],
        input: Input<'_>,
    ) -> Result<(), TrResult> {
        let parts = self.parts(input.tokens());
        let jobs = jobs.map(|(linear, y)| {
            let rows = SharedRows::new(y, linear.matrix.rows(), ROW_GROUP, parts);
            (linear, rows)
        });
        self.team.share(parts, |part| {
            for (linear, y) in &jobs {
                self.project_part(linear, input, &mut y.part(part))?;
            }
            Ok(())
        })
    }

    /// `x += W input (+ b)`; workers share the rows.
    pub(super) fn add(
        &self,
        linear: &Linear,
        input: Input<'_>,
        delta: &mut [f32],
        x: &mut [f32],
    ) -> Result<(), TrResult> {
        let rows = linear.matrix.rows();
        let parts = self.parts(input.tokens());
        let delta = SharedRows::new(delta, rows, ROW_GROUP, parts);
        let x = SharedRows::new(x, rows, ROW_GROUP, parts);
        self.team.share(parts, |part| {
            let (mut delta, mut x) = (delta.part(part), x.part(part));
            self.project_part(linear, input, &mut delta)?;
            for row in 0..x.tokens() {
                self.kernels.add_assign(x.row_mut(row), delta.row_mut(row));
            }
            Ok(())
        })
    }

    /// `activated = silu(gate(x)) * up(x)`, with codes if they are read; workers share the columns
    /// by whole blocks.
    pub(super) fn gate(
        &self,
        w: &LayerWeights,
        input: Input<'_>,
        to: Gated<'_>,
    ) -> Result<(), TrResult> {
        let Activation::Silu = self.architecture.activation;
        let ffn = self.architecture.ffn as usize;
        let parts = self.parts(input.tokens());
        let gate = SharedRows::new(to.gate, ffn, BLOCK, parts);
        let up = SharedRows::new(to.up, ffn, BLOCK, parts);
        let activated = SharedRows::new(to.activated, ffn, BLOCK, parts);
        let blocks = to.codes.map(|codes| {
            let blocks = codes.reshape(input.tokens(), ffn);
            SharedRows::new(blocks, ffn / BLOCK, 1, parts)
        });
        self.team.share(parts, |part| {
            let (mut gate, mut up) = (gate.part(part), up.part(part));
            self.project_part(&w.gate, input, &mut gate)?;
            self.project_part(&w.up, input, &mut up)?;
            let mut activated = activated.part(part);
            let mut blocks = blocks.as_ref().map(|blocks| blocks.part(part));
            for row in 0..gate.tokens() {
                let activated = activated.row_mut(row);
                self.kernels
                    .silu_mul(gate.row_mut(row), up.row_mut(row), activated);
                if let Some(blocks) = &mut blocks {
                    self.kernels.quantize_blocks(activated, blocks.row_mut(row));
                }
            }
            Ok(())
        })
    }

    /// A part's rows of `y = W x`, with looks at the stop word.
    pub(super) fn multiply(
        &self,
        matrix: &MatrixAt,
        input: Input<'_>,
        y: &mut Part<'_>,
    ) -> Result<(), TrResult> {
        let matrix = self.weights.matrix(matrix)?;
        let rows = rows_between_looks(matrix.cols(), input.tokens());
        let mut rest = y.lend();
        while let Some(part) = rest.take(rows) {
            self.team.check()?;
            self.kernels.matmul(&matrix, input, part);
        }
        Ok(())
    }

    /// A part's rows of `y = W x (+ b)`.
    pub(super) fn project_part(
        &self,
        linear: &Linear,
        input: Input<'_>,
        y: &mut Part<'_>,
    ) -> Result<(), TrResult> {
        self.multiply(&linear.matrix, input, y)?;
        if let Some(bias) = &linear.bias {
            let bias = &self.weights.vector(bias)[y.columns()];
            for row in 0..y.tokens() {
                self.kernels.add_assign(y.row_mut(row), bias);
            }
        }
        Ok(())
    }
}

/// Whole groups of rows of a product that a worker computes between two looks at the stop word.
fn rows_between_looks(cols: usize, tokens: usize) -> usize {
    let rows = WORK_BETWEEN_LOOKS / (cols * tokens).max(1);
    (rows - rows % ROW_GROUP).max(ROW_GROUP)
}

impl Heads<'_> {
    /// A part's elements `mine` of the tile's `[count][heads][head_dim]`: whole positions, or
    /// whole heads of the only one.
    ///
    /// Heads that share a key/value head go together, and so do some neighbouring positions.
    pub(super) fn attend(
        &self,
        graph: &Graph,
        mine: Range<usize>,
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), TrResult> {
        let head_dim = graph.architecture.head_dim as usize;
        let all = graph.architecture.heads as usize;
        let group = all / graph.architecture.kv_heads as usize;
        let width = all * head_dim;
        let (rows, heads) = match self.tile.count {
            1 => (0..1, mine.start / head_dim..mine.end / head_dim),
            _ => (mine.start / width..mine.end / width, 0..all),
        };
        let window = graph.architecture.layers[self.layer].mixer.window();
        let window = window.map_or(usize::MAX, |window| window as usize);
        // The windows of neighbours begin at different positions.
        let together = match self.tile.start + self.tile.count > window {
            true => 1,
            false => Lengths::positions_together(group),
        };
        for row in rows.clone().step_by(together) {
            let positions = together.min(rows.end - row);
            let mut head = heads.start;
            while head < heads.end {
                let count = (group - head % group).min(heads.end - head);
                let len = count * head_dim;
                let (queries, scratch) = scratch.split_at_mut(positions * len);
                let (mixed, scratch) = scratch.split_at_mut(positions * len);
                for (at, queries) in queries.chunks_exact_mut(len).enumerate() {
                    let first = (row + at) * width + head * head_dim;
                    queries.copy_from_slice(&self.q[first..][..len]);
                    self.turn(graph, row + at, queries);
                }
                let job = Attention {
                    queries,
                    positions,
                    kv: self.cache.head(self.layer, head / group),
                    span: (self.tile.start + row + 1).saturating_sub(window)
                        ..self.tile.start + row + 1,
                    scale: rsqrt(head_dim as f32),
                    softcap: 0.0,
                };
                graph.team.check()?;
                graph.kernels.attention(&job, scratch, mixed)?;
                for (at, mixed) in mixed.chunks_exact(len).enumerate() {
                    let first = (row + at) * width + head * head_dim - mine.start;
                    out[first..][..len].copy_from_slice(mixed);
                }
                head += count;
            }
        }
        Ok(())
    }

    /// Rotates heads of the position in row `row`.
    fn turn(&self, graph: &Graph, row: usize, heads: &mut [f32]) {
        let pairs = graph.rotary.pairs();
        let cos = &self.cos[row * pairs..][..pairs];
        let sin = &self.sin[row * pairs..][..pairs];
        let head_dim = graph.architecture.head_dim as usize;
        let pairing = graph.rotary.pairing();
        graph.kernels.rope(heads, head_dim, pairing, cos, sin);
    }
}

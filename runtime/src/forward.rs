//! The transformer, as the papers have it: llama (Touvron et al. 2023) with RMSNorm (Zhang and
//! Sennrich 2019), rotary positions (Su et al. 2021), grouped queries (Ainslie et al. 2023) and a
//! gated feed-forward network (Shazeer 2020).
//!
//! Every function works on the `count` positions from `start` on, which stand in the first `count`
//! rows of the scratch buffers. Prefill calls it layer by layer for a tile, decoding for one
//! position. No operation mixes rows except attention, and there a position reads only the cache,
//! so a position's arithmetic does not depend on its batch.

use format::{Activation, Architecture, Ffn, Layer, Mixer, NormKind};
use protocol::{Mode, TrResult};

use crate::functions::rsqrt;
use crate::kernels::{Attention, Input, Kernels, Quantized, SharedRows};
use crate::kv::Cache;
use crate::rope::Rotary;
use crate::scratch::Scratch;
use crate::team::{Team, split};
use crate::weights::{LayerWeights, Linear, MatrixAt, VectorAt, Weights};

/// A model's unchanging parts: how to compute, and with what.
pub struct Graph {
    pub kernels: Kernels,
    pub team: Team,
    pub mode: Mode,
    pub weights: Weights,
    pub rotary: Rotary,
    pub architecture: Architecture,
}

/// Neighbouring positions computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    pub start: usize,
    pub count: usize,
}

/// Multiply-adds of a worker between two looks at the stop word: under two milliseconds with SIMD,
/// ten without, and enough that a look costs nothing.
const WORK_BETWEEN_LOOKS: usize = 1 << 23;

/// Rows of a product's matrix go to workers by whole groups of four, as they lie in memory.
const ROW_GROUP: usize = 4;

impl Graph {
    /// Token embeddings and rotary angles of a tile: `x = embed[id]`.
    pub fn embed(&self, ids: &[u32], start: usize, s: &mut Scratch) -> Result<(), TrResult> {
        let embed = self.weights.matrix(&self.weights.embed)?; // (V, D)
        let (hidden, pairs) = (embed.cols(), self.rotary.pairs());
        for (row, id) in ids.iter().enumerate() {
            self.kernels
                .row(&embed, *id as usize, &mut s.x[row * hidden..][..hidden]);
            let cos = &mut s.cos[row * pairs..][..pairs];
            let sin = &mut s.sin[row * pairs..][..pairs];
            self.rotary.angles((start + row) as u32, cos, sin);
        }
        Ok(())
    }

    /// One layer: the residual stream gains what the mixer adds, then what the FFN adds.
    pub fn layer(
        &self,
        layer: usize,
        tile: Tile,
        cache: &mut Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let Layer { mixer, ffn } = self.architecture.layers[layer];
        let w = &self.weights.layers[layer];
        match mixer {
            Mixer::Attention => self.attention(layer, w, tile, cache, s)?,
        }
        match ffn {
            Ffn::Dense => self.dense(w, tile.count, s)?,
        }
        Ok(())
    }

    /// Logits of the position in row `row`: `head(norm(x))`.
    pub fn head(&self, row: usize, s: &mut Scratch, logits: &mut [f32]) -> Result<(), TrResult> {
        let hidden = self.architecture.hidden as usize;
        let x = &s.x[row * hidden..][..hidden]; // (D)
        self.norm(&self.weights.norm, x, &mut s.normed[..hidden]);
        let input = self.input(
            &s.normed[..hidden],
            hidden,
            [&self.weights.head],
            &mut s.codes,
        );
        self.products([(&self.weights.head, logits)], input) // (V)
    }

    /// `x += o(attention(rope(q), rope(k), v)) `, with q, k, v projected from `norm(x)`.
    fn attention(
        &self,
        layer: usize,
        w: &LayerWeights,
        tile: Tile,
        cache: &mut Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let Tile { start, count } = tile;
        let hidden = self.architecture.hidden as usize;
        let head_dim = self.architecture.head_dim as usize;
        let queries = self.architecture.heads as usize * head_dim;
        let keys = self.architecture.kv_heads as usize * head_dim;

        let normed = &mut s.normed[..count * hidden]; // (count, D)
        self.norm(&w.attn_norm, &s.x[..count * hidden], normed);
        let input = self.input(
            normed,
            hidden,
            [&w.q.matrix, &w.k.matrix, &w.v.matrix],
            &mut s.codes,
        );
        let q = &mut s.q[..count * queries]; // (count, Q)
        let k = &mut s.k[..count * keys]; // (count, K)
        let v = &mut s.v[..count * keys]; // (count, K)
        self.project([(&w.q, q), (&w.k, k), (&w.v, v)], input)?;

        let pairs = self.rotary.pairs();
        for row in 0..count {
            let (cos, sin) = (
                &s.cos[row * pairs..][..pairs],
                &s.sin[row * pairs..][..pairs],
            );
            let q = &mut s.q[row * queries..][..queries];
            let k = &mut s.k[row * keys..][..keys];
            let v = &s.v[row * keys..][..keys];
            let pairing = self.rotary.pairing();
            self.kernels.rope(q, head_dim, pairing, cos, sin);
            self.kernels.rope(k, head_dim, pairing, cos, sin);
            cache.write(layer, start + row, k, v);
        }

        self.attend(layer, tile, cache, s)?;
        let mixed = &s.mixed[..count * queries]; // (count, Q)
        let input = self.input(mixed, queries, [&w.o.matrix], &mut s.codes);
        let delta = &mut s.delta[..count * hidden]; // (count, D)
        self.project([(&w.o, delta)], input)?;
        self.kernels.add_assign(&mut s.x[..count * hidden], delta);
        Ok(())
    }

    /// `mixed = softmax(q k / sqrt(head_dim)) v`, each position over itself and all before it.
    /// Workers share the query heads.
    fn attend(
        &self,
        layer: usize,
        tile: Tile,
        cache: &Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let head_dim = self.architecture.head_dim as usize;
        let heads = self.architecture.heads as usize;
        let group = heads / self.architecture.kv_heads as usize;
        let width = heads * head_dim;
        let workers = self.team.workers();
        let scale = rsqrt(head_dim as f32);

        let q = &s.q[..tile.count * width]; // (count, heads, head_dim)
        let mixed = &mut s.mixed[..tile.count * width]; // (count, heads, head_dim)
        let mixed = SharedRows::new(mixed, width, head_dim, workers);
        let score_len = s.scores.len() / workers;
        let scores = &mut s.scores[..workers * score_len];
        let scores = SharedRows::new(scores, workers * score_len, score_len, workers);
        self.team.run(|worker| {
            let mut out = mixed.part(worker);
            let mut scores = scores.part(worker);
            let mine = split(heads, 1, workers, worker);
            for row in 0..tile.count {
                let mut head = mine.start;
                while head < mine.end {
                    // Query heads that share a key/value head go together.
                    let count = (group - head % group).min(mine.end - head);
                    let job = Attention {
                        queries: &q[row * width + head * head_dim..][..count * head_dim],
                        kv: cache.head(layer, head / group),
                        span: 0..tile.start + row + 1,
                        scale,
                        softcap: 0.0,
                    };
                    let first = (head - mine.start) * head_dim;
                    let out = &mut out.row_mut(row)[first..][..count * head_dim];
                    self.kernels.attention(&job, scores.row_mut(0), out)?;
                    head += count;
                }
            }
            Ok(())
        })
    }

    /// `x += down(silu(gate(norm(x))) * up(norm(x)))`.
    fn dense(&self, w: &LayerWeights, count: usize, s: &mut Scratch) -> Result<(), TrResult> {
        let hidden = self.architecture.hidden as usize;
        let ffn = self.architecture.ffn as usize;

        let normed = &mut s.normed[..count * hidden]; // (count, D)
        self.norm(&w.ffn_norm, &s.x[..count * hidden], normed);
        let input = self.input(normed, hidden, [&w.gate.matrix, &w.up.matrix], &mut s.codes);
        let gate = &mut s.gate[..count * ffn]; // (count, F)
        let up = &mut s.up[..count * ffn]; // (count, F)
        self.project([(&w.gate, gate), (&w.up, up)], input)?;
        self.activate(count, s)?;

        let activated = &s.activated[..count * ffn]; // (count, F)
        let input = self.input(activated, ffn, [&w.down.matrix], &mut s.codes);
        let delta = &mut s.delta[..count * hidden]; // (count, D)
        self.project([(&w.down, delta)], input)?;
        self.kernels.add_assign(&mut s.x[..count * hidden], delta);
        Ok(())
    }

    /// `activated = silu(gate) * up`. A tile's work is shared by columns; one position's is less
    /// than waking the workers costs.
    fn activate(&self, count: usize, s: &mut Scratch) -> Result<(), TrResult> {
        let ffn = self.architecture.ffn as usize;
        let (gate, up) = (&s.gate[..count * ffn], &s.up[..count * ffn]);
        let out = &mut s.activated[..count * ffn];
        let Activation::Silu = self.architecture.activation;
        let workers = self.team.workers();
        if count == 1 || workers == 1 {
            self.kernels.silu_mul(gate, up, out);
            return Ok(());
        }
        let out = SharedRows::new(out, ffn, ROW_GROUP, workers);
        self.team.run(|worker| {
            let mut out = out.part(worker);
            let columns = out.columns();
            for row in 0..count {
                let (gate, up) = (&gate[row * ffn..][..ffn], &up[row * ffn..][..ffn]);
                self.kernels.silu_mul(
                    &gate[columns.clone()],
                    &up[columns.clone()],
                    out.row_mut(row),
                );
            }
            Ok(())
        })
    }

    /// Normalizes every row of `x`; rows are as wide as the weight.
    fn norm(&self, weight: &VectorAt, x: &[f32], out: &mut [f32]) {
        let weight = self.weights.vector(weight);
        let NormKind::Rms = self.architecture.norm.kind;
        let eps = self.architecture.norm.eps;
        let rows = x.chunks_exact(weight.len());
        for (x, out) in rows.zip(out.chunks_exact_mut(weight.len())) {
            self.kernels.rms_norm(x, weight, eps, out);
        }
    }

    /// What enters products with `readers`: in mode `int8-v1` with codes, if any reader takes them.
    fn input<'a, const N: usize>(
        &self,
        x: &'a [f32],
        cols: usize,
        readers: [&MatrixAt; N],
        codes: &'a mut Quantized,
    ) -> Input<'a> {
        let quantized = readers.iter().any(|matrix| matrix.is_quantized());
        match self.mode {
            Mode::Int8V1 if quantized => {
                self.kernels.quantize(x, cols, codes);
                Input::int8(x, codes)
            }
            _ => Input::strict(x, cols),
        }
    }

    /// Several projections of one input: `y = W x (+ b)`.
    fn project<const N: usize>(
        &self,
        mut jobs: [(&Linear, &mut [f32]); N],
        input: Input<'_>,
    ) -> Result<(), TrResult> {
        self.products(
            jobs.each_mut()
                .map(|(linear, y)| (&linear.matrix, &mut **y)),
            input,
        )?;
        for (linear, y) in jobs {
            if let Some(bias) = &linear.bias {
                let bias = self.weights.vector(bias);
                for row in y.chunks_exact_mut(bias.len()) {
                    self.kernels.add_assign(row, bias);
                }
            }
        }
        Ok(())
    }

    /// Several products of one input in one meeting of the workers, who share the rows.
    fn products<const N: usize>(
        &self,
        jobs: [(&MatrixAt, &mut [f32]); N],
        input: Input<'_>,
    ) -> Result<(), TrResult> {
        let workers = self.team.workers();
        let tokens = input.tokens();
        let jobs = jobs.map(|(at, y)| {
            let rows = SharedRows::new(y, at.rows(), ROW_GROUP, workers);
            (at, rows)
        });
        self.team.run(|worker| {
            for (at, y) in &jobs {
                let matrix = self.weights.matrix(at)?;
                let rows = rows_between_looks(matrix.cols(), tokens);
                let mut y = y.part(worker);
                while let Some(part) = y.take(rows) {
                    self.team.check()?;
                    self.kernels.matmul(&matrix, input, part);
                }
            }
            Ok(())
        })
    }
}

/// Whole groups of rows of a product that a worker computes between two looks at the stop word.
fn rows_between_looks(cols: usize, tokens: usize) -> usize {
    let rows = WORK_BETWEEN_LOOKS / (cols * tokens).max(1);
    (rows - rows % ROW_GROUP).max(ROW_GROUP)
}

//! The transformer, as the papers have it: llama (Touvron et al. 2023) with RMSNorm (Zhang and
//! Sennrich 2019), rotary positions (Su et al. 2021), grouped queries (Ainslie et al. 2023) and a
//! gated feed-forward network (Shazeer 2020).
//!
//! Every function works on the `count` positions from `start` on, which stand in the first `count`
//! rows of the scratch buffers, of the residual stream in those from `row` on. Prefill calls it
//! layer by layer for a tile, decoding for one position. No operation mixes rows except attention,
//! and there a position reads only the cache, so a position's arithmetic does not depend on its
//! batch.
//!
//! A layer is five meetings of the workers for one position, and two more for a few: `shares` has
//! what each worker does in one of them. If there are positions enough for every worker, each
//! takes some of them through the layer, see `bands`.

mod bands;
mod shares;

use format::{Architecture, Ffn, Layer, Mixer};
use protocol::{Mode, Stage, TrResult};

use crate::RuntimeError;
use crate::kernels::{Kernels, SharedRows};
use crate::kv::Cache;
use crate::rope::Rotary;
use crate::scratch::Scratch;
use crate::team::{Parts, Team};
use crate::weights::{HeadPart, LayerWeights, Source, Weights};
use shares::{BLOCK, Gated, Heads, ROW_GROUP, input};

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
    /// Where its rows begin in `x`, `cos` and `sin`, which hold a group of tiles.
    pub row: usize,
}

impl Graph {
    /// Token embeddings and rotary angles of all `ids`, which begin where the tile does:
    /// `x = embed[id]`.
    pub fn embed(
        &mut self,
        ids: &[u32],
        tile: Tile,
        source: &mut dyn Source,
        s: &mut Scratch,
    ) -> Result<(), RuntimeError> {
        let refuse = |code| RuntimeError::new(code, Stage::Prefill);
        let (hidden, pairs) = (self.architecture.hidden as usize, self.rotary.pairs());
        for (at, id) in ids.iter().enumerate() {
            let (id, row) = (*id as usize, tile.row + at);
            self.weights.bring_row(id, source)?;
            let (embed, its) = self.weights.row(id).map_err(refuse)?; // (V, D)
            let x = &mut s.x[row * hidden..][..hidden];
            self.kernels.row(&embed, its, x);
            let cos = &mut s.cos[row * pairs..][..pairs];
            let sin = &mut s.sin[row * pairs..][..pairs];
            self.rotary.angles((tile.start + at) as u32, cos, sin);
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
        self.queries_keys_values(layer, tile, cache, s)?;
        self.mixer_and_ffn(layer, tile, cache, s)
    }

    /// The last layer, where only what comes after the prompt is asked for: of all positions but
    /// the prompt's final one, nothing but keys and values is ever read again.
    pub fn last_layer(
        &self,
        layer: usize,
        tile: Tile,
        has_final: bool,
        cache: &mut Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        self.queries_keys_values(layer, tile, cache, s)?;
        if !has_final {
            return Ok(());
        }
        let (last, width) = (tile.count - 1, self.queries());
        // To where a tile of one position has its queries.
        s.q.copy_within(last * width..(last + 1) * width, 0);
        let tile = Tile {
            start: tile.start + last,
            count: 1,
            row: tile.row + last,
        };
        self.mixer_and_ffn(layer, tile, cache, s)
    }

    /// Elements of a position's queries, and of its keys or values.
    fn queries(&self) -> usize {
        self.architecture.heads as usize * self.architecture.head_dim as usize
    }

    fn keys(&self) -> usize {
        self.architecture.kv_heads as usize * self.architecture.head_dim as usize
    }

    /// Logits of the position in row `row`: `head(norm(x))`, as much of the head at a time as is
    /// in memory.
    pub fn head(
        &mut self,
        row: usize,
        source: &mut dyn Source,
        s: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), RuntimeError> {
        let refuse = |code| RuntimeError::new(code, Stage::Decode);
        self.head_input(row, s).map_err(refuse)?;
        for part in 0..self.weights.head.len() {
            self.weights.bring_head(part, source)?;
            let head = &self.weights.head[part];
            self.head_part(head, s, logits).map_err(refuse)?;
        }
        Ok(())
    }

    fn head_input(&self, row: usize, s: &mut Scratch) -> Result<(), TrResult> {
        let hidden = self.architecture.hidden as usize;
        let coded = self.is_head_coded();
        let x = &s.x[row * hidden..][..hidden]; // (D)
        let normed = &mut s.normed[..hidden]; // (D)
        self.norm(&self.weights.norm, x, normed, coded.then_some(&mut s.codes))
    }

    fn head_part(&self, head: &HeadPart, s: &Scratch, logits: &mut [f32]) -> Result<(), TrResult> {
        let hidden = self.architecture.hidden as usize;
        let coded = self.is_head_coded();
        let input = input(&s.normed[..hidden], hidden, coded.then(|| s.codes.codes()));
        let parts = self.parts(1);
        let rows = head.matrix.rows();
        let logits = &mut logits[head.first..head.first + rows];
        let logits = SharedRows::new(logits, rows, ROW_GROUP, parts);
        self.team.share(parts, |part| {
            let mut logits = logits.part(part); // (V)
            self.multiply(&head.matrix, input, &mut logits)
        })
    }

    fn is_head_coded(&self) -> bool {
        let head = self.weights.head.first();
        head.is_some_and(|head| self.coded([&head.matrix]))
    }

    /// Queries, keys and values of `norm(x)`; the cache has the keys and values then.
    fn queries_keys_values(
        &self,
        layer: usize,
        tile: Tile,
        cache: &mut Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let w = &self.weights.layers[layer];
        if self.goes_in_bands(tile.count) {
            self.project_in_bands(w, tile, s)?;
        } else {
            self.project_in_rows(w, tile, s)?;
        }
        self.remember(layer, tile, cache, s);
        Ok(())
    }

    /// `x += o(attention(rope(q), rope(k), v))`, `x += down(silu(gate(norm(x))) * up(norm(x)))`.
    fn mixer_and_ffn(
        &self,
        layer: usize,
        tile: Tile,
        cache: &Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        // What every kind of layer there is has in common; another kind would not compile here.
        let Layer {
            mixer: Mixer::Attention | Mixer::Sliding { .. },
            ffn: Ffn::Dense,
        } = self.architecture.layers[layer];
        if self.goes_in_bands(tile.count) {
            return self.mixer_and_ffn_in_bands(layer, tile, cache, s);
        }
        self.attention(layer, tile, cache, s)?;
        self.dense(&self.weights.layers[layer], tile, s)
    }

    fn project_in_rows(
        &self,
        w: &LayerWeights,
        tile: Tile,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let count = tile.count;
        let hidden = self.architecture.hidden as usize;
        let coded = self.coded([&w.q.matrix, &w.k.matrix, &w.v.matrix]);
        let x = &s.x[tile.row * hidden..][..count * hidden]; // (count, D)
        let normed = &mut s.normed[..count * hidden]; // (count, D)
        self.norm(&w.attn_norm, x, normed, coded.then_some(&mut s.codes))?;
        let q = &mut s.q[..count * self.queries()]; // (count, Q)
        let k = &mut s.k[..count * self.keys()]; // (count, K)
        let v = &mut s.v[..count * self.keys()]; // (count, K)
        self.project(
            [(&w.q, q), (&w.k, k), (&w.v, v)],
            input(normed, hidden, coded.then(|| s.codes.codes())),
        )
    }

    /// `x += o(attention(rope(q), rope(k), v))`.
    fn attention(
        &self,
        layer: usize,
        tile: Tile,
        cache: &Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let w = &self.weights.layers[layer];
        let hidden = self.architecture.hidden as usize;
        let (count, queries) = (tile.count, self.queries());
        let coded = self.coded([&w.o.matrix]);
        self.attend(layer, tile, cache, coded, s)?;
        let mixed = &s.mixed[..count * queries]; // (count, Q)
        let input = input(mixed, queries, coded.then(|| s.codes.codes()));
        let delta = &mut s.delta[..count * hidden]; // (count, D)
        self.add(
            &w.o,
            input,
            delta,
            &mut s.x[tile.row * hidden..][..count * hidden],
        )
    }

    /// Turns the tile's keys and puts them into the cache with the values. Too little to share.
    fn remember(&self, layer: usize, tile: Tile, cache: &mut Cache, s: &mut Scratch) {
        let (head_dim, keys) = (self.architecture.head_dim as usize, self.keys());
        let (pairs, pairing) = (self.rotary.pairs(), self.rotary.pairing());
        for row in 0..tile.count {
            let cos = &s.cos[(tile.row + row) * pairs..][..pairs];
            let sin = &s.sin[(tile.row + row) * pairs..][..pairs];
            let k = &mut s.k[row * keys..][..keys];
            self.kernels.rope(k, head_dim, pairing, cos, sin);
            cache.write(layer, tile.start + row, k, &s.v[row * keys..][..keys]);
        }
    }

    /// `mixed = softmax(q k / sqrt(head_dim)) v`, each position over itself and all before it, with
    /// codes if they are read.
    fn attend(
        &self,
        layer: usize,
        tile: Tile,
        cache: &Cache,
        coded: bool,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let head_dim = self.architecture.head_dim as usize;
        let width = self.queries();
        let whole = tile.count * width;
        let (workers, parts) = (self.workers(), self.parts(tile.count));
        // Workers share the heads of one position, or the positions of a tile.
        let unit = if tile.count == 1 { head_dim } else { width };
        // A part is coded by who computed it, if it is whole blocks.
        let blocks = (coded && unit.is_multiple_of(BLOCK)).then(|| {
            let blocks = s.codes.reshape(tile.count, width);
            SharedRows::new(blocks, whole / BLOCK, unit / BLOCK, parts)
        });
        let heads = Heads {
            layer,
            tile,
            cache,
            q: &s.q[..whole], // (count, heads, head_dim)
            cos: &s.cos[tile.row * self.rotary.pairs()..],
            sin: &s.sin[tile.row * self.rotary.pairs()..],
        };
        let mixed = SharedRows::new(&mut s.mixed[..whole], whole, unit, parts); // (count, Q)
        let scratch_len = s.attention.len() / workers;
        let scratch = SharedRows::new(
            &mut s.attention,
            workers * scratch_len,
            scratch_len,
            workers,
        );
        let parts = Parts::new(parts);
        self.team.run(|worker| {
            let mut scratch = scratch.part(worker);
            parts.take_each(|part| {
                let mut mixed = mixed.part(part);
                let mine = mixed.columns();
                let mixed = mixed.row_mut(0);
                heads.attend(self, mine, scratch.row_mut(0), mixed)?;
                if let Some(blocks) = &blocks {
                    let mut blocks = blocks.part(part);
                    self.kernels.quantize_blocks(mixed, blocks.row_mut(0));
                }
                Ok(())
            })
        })?;
        if coded && blocks.is_none() {
            self.kernels
                .quantize(&s.mixed[..whole], width, &mut s.codes);
        }
        Ok(())
    }

    /// `x += down(silu(gate(norm(x))) * up(norm(x)))`.
    fn dense(&self, w: &LayerWeights, tile: Tile, s: &mut Scratch) -> Result<(), TrResult> {
        let count = tile.count;
        let hidden = self.architecture.hidden as usize;
        let ffn = self.architecture.ffn as usize;

        let coded = self.coded([&w.gate.matrix, &w.up.matrix]);
        let x = &s.x[tile.row * hidden..][..count * hidden]; // (count, D)
        let normed = &mut s.normed[..count * hidden]; // (count, D)
        self.norm(&w.ffn_norm, x, normed, coded.then_some(&mut s.codes))?;
        let entering = input(normed, hidden, coded.then(|| s.codes.codes()));
        let coded = self.coded([&w.down.matrix]);
        let gated = Gated {
            gate: &mut s.gate[..count * ffn],           // (count, F)
            up: &mut s.up[..count * ffn],               // (count, F)
            activated: &mut s.activated[..count * ffn], // (count, F)
            codes: coded.then_some(&mut s.wide_codes),
        };
        self.gate(w, entering, gated)?;

        let activated = &s.activated[..count * ffn]; // (count, F)
        let entering = input(activated, ffn, coded.then(|| s.wide_codes.codes()));
        let delta = &mut s.delta[..count * hidden]; // (count, D)
        self.add(
            &w.down,
            entering,
            delta,
            &mut s.x[tile.row * hidden..][..count * hidden],
        )
    }
}

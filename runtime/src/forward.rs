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
//! A layer is five meetings of the workers for one position, and two more for a tile: `shares` has
//! what each worker does in one of them.

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
        let Layer { mixer, ffn } = self.architecture.layers[layer];
        let w = &self.weights.layers[layer];
        match mixer {
            Mixer::Attention | Mixer::Sliding { .. } => self.attention(layer, w, tile, cache, s)?,
        }
        match ffn {
            Ffn::Dense => self.dense(w, tile, s)?,
        }
        Ok(())
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
        let input = input(&s.normed[..hidden], hidden, coded.then_some(&s.codes));
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

    /// `x += o(attention(rope(q), rope(k), v)) `, with q, k, v projected from `norm(x)`.
    fn attention(
        &self,
        layer: usize,
        w: &LayerWeights,
        tile: Tile,
        cache: &mut Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let count = tile.count;
        let hidden = self.architecture.hidden as usize;
        let head_dim = self.architecture.head_dim as usize;
        let queries = self.architecture.heads as usize * head_dim;
        let keys = self.architecture.kv_heads as usize * head_dim;

        let coded = self.coded([&w.q.matrix, &w.k.matrix, &w.v.matrix]);
        let x = &s.x[tile.row * hidden..][..count * hidden]; // (count, D)
        let normed = &mut s.normed[..count * hidden]; // (count, D)
        self.norm(&w.attn_norm, x, normed, coded.then_some(&mut s.codes))?;
        let q = &mut s.q[..count * queries]; // (count, Q)
        let k = &mut s.k[..count * keys]; // (count, K)
        let v = &mut s.v[..count * keys]; // (count, K)
        self.project(
            [(&w.q, q), (&w.k, k), (&w.v, v)],
            input(normed, hidden, coded.then_some(&s.codes)),
        )?;
        self.remember(layer, tile, cache, s);

        let coded = self.coded([&w.o.matrix]);
        self.attend(layer, tile, cache, coded, s)?;
        let mixed = &s.mixed[..count * queries]; // (count, Q)
        let input = input(mixed, queries, coded.then_some(&s.codes));
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
        let head_dim = self.architecture.head_dim as usize;
        let keys = self.architecture.kv_heads as usize * head_dim;
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
        let width = self.architecture.heads as usize * head_dim;
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
        let entering = input(normed, hidden, coded.then_some(&s.codes));
        let coded = self.coded([&w.down.matrix]);
        let gated = Gated {
            gate: &mut s.gate[..count * ffn],           // (count, F)
            up: &mut s.up[..count * ffn],               // (count, F)
            activated: &mut s.activated[..count * ffn], // (count, F)
            codes: coded.then_some(&mut s.wide_codes),
        };
        self.gate(w, entering, gated)?;

        let activated = &s.activated[..count * ffn]; // (count, F)
        let entering = input(activated, ffn, coded.then_some(&s.wide_codes));
        let delta = &mut s.delta[..count * hidden]; // (count, D)
        self.add(
            &w.down,
            entering,
            delta,
            &mut s.x[tile.row * hidden..][..count * hidden],
        )
    }
}

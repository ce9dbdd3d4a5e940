//! A layer for many positions and several workers: each worker takes bands of neighbouring
//! positions through everything in which no other position has a part.
//!
//! Two meetings do for a layer, since only the cache connects positions, and between them a
//! worker's activations stay in the cache of its core.

use core::ops::Range;

use format::Activation;
use protocol::TrResult;

use super::shares::{BLOCK, Heads};
use super::{Graph, Tile};
use crate::kernels::{Codes, Input, Part, QuantizedBlock, SharedRows};
use crate::kv::Cache;
use crate::scratch::Scratch;
use crate::team::Parts;
use crate::weights::{LayerWeights, Linear, VectorAt};

/// Bands are whole tiles of the kernels' products. With fewer positions for each worker they share
/// the rows of the matrices.
const BAND_UNIT: usize = 8;
/// Bands for each worker. Many even out better, but each one reads all weights of the layer.
const BANDS_OF_WORKER: usize = 2;

/// Rows of a band's `n` positions.
struct Band<'a> {
    /// Which of the tile's `[count][heads][head_dim]` are the band's.
    elements: Range<usize>,
    x: &'a mut [f32],         // (n, D)
    mixed: &'a mut [f32],     // (n, Q)
    delta: &'a mut [f32],     // (n, D)
    normed: &'a mut [f32],    // (n, D)
    gate: &'a mut [f32],      // (n, F)
    up: &'a mut [f32],        // (n, F)
    activated: &'a mut [f32], // (n, F)
    /// First of `mixed`, then of `normed`.
    codes: &'a mut [QuantizedBlock],
    wide_codes: &'a mut [QuantizedBlock],
}

impl Graph {
    /// Whether there are positions enough for every worker.
    pub(super) fn goes_in_bands(&self, count: usize) -> bool {
        self.workers() > 1 && count >= BAND_UNIT * self.workers()
    }

    fn bands(&self, count: usize) -> usize {
        let most = self.workers() * BANDS_OF_WORKER;
        count.div_ceil(BAND_UNIT).min(most)
    }

    /// Queries, keys and values of `norm(x)`.
    pub(super) fn project_in_bands(
        &self,
        w: &LayerWeights,
        tile: Tile,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let (count, bands) = (tile.count, self.bands(tile.count));
        let hidden = self.architecture.hidden as usize;
        let (queries, keys) = (self.queries(), self.keys());
        let coded = self.coded([&w.q.matrix, &w.k.matrix, &w.v.matrix]);

        let x = &s.x[tile.row * hidden..][..count * hidden]; // (count, D)
        let normed = cut(&mut s.normed[..count * hidden], count, bands); // (count, D)
        let q = cut(&mut s.q[..count * queries], count, bands); // (count, Q)
        let k = cut(&mut s.k[..count * keys], count, bands); // (count, K)
        let v = cut(&mut s.v[..count * keys], count, bands); // (count, K)
        let codes = s.codes.reshape(count, hidden.next_multiple_of(BLOCK));
        let codes = cut(codes, count, bands);
        self.team.share(bands, |band| {
            let (mut normed, mut codes) = (normed.part(band), codes.part(band));
            let x = &x[normed.columns()];
            let codes = coded.then(|| codes.row_mut(0));
            let entering = self.normed(&w.attn_norm, x, normed.row_mut(0), codes);
            self.product(&w.q, entering, q.part(band).row_mut(0))?;
            self.product(&w.k, entering, k.part(band).row_mut(0))?;
            self.product(&w.v, entering, v.part(band).row_mut(0))
        })
    }

    /// `x += o(attention(q))`, `x += down(silu(gate(norm(x))) * up(norm(x)))`.
    pub(super) fn mixer_and_ffn_in_bands(
        &self,
        layer: usize,
        tile: Tile,
        cache: &Cache,
        s: &mut Scratch,
    ) -> Result<(), TrResult> {
        let (count, bands) = (tile.count, self.bands(tile.count));
        let hidden = self.architecture.hidden as usize;
        let ffn = self.architecture.ffn as usize;
        let queries = self.queries();
        let heads = Heads {
            layer,
            tile,
            cache,
            q: &s.q[..count * queries], // (count, heads, head_dim)
            cos: &s.cos[tile.row * self.rotary.pairs()..],
            sin: &s.sin[tile.row * self.rotary.pairs()..],
        };
        let x = &mut s.x[tile.row * hidden..][..count * hidden];
        let x = cut(x, count, bands);
        let mixed = cut(&mut s.mixed[..count * queries], count, bands);
        let delta = cut(&mut s.delta[..count * hidden], count, bands);
        let normed = cut(&mut s.normed[..count * hidden], count, bands);
        let gate = cut(&mut s.gate[..count * ffn], count, bands);
        let up = cut(&mut s.up[..count * ffn], count, bands);
        let activated = cut(&mut s.activated[..count * ffn], count, bands);
        let widest = hidden.max(queries).next_multiple_of(BLOCK);
        let codes = cut(s.codes.reshape(count, widest), count, bands);
        let wide_codes = s.wide_codes.reshape(count, ffn.next_multiple_of(BLOCK));
        let wide_codes = cut(wide_codes, count, bands);
        let (rooms, workers) = (s.attention.len(), self.workers());
        let rooms = SharedRows::new(&mut s.attention, rooms, rooms / workers, workers);

        let parts = Parts::new(bands);
        self.team.run(|worker| {
            let mut room = rooms.part(worker);
            parts.take_each(|band| {
                let mut mixed = mixed.part(band);
                self.band(
                    &heads,
                    room.row_mut(0),
                    Band {
                        elements: mixed.columns(),
                        mixed: mixed.row_mut(0),
                        x: x.part(band).row_mut(0),
                        delta: delta.part(band).row_mut(0),
                        normed: normed.part(band).row_mut(0),
                        gate: gate.part(band).row_mut(0),
                        up: up.part(band).row_mut(0),
                        activated: activated.part(band).row_mut(0),
                        codes: codes.part(band).row_mut(0),
                        wide_codes: wide_codes.part(band).row_mut(0),
                    },
                )
            })
        })
    }

    fn band(&self, heads: &Heads<'_>, room: &mut [f32], b: Band<'_>) -> Result<(), TrResult> {
        let w = &self.weights.layers[heads.layer];
        let Activation::Silu = self.architecture.activation;
        let ffn = self.architecture.ffn as usize;

        heads.attend(self, b.elements, room, b.mixed)?;
        let coded = self.coded([&w.o.matrix]).then_some(&mut *b.codes);
        let entering = self.entering(b.mixed, self.queries(), coded);
        self.product(&w.o, entering, b.delta)?;
        self.kernels.add_assign(b.x, b.delta);

        let coded = self.coded([&w.gate.matrix, &w.up.matrix]);
        let coded = coded.then_some(&mut *b.codes);
        let entering = self.normed(&w.ffn_norm, b.x, b.normed, coded);
        self.product(&w.gate, entering, b.gate)?;
        self.product(&w.up, entering, b.up)?;
        self.kernels.silu_mul(b.gate, b.up, b.activated);
        let coded = self.coded([&w.down.matrix]).then_some(b.wide_codes);
        let entering = self.entering(b.activated, ffn, coded);
        self.product(&w.down, entering, b.delta)?;
        self.kernels.add_assign(b.x, b.delta);
        Ok(())
    }

    /// `norm(x)` as what enters a product, with codes if there is room for them.
    fn normed<'a>(
        &self,
        weight: &VectorAt,
        x: &[f32],
        out: &'a mut [f32],
        codes: Option<&'a mut [QuantizedBlock]>,
    ) -> Input<'a> {
        self.norm_rows(weight, x, out);
        self.entering(out, self.architecture.hidden as usize, codes)
    }

    /// What enters a product: `x` `[positions][cols]`, with codes if there is room for them.
    fn entering<'a>(
        &self,
        x: &'a [f32],
        cols: usize,
        codes: Option<&'a mut [QuantizedBlock]>,
    ) -> Input<'a> {
        let Some(codes) = codes else {
            return Input::strict(x, cols);
        };
        let codes = &mut codes[..x.len() / BLOCK];
        self.kernels.quantize_blocks(x, codes);
        Input::int8(x, Codes::new(codes, cols))
    }

    /// `y = W x (+ b)`, all rows.
    fn product(&self, linear: &Linear, input: Input<'_>, y: &mut [f32]) -> Result<(), TrResult> {
        let rows = linear.matrix.rows();
        self.project_part(linear, input, &mut Part::whole(y, rows))
    }
}

/// Rows of `count` positions, cut into `bands`: part `b` is band `b` as one slice.
fn cut<T>(rows: &mut [T], count: usize, bands: usize) -> SharedRows<'_, T> {
    let (all, row) = (rows.len(), rows.len() / count);
    SharedRows::new(rows, all, BAND_UNIT * row, bands)
}

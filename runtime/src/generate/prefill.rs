//! From prompt ids to committed positions: tile by tile, and by groups of tiles where layers come
//! from the file.

use protocol::Stage;
use protocol::abi::STEP_MORE;

use super::{Generator, Run, Step, Work, failure, placed};
use crate::RuntimeError;
use crate::forward::{Graph, Tile};
use crate::weights::Source;

impl Generator {
    /// The first tile of the group that begins at `start`.
    pub(super) fn next_tile(&self, start: usize, prompt: usize) -> Work {
        let count = self.tile.min(prompt - start);
        Work::Tile {
            tile: Tile {
                start,
                count,
                row: 0,
            },
            layer: 0,
        }
    }

    pub(super) fn tile(
        &mut self,
        graph: &mut Graph,
        source: &mut dyn Source,
        run: &mut Run,
        (tile, layer): (Tile, usize),
    ) -> Result<Step, RuntimeError> {
        let place = |error| placed(error, Stage::Prefill, layer, tile.start);
        let s = &mut self.scratch;
        if layer == 0 && tile.row == 0 {
            // All of the group: rows and layers may have to share one window.
            let count = self.group.min(run.prompt - tile.start);
            self.cache
                .reach(tile.start, tile.start + count)
                .map_err(|code| failure(code, Stage::Prefill, layer, tile.start))?;
            let ids = &self.ids[tile.start..tile.start + count];
            graph.embed(ids, tile, source, s).map_err(place)?;
        }
        graph.weights.bring_layer(layer, source).map_err(place)?;
        let cache = &mut self.cache;
        let done = if layer + 1 == self.layers && !run.argmax {
            let has_final = tile.start + tile.count == run.prompt;
            graph.last_layer(layer, tile, has_final, cache, s)
        } else {
            graph.layer(layer, tile, cache, s)
        };
        done.map_err(|code| failure(code, Stage::Prefill, layer, tile.start))?;
        run.work = self.after(run, tile, layer);
        Ok(self.report(run, STEP_MORE))
    }

    /// What comes after a tile's layer: the next tile of the group, the next layer, or what comes
    /// after the group.
    fn after(&mut self, run: &Run, tile: Tile, layer: usize) -> Work {
        let first = tile.start - tile.row;
        let end = (first + self.group).min(run.prompt);
        let next = tile.start + tile.count;
        if next < end {
            let tile = Tile {
                start: next,
                count: self.tile.min(end - next),
                row: next - first,
            };
            return Work::Tile { tile, layer };
        }
        let whole = Tile {
            start: first,
            count: end - first,
            row: 0,
        };
        match layer + 1 {
            layer if layer < self.layers => {
                let count = self.tile.min(whole.count);
                let tile = Tile { count, ..whole };
                Work::Tile { tile, layer }
            }
            _ if run.argmax => Work::Rank {
                tile: whole,
                row: 0,
            },
            _ => self.after_group(run, whole),
        }
    }

    pub(super) fn rank(
        &mut self,
        graph: &mut Graph,
        source: &mut dyn Source,
        run: &mut Run,
        (tile, row): (Tile, usize),
    ) -> Result<Step, RuntimeError> {
        // The prompt's last position gets its logits from `First`.
        if tile.start + row + 1 < run.prompt {
            self.head(graph, source, row, Stage::Prefill)?;
            self.argmax.push(self.logits.greatest());
        }
        run.work = match row + 1 {
            next if next < tile.count => Work::Rank { tile, row: next },
            _ => self.after_group(run, tile),
        };
        Ok(self.report(run, STEP_MORE))
    }

    /// A group before the last is committed; the last waits for its logits.
    fn after_group(&mut self, run: &Run, tile: Tile) -> Work {
        let end = tile.start + tile.count;
        if end < run.prompt {
            self.commit(end);
            self.next_tile(end, run.prompt)
        } else {
            Work::First {
                row: tile.count - 1,
            }
        }
    }
}

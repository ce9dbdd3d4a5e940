//! What is done once with all weights before they are used: checked, and the small ones copied.

use core::ops::Range;

use format::{FormatError, Header, Layout, TOKENIZER_TENSOR, Tensor, check_finite};
use protocol::{Stage, TrResult};

use super::{HeadPart, Source, VectorFrom, Weights};
use crate::RuntimeError;
use crate::team::Team;

/// Elements or group blocks that one worker checks at a time: a fraction of a millisecond.
const SHARE_UNITS: usize = 16 * 1024;

impl Weights {
    /// Checks that every byte was there and every float is finite, copies the vectors out and
    /// looks for subnormal scales. What is not resident is read once more for this.
    pub fn ready(
        &mut self,
        header: &Header,
        source: &mut dyn Source,
        team: &Team,
    ) -> Result<(), RuntimeError> {
        self.region.check_loaded()?;
        let first = self.region.arrangement.layers.first();
        let before = first.map_or(header.file_len, |layer| layer.start);
        self.settle_vocabulary(header, before, source, team)?;
        for layer in 0..self.layers.len() {
            self.bring_layer(layer, source)?;
            let extent = self.region.arrangement.layers[layer].clone();
            self.check_tensors(header, &extent, extent.start, team)?;
            self.copy_vectors(&extent, extent.start);
            let Weights { region, layers, .. } = self;
            for at in layers[layer].matrices() {
                at.look(region, team)?;
            }
        }
        Ok(())
    }

    /// Embedding, norm and head, which lie before byte `before`.
    fn settle_vocabulary(
        &mut self,
        header: &Header,
        before: u64,
        source: &mut dyn Source,
        team: &Team,
    ) -> Result<(), RuntimeError> {
        let all = self.first()..before;
        self.copy_vectors(&all, 0);
        if self.embed.is_kept {
            self.check_tensors(header, &all, 0, team)?;
            self.embed.at.look(&self.region, team)?;
        } else {
            self.check_streamed(header, source, team)?;
        }
        let start = self.head.first().map_or(0, |head| head.file.start);
        let tensors = header.tensors.iter();
        let index = tensors
            .take_while(|tensor| tensor.range.start != start)
            .count();
        for part in 0..self.head.len() {
            self.bring_head(part, source)?;
            let Weights {
                region,
                head,
                embed,
                ..
            } = self;
            let HeadPart { matrix, file, .. } = &mut head[part];
            if !embed.is_kept {
                let bytes = region.bytes(&matrix.bytes);
                check(index, matrix.layout, bytes, file.start, team)?;
            }
            matrix.look(region, team)?;
        }
        Ok(())
    }

    /// Checks an embedding that is not the head and not kept, as much as fits at a time, and the
    /// norm.
    fn check_streamed(
        &mut self,
        header: &Header,
        source: &mut dyn Source,
        team: &Team,
    ) -> Result<(), RuntimeError> {
        for (index, tensor) in header.tensors.iter().enumerate() {
            let is_head = self
                .head
                .iter()
                .any(|head| head.file.start == tensor.range.start);
            if is_head || !["embed", "norm"].contains(&tensor.name.as_str()) {
                continue;
            }
            if self.region.arrangement.find(&tensor.range).is_some() {
                self.check_tensors(header, &tensor.range, 0, team)?;
                continue;
            }
            let window = &self.region.arrangement.window;
            let unit = tensor
                .layout
                .group_block_bytes()
                .or(tensor.layout.element_bytes());
            let unit = u64::from(unit.unwrap_or(1));
            let step = ((window.end - window.start) / unit * unit).max(unit);
            let mut at = tensor.range.start;
            while at < tensor.range.end {
                let part = at..(at + step).min(tensor.range.end);
                self.region.bring(source, &part)?;
                let bytes = self.region.arrangement.in_window(&part, part.start);
                check(index, tensor.layout, self.region.bytes(&bytes), at, team)?;
                at = part.end;
            }
        }
        Ok(())
    }

    /// Checks all tensors within `extent` that are in memory with the block that begins at `block`.
    fn check_tensors(
        &self,
        header: &Header,
        extent: &Range<u64>,
        block: u64,
        team: &Team,
    ) -> Result<(), RuntimeError> {
        for (index, tensor) in header.tensors.iter().enumerate() {
            let Tensor { range, layout, .. } = tensor;
            if tensor.name == TOKENIZER_TENSOR || !extent.contains(&range.start) {
                continue;
            }
            let bytes = self.region.bytes(&self.region.place(range, block));
            check(index, *layout, bytes, range.start, team)?;
        }
        Ok(())
    }

    fn copy_vectors(&mut self, extent: &Range<u64>, block: u64) {
        for VectorFrom { file, start } in &self.from {
            if !extent.contains(&file.start) {
                continue;
            }
            let bytes = self.region.bytes(&self.region.place(file, block));
            let floats = self.vectors[*start..].iter_mut();
            for (float, value) in floats.zip(bytes.as_chunks::<4>().0) {
                *float = f32::from_le_bytes(*value);
            }
        }
    }
}

/// No NaN, no infinity, no code that cannot be negated; `at` is the file offset of the bytes.
/// The team shares the bytes; which of them is the first bad one is looked for by the caller alone.
fn check(
    index: usize,
    layout: Layout,
    bytes: &[u8],
    at: u64,
    team: &Team,
) -> Result<(), RuntimeError> {
    let unit = layout.group_block_bytes().or(layout.element_bytes());
    let share = unit.unwrap_or(1) as usize * SHARE_UNITS;
    let shared = team.share(bytes.len().div_ceil(share), |part| {
        let rest = &bytes[part * share..];
        let sound = check_finite(layout, &rest[..share.min(rest.len())], at);
        sound.map_err(|_| TrResult::InvalidModel)
    });
    match shared {
        Ok(()) => return Ok(()),
        Err(TrResult::InvalidModel) => {}
        Err(code) => return Err(RuntimeError::new(code, Stage::Load).item(index)),
    }
    check_finite(layout, bytes, at).map_err(|error| {
        let (FormatError::NonFinite { at } | FormatError::CodeRefused { at }) = error else {
            return RuntimeError::new(TrResult::InternalInvariant, Stage::Load).item(index);
        };
        let error = RuntimeError::new(TrResult::InvalidModel, Stage::Load);
        error.item(index).at(at)
    })
}

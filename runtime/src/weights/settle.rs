//! What is done once with all weights before they are used: checked, and the small ones copied.

use core::ops::Range;

use format::{FormatError, Header, Layout, TOKENIZER_TENSOR, Tensor, check_finite};
use protocol::{Stage, TrResult};

use super::{HeadPart, Source, VectorFrom, Weights};
use crate::RuntimeError;

impl Weights {
    /// Checks that every byte was there and every float is finite, copies the vectors out and
    /// looks for subnormal scales. What is not resident is read once more for this.
    pub fn ready(&mut self, header: &Header, source: &mut dyn Source) -> Result<(), RuntimeError> {
        self.region.check_loaded()?;
        let first = self.region.arrangement.layers.first();
        let before = first.map_or(header.file_len, |layer| layer.start);
        self.settle_vocabulary(header, before, source)?;
        for layer in 0..self.layers.len() {
            self.bring_layer(layer, source)?;
            let extent = self.region.arrangement.layers[layer].clone();
            self.check_tensors(header, &extent, extent.start)?;
            self.copy_vectors(&extent, extent.start);
            let Weights { region, layers, .. } = self;
            for at in layers[layer].matrices() {
                at.look(region)?;
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
    ) -> Result<(), RuntimeError> {
        let all = self.first()..before;
        self.copy_vectors(&all, 0);
        if self.embed.is_kept {
            self.check_tensors(header, &all, 0)?;
            self.embed.at.look(&self.region)?;
        } else {
            self.check_streamed(header, source)?;
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
                check(
                    index,
                    matrix.layout,
                    region.bytes(&matrix.bytes),
                    file.start,
                )?;
            }
            matrix.look(region)?;
        }
        Ok(())
    }

    /// Checks an embedding that is not the head and not kept, as much as fits at a time, and the
    /// norm.
    fn check_streamed(
        &mut self,
        header: &Header,
        source: &mut dyn Source,
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
                self.check_tensors(header, &tensor.range, 0)?;
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
                check(index, tensor.layout, self.region.bytes(&bytes), at)?;
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
    ) -> Result<(), RuntimeError> {
        for (index, tensor) in header.tensors.iter().enumerate() {
            let Tensor { range, layout, .. } = tensor;
            if tensor.name == TOKENIZER_TENSOR || !extent.contains(&range.start) {
                continue;
            }
            check(
                index,
                *layout,
                self.region.bytes(&self.region.place(range, block)),
                range.start,
            )?;
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
fn check(index: usize, layout: Layout, bytes: &[u8], at: u64) -> Result<(), RuntimeError> {
    check_finite(layout, bytes, at).map_err(|error| {
        let (FormatError::NonFinite { at } | FormatError::CodeRefused { at }) = error else {
            return RuntimeError::new(TrResult::InternalInvariant, Stage::Load).item(index);
        };
        let error = RuntimeError::new(TrResult::InvalidModel, Stage::Load);
        error.item(index).at(at)
    })
}

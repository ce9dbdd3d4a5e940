//! From tensors by name to places in memory.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use format::{Architecture, Header, Tensor};
use protocol::{Stage, TrResult};

use super::{Embedding, HeadPart, LayerWeights, Linear, MatrixAt, VectorAt, VectorFrom};
use crate::RuntimeError;
use crate::arrange::{Arrangement, rows_bytes};
use crate::error::reserve_memory;
use crate::kernels::Subnormals;

/// Finds tensors by name and gives every vector its floats.
pub struct Finder<'a> {
    header: &'a Header,
    arrangement: &'a Arrangement,
    pub floats: usize,
    pub vectors: Vec<VectorFrom>,
}

impl<'a> Finder<'a> {
    pub fn new(
        header: &'a Header,
        arrangement: &'a Arrangement,
    ) -> Result<Finder<'a>, RuntimeError> {
        let vectors = reserve_memory(crate::records::vectors(header).count(), Stage::Allocate)?;
        Ok(Finder {
            header,
            arrangement,
            floats: 0,
            vectors,
        })
    }

    fn tensor(&self, name: &str) -> Result<&'a Tensor, RuntimeError> {
        self.header
            .tensor(name)
            .ok_or_else(|| RuntimeError::new(TrResult::InternalInvariant, Stage::Allocate))
    }

    /// Where file bytes are: kept, or in the window while the block that begins at `block` is.
    fn place(&self, file: &Range<u64>, block: u64) -> Range<usize> {
        let kept = self.arrangement.find(file);
        kept.unwrap_or_else(|| self.arrangement.in_window(file, block))
    }

    fn matrix(&self, name: &str, block: u64) -> Result<MatrixAt, RuntimeError> {
        let tensor = self.tensor(name)?;
        Ok(MatrixAt {
            layout: tensor.layout,
            rows: tensor.shape.rows as usize,
            cols: tensor.shape.cols as usize,
            bytes: self.place(&tensor.range, block),
            subnormals: Subnormals::Likely,
        })
    }

    pub fn vector(&mut self, name: &str) -> Result<VectorAt, RuntimeError> {
        let tensor = self.tensor(name)?;
        let (start, len) = (self.floats, tensor.shape.cols as usize);
        self.floats = start + len;
        self.vectors.push(VectorFrom {
            file: tensor.range.clone(),
            start,
        });
        Ok(VectorAt {
            floats: start..self.floats,
        })
    }

    pub fn embedding(&self) -> Result<Embedding, RuntimeError> {
        let tensor = self.tensor("embed")?;
        Ok(Embedding {
            at: self.matrix("embed", tensor.range.start)?,
            file: tensor.range.clone(),
            is_kept: self.arrangement.keeps_vocabulary,
        })
    }

    /// The head in parts that the window holds; one part if it is kept.
    pub fn head(&self, tied: bool) -> Result<Vec<HeadPart>, RuntimeError> {
        let tensor = self.tensor(if tied { "embed" } else { "head" })?;
        let (all, cols) = (tensor.shape.rows, tensor.shape.cols);
        let step = self.arrangement.head_rows.max(1);
        let mut parts = reserve_memory(all.div_ceil(step) as usize, Stage::Allocate)?;
        for first in (0..all).step_by(step as usize) {
            let end = (first + step).min(all);
            let at = |row| tensor.range.start + rows_bytes(tensor.layout, row, cols);
            let file = at(first)..at(end);
            parts.push(HeadPart {
                first: first as usize,
                matrix: MatrixAt {
                    layout: tensor.layout,
                    rows: (end - first) as usize,
                    cols: cols as usize,
                    bytes: self.place(&file, file.start),
                    subnormals: Subnormals::Likely,
                },
                file,
            });
        }
        Ok(parts)
    }

    fn linear(&mut self, layer: usize, name: &str, bias: bool) -> Result<Linear, RuntimeError> {
        let block = self.arrangement.layers[layer].start;
        let matrix = self.matrix(&layer_tensor(layer, name), block)?;
        let bias = match bias {
            true => Some(self.vector(&format!("layers.{layer}.{name}_bias"))?),
            false => None,
        };
        Ok(Linear { matrix, bias })
    }

    pub fn layer(
        &mut self,
        architecture: &Architecture,
        layer: usize,
    ) -> Result<LayerWeights, RuntimeError> {
        let (qkv, o, ffn) = (
            architecture.qkv_bias,
            architecture.o_bias,
            architecture.ffn_bias,
        );
        Ok(LayerWeights {
            attn_norm: self.vector(&layer_tensor(layer, "attn_norm"))?,
            q: self.linear(layer, "q", qkv)?,
            k: self.linear(layer, "k", qkv)?,
            v: self.linear(layer, "v", qkv)?,
            o: self.linear(layer, "o", o)?,
            ffn_norm: self.vector(&layer_tensor(layer, "ffn_norm"))?,
            gate: self.linear(layer, "gate", ffn)?,
            up: self.linear(layer, "up", ffn)?,
            down: self.linear(layer, "down", ffn)?,
        })
    }
}

fn layer_tensor(layer: usize, name: &str) -> String {
    format!("layers.{layer}.{name}")
}

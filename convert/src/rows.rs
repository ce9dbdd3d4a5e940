//! Rows of a source tensor to rows or row groups of a `.slm` tensor.

use format::float::{bf16_to_f32, f16_to_f32};
use format::{BLOCK, Codec, FormatError, Layout, check_finite, dequantize, pack_r4, quantize};

use crate::ConvertError;
use crate::plan::SourceTensor;

/// A run of source rows on its way.
pub(crate) struct Rows<'a> {
    pub source: &'a SourceTensor,
    pub layout: Layout,
    /// Index of the first row of the run.
    pub first: u64,
}

/// What requantizing changed, summed over all weights in file order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    weights: u64,
    error_squares: f64,
    weight_squares: f64,
}

impl Tally {
    fn add(&mut self, source: &[f32], stored: &[f32]) {
        self.weights += source.len() as u64;
        for (source, stored) in source.iter().zip(stored) {
            let (source, error) = (f64::from(*source), f64::from(*stored) - f64::from(*source));
            self.error_squares += error * error;
            self.weight_squares += source * source;
        }
    }

    pub fn error_rms(&self) -> f64 {
        (self.error_squares / self.weights.max(1) as f64).sqrt()
    }

    pub fn weight_rms(&self) -> f64 {
        (self.weight_squares / self.weights.max(1) as f64).sqrt()
    }
}

impl Rows<'_> {
    /// Appends the converted run to `out`. `bytes` are whole rows; for a packing of four they
    /// begin at a multiple of four, and only the last run of a tensor may be shorter.
    pub fn convert(
        &self,
        bytes: &[u8],
        tally: &mut Tally,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let codec = self.source.codec;
        if codec.block_bytes().is_some() {
            return match codec == self.layout.codec() {
                true => self.pack(bytes, out),
                false => self.requantize(bytes, tally, out),
            };
        }
        self.check_floats(bytes)?;
        if codec == self.layout.codec() {
            out.extend_from_slice(bytes);
        } else if self.layout == Layout::F32 {
            let mut values = Vec::new();
            floats(codec, bytes, &mut values);
            let widened = values.iter().flat_map(|value| value.to_le_bytes());
            out.extend(widened);
        } else {
            return self.requantize(bytes, tally, out);
        }
        Ok(())
    }

    fn check_floats(&self, bytes: &[u8]) -> Result<(), ConvertError> {
        let layout = match self.source.codec {
            Codec::F16 => Layout::F16,
            Codec::Bf16 => Layout::Bf16,
            _ => Layout::F32,
        };
        check_finite(layout, bytes, 0).map_err(|error| match error {
            FormatError::NonFinite { at } => self.not_finite(at / self.source.row_bytes()),
            error => error.into(),
        })
    }

    fn pack(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let row_bytes = self.source.row_bytes() as usize;
        for (index, group) in bytes.chunks(row_bytes * 4).enumerate() {
            let mut rows = group.chunks_exact(row_bytes);
            self.pack_group([(); 4].map(|()| rows.next()), index as u64 * 4, out)?;
        }
        Ok(())
    }

    /// Packs up to four rows of blocks; `row` counts from the beginning of the run.
    fn pack_group(
        &self,
        rows: [Option<&[u8]>; 4],
        row: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let group_bytes = self.layout.group_block_bytes().unwrap_or(0);
        let start = out.len();
        let blocks = (self.source.shape.cols / BLOCK) as usize;
        out.resize(start + blocks * group_bytes as usize, 0);
        pack_r4(self.layout, rows, &mut out[start..])?;
        check_finite(self.layout, &out[start..], 0).map_err(|error| match error {
            FormatError::NonFinite { .. } => self.not_finite(row),
            FormatError::CodeRefused { .. } => ConvertError::ForbiddenCode {
                tensor: self.source.name.clone(),
                first_row: self.first + row,
            },
            error => error.into(),
        })
    }

    fn requantize(
        &self,
        bytes: &[u8],
        tally: &mut Tally,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let codec = self.layout.codec();
        let cols = self.source.shape.cols;
        let row_bytes = self.source.row_bytes() as usize;
        let target_bytes = (cols / BLOCK * codec.block_bytes().unwrap_or(0)) as usize;
        let mut values = Vec::with_capacity(cols as usize);
        let mut stored = vec![0.0; cols as usize];
        let mut blocks = vec![0; target_bytes * 4];
        for (index, group) in bytes.chunks(row_bytes * 4).enumerate() {
            let mut count = 0;
            for (row, target) in group
                .chunks_exact(row_bytes)
                .zip(blocks.chunks_exact_mut(target_bytes))
            {
                match self.source.codec.block_bytes() {
                    Some(_) => {
                        values.resize(cols as usize, 0.0);
                        dequantize(self.source.codec, row, &mut values)?;
                    }
                    None => floats(self.source.codec, row, &mut values),
                }
                // Floats were looked at before; the scales of blocks are only seen here.
                quantize(codec, &values, target).map_err(|error| match error {
                    FormatError::NonFinite { .. } => self.not_finite(index as u64 * 4 + count),
                    error => error.into(),
                })?;
                dequantize(codec, target, &mut stored)?;
                tally.add(&values, &stored);
                count += 1;
            }
            let mut rows = blocks.chunks_exact(target_bytes).take(count as usize);
            self.pack_group([(); 4].map(|()| rows.next()), index as u64 * 4, out)?;
        }
        Ok(())
    }

    fn not_finite(&self, row: u64) -> ConvertError {
        ConvertError::NotFinite {
            tensor: self.source.name.clone(),
            first_row: self.first + row,
        }
    }
}

/// Replaces `out` by the values of a run of floats, exactly.
fn floats(codec: Codec, bytes: &[u8], out: &mut Vec<f32>) {
    out.clear();
    let halves = bytes.as_chunks::<2>().0.iter();
    match codec {
        Codec::F16 => out.extend(halves.map(|b| f16_to_f32(u16::from_le_bytes(*b)))),
        Codec::Bf16 => out.extend(halves.map(|b| bf16_to_f32(u16::from_le_bytes(*b)))),
        _ => {
            let words = bytes.as_chunks::<4>().0.iter();
            out.extend(words.map(|b| f32::from_le_bytes(*b)));
        }
    }
}

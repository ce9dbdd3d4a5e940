//! A plan to the bytes of a `.slm` file, in order, each source byte read once.
//!
//! Sketch of the cost: SmolLM2-135M has 96 MB of blocks; packing moves every byte twice, so the
//! disk and the hashes around it decide. Held at a time: one window of the source (at most four
//! rows of a matrix, 4 MiB) and what it becomes.

use std::collections::BTreeMap;

use format::{Digest, Header, Layout, Packing, TOKENIZER_TENSOR, Tensor};
use sha2::{Digest as _, Sha256};

use crate::error::{ConvertError, shown};
use crate::limits::WINDOW_BYTES;
use crate::plan::{Payload, Plan, SourceTensor};
use crate::rows::{Rows, Tally};
use crate::step::{Need, Options, Outcome, Quantized, SourceFile};

pub(crate) struct Emitter {
    pub header: Header,
    tensors: BTreeMap<String, SourceTensor>,
    payload: Option<Payload>,
    files: Vec<SourceFile>,
    /// Output bytes made so far.
    at: u64,
    /// Index of the tensor being written.
    index: usize,
    /// Source rows of it read so far, or bytes of a payload file.
    taken: u64,
    payload_hash: Sha256,
    options: Options,
    tally: Tally,
}

/// What the emitter did or wants.
pub(crate) enum Emitted {
    /// `out` has bytes now.
    Bytes,
    Need(Need),
    Done,
}

impl Emitter {
    /// Lays out the file. `plan` has the digest of the source already.
    pub fn new(
        plan: Plan,
        files: Vec<SourceFile>,
        options: Options,
    ) -> Result<Emitter, ConvertError> {
        Ok(Emitter {
            header: Header::layout(plan.manifest)?,
            tensors: plan.tensors,
            payload: plan.payload,
            files,
            at: 0,
            index: 0,
            taken: 0,
            payload_hash: Sha256::new(),
            options,
            tally: Tally::default(),
        })
    }

    /// Output bytes made so far.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Fills the empty `out`, or says what is needed for it.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> Result<Emitted, ConvertError> {
        if self.at == 0 {
            *out = self.header.to_bytes();
            return Ok(self.made(out));
        }
        while let Some(tensor) = self.header.tensors.get(self.index) {
            if self.at < tensor.range.start {
                // Fillers are shorter than 64 bytes.
                out.resize((tensor.range.start - self.at) as usize, 0);
                return Ok(self.made(out));
            }
            if self.at < tensor.range.end {
                return self.tensor(out);
            }
            self.index += 1;
            self.taken = 0;
        }
        if self.at < self.header.file_len {
            out.resize((self.header.file_len - self.at) as usize, 0);
            return Ok(self.made(out));
        }
        Ok(Emitted::Done)
    }

    /// Takes the bytes last asked for, and appends what they become to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let tensor = &self.header.tensors[self.index];
        if tensor.name == TOKENIZER_TENSOR {
            out.extend_from_slice(bytes);
            self.taken += bytes.len() as u64;
            self.payload_hash.update(bytes);
            self.made(out);
            return self.check_payload();
        }
        let source = source_of(&self.tensors, tensor)?;
        let rows = Rows {
            source,
            layout: tensor.layout,
            first: self.taken,
        };
        let count = bytes.len() as u64 / source.row_bytes();
        rows.convert(bytes, &mut self.tally, out)?;
        self.taken += count;
        self.made(out);
        Ok(())
    }

    fn made(&mut self, out: &[u8]) -> Emitted {
        self.at += out.len() as u64;
        Emitted::Bytes
    }

    fn tensor(&mut self, out: &mut Vec<u8>) -> Result<Emitted, ConvertError> {
        let tensor = &self.header.tensors[self.index];
        if tensor.name == TOKENIZER_TENSOR {
            return Ok(match &mut self.payload {
                Some(Payload::Text(text)) => {
                    text.write(out);
                    self.made(out)
                }
                Some(Payload::File { source }) => {
                    let left = tensor.range.end - self.at;
                    Emitted::Need(Need {
                        source: *source,
                        at: self.taken,
                        len: left.min(WINDOW_BYTES.into()) as u32,
                    })
                }
                None => Emitted::Done,
            });
        }
        let source = source_of(&self.tensors, tensor)?;
        let row_bytes = source.row_bytes();
        let group = match tensor.layout.packing() {
            Packing::R4 => 4,
            Packing::Row => 1,
        };
        let fitting = u64::from(WINDOW_BYTES) / row_bytes / group * group;
        let left = u64::from(source.shape.rows) - self.taken;
        let rows = fitting.max(group).min(left);
        Ok(Emitted::Need(Need {
            source: source.source,
            at: source.at + self.taken * row_bytes,
            // At most four rows of 1 MiB.
            len: (rows * row_bytes) as u32,
        }))
    }

    /// A payload file must still be the one whose hash the header promises.
    fn check_payload(&self) -> Result<(), ConvertError> {
        let (Some(reference), Some(Payload::File { source })) =
            (&self.header.manifest.tokenizer, &self.payload)
        else {
            return Ok(());
        };
        let complete = self.at == self.header.tensors[self.index].range.end;
        let digest = || Digest(self.payload_hash.clone().finalize().into());
        if complete && digest() != reference.sha256 {
            let file = shown(&self.files[*source as usize].name);
            return Err(ConvertError::SourceChanged { file });
        }
        Ok(())
    }

    pub fn outcome(&self) -> Outcome {
        let quantized = self.options.quantize.map(|codec| {
            let matrices = self
                .header
                .tensors
                .iter()
                .filter(|tensor| tensor.layout != Layout::Bytes && tensor.shape.rows > 1);
            let (changed, kept): (Vec<&Tensor>, Vec<&Tensor>) = matrices.partition(|tensor| {
                let source = self.tensors.get(&tensor.name);
                source.is_some_and(|source| source.codec != tensor.layout.codec())
            });
            Quantized {
                codec,
                matrices: changed.len() as u32,
                kept: kept.len() as u32,
                error_rms: self.tally.error_rms(),
                weight_rms: self.tally.weight_rms(),
            }
        });
        Outcome {
            file_len: self.header.file_len,
            quantized,
        }
    }
}

fn source_of<'a>(
    tensors: &'a BTreeMap<String, SourceTensor>,
    tensor: &Tensor,
) -> Result<&'a SourceTensor, ConvertError> {
    tensors
        .get(&tensor.name)
        .ok_or_else(|| ConvertError::MissingTensor {
            tensor: tensor.name.clone(),
        })
}

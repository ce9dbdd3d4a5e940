//! The weights where they lie, with names and shapes.
//!
//! Matrices are borrowed from one region that mirrors the file from [`Weights::first`] on. Norms
//! and biases are small and read by every position, so they are copied out as floats.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use format::{
    Architecture, Digest, FormatError, Header, Layout, PIECE_BYTES, TOKENIZER_TENSOR, Tensor,
    check_finite, piece_hash,
};
use protocol::abi::DETAIL_BYTES;
use protocol::{Stage, TrResult};

use crate::RuntimeError;
use crate::error::{reserve_memory, take_memory};
use crate::kernels::{Matrix, Subnormals};
use crate::plan::{WEIGHTS_ALIGN, first_byte};

/// Where a model's bytes come from: the host's import in a lane, a file natively.
pub trait Source {
    /// Fills `into` from file byte `at` on, wholly, or fails with `HostRead`.
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError>;
}

/// All tensors of a model. Shapes: V = vocab, D = hidden, Q = heads * head_dim,
/// K = kv_heads * head_dim, F = ffn.
pub struct Weights {
    region: Region,
    /// Every norm and bias, one after another, and the bytes each is copied from.
    vectors: Vec<f32>,
    vector_bytes: Vec<Range<usize>>,
    /// (V, D): a row is a token.
    pub embed: MatrixAt,
    /// (D)
    pub norm: VectorAt,
    /// (V, D)
    pub head: MatrixAt,
    pub layers: Vec<LayerWeights>,
}

pub struct LayerWeights {
    /// (D)
    pub attn_norm: VectorAt,
    /// (Q, D), (K, D), (K, D)
    pub q: Linear,
    pub k: Linear,
    pub v: Linear,
    /// (D, Q)
    pub o: Linear,
    /// (D)
    pub ffn_norm: VectorAt,
    /// (F, D), (F, D), (D, F)
    pub gate: Linear,
    pub up: Linear,
    pub down: Linear,
}

/// A projection: `y = W x`, and `+ b` if there is a bias.
pub struct Linear {
    pub matrix: MatrixAt,
    pub bias: Option<VectorAt>,
}

/// Where a matrix lies within the region.
pub struct MatrixAt {
    layout: Layout,
    rows: usize,
    cols: usize,
    bytes: Range<usize>,
    subnormals: Subnormals,
}

/// Where a vector lies within [`Weights::vector`]'s floats.
pub struct VectorAt {
    floats: Range<usize>,
}

/// File bytes `first..file_len` in memory, at an address that is a multiple of 64.
struct Region {
    memory: Vec<u8>,
    /// Bytes before the aligned address.
    skip: usize,
    first: u64,
    file_len: u64,
    /// Which pieces are in place.
    loaded: Vec<bool>,
}

impl Weights {
    /// Takes memory for the whole region and finds every tensor in it.
    pub fn open(header: &Header) -> Result<Weights, RuntimeError> {
        let mut finder = Finder {
            header,
            first: first_byte(header),
            floats: 0,
            vector_bytes: Vec::new(),
        };
        let architecture = &header.manifest.architecture;
        let embed = finder.matrix("embed")?;
        let norm = finder.vector("norm")?;
        let head = match architecture.tied_head {
            true => finder.matrix("embed")?,
            false => finder.matrix("head")?,
        };
        let mut layers = reserve_memory(architecture.layers.len(), Stage::Allocate)?;
        for layer in 0..architecture.layers.len() {
            layers.push(finder.layer(architecture, layer)?);
        }
        Ok(Weights {
            vectors: take_memory(finder.floats, Stage::Allocate)?,
            vector_bytes: finder.vector_bytes,
            region: Region::open(header)?,
            embed,
            norm,
            head,
            layers,
        })
    }

    /// First file byte that the region holds; a multiple of 1 MiB.
    pub fn first(&self) -> u64 {
        self.region.first
    }

    /// Reads one piece into its place and gives its hash.
    pub fn load(
        &mut self,
        source: &mut dyn Source,
        at: u64,
        len: u32,
    ) -> Result<Digest, RuntimeError> {
        self.region.load(source, at, len)
    }

    /// Checks that every byte is there and every float finite, copies the vectors out and looks
    /// for subnormal scales.
    pub fn ready(&mut self, header: &Header) -> Result<(), RuntimeError> {
        self.region.check_loaded()?;
        for (index, tensor) in header.tensors.iter().enumerate() {
            if tensor.name == TOKENIZER_TENSOR {
                continue;
            }
            let bytes = self.region.bytes(&bytes_at(tensor, self.region.first));
            check_finite(tensor.layout, bytes, tensor.range.start).map_err(|error| {
                let (FormatError::NonFinite { at } | FormatError::CodeRefused { at }) = error
                else {
                    return RuntimeError::new(TrResult::InternalInvariant, Stage::Load).item(index);
                };
                RuntimeError::new(TrResult::InvalidModel, Stage::Load)
                    .item(index)
                    .at(at)
            })?;
        }
        let mut floats = self.vectors.iter_mut();
        for range in &self.vector_bytes {
            let values = self.region.bytes(range).as_chunks::<4>().0;
            // The values lead: a zip takes one more from whichever side leads.
            for (value, float) in values.iter().zip(floats.by_ref()) {
                *float = f32::from_le_bytes(*value);
            }
        }
        let layers = self.layers.iter_mut().flat_map(LayerWeights::matrices);
        for at in layers.chain([&mut self.embed, &mut self.head]) {
            let bytes = self.region.bytes(&at.bytes);
            let matrix = Matrix::new(at.layout, at.rows, at.cols, bytes);
            let matrix = matrix.map_err(|code| RuntimeError::new(code, Stage::Load))?;
            at.subnormals = matrix.subnormals();
        }
        Ok(())
    }

    pub fn matrix(&self, at: &MatrixAt) -> Result<Matrix<'_>, TrResult> {
        let bytes = self.region.bytes(&at.bytes);
        let matrix = Matrix::new(at.layout, at.rows, at.cols, bytes)?;
        Ok(matrix.with(at.subnormals))
    }

    pub fn vector(&self, at: &VectorAt) -> &[f32] {
        &self.vectors[at.floats.clone()]
    }
}

impl LayerWeights {
    fn matrices(&mut self) -> [&mut MatrixAt; 7] {
        let LayerWeights {
            q,
            k,
            v,
            o,
            gate,
            up,
            down,
            ..
        } = self;
        [q, k, v, o, gate, up, down].map(|linear| &mut linear.matrix)
    }
}

impl MatrixAt {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether a product with this matrix reads quantized activations in mode `int8-v1`.
    pub fn is_quantized(&self) -> bool {
        self.layout.group_block_bytes().is_some()
    }
}

impl Region {
    fn open(header: &Header) -> Result<Region, RuntimeError> {
        let first = first_byte(header);
        let len = header.file_len - first;
        let overflow = |_| {
            RuntimeError::new(TrResult::OutOfMemory, Stage::Allocate).detail(DETAIL_BYTES, 0, len)
        };
        let bytes = usize::try_from(len).map_err(overflow)?;
        let memory = take_memory::<u8>(bytes.saturating_add(WEIGHTS_ALIGN - 1), Stage::Allocate)?;
        let pieces = len.div_ceil(u64::from(PIECE_BYTES));
        Ok(Region {
            skip: memory.as_ptr().align_offset(WEIGHTS_ALIGN) % WEIGHTS_ALIGN,
            memory,
            first,
            file_len: header.file_len,
            loaded: take_memory(pieces as usize, Stage::Allocate)?,
        })
    }

    fn load(&mut self, source: &mut dyn Source, at: u64, len: u32) -> Result<Digest, RuntimeError> {
        let refuse = |code| RuntimeError::new(code, Stage::Load).at(at);
        let piece = u64::from(PIECE_BYTES);
        if at < self.first || at >= self.file_len || !at.is_multiple_of(piece) {
            return Err(refuse(TrResult::Bounds));
        }
        let whole = (self.file_len - at).min(piece);
        if u64::from(len) != whole {
            let error = refuse(TrResult::Bounds);
            return Err(error.detail(DETAIL_BYTES, whole, u64::from(len)));
        }
        let index = ((at - self.first) / piece) as usize;
        // A failed read may have written a part.
        self.loaded[index] = false;
        let start = self.skip + (at - self.first) as usize;
        let into = &mut self.memory[start..start + len as usize];
        source.read_at(at, into)?;
        self.loaded[index] = true;
        Ok(piece_hash(into, self.file_len))
    }

    fn check_loaded(&self) -> Result<(), RuntimeError> {
        match self.loaded.iter().position(|loaded| !loaded) {
            None => Ok(()),
            Some(piece) => Err(RuntimeError::new(TrResult::IllegalState, Stage::Load)
                .at(self.first + piece as u64 * u64::from(PIECE_BYTES))),
        }
    }

    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.memory[self.skip + range.start..self.skip + range.end]
    }
}

/// A weight tensor's bytes within the region; the header promises that they are there.
fn bytes_at(tensor: &Tensor, first: u64) -> Range<usize> {
    (tensor.range.start - first) as usize..(tensor.range.end - first) as usize
}

/// Finds tensors by name and gives every vector its floats.
struct Finder<'a> {
    header: &'a Header,
    first: u64,
    floats: usize,
    vector_bytes: Vec<Range<usize>>,
}

impl Finder<'_> {
    fn tensor(&self, name: &str) -> Result<&Tensor, RuntimeError> {
        self.header
            .tensor(name)
            .ok_or_else(|| RuntimeError::new(TrResult::InternalInvariant, Stage::Allocate))
    }

    fn matrix(&self, name: &str) -> Result<MatrixAt, RuntimeError> {
        let tensor = self.tensor(name)?;
        Ok(MatrixAt {
            layout: tensor.layout,
            rows: tensor.shape.rows as usize,
            cols: tensor.shape.cols as usize,
            bytes: bytes_at(tensor, self.first),
            subnormals: Subnormals::Likely,
        })
    }

    fn vector(&mut self, name: &str) -> Result<VectorAt, RuntimeError> {
        let tensor = self.tensor(name)?;
        let (start, len) = (self.floats, tensor.shape.cols as usize);
        let bytes = bytes_at(tensor, self.first);
        self.floats = start + len;
        self.vector_bytes.push(bytes);
        Ok(VectorAt {
            floats: start..self.floats,
        })
    }

    fn linear(&mut self, layer: usize, name: &str, bias: bool) -> Result<Linear, RuntimeError> {
        let matrix = self.matrix(&layer_tensor(layer, name))?;
        let bias = match bias {
            true => Some(self.vector(&format!("layers.{layer}.{name}_bias"))?),
            false => None,
        };
        Ok(Linear { matrix, bias })
    }

    fn layer(
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

//! The weights where they lie, with names and shapes.
//!
//! Matrices are borrowed from one region, see `arrange`: kept for good, or brought into its window
//! by whoever is about to use them; `settle` checks them once. Norms and biases are small and read
//! by every position, so they are copied out as floats.

mod finder;
mod region;
mod settle;
mod windows;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use format::{Digest, Header, Layout};
use protocol::{Residency, Stage, TrResult};

use crate::RuntimeError;
use crate::ahead::ReadAhead;
use crate::arrange::{Arrangement, ROW_GROUP, rows_bytes};
use crate::error::{reserve_memory, take_memory};
use crate::kernels::{Matrix, Subnormals};
use crate::team::Team;
use finder::Finder;
use region::Region;

/// Where a model's bytes come from: the host's import in a lane, a file natively.
pub trait Source {
    /// Fills `into` from file byte `at` on, wholly, or fails with `HostRead`.
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError>;
}

/// For a model that is wholly in memory.
pub struct Nowhere;

impl Source for Nowhere {
    fn read_at(&mut self, at: u64, _: &mut [u8]) -> Result<(), RuntimeError> {
        Err(RuntimeError::new(TrResult::HostRead, Stage::Load).at(at))
    }
}

/// All tensors of a model. Shapes: V = vocab, D = hidden, Q = heads * head_dim,
/// K = kv_heads * head_dim, F = ffn.
pub struct Weights {
    region: Region,
    /// Every norm and bias, one after another, and what each is copied from.
    vectors: Vec<f32>,
    from: Vec<VectorFrom>,
    /// (V, D): a row is a token.
    embed: Embedding,
    /// (D)
    pub norm: VectorAt,
    /// (V, D), in parts that follow each other.
    pub head: Vec<HeadPart>,
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

/// Where a matrix lies within the region, always or while its block is in the window.
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

/// Where the floats from `start` on come from.
pub struct VectorFrom {
    file: Range<u64>,
    start: usize,
}

/// The embedding: kept, or read by groups of rows.
struct Embedding {
    at: MatrixAt,
    file: Range<u64>,
    is_kept: bool,
}

/// Rows of the head from `first` on.
pub struct HeadPart {
    pub first: usize,
    pub matrix: MatrixAt,
    file: Range<u64>,
}

impl Weights {
    /// Takes memory for the whole region and finds every tensor in it.
    pub fn open(
        header: &Header,
        arrangement: Arrangement,
        residency: Residency,
        reader: Option<Box<dyn ReadAhead>>,
    ) -> Result<Weights, RuntimeError> {
        let mut finder = Finder::new(header, &arrangement)?;
        let architecture = &header.manifest.architecture;
        let embed = finder.embedding()?;
        let norm = finder.vector("norm")?;
        let head = finder.head(architecture.tied_head)?;
        let mut layers = reserve_memory(architecture.layers.len(), Stage::Allocate)?;
        for layer in 0..architecture.layers.len() {
            layers.push(finder.layer(architecture, layer)?);
        }
        Ok(Weights {
            vectors: take_memory(finder.floats, Stage::Allocate)?,
            from: finder.vectors,
            region: Region::open(arrangement, residency, header.file_len, reader)?,
            embed,
            norm,
            head,
            layers,
        })
    }

    /// First file byte that is loaded; a multiple of 1 MiB.
    pub fn first(&self) -> u64 {
        self.region.arrangement.first
    }

    /// Reads one piece, keeps of it what is to be resident and gives its hash.
    pub fn load(
        &mut self,
        source: &mut dyn Source,
        at: u64,
        len: u32,
        team: &Team,
    ) -> Result<Digest, RuntimeError> {
        self.region.load(source, at, len, team)
    }

    /// Makes a layer's matrices readable until something else is brought.
    pub fn bring_layer(
        &mut self,
        layer: usize,
        source: &mut dyn Source,
    ) -> Result<(), RuntimeError> {
        let kept = self.region.arrangement.kept_layers;
        if layer >= kept {
            let extent = self.region.arrangement.layers[layer].clone();
            let brought = self.region.bring(source, &extent);
            brought.map_err(|error| error.item(layer))?;
        }
        match self.region.arrangement.layers.get(kept.max(layer + 1)) {
            Some(next) => self.region.foresee(&next.clone()),
            None if self.region.arrangement.keeps_vocabulary => self.foresee_layers(),
            None => self.region.foresee(&self.head[0].file),
        }
        Ok(())
    }

    /// The first layer that is not kept is wanted for the next position.
    fn foresee_layers(&mut self) {
        let arrangement = &self.region.arrangement;
        if let Some(first) = arrangement.layers.get(arrangement.kept_layers) {
            self.region.foresee(&first.clone());
        }
    }

    /// Makes a part of the head readable until something else is brought.
    pub fn bring_head(&mut self, part: usize, source: &mut dyn Source) -> Result<(), RuntimeError> {
        if self.region.arrangement.keeps_vocabulary {
            return Ok(());
        }
        let Weights { region, head, .. } = self;
        let brought = region.bring(source, &head[part].file);
        brought.map_err(|error| error.item(self.layers.len()))?;
        match self.head.get(part + 1) {
            Some(next) => self.region.foresee(&next.file),
            None => self.foresee_layers(),
        }
        Ok(())
    }

    /// Makes a row of the embedding readable until something else is brought.
    pub fn bring_row(&mut self, id: usize, source: &mut dyn Source) -> Result<(), RuntimeError> {
        if self.embed.is_kept {
            return Ok(());
        }
        let group = self.embed.group(id);
        self.region.bring(source, &group.1)
    }

    /// The matrix that has a row of the embedding, and which of its rows that is.
    pub fn row(&self, id: usize) -> Result<(Matrix<'_>, usize), TrResult> {
        if self.embed.is_kept {
            return Ok((self.matrix(&self.embed.at)?, id));
        }
        let (rows, file) = self.embed.group(id);
        let bytes = self.region.arrangement.in_window(&file, file.start);
        let MatrixAt { layout, cols, .. } = self.embed.at;
        let matrix = Matrix::new(layout, rows.len(), cols, self.region.bytes(&bytes))?;
        Ok((matrix, id - rows.start))
    }

    pub fn matrix(&self, at: &MatrixAt) -> Result<Matrix<'_>, TrResult> {
        let bytes = self.region.bytes(&at.bytes);
        let matrix = Matrix::new(at.layout, at.rows, at.cols, bytes)?;
        Ok(matrix.with(at.subnormals))
    }

    pub fn vector(&self, at: &VectorAt) -> &[f32] {
        &self.vectors[at.floats.clone()]
    }

    /// Bytes read from the file since the model was opened, pieces being loaded left out.
    pub fn streamed(&self) -> u64 {
        self.region.streamed()
    }

    /// Blocks of these that a reader had read.
    pub fn read_ahead(&self) -> u64 {
        self.region.read_ahead()
    }

    /// Bytes taken for weights, for pieces on their way, and for records.
    pub fn taken(&self) -> [u64; 3] {
        let [weights, piece, records] = self.region.taken();
        let lists = self.vectors.capacity() * 4
            + self.from.capacity() * size_of::<VectorFrom>()
            + self.head.capacity() * size_of::<HeadPart>()
            + self.layers.capacity() * size_of::<LayerWeights>();
        [weights, piece, records + lists as u64]
    }
}

impl Embedding {
    /// Rows of the group that row `id` is in, and their file bytes.
    fn group(&self, id: usize) -> (Range<usize>, Range<u64>) {
        let MatrixAt {
            layout, rows, cols, ..
        } = self.at;
        let group = ROW_GROUP as usize;
        let first = id - id % group;
        let end = (first + group).min(rows);
        let at = |row: usize| self.file.start + rows_bytes(layout, row as u32, cols as u32);
        (first..end, at(first)..at(end))
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

    /// Looks for subnormal scales in a matrix that is in memory.
    fn look(&mut self, region: &Region, team: &Team) -> Result<(), RuntimeError> {
        let refused = |code| RuntimeError::new(code, Stage::Load);
        let matrix = Matrix::new(self.layout, self.rows, self.cols, region.bytes(&self.bytes));
        let matrix = matrix.map_err(refused)?;
        let found = AtomicUsize::new(0);
        let shared = team.share(matrix.runs(), |run| {
            found.fetch_add(matrix.subnormal_blocks(run), Relaxed);
            Ok(())
        });
        shared.map_err(refused)?;
        self.subnormals = matrix.judge(found.into_inner());
        Ok(())
    }
}

//! Which file bytes lie where in the weights region, decided from the header alone.
//!
//! ```text
//! full     [ first .. end of file ]                                    as the file has them
//! hybrid   [ embed, norm, head ][ layers 0..kept ][ window: one layer ]
//! paged    [ norm ][ window: one layer, one part of the head, or a row of the embedding ]
//! ```
//!
//! Where a reader fills one window while another is used there are two of them, with one address
//! in this arrangement: which of them it means changes with every block.
//!
//! A block is what is read at once: a layer, which is one extent of the file, or as many rows of
//! the head as the window holds. Every tensor begins at a multiple of 64 in the file and in memory.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use format::{Header, Layout, PIECE_BYTES, TOKENIZER_TENSOR, Tensor};
use protocol::Residency;

use crate::ahead::Buffer;
use crate::plan::{Options, WEIGHTS_ALIGN};

/// Rows of a matrix that lie interleaved.
pub const ROW_GROUP: u32 = 4;

/// A read of less than this is mostly the call.
const HEAD_PART_BYTES: u64 = 1024 * 1024;

/// Where the weights of one model go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// First file byte that is loaded; a multiple of 1 MiB.
    pub first: u64,
    /// Kept file bytes and where they begin in memory, in order of both.
    pub kept: Vec<(Range<u64>, u64)>,
    /// Leading layers that are kept.
    pub kept_layers: usize,
    /// Whether embedding and head are kept.
    pub keeps_vocabulary: bool,
    /// Where the window begins in memory, and how long it is; empty if nothing is streamed.
    pub window: Range<u64>,
    /// How many there are of it if anything is streamed.
    pub windows: u64,
    /// Rows of a part of the head; all of them if it is kept.
    pub head_rows: u32,
    /// Bytes read for one row of the embedding; 0 if it is kept.
    pub embed_group: u64,
    /// File bytes of each layer.
    pub layers: Vec<Range<u64>>,
    /// File bytes of the head.
    pub head: Range<u64>,
}

impl Arrangement {
    /// `room` is what hybrid weights may take if the options do not say how many layers.
    pub fn of(header: &Header, options: &Options, room: u64, windows: u64) -> Arrangement {
        let first = first_byte(header);
        let layers = layer_extents(header);
        let head = extent(header, "head").unwrap_or_else(|| vocabulary(header));
        let count = layers.len();
        let mut arrangement = Arrangement {
            first,
            kept: Vec::new(),
            kept_layers: count,
            keeps_vocabulary: true,
            window: 0..0,
            windows,
            head_rows: header.manifest.architecture.vocab,
            embed_group: 0,
            layers,
            head,
        };
        match options.residency {
            Residency::Full => arrangement.kept = vec![(first..header.file_len, 0)],
            Residency::Hybrid => {
                let most = match options.kept_layers {
                    0 => count,
                    asked => count.min(asked as usize),
                };
                let fits = |layers: &usize| {
                    arrangement.hybrid(header, *layers);
                    arrangement.bytes() <= room
                };
                let kept = match options.kept_layers {
                    0 => (0..=most).rev().find(fits).unwrap_or(0),
                    _ => most,
                };
                arrangement.hybrid(header, kept);
            }
            Residency::Paged => arrangement.paged(header),
        }
        arrangement
    }

    fn hybrid(&mut self, header: &Header, kept: usize) {
        // A window for the only layer that is left would be filled once and for all.
        let kept = match self.layers.len() - kept {
            1 => kept + 1,
            _ => kept,
        };
        let start = vocabulary(header).start;
        let end = match kept.checked_sub(1) {
            Some(last) => self.layers[last].end,
            None => self
                .head
                .end
                .max(extent(header, "norm").map_or(0, |norm| norm.end)),
        };
        self.kept = vec![(start..end, 0)];
        self.kept_layers = kept;
        let streamed = self.layers[kept..].iter();
        let slot = streamed.map(length).max().unwrap_or(0);
        let at = aligned(end - start);
        self.window = at..at + slot;
    }

    fn paged(&mut self, header: &Header) {
        let norm = extent(header, "norm").unwrap_or(0..0);
        let at = aligned(length(&norm));
        self.kept = vec![(norm, 0)];
        self.kept_layers = 0;
        self.keeps_vocabulary = false;
        let embed = header.tensor("embed");
        let head = header.tensor("head").or(embed);
        self.embed_group = embed.map_or(0, group_bytes);
        let group = head.map_or(0, group_bytes);
        // Embedding and head may be of different layouts, and a group of each has to fit.
        let layer = self.layers.iter().map(length).max().unwrap_or(0);
        let slot = layer.max(self.embed_group).max(group);
        // Where layers are small the head would come in ever so many reads.
        let slot = slot.max(length(&self.head).min(HEAD_PART_BYTES));
        let rows = slot / group.max(1) * u64::from(ROW_GROUP);
        self.head_rows = rows.min(u64::from(self.head_rows)) as u32;
        self.window = at..at + slot;
    }

    /// Bytes of the region, with what alignment may cost.
    pub fn bytes(&self) -> u64 {
        let windows = match self.streams() {
            true => self.windows * Buffer::bytes_for(length(&self.window)),
            false => 0,
        };
        self.kept_bytes() + windows
    }

    /// Of these what is kept.
    pub fn kept_bytes(&self) -> u64 {
        let kept = self.kept.last().map_or(0, |(file, at)| at + length(file));
        kept + WEIGHTS_ALIGN as u64 - 1
    }

    /// Whether anything is read while the model computes.
    pub fn streams(&self) -> bool {
        !self.window.is_empty()
    }

    /// Bytes read for one decoded token.
    pub fn streamed(&self) -> u64 {
        let layers = self.layers[self.kept_layers..]
            .iter()
            .map(length)
            .sum::<u64>();
        match self.keeps_vocabulary {
            true => layers,
            false => layers + length(&self.head) + self.embed_group,
        }
    }

    /// Where kept file bytes are in memory.
    pub fn find(&self, file: &Range<u64>) -> Option<Range<usize>> {
        let (kept, at) = self
            .kept
            .iter()
            .find(|(kept, _)| kept.start <= file.start && file.end <= kept.end)?;
        let start = (at + file.start - kept.start) as usize;
        Some(start..start + length(file) as usize)
    }

    /// Where file bytes of a block that begins at `block` are in memory while it is in the window.
    pub fn in_window(&self, file: &Range<u64>, block: u64) -> Range<usize> {
        let start = (self.window.start + (file.start - block)) as usize;
        start..start + length(file) as usize
    }
}

/// First file byte that is loaded: the 1 MiB boundary at or before the first weight tensor. The
/// tokenizer before it is read by the host.
pub fn first_byte(header: &Header) -> u64 {
    let first = weights(header).next();
    let first = first.map_or(header.file_len, |tensor| tensor.range.start);
    first - first % u64::from(PIECE_BYTES)
}

/// All tensors but the tokenizer, in file order.
fn weights(header: &Header) -> impl Iterator<Item = &Tensor> {
    let tensors = header.tensors.iter();
    tensors.filter(|tensor| tensor.name != TOKENIZER_TENSOR)
}

fn extent(header: &Header, name: &str) -> Option<Range<u64>> {
    header.tensor(name).map(|tensor| tensor.range.clone())
}

fn vocabulary(header: &Header) -> Range<u64> {
    extent(header, "embed").unwrap_or(header.file_len..header.file_len)
}

/// A header's tensors stand in file order, so a layer is from its first to its last one.
fn layer_extents(header: &Header) -> Vec<Range<u64>> {
    let count = header.manifest.architecture.layers.len();
    let mut layers: Vec<Range<u64>> = Vec::with_capacity(count);
    for tensor in weights(header) {
        let Some(rest) = tensor.name.strip_prefix("layers.") else {
            continue;
        };
        let number: Option<usize> = rest.split('.').next().and_then(|text| text.parse().ok());
        match number {
            Some(number) if number == layers.len() => layers.push(tensor.range.clone()),
            _ => {
                if let Some(layer) = layers.last_mut() {
                    layer.end = tensor.range.end;
                }
            }
        }
    }
    layers
}

/// Bytes of one group of rows; float rows lie alone, but are read by as many.
fn group_bytes(tensor: &Tensor) -> u64 {
    let rows = tensor.shape.rows.min(ROW_GROUP);
    rows_bytes(tensor.layout, rows, tensor.shape.cols)
}

/// Bytes of the first `rows` rows of a matrix; whole groups, or all that there are.
pub fn rows_bytes(layout: Layout, rows: u32, cols: u32) -> u64 {
    match rows {
        0 => 0,
        rows => layout.tensor_bytes(rows.into(), cols.into()).unwrap_or(0),
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

fn aligned(at: u64) -> u64 {
    at.next_multiple_of(WEIGHTS_ALIGN as u64)
}

//! Keys or values of one layer: pages of 32 positions, in the layout that attention reads.

use alloc::vec::Vec;

use protocol::Stage;

use crate::RuntimeError;
use crate::error::reserve_memory;
use crate::kernels::{Cells, KV_BLOCK, f16_from_f32, head_code, head_scale};
use crate::plan::KvFormat;

/// Bytes of one scale of an int8 cache.
const SCALE: usize = size_of::<f32>();
/// Elements converted at a time on their way into the cache.
const CHUNK: usize = 32;

/// What one head has on one page, and how a head's position is spread over it.
#[derive(Clone, Copy)]
pub struct Shape {
    pub heads: usize,
    pub head_dim: usize,
}

/// How the 32 positions of a head lie on a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `[head_dim][32]`
    Keys,
    /// `[32][head_dim]`
    Values,
}

/// Pages in their format, as many as were ever begun.
pub enum Store {
    F32(Vec<f32>),
    /// Bits of 16-bit floats, and whether none of all that were ever written was infinite or NaN.
    F16(Vec<u16>, bool),
    /// Codes of a head, then the scales of its 32 positions, little endian.
    Int8(Vec<i8>),
}

impl Shape {
    /// Cells of one head on one page.
    pub fn head_len(self, format: KvFormat) -> usize {
        let elements = KV_BLOCK * self.head_dim;
        match format {
            KvFormat::F32 | KvFormat::F16 => elements,
            KvFormat::Int8 => elements + KV_BLOCK * SCALE,
        }
    }

    /// Cells of one page.
    pub fn page_len(self, format: KvFormat) -> usize {
        self.heads * self.head_len(format)
    }
}

/// Bytes of one cell.
pub fn cell_bytes(format: KvFormat) -> usize {
    match format {
        KvFormat::F32 => 4,
        KvFormat::F16 => 2,
        KvFormat::Int8 => 1,
    }
}

impl Order {
    /// First element of a slot, and how far its elements are apart.
    fn of(self, slot: usize, head_dim: usize) -> (usize, usize) {
        match self {
            Order::Keys => (slot, KV_BLOCK),
            Order::Values => (slot * head_dim, 1),
        }
    }
}

impl Store {
    /// Room for `len` cells, none of them touched yet.
    pub fn reserve(format: KvFormat, len: usize) -> Result<Store, RuntimeError> {
        Ok(match format {
            KvFormat::F32 => Store::F32(reserve_memory(len, Stage::Allocate)?),
            KvFormat::F16 => Store::F16(reserve_memory(len, Stage::Allocate)?, true),
            KvFormat::Int8 => Store::Int8(reserve_memory(len, Stage::Allocate)?),
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let cells = match self {
            Store::F32(cells) => cells.capacity(),
            Store::F16(cells, _) => cells.capacity(),
            Store::Int8(cells) => cells.capacity(),
        };
        (cells * cell_bytes(self.format())) as u64
    }

    pub fn format(&self) -> KvFormat {
        match self {
            Store::F32(_) => KvFormat::F32,
            Store::F16(..) => KvFormat::F16,
            Store::Int8(_) => KvFormat::Int8,
        }
    }

    /// Begins pages up to `len` cells, all within the reserved memory.
    pub fn grow_to(&mut self, len: usize) {
        match self {
            Store::F32(cells) if cells.len() < len => cells.resize(len, 0.0),
            Store::F16(cells, _) if cells.len() < len => cells.resize(len, 0),
            Store::Int8(cells) if cells.len() < len => cells.resize(len, 0),
            _ => {}
        }
    }

    /// Writes one position of all heads, `[heads][head_dim]`, to a slot of a page that was begun.
    pub fn write(&mut self, shape: Shape, order: Order, page: usize, slot: usize, x: &[f32]) {
        let head_len = shape.head_len(self.format());
        let (first, step) = order.of(slot, shape.head_dim);
        for (head, x) in x.chunks_exact(shape.head_dim).enumerate() {
            let at = (page * shape.heads + head) * head_len;
            match self {
                Store::F32(cells) => {
                    for (cell, x) in cells[at + first..].iter_mut().step_by(step).zip(x) {
                        *cell = *x;
                    }
                }
                Store::F16(cells, finite) => {
                    let cells = cells[at + first..].iter_mut().step_by(step);
                    *finite &= put_halves(cells, x);
                }
                Store::Int8(cells) => {
                    let scale = head_scale(x);
                    for (cell, x) in cells[at + first..].iter_mut().step_by(step).zip(x) {
                        *cell = head_code(*x, scale);
                    }
                    let scale_at = at + KV_BLOCK * shape.head_dim + slot * SCALE;
                    let bytes = scale.to_le_bytes().map(|byte| byte as i8);
                    cells[scale_at..][..SCALE].copy_from_slice(&bytes);
                }
            }
        }
    }

    /// A page becomes what another one is.
    pub fn copy_page(&mut self, page_len: usize, from: usize, to: usize) {
        self.grow_to((to + 1) * page_len);
        let (from, to) = (from * page_len, to * page_len);
        match self {
            Store::F32(cells) => cells.copy_within(from..from + page_len, to),
            Store::F16(cells, _) => cells.copy_within(from..from + page_len, to),
            Store::Int8(cells) => cells.copy_within(from..from + page_len, to),
        }
    }

    /// The bytes of a page, little endian; `out` is as long as they are.
    pub fn page_out(&self, page: usize, out: &mut [u8]) {
        let len = out.len() / cell_bytes(self.format());
        let cells = page * len..(page + 1) * len;
        match self {
            Store::F32(all) => {
                for (bytes, cell) in out.as_chunks_mut().0.iter_mut().zip(&all[cells]) {
                    *bytes = cell.to_le_bytes();
                }
            }
            Store::F16(all, _) => {
                for (bytes, cell) in out.as_chunks_mut().0.iter_mut().zip(&all[cells]) {
                    *bytes = cell.to_le_bytes();
                }
            }
            Store::Int8(all) => {
                for (byte, cell) in out.iter_mut().zip(&all[cells]) {
                    *byte = *cell as u8;
                }
            }
        }
    }

    /// A page becomes what [`Store::page_out`] gave.
    pub fn page_in(&mut self, page: usize, bytes: &[u8]) {
        let len = bytes.len() / cell_bytes(self.format());
        let cells = page * len..(page + 1) * len;
        self.grow_to(cells.end);
        match self {
            Store::F32(all) => {
                for (bytes, cell) in bytes.as_chunks().0.iter().zip(&mut all[cells]) {
                    *cell = f32::from_le_bytes(*bytes);
                }
            }
            Store::F16(all, finite) => {
                for (bytes, cell) in bytes.as_chunks().0.iter().zip(&mut all[cells]) {
                    *cell = u16::from_le_bytes(*bytes);
                    *finite &= *cell & 0x7c00 != 0x7c00;
                }
            }
            Store::Int8(all) => {
                for (byte, cell) in bytes.iter().zip(&mut all[cells]) {
                    *cell = *byte as i8;
                }
            }
        }
    }

    /// All pages, from the given head's first cell on.
    pub fn cells(&self, first: usize) -> Cells<'_> {
        match self {
            Store::F32(cells) => Cells::F32(&cells[first..]),
            Store::F16(cells, true) => Cells::FiniteF16(&cells[first..]),
            Store::F16(cells, false) => Cells::F16(&cells[first..]),
            Store::Int8(cells) => Cells::Int8(&cells[first..]),
        }
    }
}

/// Whether all of them are finite as halves.
fn put_halves<'a>(mut cells: impl Iterator<Item = &'a mut u16>, values: &[f32]) -> bool {
    let mut finite = true;
    let mut halves = [0; CHUNK];
    for values in values.chunks(CHUNK) {
        for (half, value) in halves.iter_mut().zip(values) {
            *half = f16_from_f32(*value);
            finite &= *half & 0x7c00 != 0x7c00;
        }
        // The halves lead: a zip takes one more from whichever side leads.
        for (half, cell) in halves[..values.len()].iter().zip(cells.by_ref()) {
            *cell = *half;
        }
    }
    finite
}

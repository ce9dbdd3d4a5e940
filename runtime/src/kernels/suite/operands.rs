//! Deterministic operands, and digests of results.

use alloc::vec::Vec;

use format::Layout;

use crate::kernels::{Input, Kernels, Matrix, Quantized, SharedRows};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in -1..1.
    pub fn unit(&mut self) -> f32 {
        ((self.bits() >> 40) as i32 - (1 << 23)) as f32 * (1.0 / 8_388_608.0)
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.bits() >> 32) as usize % count
    }

    pub fn units(&mut self, len: usize, scale: f32) -> Vec<f32> {
        (0..len).map(|_| self.unit() * scale).collect()
    }

    /// A finite f16 of ordinary size, sometimes 0, -0, subnormal or the greatest.
    pub fn half(&mut self) -> u16 {
        match self.below(12) {
            0 => [0, 0x8000, 1, 0x83ff, 0x0400, 0x7bff][self.below(6)],
            _ => (0x1c00 + self.below(0x1800)) as u16 | (self.below(2) << 15) as u16,
        }
    }

    /// A matrix's bytes: any codes, scales from [`Random::half`], floats of ordinary size.
    pub fn weights(&mut self, layout: Layout, rows: usize, cols: usize) -> Vec<u8> {
        let len = layout.tensor_bytes(rows as u64, cols as u64).unwrap_or(0) as usize;
        let (block, codes) = match layout {
            Layout::F32 => {
                return (0..len / 4)
                    .flat_map(|_| self.unit().to_le_bytes())
                    .collect();
            }
            Layout::Bf16 => {
                let bits = |x: f32| ((x.to_bits() >> 16) as u16).to_le_bytes();
                return (0..len / 2).flat_map(|_| bits(self.unit())).collect();
            }
            Layout::Q8_0R4 => (136, 128),
            Layout::Q4_0R4 => (72, 64),
            Layout::Q4_1R4 => (80, 64),
            _ => (2, 0),
        };
        let mut bytes = Vec::with_capacity(len);
        for _ in 0..len / block {
            bytes.extend((0..codes).map(|_| self.bits() as u8));
            bytes.extend(
                (codes..block)
                    .step_by(2)
                    .flat_map(|_| self.half().to_le_bytes()),
            );
        }
        bytes
    }
}

/// FNV-1a over the bits of results; all NaN count as one.
pub struct Digest(pub u64);

impl Digest {
    pub fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, word: u32) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn floats(&mut self, floats: &[f32]) {
        for x in floats {
            self.add(if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() });
        }
    }
}

/// Equal bits, or both NaN.
pub fn same(a: &[f32], b: &[f32]) -> bool {
    let equal = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(equal)
}

/// `w x` for all rows, `[tokens][rows]`, in `parts` parts.
pub fn product(kernels: Kernels, w: &Matrix<'_>, x: &[f32], int8: bool, parts: usize) -> Vec<f32> {
    let tokens = x.len() / w.cols();
    let mut y = alloc::vec![7.5; tokens * w.rows()];
    let mut codes = match Quantized::new(tokens, w.cols()) {
        Ok(codes) if int8 => codes,
        _ => return strict_product(kernels, w, x, parts, y),
    };
    kernels.quantize(x, w.cols(), &mut codes);
    let shared = SharedRows::new(&mut y, w.rows(), 4, parts);
    for part in 0..parts {
        kernels.matmul(w, Input::int8(x, codes.codes()), shared.part(part));
    }
    y
}

fn strict_product(
    kernels: Kernels,
    w: &Matrix<'_>,
    x: &[f32],
    parts: usize,
    mut y: Vec<f32>,
) -> Vec<f32> {
    let shared = SharedRows::new(&mut y, w.rows(), 4, parts);
    for part in 0..parts {
        kernels.matmul(w, Input::strict(x, w.cols()), shared.part(part));
    }
    y
}

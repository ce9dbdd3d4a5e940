//! Prints what the matrix products of each instruction set read per second.
//!
//! `cargo run --release -p runtime --example kernel_speed`

use std::time::Instant;

use format::Layout;
use runtime::kernels::{Attention, Cells, Input, Kernels, KvHead, Matrix, Quantized, SharedRows};

fn main() {
    let mut sets = vec![Kernels::SCALAR, Kernels::best()];
    sets.dedup();
    for kernels in sets {
        for (layout, rows, cols) in [
            (Layout::Q4_1R4, 1536, 576),
            (Layout::Q4_1R4, 576, 1536),
            (Layout::Q4_0R4, 576, 1536),
            (Layout::Q8_0R4, 49152, 576),
            (Layout::F16, 1536, 576),
            (Layout::F32, 1536, 576),
        ] {
            for tokens in [1, 4, 32] {
                for strict in [false, true] {
                    product(kernels, layout, rows, cols, tokens, strict);
                }
            }
        }
        for (heads, positions) in [(1, 1024), (3, 1024)] {
            attention(kernels, heads, positions);
        }
    }
}

fn product(
    kernels: Kernels,
    layout: Layout,
    rows: usize,
    cols: usize,
    tokens: usize,
    strict: bool,
) {
    let len = layout
        .tensor_bytes(rows as u64, cols as u64)
        .expect("shape") as usize;
    // Copies beyond the cache of the nearest levels, as the layers of a model are.
    let copies = (64 << 20) / len + 1;
    let mut bytes = vec![0x2cu8; len];
    bytes
        .iter_mut()
        .enumerate()
        .for_each(|(i, b)| *b = (i as u8) & 0x37 | 8);
    let weights: Vec<Vec<u8>> = vec![bytes; copies];
    let x: Vec<f32> = (0..tokens * cols).map(|i| (i % 17) as f32 - 8.0).collect();
    let mut codes = Quantized::new(tokens, cols).expect("memory");
    kernels.quantize(&x, cols, &mut codes);
    let input = if strict {
        Input::strict(&x, cols)
    } else {
        Input::int8(&x, codes.codes())
    };
    let mut y = vec![0.0; tokens * rows];
    let (mut best, start) = (f64::INFINITY, Instant::now());
    while start.elapsed().as_secs_f64() < 0.25 {
        let lap = Instant::now();
        for w in &weights {
            let w = Matrix::new(layout, rows, cols, w).expect("matrix");
            let y = SharedRows::new(&mut y, rows, 4, 1);
            kernels.matmul(&w, input, y.part(0));
        }
        best = best.min(lap.elapsed().as_secs_f64() / copies as f64);
    }
    println!(
        "{:8} {layout:?} {rows}x{cols} tokens {tokens:2} {}: {:6.2} GB/s, {:6.2} G products/s",
        kernels.name(),
        if strict { "strict" } else { "int8  " },
        len as f64 / best / 1e9,
        (rows * cols * tokens) as f64 / best / 1e9,
    );
}

fn attention(kernels: Kernels, heads: usize, positions: usize) {
    let head_dim = 64;
    let cells: Vec<u16> = (0..positions * head_dim)
        .map(|i| 0x3000 + (i % 1000) as u16)
        .collect();
    let queries: Vec<f32> = (0..heads * head_dim)
        .map(|i| (i % 13) as f32 * 0.1 - 0.6)
        .collect();
    let pages: Vec<u32> = (0..positions.div_ceil(32) as u32).collect();
    let job = Attention {
        queries: &queries,
        positions: 1,
        kv: KvHead {
            keys: Cells::F16(&cells),
            values: Cells::F16(&cells),
            pages: &pages,
            stride: 32 * head_dim,
            head_dim,
        },
        span: 0..positions,
        scale: 0.125,
        softcap: 0.0,
    };
    let mut scratch = vec![0.0; Attention::scratch_len(heads, 0..positions, head_dim)];
    let mut out = vec![0.0; heads * head_dim];
    let (mut best, start) = (f64::INFINITY, Instant::now());
    while start.elapsed().as_secs_f64() < 0.25 {
        let lap = Instant::now();
        kernels
            .attention(&job, &mut scratch, &mut out)
            .expect("attention");
        best = best.min(lap.elapsed().as_secs_f64());
    }
    println!(
        "{:8} attention {heads} heads, {positions} positions f16: {:6.2} us, {:6.2} G products/s",
        kernels.name(),
        best * 1e6,
        (2 * heads * positions * head_dim) as f64 / best / 1e9,
    );
}

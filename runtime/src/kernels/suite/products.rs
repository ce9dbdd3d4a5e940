//! Matrix products: all layouts and shapes.

use alloc::vec;
use alloc::vec::Vec;

use format::Layout;

use super::operands::{Digest, Random, product, same};
use crate::kernels::{Kernels, Matrix, Subnormals};

type Outcome = Result<u64, &'static str>;

pub fn q8_0_int8(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::Q8_0R4, true)
}

pub fn q4_0_int8(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::Q4_0R4, true)
}

pub fn q4_1_int8(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::Q4_1R4, true)
}

pub fn q8_0_strict(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::Q8_0R4, false)
}

pub fn q4_0_strict(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::Q4_0R4, false)
}

pub fn q4_1_strict(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::Q4_1R4, false)
}

pub fn f32(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::F32, false)
}

pub fn f16(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::F16, false)
}

pub fn bf16(kernels: Kernels) -> Outcome {
    shapes(kernels, Layout::Bf16, false)
}

/// 1 to 9 rows, 1 to 9 tokens, one to four blocks of columns (float layouts: any number).
fn shapes(kernels: Kernels, layout: Layout, int8: bool) -> Outcome {
    let blocks = layout.group_block_bytes().is_some();
    let widths: &[usize] = if blocks {
        &[32, 64, 96, 128]
    } else {
        &[1, 2, 3, 4, 5, 7, 8, 31, 33, 64]
    };
    let mut random = Random(1);
    let mut digest = Digest::new();
    for rows in 1..=9 {
        for cols in widths {
            let bytes = random.weights(layout, rows, *cols);
            let w = Matrix::new(layout, rows, *cols, &bytes).map_err(|_| "matrix refused")?;
            for tokens in 1..=9 {
                let x = random.units(tokens * cols, 4.0);
                compare(kernels, &w, &x, int8, &mut digest)?;
            }
            rows_agree(kernels, &w, &mut digest)?;
        }
    }
    Ok(digest.0)
}

fn compare(
    kernels: Kernels,
    w: &Matrix<'_>,
    x: &[f32],
    int8: bool,
    digest: &mut Digest,
) -> Result<(), &'static str> {
    let want = product(Kernels::SCALAR, w, x, int8, 1);
    let got = product(kernels, w, x, int8, 1);
    digest.floats(&got);
    if same(&got, &want) {
        Ok(())
    } else {
        Err("a product differs from the scalar one")
    }
}

/// The product with a unit vector is the weight, except for the sign of zero.
fn rows_agree(kernels: Kernels, w: &Matrix<'_>, digest: &mut Digest) -> Result<(), &'static str> {
    let mut unit = vec![0.0; w.cols()];
    let mut row = vec![0.0; w.cols()];
    let k = w.cols() / 2;
    unit[k] = 1.0;
    let column = product(kernels, w, &unit, false, 1);
    for (r, weight) in column.iter().enumerate() {
        kernels.row(w, r, &mut row);
        digest.floats(&row);
        if row[k] != *weight {
            return Err("a row looked up differs from the product with a unit vector");
        }
    }
    Ok(())
}

/// Greatest codes against greatest activations, with scales from zero to the greatest.
pub fn extremes(kernels: Kernels) -> Outcome {
    let mut digest = Digest::new();
    let scales: [u16; 8] = [0, 0x8000, 1, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0xfbff];
    let patterns = [0x00u8, 0x7f, 0x80, 0x81, 0xff, 0x0f, 0xf0];
    let activations = [
        0.0,
        1.0,
        -1.0,
        f32::MIN_POSITIVE,
        1e-44,
        3.0e38,
        -3.0e38,
        1e-30,
    ];
    for (layout, codes) in [
        (Layout::Q8_0R4, 128),
        (Layout::Q4_0R4, 64),
        (Layout::Q4_1R4, 64),
    ] {
        let block = layout.group_block_bytes().unwrap_or(0) as usize;
        for pattern in patterns {
            for (at, scale) in scales.iter().enumerate() {
                let mut bytes = Vec::new();
                for group in 0..2 {
                    bytes.extend((0..codes).map(|_| pattern));
                    for half in 0..(block - codes) / 2 {
                        let half = if half + group == 1 {
                            scales[(at + 3) % 8]
                        } else {
                            *scale
                        };
                        bytes.extend(half.to_le_bytes());
                    }
                }
                let w = Matrix::new(layout, 8, 32, &bytes).map_err(|_| "matrix refused")?;
                let x: Vec<f32> = activations.iter().flat_map(|x| [*x; 32]).collect();
                compare(kernels, &w, &x, true, &mut digest)?;
                compare(kernels, &w, &x, false, &mut digest)?;
            }
        }
    }
    Ok(digest.0)
}

pub fn parts(kernels: Kernels) -> Outcome {
    let mut random = Random(2);
    let mut digest = Digest::new();
    for layout in [Layout::Q4_1R4, Layout::Q8_0R4, Layout::Bf16] {
        for rows in [1, 4, 6, 21, 40] {
            let bytes = random.weights(layout, rows, 64);
            let w = Matrix::new(layout, rows, 64, &bytes).map_err(|_| "matrix refused")?;
            let x = random.units(5 * 64, 1.0);
            for int8 in [false, true] {
                let whole = product(kernels, &w, &x, int8, 1);
                digest.floats(&whole);
                for parts in 2..=7 {
                    if !same(&product(kernels, &w, &x, int8, parts), &whole) {
                        return Err("parts differ from the whole");
                    }
                }
            }
        }
    }
    Ok(digest.0)
}

pub fn batches(kernels: Kernels) -> Outcome {
    let mut random = Random(3);
    let mut digest = Digest::new();
    let (rows, cols, tokens) = (13, 96, 11);
    for layout in [
        Layout::Q4_0R4,
        Layout::Q4_1R4,
        Layout::Q8_0R4,
        Layout::F16,
        Layout::F32,
    ] {
        let bytes = random.weights(layout, rows, cols);
        let w = Matrix::new(layout, rows, cols, &bytes).map_err(|_| "matrix refused")?;
        let x = random.units(tokens * cols, 2.0);
        for int8 in [false, true] {
            let together = product(kernels, &w, &x, int8, 1);
            digest.floats(&together);
            for token in 0..tokens {
                let alone = product(kernels, &w, &x[token * cols..][..cols], int8, 1);
                if !same(&alone, &together[token * rows..][..rows]) {
                    return Err("a token's sums depend on its batch");
                }
            }
        }
    }
    Ok(digest.0)
}

/// Rows of more blocks than the wide products pack at a time (32 of eight tokens), where sums go on
/// from memory; their ends fill no vector.
pub fn long_rows(kernels: Kernels) -> Outcome {
    let mut random = Random(4);
    for layout in [Layout::Q4_0R4, Layout::Q4_1R4, Layout::Q8_0R4] {
        for (rows, blocks) in [(5, 32), (34, 33), (21, 65), (9, 129)] {
            let cols = 32 * blocks;
            let bytes = random.weights(layout, rows, cols);
            let w = Matrix::new(layout, rows, cols, &bytes).map_err(|_| "matrix refused")?;
            for tokens in [1, 2, 4, 8, 15] {
                let x = random.units(tokens * cols, 4.0);
                let want = product(Kernels::SCALAR, &w, &x, true, 1);
                for parts in [1, 3] {
                    if !same(&product(kernels, &w, &x, true, parts), &want) {
                        return Err("a product differs from the scalar one");
                    }
                }
            }
        }
    }
    Ok(0)
}

/// One token with enough rows for tiles of four vectors, whatever is known of the scales, in parts
/// of any size; the longest rows are more blocks than are packed at a time (256).
pub fn one_token(kernels: Kernels) -> Outcome {
    let mut random = Random(5);
    for layout in [Layout::Q4_0R4, Layout::Q4_1R4, Layout::Q8_0R4] {
        for (rows, blocks) in [
            (13, 1),
            (16, 2),
            (17, 3),
            (31, 19),
            (32, 4),
            (36, 1),
            (70, 5),
            (67, 257),
        ] {
            let cols = 32 * blocks;
            let bytes = random.weights(layout, rows, cols);
            let x = random.units(cols, 4.0);
            for subnormals in [Subnormals::Rare, Subnormals::Likely] {
                let w = Matrix::new(layout, rows, cols, &bytes).map_err(|_| "matrix refused")?;
                let w = w.with(subnormals);
                let want = product(Kernels::SCALAR, &w, &x, true, 1);
                for parts in [1, 2, 3] {
                    if !same(&product(kernels, &w, &x, true, parts), &want) {
                        return Err("a product differs from the scalar one");
                    }
                }
            }
        }
    }
    Ok(0)
}

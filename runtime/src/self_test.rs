//! Known-answer tests that a lane runs before it is trusted.
//!
//! Every vector hashes what one part of the engine computes from inputs made by a formula, and
//! compares the start of that hash with a constant. The constants are what the scalar kernels give;
//! the crate's tests check those against independent references, so a lane that passes here agrees
//! bit for bit with code that was checked elsewhere.

use alloc::vec;
use alloc::vec::Vec;

use format::{Layout, PIECE_BYTES, Rope, RopePairing, RopeScaling};
use protocol::abi::{STEP_DONE, SelfTest};
use protocol::{Stage, TrResult};
use sha2::{Digest as _, Sha256};

use crate::functions::{exp_v1, gelu_tanh_v1, sigmoid_v1, silu_v1, softplus_v1, tanh_v1};
use crate::kernels::{
    Attention, Cells, Input, KV_BLOCK, Kernels, KvHead, Matrix, Quantized, SharedRows,
    f16_from_f32, f16_to_f32,
};
use crate::rope::Rotary;
use crate::sampler::{Malformed, Sampler, Settings};
use crate::tiny::{Numbers, Recipe, fill_matrix};
use crate::{Engine, KvFormat, Mode, Model, Options, Request, RuntimeError, Source};

/// One known answer.
struct Vector {
    run: fn(Kernels, &mut Sha256) -> Result<(), RuntimeError>,
    /// First eight bytes of the hash, as they stand.
    expected: u64,
}

const VECTORS: &[Vector] = &[
    vector(functions, 0x46cb_7a67_40e8_5b85),
    vector(halves, 0x6b6f_46d1_7eb0_17e8),
    vector(
        |k, out| products(k, Layout::F32, out),
        0x56f2_3cd3_f3ec_d1d7,
    ),
    vector(
        |k, out| products(k, Layout::F16, out),
        0x1307_eb90_d231_0d99,
    ),
    vector(
        |k, out| products(k, Layout::Bf16, out),
        0x66fd_c1d0_f680_3ab1,
    ),
    vector(
        |k, out| products(k, Layout::Q8_0R4, out),
        0x2b0a_a53c_2e1f_bc4d,
    ),
    vector(
        |k, out| products(k, Layout::Q4_0R4, out),
        0x7547_aad2_fb25_256e,
    ),
    vector(
        |k, out| products(k, Layout::Q4_1R4, out),
        0xbcad_c0d4_fb5b_c009,
    ),
    vector(normalization, 0x136a_ce42_2c37_137f),
    vector(rotation, 0x40ca_a0e0_50c9_8e2c),
    vector(attention, 0x1d3d_3b49_081e_fddc),
    vector(sampling, 0xc201_3487_22be_aaf6),
    vector(
        |k, out| model(k, Recipe::FLOAT, STRICT, out),
        0x5f37_d24f_03f5_1646,
    ),
    vector(
        |k, out| model(k, Recipe::QUANTIZED, STRICT, out),
        0xfb66_dc09_fee2_be38,
    ),
    vector(
        |k, out| model(k, Recipe::QUANTIZED, INT8, out),
        0x9f08_7db3_48da_eb5c,
    ),
    vector(
        |k, out| model(k, Recipe::SLIDING, INT8_CACHE, out),
        0xf6a3_2406_06fe_ecbc,
    ),
];

const STRICT: Options = Options {
    mode: Mode::StrictF32V1,
    kv_format: KvFormat::F32,
    prefill_tile: 7,
    ..Options::DEFAULT
};
const INT8: Options = Options {
    mode: Mode::Int8V1,
    kv_format: KvFormat::F16,
    prefill_tile: 7,
    ..Options::DEFAULT
};
const INT8_CACHE: Options = Options {
    kv_format: KvFormat::Int8,
    ..INT8
};

const fn vector(
    run: fn(Kernels, &mut Sha256) -> Result<(), RuntimeError>,
    expected: u64,
) -> Vector {
    Vector { run, expected }
}

/// Runs every vector on the best kernels of this build. A failing vector does not stop the others.
pub fn self_test() -> SelfTest {
    report(&hashes(Kernels::best()))
}

/// The hash of each vector; `None` where the engine refused.
fn hashes(kernels: Kernels) -> Vec<Option<[u8; 32]>> {
    let hash = |vector: &Vector| {
        let mut sha = Sha256::new();
        (vector.run)(kernels, &mut sha).ok()?;
        Some(sha.finalize().into())
    };
    VECTORS.iter().map(hash).collect()
}

fn report(hashes: &[Option<[u8; 32]>]) -> SelfTest {
    let mut all = Sha256::new();
    let mut result = SelfTest::default();
    for (vector, hash) in VECTORS.iter().zip(hashes) {
        result.tests += 1;
        if hash.is_none_or(|hash| start(&hash, 0) != vector.expected) {
            result.failed += 1;
            if result.first_failure == 0 {
                result.first_failure = result.tests;
            }
        }
        all.update(hash.unwrap_or_default());
    }
    let all: [u8; 32] = all.finalize().into();
    SelfTest {
        vectors_a: start(&all, 0),
        vectors_b: start(&all, 1),
        vectors_c: start(&all, 2),
        vectors_d: start(&all, 3),
        ..result
    }
}

/// Eight bytes of a hash, little endian as in `SelfTest::to_bytes`.
fn start(hash: &[u8; 32], index: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&hash[index * 8..][..8]);
    u64::from_le_bytes(eight)
}

fn hash_floats(out: &mut Sha256, floats: &[f32]) {
    for float in floats {
        out.update(float.to_le_bytes());
    }
}

fn floats(seed: u64, len: usize, size: f32) -> Vec<f32> {
    let mut numbers = Numbers(seed);
    (0..len).map(|_| size * numbers.signed()).collect()
}

fn at_start(code: TrResult) -> RuntimeError {
    RuntimeError::new(code, Stage::Start)
}

fn functions(_: Kernels, out: &mut Sha256) -> Result<(), RuntimeError> {
    for size in [1e-3, 1.0, 10.0, 120.0] {
        for x in floats(11, 64, size) {
            let values = [
                exp_v1(x),
                sigmoid_v1(x),
                tanh_v1(x),
                gelu_tanh_v1(x),
                silu_v1(x),
                softplus_v1(x),
            ];
            hash_floats(out, &values);
        }
    }
    Ok(())
}

fn halves(_: Kernels, out: &mut Sha256) -> Result<(), RuntimeError> {
    for step in 0..0x7c00_u16 / 31 {
        out.update(f16_to_f32(step * 31).to_le_bytes());
    }
    for size in [1e-7, 1e-4, 1.0, 7e4] {
        for x in floats(12, 64, size) {
            out.update(f16_from_f32(x).to_le_bytes());
        }
    }
    Ok(())
}

/// Rows, strict products and integer products of a `[6][64]` matrix (padded to eight rows where
/// rows lie in groups of four) with three positions, one of them all zeros.
fn products(kernels: Kernels, layout: Layout, out: &mut Sha256) -> Result<(), RuntimeError> {
    const ROWS: usize = 6;
    const COLS: usize = 64;
    let len = layout.tensor_bytes(ROWS as u64, COLS as u64).unwrap_or(0) as usize;
    let mut bytes = vec![0; len];
    fill_matrix(layout, &mut bytes, COLS as u32, &mut Numbers(13));
    let matrix = Matrix::new(layout, ROWS, COLS, &bytes).map_err(at_start)?;
    let mut row = [0.0; COLS];
    kernels.row(&matrix, ROWS - 1, &mut row);
    hash_floats(out, &row);

    let mut x = floats(14, 3 * COLS, 2.0);
    x[COLS..2 * COLS].fill(0.0);
    let mut y = [0.0; 3 * ROWS];
    let rows = SharedRows::new(&mut y, ROWS, 4, 1);
    kernels.matmul(&matrix, Input::strict(&x, COLS), rows.part(0));
    hash_floats(out, &y);

    let mut codes = Quantized::new(3, COLS).map_err(at_start)?;
    kernels.quantize(&x, COLS, &mut codes);
    let rows = SharedRows::new(&mut y, ROWS, 4, 1);
    kernels.matmul(&matrix, Input::int8(&x, codes.codes()), rows.part(0));
    hash_floats(out, &y);
    Ok(())
}

fn normalization(kernels: Kernels, out: &mut Sha256) -> Result<(), RuntimeError> {
    for len in [1, 4, 31, 32, 33] {
        let (x, weight, up) = (
            floats(15, len, 3.0),
            floats(16, len, 1.0),
            floats(17, len, 2.0),
        );
        let mut y = vec![0.0; len];
        kernels.rms_norm(&x, &weight, 1e-5, &mut y);
        hash_floats(out, &y);
        kernels.silu_mul(&x, &up, &mut y);
        hash_floats(out, &y);
        kernels.add_assign(&mut y, &x);
        hash_floats(out, &y);
    }
    Ok(())
}

fn rotation(kernels: Kernels, out: &mut Sha256) -> Result<(), RuntimeError> {
    for pairing in [RopePairing::Half, RopePairing::Interleaved] {
        let rotary = Rotary::new(&Rope {
            base: 10_000.0,
            pairing,
            dim: 12,
            scaling: RopeScaling::None,
        })?;
        for position in [0, 1, 31, 4095] {
            let (mut cos, mut sin) = ([0.0; 6], [0.0; 6]);
            rotary.angles(position, &mut cos, &mut sin);
            let mut heads = floats(18, 32, 1.0);
            kernels.rope(&mut heads, 16, pairing, &cos, &sin);
            hash_floats(out, &heads);
        }
    }
    Ok(())
}

/// Two query heads over 1, 31, 32, 33 and 70 positions, both formats.
fn attention(kernels: Kernels, out: &mut Sha256) -> Result<(), RuntimeError> {
    const HEAD_DIM: usize = 16;
    const LEN: usize = 3 * KV_BLOCK * HEAD_DIM;
    let (queries, keys, values) = (
        floats(19, 2 * HEAD_DIM, 2.0),
        floats(20, LEN, 2.0),
        floats(21, LEN, 1.0),
    );
    let halves = |cells: &[f32]| cells.iter().map(|x| f16_from_f32(*x)).collect::<Vec<u16>>();
    let (keys_f16, values_f16) = (halves(&keys), halves(&values));
    let formats = [
        (Cells::F32(&keys), Cells::F32(&values)),
        (Cells::F16(&keys_f16), Cells::F16(&values_f16)),
    ];
    for (keys, values) in formats {
        for end in [1, 31, 32, 33, 70] {
            let job = Attention {
                queries: &queries,
                positions: 1,
                kv: KvHead {
                    keys,
                    values,
                    pages: &[0, 1, 2],
                    stride: KV_BLOCK * HEAD_DIM,
                    head_dim: HEAD_DIM,
                },
                span: 0..end,
                scale: 0.25,
                softcap: 0.0,
            };
            let mut scratch = vec![0.0; Attention::scratch_len(2, 0..end, HEAD_DIM)];
            let mut y = [0.0; 2 * HEAD_DIM];
            kernels
                .attention(&job, &mut scratch, &mut y)
                .map_err(at_start)?;
            hash_floats(out, &y);
        }
    }
    Ok(())
}

/// 32 draws with every filter and penalty on: the generator and the order of the filters.
fn sampling(_: Kernels, out: &mut Sha256) -> Result<(), RuntimeError> {
    let logits = floats(22, 64, 4.0);
    let mut sampler = Sampler::new(64).map_err(at_start)?;
    let settings = Settings {
        temperature: 0.9,
        top_k: 20,
        top_p: 0.95,
        min_p: 0.01,
        repetition_penalty: 1.1,
        presence_penalty: 0.1,
        frequency_penalty: 0.05,
        seed: 42,
        stream: 54,
        vocab: 60,
        malformed: Malformed::Refuse,
    };
    sampler.begin(&settings).map_err(at_start)?;
    for _ in 0..32 {
        let choice = sampler.sample(&logits).map_err(at_start)?;
        let token = choice.token.unwrap_or(u32::MAX);
        sampler.observe(token);
        out.update(token.to_le_bytes());
    }
    out.update(sampler.state().state.to_le_bytes());
    Ok(())
}

/// Logits of a whole model: a prompt of 40 ids in tiles of seven, then eight greedy steps.
fn model(
    kernels: Kernels,
    recipe: Recipe,
    options: Options,
    out: &mut Sha256,
) -> Result<(), RuntimeError> {
    let (header, file) = recipe
        .file()
        .map_err(|_| at_start(TrResult::InternalInvariant))?;
    let mut model = Model::open_with(header, options, u64::MAX, Engine::solo(kernels))?;
    let mut source = InMemory(&file);
    let pieces = (model.first()..file.len() as u64).step_by(PIECE_BYTES as usize);
    for at in pieces {
        let len = (file.len() as u64 - at).min(u64::from(PIECE_BYTES));
        model.load(&mut source, at, len as u32)?;
    }
    model.ready()?;
    let ids: Vec<u32> = (0..40).map(|index| index * 7 % 50).collect();
    model.begin(Request {
        ids: &ids,
        max_new: 8,
        sampling: Settings {
            vocab: 50,
            ..Settings::GREEDY
        },
        ignore_eos: true,
        digest: true,
        cold: true,
        argmax: false,
        number: 0,
    })?;
    while model.step()?.status != STEP_DONE {}
    out.update(model.digest().0);
    Ok(())
}

struct InMemory<'a>(&'a [u8]);

impl Source for InMemory<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        match self.0.get(start..).and_then(|rest| rest.get(..into.len())) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(at_start(TrResult::HostRead)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both implementations give the constants; on failure the hashes found are printed in the
    /// form in which they stand above.
    #[test]
    fn every_implementation_gives_the_known_answers() {
        for kernels in [Kernels::SCALAR, Kernels::best()] {
            let hashes = hashes(kernels);
            let found: Vec<_> = hashes
                .iter()
                .map(|hash| std::format!("{:#018x}", start(&hash.expect("no refusal"), 0)))
                .collect();
            assert_eq!(report(&hashes).failed, 0, "{kernels:?} {found:#?}");
        }
    }
}

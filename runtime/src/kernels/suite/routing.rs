//! A model of zeros and ones in which each value head leaves its own mark.

use alloc::vec::Vec;

use format::float::f32_to_bf16;
use format::{Header, Layout, PIECE_BYTES};
use protocol::abi::STEP_DONE;
use protocol::{Stage, TrResult};

use crate::kernels::Kernels;
use crate::sampler::Settings;
use crate::tiny::Recipe;
use crate::{Engine, KvFormat, Mode, Model, Options, Request, RuntimeError, Source};

const HIDDEN: usize = 32;
/// Of each of the two key/value heads.
const HEAD_DIM: usize = 8;

/// Logits after one token: the embedding is zero, so the residual stream is what attention adds,
/// 3 from the first value head and -3 from the second; the output head copies it.
pub fn logits(kernels: Kernels) -> Result<Vec<f32>, RuntimeError> {
    let recipe = Recipe {
        head: Some(Layout::F32),
        biases: true,
        layers: 1,
        ..Recipe::FLOAT
    };
    let refused = |_| RuntimeError::new(TrResult::InternalInvariant, Stage::Start);
    let (header, mut file) = recipe.file().map_err(refused)?;
    fill(&header, &mut file);
    let options = Options {
        mode: Mode::StrictF32V1,
        kv_format: KvFormat::F32,
        prefill_tile: 1,
        ..Options::DEFAULT
    };
    let mut model = Model::open_with(header, options, u64::MAX, Engine::solo(kernels))?;
    for at in (model.first()..file.len() as u64).step_by(PIECE_BYTES as usize) {
        let len = (file.len() as u64 - at).min(u64::from(PIECE_BYTES));
        model.load(&mut InMemory(&file), at, len as u32)?;
    }
    model.ready()?;
    model.begin(Request {
        ids: &[7],
        max_new: 0,
        sampling: Settings {
            vocab: 50,
            ..Settings::GREEDY
        },
        ignore_eos: true,
        digest: false,
        cold: true,
        argmax: false,
        number: 0,
    })?;
    while model.step()?.status != STEP_DONE {}
    Ok(model.logits().to_vec())
}

fn fill(header: &Header, file: &mut [u8]) {
    for tensor in &header.tensors {
        let name = tensor.name.rsplit('.').next().unwrap_or_default();
        let cols = tensor.shape.cols as usize;
        let weight = |at: usize| match name {
            "norm" | "attn_norm" | "ffn_norm" | "q_bias" => 1.0,
            "o" | "head" if at / cols == at % cols && at / cols < HIDDEN => 1.0,
            "k_bias" => mark(at, 1e4),
            "v_bias" => mark(at, 3.0),
            _ => 0.0,
        };
        let bytes = &mut file[tensor.range.start as usize..tensor.range.end as usize];
        match tensor.layout {
            Layout::F32 => {
                let fours = bytes.as_chunks_mut::<4>().0.iter_mut();
                fours
                    .enumerate()
                    .for_each(|(at, four)| *four = weight(at).to_le_bytes());
            }
            // Zero and one are the same bits of no two formats but only `bf16` has a one here.
            _ => {
                let twos = bytes.as_chunks_mut::<2>().0.iter_mut();
                let bits = |at| f32_to_bf16(weight(at)).to_le_bytes();
                twos.enumerate().for_each(|(at, two)| *two = bits(at));
            }
        }
    }
}

fn mark(at: usize, size: f32) -> f32 {
    if at < HEAD_DIM { size } else { -size }
}

struct InMemory<'a>(&'a [u8]);

impl Source for InMemory<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        match self.0.get(at as usize..at as usize + into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(RuntimeError::new(TrResult::HostRead, Stage::Load)),
        }
    }
}

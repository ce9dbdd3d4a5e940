//! How much memory a model takes, region by region, before anything is allocated.
//!
//! ```text
//! weights   file bytes from the first weight tensor's 1 MiB boundary to the end
//! metadata  header, norms and biases as floats, token ids, rotary frequencies
//! kv        layers * 2 * kv_heads * head_dim * positions (up to whole blocks) * bytes
//! scratch   activations of one prefill tile, attention scores
//! logits    one row of the vocabulary, and the sampler's memory for it
//! ```

use format::{Header, PIECE_BYTES, TOKENIZER_TENSOR, TensorRole};
use protocol::abi::{
    DETAIL_CODE, DETAIL_POSITIONS, DETAIL_REGION, KV_F16, KV_F32, MODE_INT8_V1, MODE_STRICT_F32_V1,
    REGION_KV, REGION_LOGITS, REGION_METADATA, REGION_SCRATCH, REGION_WEIGHTS,
};
use protocol::{Stage, TrResult, abi};

pub use protocol::Mode;
pub use protocol::abi::Plan;

use crate::RuntimeError;
use crate::kv::cache_bytes;
use crate::sampler::Sampler;
use crate::scratch::Lengths;

/// Positions prefilled together if nobody says otherwise: enough to reuse each weight many times,
/// few enough that activations stay in a second-level cache and a cancel is soon seen. Without
/// vectors a layer of 32 positions of a small model takes longer than a person waits for a stop.
pub const PREFILL_TILE_DEFAULT: u32 =
    match cfg!(all(target_arch = "wasm32", not(target_feature = "simd128"))) {
        true => 8,
        false => 32,
    };
/// Beyond this a tile only takes memory and delays a cancel.
pub const PREFILL_TILE_MAX: u32 = 512;
/// Weights begin at this alignment, as tensors do in the file.
pub const WEIGHTS_ALIGN: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvFormat {
    F32,
    F16,
}

impl KvFormat {
    pub fn bytes(self) -> u64 {
        match self {
            KvFormat::F32 => 4,
            KvFormat::F16 => 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub mode: Mode,
    pub kv_format: KvFormat,
    /// Positions to make room for; 0 takes the model's own context.
    pub context: u32,
    /// Positions prefilled together; 0 takes [`PREFILL_TILE_DEFAULT`].
    pub prefill_tile: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::Int8V1,
            kv_format: KvFormat::F16,
            context: 0,
            prefill_tile: 0,
        }
    }
}

impl TryFrom<&abi::Options> for Options {
    type Error = RuntimeError;

    fn try_from(options: &abi::Options) -> Result<Options, RuntimeError> {
        let unknown = |number: u32| {
            RuntimeError::new(TrResult::InvalidArgument, Stage::Plan).detail(
                DETAIL_CODE,
                1,
                u64::from(number),
            )
        };
        Ok(Options {
            mode: match options.mode {
                MODE_STRICT_F32_V1 => Mode::StrictF32V1,
                MODE_INT8_V1 => Mode::Int8V1,
                other => return Err(unknown(other)),
            },
            kv_format: match options.kv_format {
                KV_F32 => KvFormat::F32,
                KV_F16 => KvFormat::F16,
                other => return Err(unknown(other)),
            },
            context: options.context,
            prefill_tile: options.prefill_tile,
        })
    }
}

/// The plan of one worker. Refused with `ContextExceeded` if the model was not made for so many
/// positions, with `OutOfMemory` and the first region that does not fit within `limit` bytes.
pub fn plan(header: &Header, options: &Options, limit: u64) -> Result<Plan, RuntimeError> {
    plan_workers(header, options, 1, limit)
}

pub(crate) fn plan_workers(
    header: &Header,
    options: &Options,
    workers: usize,
    limit: u64,
) -> Result<Plan, RuntimeError> {
    let architecture = &header.manifest.architecture;
    let (context, prefill_tile) = positions(architecture.context, options)?;
    let lengths = Lengths::new(architecture, prefill_tile, context, workers);
    let vocab = u64::from(architecture.vocab);
    let overflow = || RuntimeError::new(TrResult::IntegerOverflow, Stage::Plan);
    let mut plan = Plan {
        weights: header.file_len - first_byte(header) + WEIGHTS_ALIGN as u64 - 1,
        metadata: metadata_bytes(header, context).ok_or_else(overflow)?,
        kv: cache_bytes(architecture, options.kv_format, context).ok_or_else(overflow)?,
        scratch: lengths.bytes().ok_or_else(overflow)?,
        logits: vocab * 4 + Sampler::bytes(architecture.vocab as usize),
        total: 0,
        limit,
        context,
        prefill_tile,
    };
    let regions = [
        (REGION_WEIGHTS, plan.weights),
        (REGION_METADATA, plan.metadata),
        (REGION_KV, plan.kv),
        (REGION_SCRATCH, plan.scratch),
        (REGION_LOGITS, plan.logits),
    ];
    for (region, bytes) in regions {
        // No single block can be larger than half of what addresses reach; only weights are one.
        let block_max = match region {
            REGION_WEIGHTS => isize::MAX as u64,
            _ => u64::MAX,
        };
        let left = (limit - plan.total).min(block_max);
        if bytes > left {
            return Err(RuntimeError::new(TrResult::OutOfMemory, Stage::Plan)
                .item(region as usize)
                .detail(DETAIL_REGION, left, bytes));
        }
        plan.total += bytes;
    }
    Ok(plan)
}

/// Positions admitted, and positions of a tile.
fn positions(model_context: u32, options: &Options) -> Result<(u32, u32), RuntimeError> {
    let context = match options.context {
        0 => model_context,
        asked if asked <= model_context => asked,
        asked => {
            return Err(
                RuntimeError::new(TrResult::ContextExceeded, Stage::Plan).detail(
                    DETAIL_POSITIONS,
                    u64::from(model_context),
                    u64::from(asked),
                ),
            );
        }
    };
    let tile = match options.prefill_tile {
        0 => PREFILL_TILE_DEFAULT,
        asked if asked <= PREFILL_TILE_MAX => asked,
        asked => {
            return Err(
                RuntimeError::new(TrResult::InvalidArgument, Stage::Plan).detail(
                    DETAIL_POSITIONS,
                    u64::from(PREFILL_TILE_MAX),
                    u64::from(asked),
                ),
            );
        }
    };
    Ok((context, tile.min(context)))
}

/// First file byte that must be resident: the 1 MiB boundary at or before the first weight tensor.
/// The tokenizer before it is read by the host and need not be.
pub(crate) fn first_byte(header: &Header) -> u64 {
    let mut weights = header
        .tensors
        .iter()
        .filter(|tensor| tensor.name != TOKENIZER_TENSOR);
    let first = weights
        .next()
        .map_or(header.file_len, |tensor| tensor.range.start);
    first - first % u64::from(PIECE_BYTES)
}

/// Norms and biases as floats, ids of the sequence, and the header itself: at most twice its
/// text (strings and records), a bound that the directory of a real model keeps.
fn metadata_bytes(header: &Header, context: u32) -> Option<u64> {
    let architecture = &header.manifest.architecture;
    let vectors = architecture
        .tensors()
        .into_iter()
        .filter(|spec| spec.role == TensorRole::Vector)
        .map(|spec| u64::from(spec.shape.cols) * 4)
        .sum::<u64>();
    let ids = (u64::from(context) + 1) * 4;
    let frequencies = u64::from(architecture.rope.dim / 2) * 8;
    let pieces = header.file_len.div_ceil(u64::from(PIECE_BYTES));
    header
        .data_start
        .checked_mul(2)?
        .checked_add(vectors + ids + frequencies + pieces)
}

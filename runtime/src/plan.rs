//! How much memory a model takes, region by region, before anything is allocated.
//!
//! ```text
//! weights   full: file bytes from the first weight's 1 MiB boundary to the end; else what is kept
//!           and one or two windows for a block, see `arrange`
//! metadata  what was read of the header, norms and biases as floats, ids of the sequence, tables
//! kv        layers * positions (up to whole blocks) * bytes of a position, see `KvFormat`, and
//!           which tokens stand where; of layers that see a window only two windows
//! scratch   activations of one prefill tile, residual stream of one group, attention scores
//! logits    one row of the vocabulary
//! sampler   counts, masks and candidates of the vocabulary
//! ```
//!
//! `control`, `stacks` and `transfer` are the surroundings': a lane's team and its host's window.

use format::{Architecture, Header, PIECE_BYTES};
use protocol::abi::{
    DETAIL_CODE, DETAIL_POSITIONS, DETAIL_REGION, MODE_INT8_V1, MODE_STRICT_F32_V1,
};
use protocol::{Residency, Stage, TrResult, abi};

pub use protocol::abi::Plan;
pub use protocol::{KvFormat, Mode};

use crate::RuntimeError;
use crate::arrange::Arrangement;
use crate::kv::cache_bytes;
use crate::records;
use crate::sampler::Sampler;
use crate::scratch::Lengths;

/// Positions prefilled together if nobody says otherwise: enough to reuse each weight many times.
const TILE_LEAST: u32 = 32;
/// Without vectors a layer of 32 positions of a small model takes longer than a person waits for a
/// stop.
const TILE_OF_SCALARS: u32 = 8;
/// One worker takes more positions as long as a layer of them is no more multiply-adds than this:
/// a stop may have to wait for all of them, and half a billion take some 30 ms with vectors.
const WORK_OF_TILE: u64 = 1 << 29;
const TILE_OF_ONE_MOST: u32 = 128;
/// For each of several workers, which cut the tile into bands. A stop does not wait for a tile.
const TILE_OF_WORKER: u32 = 64;
const TILE_OF_MANY_MOST: u32 = 256;
/// Beyond this a tile only takes memory and delays a cancel.
pub const PREFILL_TILE_MAX: u32 = 512;
/// Positions that go through a streamed layer together: its bytes come from the file once for all
/// of them, and a residual stream of some thousand floats each is all that this takes.
const PREFILL_GROUP: u32 = 512;
/// Weights begin at this alignment, as tensors do in the file.
pub const WEIGHTS_ALIGN: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub mode: Mode,
    pub kv_format: KvFormat,
    /// Positions to make room for; 0 takes the model's own context.
    pub context: u32,
    /// Positions prefilled together; 0 takes as many as suit the model and the workers.
    pub prefill_tile: u32,
    pub residency: Residency,
    /// Layers kept in memory in hybrid mode; 0 takes as many as fit.
    pub kept_layers: u32,
}

impl Options {
    pub const DEFAULT: Options = Options {
        mode: Mode::Int8V1,
        kv_format: KvFormat::F16,
        context: 0,
        prefill_tile: 0,
        residency: Residency::Full,
        kept_layers: 0,
    };
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

impl TryFrom<&abi::Options> for Options {
    type Error = RuntimeError;

    fn try_from(options: &abi::Options) -> Result<Options, RuntimeError> {
        let unknown = |number: u64| {
            RuntimeError::new(TrResult::InvalidArgument, Stage::Plan).detail(DETAIL_CODE, 1, number)
        };
        if options.reserved != 0 {
            return Err(unknown(options.reserved));
        }
        Ok(Options {
            mode: match options.mode {
                MODE_STRICT_F32_V1 => Mode::StrictF32V1,
                MODE_INT8_V1 => Mode::Int8V1,
                other => return Err(unknown(u64::from(other))),
            },
            kv_format: KvFormat::from_code(options.kv_format)
                .ok_or_else(|| unknown(u64::from(options.kv_format)))?,
            context: options.context,
            prefill_tile: options.prefill_tile,
            residency: Residency::from_code(options.residency)
                .ok_or_else(|| unknown(u64::from(options.residency)))?,
            kept_layers: options.kept_layers,
        })
    }
}

/// What a model finds where it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    pub workers: usize,
    /// Bytes of the regions that are there before the model, see [`Plan`].
    pub control: u64,
    pub stacks: u64,
    pub transfer: u64,
    /// Bytes that the host passes for each position of a prompt.
    pub transfer_position: u64,
    /// Windows for weights that are not resident: two where a reader fills one of them.
    pub windows: u64,
}

impl Surroundings {
    /// Linked into a program: its allocator and its threads are its own matter.
    pub fn native(workers: usize) -> Surroundings {
        Surroundings {
            workers,
            control: 0,
            stacks: 0,
            transfer: 0,
            transfer_position: 0,
            windows: 1,
        }
    }
}

/// The plan of one worker. Refused with `ContextExceeded` if the model was not made for so many
/// positions, with `OutOfMemory` and the first region that does not fit within `limit` bytes.
pub fn plan(header: &Header, options: &Options, limit: u64) -> Result<Plan, RuntimeError> {
    let (plan, _) = measure(header, options, &Surroundings::native(1), limit)?;
    admit(&plan)?;
    Ok(plan)
}

/// What a model would take, also if that is more than `limit`: the same sums for whoever asks.
pub fn measure(
    header: &Header,
    options: &Options,
    around: &Surroundings,
    limit: u64,
) -> Result<(Plan, Arrangement), RuntimeError> {
    let architecture = &header.manifest.architecture;
    let (context, tile) = positions(architecture, options, around.workers)?;
    let mut plan = Plan {
        control: around.control,
        stacks: around.stacks,
        transfer: around.transfer + around.transfer_position * u64::from(context),
        limit,
        context,
        prefill_tile: tile,
        residency: options.residency.code(),
        layers: architecture.layers.len() as u32,
        kv_format: options.kv_format.code(),
        ..Plan::default()
    };
    let vocab = architecture.vocab as usize;
    let overflow = || RuntimeError::new(TrResult::IntegerOverflow, Stage::Plan);
    plan.logits = vocab as u64 * 4;
    plan.sampler = Sampler::bytes(vocab);
    plan.metadata = records::bytes(header, context).ok_or_else(overflow)?;
    if options.residency != Residency::Full {
        // Every piece is read once to be hashed before any of it is believed.
        plan.transfer += u64::from(PIECE_BYTES).min(header.file_len);
        plan.prefill_group = PREFILL_GROUP
            .next_multiple_of(tile)
            .min(context.next_multiple_of(tile));
    } else {
        plan.prefill_group = tile;
    }
    let kv = cache_bytes(architecture, options.kv_format, context, plan.prefill_group);
    plan.kv = kv.ok_or_else(overflow)?;
    let scratch = |tile, group| lengths(architecture, [tile, group, context], around.workers);
    plan.scratch = scratch(tile, plan.prefill_group)
        .bytes()
        .ok_or_else(overflow)?;
    let room = limit.saturating_sub(plan.sum()).min(isize::MAX as u64);
    let arrangement = Arrangement::of(header, options, room, around.windows);
    plan.weights = arrangement.bytes();
    plan.metadata += records::more_parts(architecture.vocab, arrangement.head_rows);
    plan.kept_layers = arrangement.kept_layers as u32;
    plan.streamed = arrangement.streamed();
    plan.total = plan.sum();
    let one = scratch(1, 1).bytes().ok_or_else(overflow)?;
    plan.decode = plan.total - plan.scratch + one.min(plan.scratch);
    Ok((plan, arrangement))
}

/// Refuses a plan that does not fit, with the first region for which too little is left.
pub fn admit(plan: &Plan) -> Result<(), RuntimeError> {
    // No single block can be larger than half of what addresses reach; only weights are one.
    match plan.over(isize::MAX as u64) {
        None => Ok(()),
        Some(over) => Err(RuntimeError::new(TrResult::OutOfMemory, Stage::Plan)
            .item(over.region as usize)
            .detail(DETAIL_REGION, over.left, over.needed)),
    }
}

/// Lengths of the buffers for `[tile, group, context]` positions.
pub fn lengths(architecture: &Architecture, positions: [u32; 3], workers: usize) -> Lengths {
    let [tile, group, context] = positions;
    Lengths::new(architecture, tile, group, context, workers)
}

/// Positions admitted, and positions of a tile.
fn positions(
    architecture: &Architecture,
    options: &Options,
    workers: usize,
) -> Result<(u32, u32), RuntimeError> {
    let refuse = |code, most: u32, asked: u32| {
        let error = RuntimeError::new(code, Stage::Plan);
        error.detail(DETAIL_POSITIONS, u64::from(most), u64::from(asked))
    };
    let model_context = architecture.context;
    let context = match options.context {
        0 => model_context,
        asked if asked <= model_context => asked,
        asked => return Err(refuse(TrResult::ContextExceeded, model_context, asked)),
    };
    let tile = match options.prefill_tile {
        0 => usual_tile(architecture, workers),
        asked if asked <= PREFILL_TILE_MAX => asked,
        asked => return Err(refuse(TrResult::InvalidArgument, PREFILL_TILE_MAX, asked)),
    };
    Ok((context, tile.min(context)))
}

fn usual_tile(architecture: &Architecture, workers: usize) -> u32 {
    if cfg!(all(target_arch = "wasm32", not(target_feature = "simd128"))) {
        return TILE_OF_SCALARS;
    }
    if workers > 1 {
        let most = TILE_OF_MANY_MOST / TILE_OF_WORKER;
        return TILE_OF_WORKER * (workers as u32).min(most);
    }
    let [hidden, heads, kv_heads, head_dim, ffn] = [
        architecture.hidden,
        architecture.heads,
        architecture.kv_heads,
        architecture.head_dim,
        architecture.ffn,
    ]
    .map(u64::from);
    let widths = 2 * (heads + kv_heads) * head_dim + 3 * ffn;
    let fitting = WORK_OF_TILE / (hidden * widths).max(1);
    let whole = fitting - fitting % u64::from(TILE_LEAST);
    whole.clamp(u64::from(TILE_LEAST), u64::from(TILE_OF_ONE_MOST)) as u32
}

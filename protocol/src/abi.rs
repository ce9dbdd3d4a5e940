//! The C ABI of a lane: fixed-width structs, little endian, and the functions that take them.
//!
//! Pointers are addresses in the lane's own memory and valid only during the call. Every function
//! that can fail returns a `TrResult` code; `rt_error` then tells where. Handles carry a
//! generation in the upper 32 bits, then 16 bits of the lane's owner, then 16 of a slot: one that
//! was closed, that is another lane's, or that never was, is each refused with its own code.
//!
//! | export | signature |
//! |---|---|
//! | `rt_abi` | `() -> u32`: [`ABI_VERSION`] |
//! | `rt_alloc` | `(len: u32) -> ptr`: 16-byte aligned staging memory for the host, 0 if none is left |
//! | `rt_free` | `(ptr, len: u32)` |
//! | `rt_self_test` | `(out: *SelfTest) -> code` |
//! | `rt_plan` | `(header, header_len: u32, file_len: u64, options: *Options, out: *Plan) -> code`: also of a model that does not fit, see [`Plan::over`]; as if no other were open |
//! | `rt_open` | `(header, header_len: u32, file_len: u64, options: *Options, source: u32, out: *Opened) -> code` |
//! | `rt_load` | `(handle: u64, at: u64, len: u32, out: *[u8; 32]) -> code`: reads one piece (1 MiB at a multiple of 1 MiB, or the file's last bytes) through `host_read`, keeps what is to be resident of it, and writes its hash |
//! | `rt_ready` | `(handle: u64) -> code`: checks the loaded weights, reading those that are not resident once more; the model can be used, and the memory grows no more |
//! | `rt_begin` | `(handle: u64, request: *Request) -> code` |
//! | `rt_step` | `(handle: u64, out: *Step) -> code` |
//! | `rt_stop` | `(handle: u64) -> code`: ends the request, if there is one; committed positions stay, and `rt_step` is refused until `rt_begin` |
//! | `rt_logits` | `(handle: u64, out: *Span) -> code`: f32 logits of the newest position |
//! | `rt_digest` | `(handle: u64, out: *[u8; 32]) -> code`: SHA-256 of all logits since `rt_begin` |
//! | `rt_known` | `(handle: u64, ids, ids_len: u32, out: *Known) -> code`: how many of these ids need not be computed again; this and the next two are refused while a request runs |
//! | `rt_page_out` | `(handle: u64, ids, ids_len: u32, block: u32, to, to_len: u32, out: *Span) -> code`: writes keys and values of the 32 ids from `32 * block` on, or of as many as there are, to `to`, which has room for [`Known::page_bytes`] |
//! | `rt_page_in` | `(handle: u64, ids, ids_len: u32, block: u32, from, from_len: u32) -> code`: takes them back. The host answers for the bytes: they must be those of a cache with equal identity |
//! | `rt_counters` | `(out: *Counters) -> code`: which kernels really ran |
//! | `rt_error` | `(out: *ErrorPlace) -> code`: place of the newest failure |
//! | `rt_close` | `(handle: u64) -> code` |
//! | `rt_memory` | `(handle: u64, out: *Plan) -> code`: the open model's plan with what every region has really taken |
//! | `rt_owner` | `(owner: u32) -> code`: once and before any model is open: this lane's handles carry the lower 16 bits, so that those of another lane of the same host are refused |
//! | `rt_limit` | `(bytes: u64) -> code`: the lane may take no more than this in all, from the next plan on; it can only be lowered |
//! | `rt_refused` | `() -> u32`: bytes of the newest allocation that was refused in the newest call, 0 if none was; the only call that is allowed after a trap |
//! | `rt_team` | `(workers: u32, out: *Team) -> code`: threaded lanes only, once and before any model is open: takes the memory of a team; the host starts workers 1 and up |
//! | `rt_worker` | `(index: u32)`: threaded lanes only: called in that worker's own instance, whose `__stack_pointer` and TLS are set; returns when the worker is dismissed |
//! | `rt_meet` | `(workers: u32, rounds: u32, out: *Meet) -> code`: threaded lanes only: so many meetings of a test product by the first `workers` workers, who from then on are the team. `WorkerFailure` within two seconds if one does not come, `SelfTestFailed` if a share is missing or wrong |
//! | `rt_reader` | `(handle: u64, out: *Reader) -> code`: threaded lanes only: where a worker that reads the model's file ahead is told what to read, see [`Reader`]; without such a worker the engine reads everything itself |
//!
//! Every pointer that the host passes must lie in memory from `rt_alloc` that is not yet freed,
//! with its whole length; otherwise the call returns `Bounds` and does nothing. So no host mistake
//! can reach the engine's own memory.
//!
//! The only import is `env.host_read(source: u32, offset: u64, dst: u32, len: u32) -> i32`, which
//! fills `len` bytes or returns a code other than 0.

pub const ABI_VERSION: u32 = 3;
/// Number of the numerical contract that every lane obeys.
pub const RUNTIME_SEMANTICS: u32 = 1;

/// Declares structs that are the same on both sides: the lane reads them in place, the host
/// writes and reads them as bytes.
macro_rules! shapes {
    ($($(#[$meta:meta])* pub struct $name:ident [$size:literal] {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }

        // No padding: the fields fill the struct, so its bytes are its fields in order.
        const _: () = assert!(size_of::<$name>() == $size && $size == 0 $(+ size_of::<$type>())*);

        impl $name {
            pub const BYTES: usize = $size;

            pub fn to_bytes(&self) -> [u8; $size] {
                let mut out = [0; $size];
                let mut at = 0;
                $(
                    let field = self.$field.to_le_bytes();
                    out[at..at + field.len()].copy_from_slice(&field);
                    at += field.len();
                )*
                debug_assert_eq!(at, $size);
                out
            }

            pub fn from_bytes(bytes: &[u8; $size]) -> $name {
                let mut rest: &[u8] = bytes;
                $(
                    let (head, tail) = rest.split_at(size_of::<$type>());
                    let mut field = [0; size_of::<$type>()];
                    field.copy_from_slice(head);
                    let $field = <$type>::from_le_bytes(field);
                    rest = tail;
                )*
                debug_assert!(rest.is_empty());
                $name { $($field,)* }
            }
        }
    )*};
}

shapes! {
    pub struct Options [32] {
        /// [`MODE_STRICT_F32_V1`] or [`MODE_INT8_V1`].
        pub mode: u32,
        /// [`KV_F32`], [`KV_F16`] or [`KV_INT8`].
        pub kv_format: u32,
        /// Positions to make room for; 0 takes the model's own context.
        pub context: u32,
        /// Positions prefilled together; 0 takes the default.
        pub prefill_tile: u32,
        /// `RESIDENCY_...`.
        pub residency: u32,
        /// Layers kept in memory with [`RESIDENCY_HYBRID`]; 0 takes as many as fit.
        pub kept_layers: u32,
        pub reserved: u64,
    }

    /// The memory a model takes, region by region, all in bytes: planned before anything is
    /// allocated, or what was really taken.
    pub struct Plan [144] {
        /// Resident weights, and the window for those that are not.
        pub weights: u64,
        /// What was read of the header, norms and biases, the ids of the sequence, tables.
        pub metadata: u64,
        pub kv: u64,
        /// Buffers of a forward pass.
        pub scratch: u64,
        pub logits: u64,
        pub sampler: u64,
        /// A lane has none: text never enters it. The host adds its own.
        pub tokenizer: u64,
        /// Where workers meet.
        pub control: u64,
        /// Stacks and thread-local memory of all workers but the first.
        pub stacks: u64,
        /// What the host passes structs, headers and ids in, and pieces on their way.
        pub transfer: u64,
        /// Sum of all regions: the peak of prefill.
        pub total: u64,
        /// The most that they may be together.
        pub limit: u64,
        /// What decoding touches of it.
        pub decode: u64,
        /// Bytes read from the file for one decoded token.
        pub streamed: u64,
        /// Positions admitted.
        pub context: u32,
        pub prefill_tile: u32,
        /// Positions for which a layer that is not resident is read once.
        pub prefill_group: u32,
        /// `RESIDENCY_...`.
        pub residency: u32,
        /// Resident layers, of `layers`.
        pub kept_layers: u32,
        pub layers: u32,
        /// `KV_...`.
        pub kv_format: u32,
        pub reserved: u32,
    }

    pub struct Opened [24] {
        pub handle: u64,
        /// First file byte that the weights region holds; a multiple of 1 MiB. The host loads
        /// every byte from here to the end of the file.
        pub first: u64,
        pub len: u64,
    }

    pub struct Request [72] {
        pub seed: u64,
        pub stream: u64,
        pub ids: u32,
        pub ids_len: u32,
        pub max_new: u32,
        /// Sum of `FLAG_...`.
        pub flags: u32,
        /// 0 is greedy.
        pub temperature: f32,
        /// 1 is off.
        pub top_p: f32,
        /// 0 is off.
        pub min_p: f32,
        /// 0 is off.
        pub top_k: u32,
        /// 1 is off.
        pub repetition_penalty: f32,
        pub presence_penalty: f32,
        pub frequency_penalty: f32,
        /// Ids below this may be sampled: the tokenizer's size.
        pub vocab: u32,
        /// A stop of this number ends the request, see `rt_team`; 0 cannot be stopped so.
        pub number: u32,
        pub reserved: u32,
    }

    pub struct Step [32] {
        /// `STEP_...`.
        pub status: u32,
        /// Valid with [`STEP_TOKEN`] and with [`STEP_DONE`] if `has_token` is 1.
        pub token: u32,
        pub has_token: u32,
        /// `FINISH_...`, valid with [`STEP_DONE`].
        pub finish: u32,
        /// Prompt positions committed and wanted.
        pub prefilled: u32,
        pub prompt: u32,
        /// Prompt positions that were already there from earlier requests.
        pub reused: u32,
        pub generated: u32,
    }

    pub struct Span [8] {
        pub ptr: u32,
        /// In elements.
        pub len: u32,
    }

    pub struct Known [8] {
        /// Leading ids whose keys and values are in the cache.
        pub tokens: u32,
        /// Most bytes of a page.
        pub page_bytes: u32,
    }

    pub struct SelfTest [48] {
        pub tests: u32,
        pub failed: u32,
        /// Number of the first failing test, from 1.
        pub first_failure: u32,
        pub reserved: u32,
        /// First 32 bytes of the digest of all vectors, so that two builds can be compared.
        pub vectors_a: u64,
        pub vectors_b: u64,
        pub vectors_c: u64,
        pub vectors_d: u64,
    }

    /// What the host needs to start the workers of a team, and where the two words are that
    /// threads besides the caller may touch. Addresses are in the shared memory.
    pub struct Team [32] {
        /// 32 bits; a host that stores a request's number here stops that request within one row
        /// tile.
        pub stop: u32,
        /// 32 bits; not 0 once a worker was lost. To be read after a trap.
        pub broken: u32,
        /// Where the stack of worker 1 begins, downwards; that of worker `i` begins `(i - 1) *
        /// stack_bytes` higher.
        pub stack: u32,
        pub stack_bytes: u32,
        /// Thread-local block of worker 1; the others follow, `tls_bytes` each.
        pub tls: u32,
        pub tls_bytes: u32,
        pub workers: u32,
        pub reserved: u32,
    }

    /// Nine 32-bit words at `words`, which engine and reader change with atomic operations: the
    /// model that is served; the reader that is there; how often was asked; how often was
    /// answered; 1 if the bytes were read; the file byte, low and high; where to; how many. A
    /// reader that finds its own `number` in the first word takes over the third to the fourth,
    /// writes its number into the second, and from then on answers whenever the third has changed,
    /// until the first does. All is 0 if nothing is to be read.
    pub struct Reader [16] {
        pub words: u32,
        pub number: u32,
        /// Blocks that were read ahead so far.
        pub blocks: u64,
    }

    pub struct Meet [32] {
        /// Shares of all workers, and products counted by the path counters, in these meetings.
        pub shares: u64,
        pub products: u64,
        /// Bit `i`: worker `i` finished a share in every meeting.
        pub present: u64,
        /// `MEET_...` of the first failure.
        pub fault: u32,
        /// The worker concerned.
        pub worker: u32,
    }

    pub struct Counters [32] {
        pub scalar_calls: u64,
        pub simd_calls: u64,
        /// With the relaxed integer dot product; not among `simd_calls`.
        pub relaxed_calls: u64,
        /// Logits that were NaN or infinite and set to negative infinity, since the lane started.
        pub malformed_logits: u64,
    }

    pub struct ErrorPlace [40] {
        pub code: i32,
        /// `Stage` as a number.
        pub stage: u32,
        /// Index into the header's tensors, the layer, or with [`DETAIL_REGION`] a `REGION_...`;
        /// `u32::MAX` if none applies.
        pub item: u32,
        /// `DETAIL_...`: what `expected` and `found` mean.
        pub detail: u32,
        pub expected: u64,
        pub found: u64,
        /// Byte offset in the file, or position in the sequence.
        pub at: u64,
    }
}

pub const MODE_STRICT_F32_V1: u32 = 0;
pub const MODE_INT8_V1: u32 = 1;

pub const KV_F32: u32 = 0;
pub const KV_F16: u32 = 1;
pub const KV_INT8: u32 = 2;

/// All weights are in memory.
pub const RESIDENCY_FULL: u32 = 0;
/// Embedding, norms, head and the first layers are; the others are read from the file whenever
/// they are needed.
pub const RESIDENCY_HYBRID: u32 = 1;
/// Only norms, biases and one block at a time are.
pub const RESIDENCY_PAGED: u32 = 2;

/// Generation goes on past stop tokens.
pub const FLAG_IGNORE_EOS: u32 = 1;
/// Keep a SHA-256 of every generated step's logits for `rt_digest`.
pub const FLAG_DIGEST: u32 = 2;
/// Non-finite logits are set to negative infinity and counted instead of ending the request.
pub const FLAG_MASK_MALFORMED: u32 = 4;
/// Forget what earlier requests left: no prefix is reused.
pub const FLAG_COLD: u32 = 8;

/// More work: call again.
pub const STEP_MORE: u32 = 0;
pub const STEP_TOKEN: u32 = 1;
pub const STEP_DONE: u32 = 2;

/// A stop token was produced.
pub const FINISH_STOP: u32 = 0;
/// `max_new` tokens, or the context is full.
pub const FINISH_LENGTH: u32 = 1;
pub const FINISH_CANCELLED: u32 = 2;
pub const FINISH_NUMERICAL_COLLAPSE: u32 = 3;

pub const MEET_SOUND: u32 = 0;
/// A worker did not come in time.
pub const MEET_LATE: u32 = 1;
/// A worker's share was not counted.
pub const MEET_ABSENT: u32 = 2;
/// A product differs from the one that the caller computed alone.
pub const MEET_WRONG: u32 = 3;
/// The path counters do not tell what ran.
pub const MEET_UNCOUNTED: u32 = 4;

pub const DETAIL_NONE: u32 = 0;
pub const DETAIL_BYTES: u32 = 1;
pub const DETAIL_POSITIONS: u32 = 2;
pub const DETAIL_TOKEN_ID: u32 = 3;
pub const DETAIL_CODE: u32 = 4;
/// Bytes that were left for a region of the plan, and bytes that it needs.
pub const DETAIL_REGION: u32 = 5;
/// Bytes that a region could not be given; `expected` says nothing.
pub const DETAIL_REFUSED: u32 = 6;

pub const REGION_WEIGHTS: u32 = 0;
pub const REGION_METADATA: u32 = 1;
pub const REGION_KV: u32 = 2;
pub const REGION_SCRATCH: u32 = 3;
pub const REGION_LOGITS: u32 = 4;
pub const REGION_SAMPLER: u32 = 5;
pub const REGION_TOKENIZER: u32 = 6;
pub const REGION_CONTROL: u32 = 7;
pub const REGION_STACKS: u32 = 8;
pub const REGION_TRANSFER: u32 = 9;

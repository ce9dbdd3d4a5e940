//! Every limit of the readers, in one place, each with its reason.
//!
//! Together they bound the memory of a conversion to a few tens of MiB and its time before the
//! first refusal to well under a second, whatever the file claims.

/// GGUF header (keys and tensor list). The largest seen in public models is near 20 MiB.
pub const GGUF_HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// A GGUF key; the specification allows 2^16 - 1 bytes.
pub const KEY_BYTES_MAX: u64 = 65_535;
/// Any GGUF string. Longer ones have only been seen in attacks.
pub const STRING_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A GGUF string that is kept, and a chat template from any source; real ones are under 64 KiB.
pub const TEXT_BYTES_MAX: u64 = 1024 * 1024;
/// Elements of a GGUF array; the longest in public models has about 515,000.
pub const ARRAY_ELEMENTS_MAX: u64 = 2_000_000;
/// Keys of a GGUF file; real ones have under 100.
pub const KEYS_MAX: u64 = 65_536;
/// Tensors of a source, as in `.slm`.
pub const TENSORS_MAX: u64 = 65_536;
/// A GGUF tensor name; the specification says 64 bytes.
pub const GGUF_NAME_BYTES_MAX: u64 = 64;
/// Dimensions of a tensor (`GGML_MAX_DIMS`, and as in `.slm`).
pub const DIMENSIONS_MAX: u32 = 4;
/// Greater alignments only make holes.
pub const ALIGNMENT_MAX: u64 = 1024 * 1024;
/// Alignment of a GGUF file that names none.
pub const ALIGNMENT_DEFAULT: u64 = 32;

/// Tokens of a vocabulary: twice the largest published one (262,144).
pub const TOKENS_MAX: u64 = 1 << 19;
/// Merges of a tokenizer: twice the longest published list (about 515,000).
pub const MERGES_MAX: u64 = 1 << 20;
/// One token or merge; the longest real ones have a few hundred bytes.
pub const TOKEN_BYTES_MAX: u64 = 64 * 1024;
/// Text of all tokens and merges together; the largest published tokenizers have about 7 MiB.
pub const VOCABULARY_BYTES_MAX: u64 = 12 * 1024 * 1024;

/// Columns of a matrix, so that four rows of `f32` fit in 4 MiB. Real models stay below 60,000.
pub const COLUMNS_MAX: u64 = 1 << 18;

/// `config.json` and `generation_config.json`; real ones have a few KiB.
pub const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
/// `tokenizer_config.json` may describe every added token.
pub const TOKENIZER_CONFIG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// `tokenizer.json`; the largest of the common ones has 33 MB. It is checked whole in memory.
pub const TOKENIZER_BYTES_MAX: u64 = 40 * 1024 * 1024;
/// JSON header of one safetensors shard, and the index of all: about 200 bytes per tensor.
pub const SHARD_HEADER_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Files of one source folder.
pub const FILES_MAX: u64 = 1024;

/// Source bytes asked for at a time.
pub const WINDOW_BYTES: u32 = 1024 * 1024;

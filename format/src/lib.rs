//! The bytes of a model: the `.slm` container, its Merkle root, its manifest.
//!
//! A `.slm` file is a safetensors file whose `__metadata__` carries a manifest that says exactly
//! what the tensors are. Reading order: `ids` (names for numbers), `layout` (what a tensor's bytes
//! mean), `float`, `pack`, `quantize`, `finite` (work on those bytes), `architecture` (which
//! tensors a model has), `manifest`, `header` (all of it together, checked) on `directory` (the
//! safetensors map), `json` and `schema` (strict reading), `merkle` (the identity of the file).
//!
//! Invariant: a `Header` that exists is right. Every byte of the file belongs to exactly one
//! tensor, every tensor is one the architecture asks for, and nobody checks again.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ids;
mod layout;

pub mod float;

mod pack;

mod quantize;

mod finite;

mod architecture;
mod manifest;

mod header;

mod directory;
mod json;
mod schema;

mod leaves;
mod merkle;
mod verified;

mod error;
mod wording;

pub use architecture::{
    Activation, Architecture, CONTEXT_MAX, FFN_MAX, Family, Ffn, HEAD_DIM_MAX, HEADS_MAX,
    HIDDEN_MAX, LAYERS_MAX, Layer, Mixer, Norm, NormKind, Rope, RopePairing, RopeScaling,
    SETTING_MIN, Shape, TensorRole, TensorSpec, VOCAB_MAX,
};
pub use error::{FormatError, JsonText};
pub use finite::{check_filler, check_finite};
pub use header::{HEADER_BYTES_MAX, Header, Tensor, header_len};
pub use ids::{Digest, LEAF_BYTES, LEAVES_PER_PIECE, ModelId, PIECE_BYTES, PieceIndex, Root};
pub use layout::{BLOCK, Codec, Layout, Packing};
pub use leaves::{hash_leaves, leaf_hashes};
pub use manifest::{
    Generation, Kind, MANIFEST_SCHEMA, Manifest, NAME_BYTES_MAX, Source, SpecialTokens,
    TENSORS_MAX, TOKENIZER_TENSOR, TensorEntry, TokenizerRef,
};
pub use merkle::{Hasher, PieceLayer, leaf_hash, piece_hash, piece_hash_of_leaves, sha256};
pub use pack::{dequantize, pack_r4, unpack_row};
pub use quantize::quantize;
pub use verified::{PieceByLeaves, VerifiedPiece};

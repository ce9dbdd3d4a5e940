//! The bytes of a model: the `.slm` container, its Merkle root, its manifest.
//!
//! A `.slm` file is a safetensors file whose `__metadata__` carries a manifest that says exactly
//! what the tensors are. Reading order: `ids` (names for numbers), `layout` (what a tensor's bytes
//! mean), `architecture` (which tensors a model has), `manifest`, `header` (all of it together,
//! checked), `merkle` (the identity of the file).
//!
//! Invariant: a `Header` that exists is right. Every byte of the file belongs to exactly one
//! tensor, every tensor is one the architecture asks for, and nobody checks again.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod architecture;
mod error;
mod header;
mod ids;
mod layout;
mod manifest;
mod merkle;

pub use architecture::{
    Activation, Architecture, Family, Ffn, Layer, Mixer, Norm, NormKind, Rope, RopePairing,
    RopeScaling, Shape, TensorRole, TensorSpec,
};
pub use error::FormatError;
pub use header::{HEADER_BYTES_MAX, Header, Tensor, header_len};
pub use ids::{Digest, LEAF_BYTES, LEAVES_PER_PIECE, ModelId, PIECE_BYTES, PieceIndex, Root};
pub use layout::{BLOCK, Codec, Layout, Packing};
pub use manifest::{
    Generation, Kind, Manifest, Source, SpecialTokens, TOKENIZER_TENSOR, TensorEntry, TokenizerRef,
};
pub use merkle::{Hasher, PieceLayer, leaf_hash, piece_hash, sha256};

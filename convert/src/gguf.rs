//! GGUF versions 2 and 3: one file with everything in it, or several parts of one.
//!
//! Reading order: `reader` (bytes to keys and tensors, in portions), `keys` (which keys are kept,
//! and as what), `texts` (long lists of short texts), `directory` (the tensors and where they
//! lie), `parts` (several files to one), `architecture` (keys to the closed descriptor),
//! `vocabulary` and `tokenizer` (keys to a `tokenizer.json`), `lower` (all of it to a plan).
//!
//! The format is described in `docs/gguf.md` of the ggml repository.

mod architecture;
mod array;
mod cursor;
mod directory;
mod keys;
mod lower;
mod parts;
mod reader;
mod scalar;
mod texts;
mod tokenizer;
mod vocabulary;

pub(crate) use lower::{Checkpoint, RopeFactors};
pub(crate) use parts::Parts;
pub(crate) use tokenizer::TokenizerText;

//! The many small things that a model keeps beside its large regions, counted for the plan.

use alloc::string::String;
use core::ops::Range;

use format::{Header, Manifest, PIECE_BYTES, Tensor, TensorRole};

use crate::arrange::first_byte;
use crate::weights::{HeadPart, LayerWeights, VectorFrom};

/// Bytes of the metadata region for `context` positions and a head in one part, or `None` if they
/// do not fit 64 bits.
pub fn bytes(header: &Header, context: u32) -> Option<u64> {
    let architecture = &header.manifest.architecture;
    let floats = vectors(header).map(u64::from).sum::<u64>() * 4;
    let ids = (u64::from(context) + 1) * 4;
    let frequencies = u64::from(architecture.rope.dim / 2) * 8;
    let pieces = (header.file_len - first_byte(header)).div_ceil(u64::from(PIECE_BYTES));
    let layer = size_of::<LayerWeights>() + size_of::<Range<u64>>();
    let layers = architecture.layers.len() * layer;
    let sources = vectors(header).count() * size_of::<VectorFrom>();
    let lists = size_of::<HeadPart>() + size_of::<(Range<u64>, u64)>();
    let records = (layers + sources + lists) as u64 + kept_of(header);
    records.checked_add(floats + ids + frequencies + pieces)
}

/// Bytes of the parts of a head but for one.
pub fn more_parts(vocab: u32, rows: u32) -> u64 {
    let parts = u64::from(vocab.div_ceil(rows.max(1)));
    (parts - parts.min(1)) * size_of::<HeadPart>() as u64
}

/// Lengths of all norms and biases.
pub fn vectors(header: &Header) -> impl Iterator<Item = u32> {
    let specs = header.manifest.architecture.tensors().into_iter();
    let vectors = specs.filter(|spec| spec.role == TensorRole::Vector);
    vectors.map(|spec| spec.shape.cols)
}

/// Bytes that an open model keeps of its header: everything but the manifest's list of tensors,
/// which says again what the directory says.
pub fn kept_of(header: &Header) -> u64 {
    let Manifest {
        schema,
        name,
        licence,
        source,
        architecture,
        tokenizer,
        chat_template,
        special,
        ..
    } = &header.manifest;
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = schema.len()
        + name.len()
        + optional(licence)
        + source.description.len()
        + tokenizer.as_ref().map_or(0, |it| it.tensor.len())
        + optional(chat_template);
    // The graph has the architecture, and the generator the stop tokens, a second time.
    let lists = 2 * size_of_val(architecture.layers.as_slice()) + 2 * special.stop.len() * 4;
    let names = header
        .tensors
        .iter()
        .map(|tensor| tensor.name.len())
        .sum::<usize>();
    let tensors = header.tensors.len() * size_of::<Tensor>() + names;
    (texts + lists + tensors) as u64
}

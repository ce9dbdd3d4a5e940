//! The words of the conversation with a converter.

use format::Codec;

use crate::ConvertError;

/// What the caller wants beyond a faithful copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Requantize matrices to `q8_0`, `q4_0` or `q4_1`. Without it no weight changes.
    pub quantize: Option<Codec>,
    /// Which matrices that concerns.
    pub scope: Scope,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those whose weights are floats.
    #[default]
    Floats,
    /// Also those that are quantized already, which adds a second rounding to the first.
    All,
}

/// One file of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// File name without folders.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
}

/// Source bytes that the converter needs next: never zero, and inside the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Index into the list of source files; 0 for a GGUF file.
    pub source: u32,
    /// Offset of the first byte.
    pub at: u64,
    pub len: u32,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<'a> {
    /// Read these bytes and hand them to [`Converter::feed`](crate::Converter::feed).
    Need(Need),
    /// Append these bytes to the output.
    Write(&'a [u8]),
    /// The output is complete.
    Done(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the descriptions; most refusals come here.
    Reading,
    /// Hashing the whole source.
    Checking,
    /// Writing the output.
    Converting,
}

/// How far a phase has come, in source bytes (output bytes while converting).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub phase: Phase,
    pub done: u64,
    pub total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Length of the `.slm` file in bytes.
    pub file_len: u64,
    /// What requantizing did, if it was asked for.
    pub quantized: Option<Quantized>,
}

/// What requantizing did to the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantized {
    pub codec: Codec,
    /// Matrices that were requantized.
    pub matrices: u32,
    /// Matrices left alone, because they were quantized already or their rows are no whole blocks.
    pub kept: u32,
    /// Root mean square of (stored weight - source weight) over all requantized weights.
    pub error_rms: f64,
    /// Root mean square of the source weights themselves, to compare with.
    pub weight_rms: f64,
}

impl Options {
    /// Refuses a target that is no quantization.
    pub(crate) fn check(&self) -> Result<(), ConvertError> {
        match self.quantize {
            None | Some(Codec::Q8_0 | Codec::Q4_0 | Codec::Q4_1) => Ok(()),
            Some(codec) => Err(ConvertError::NotAQuantization { codec }),
        }
    }
}

//! Every way a `.slm` file can be wrong.

use core::fmt;

/// To be completed: one variant per refusal, each naming its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {}

impl fmt::Display for FormatError {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl core::error::Error for FormatError {}

//! The loop around a converter, for callers that can read and write at once.

use crate::converter::Converter;
use crate::error::ConvertError;
use crate::step::{Need, Outcome, Progress, Step};

/// Why a driven conversion ended early. `E` is the caller's own error.
#[derive(Debug, PartialEq)]
pub enum DriveError<E> {
    Convert(ConvertError),
    Read(E),
    Write(E),
}

impl<E> From<ConvertError> for DriveError<E> {
    fn from(error: ConvertError) -> DriveError<E> {
        DriveError::Convert(error)
    }
}

/// Runs a conversion to its end. `read` fills the whole buffer, or fails; `progress` is called
/// after every portion.
pub fn drive<E>(
    converter: &mut Converter,
    mut read: impl FnMut(Need, &mut [u8]) -> Result<(), E>,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
    mut progress: impl FnMut(Progress),
) -> Result<Outcome, DriveError<E>> {
    let mut buffer = Vec::new();
    loop {
        match converter.poll()? {
            Step::Need(need) => {
                buffer.resize(need.len as usize, 0);
                read(need, &mut buffer).map_err(DriveError::Read)?;
                converter.feed(need.at, &buffer)?;
            }
            Step::Write(bytes) => write(bytes).map_err(DriveError::Write)?,
            Step::Done(outcome) => return Ok(outcome),
        }
        progress(converter.progress());
    }
}

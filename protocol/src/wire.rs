//! Bytes of a message: `postcard`, which both sides link.

use alloc::vec::Vec;

use serde::{Serialize, de::DeserializeOwned};

/// The bytes are not a message of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError;

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the bytes are not a message of this build; reload the page")
    }
}

impl core::error::Error for WireError {}

pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    postcard::to_allocvec(message).map_err(|_| WireError)
}

/// Decodes a whole message; trailing bytes are refused.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(WireError),
    }
}

//! A description as a text that two people exchange by whatever they have: two steps, no server.
//!
//! ```text
//! base64url, without padding, of
//!     u8          version 1
//!     4 bytes     the first of the model's info hash
//!     4 bytes     in an answer: the tag of the offer it answers; in an offer zero
//!     ..          the compact form
//!     4 bytes     the first of the SHA-256 of all before
//! ```
//!
//! The last four bytes of an offer are its tag. Spaces and line ends, which programs that carry
//! text like to add, are passed over.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use format::{ModelId, sha256};

use super::Description;
use crate::{P2pError, SignalFault, info_hash};

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 9;
const TAG_BYTES: usize = 4;
/// Longest code: a description with all its candidates of the longest kind is well below.
const CODE_BYTES_MAX: usize = 1024;

/// A code that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub description: Description,
    /// The tag of the offer that this answers.
    pub answers: Option<[u8; TAG_BYTES]>,
}

/// The first step: what the one who begins gives to the other.
pub fn offer_code(id: ModelId, offer: &Description) -> Result<String, P2pError> {
    write(id, [0; TAG_BYTES], offer)
}

/// The second step: what the other gives back for the offer of that tag.
pub fn answer_code(
    id: ModelId,
    offer_tag: [u8; 4],
    answer: &Description,
) -> Result<String, P2pError> {
    write(id, offer_tag, answer)
}

/// What an answer calls this offer by.
pub fn offer_tag(offer: &str) -> Result<[u8; 4], P2pError> {
    let bytes = decode(offer)?;
    let tag = bytes.last_chunk::<TAG_BYTES>();
    Ok(*tag.ok_or(SignalFault::NotACode)?)
}

/// Reads either step of an exchange about this model.
pub fn read_code(id: ModelId, text: &str) -> Result<Code, P2pError> {
    let bytes = decode(text)?;
    let (body, tag) = bytes
        .split_last_chunk::<TAG_BYTES>()
        .ok_or(SignalFault::NotACode)?;
    let (head, compact) = body
        .split_first_chunk::<HEAD_BYTES>()
        .ok_or(SignalFault::NotACode)?;
    if head[0] != VERSION {
        return Err(SignalFault::NotACode.into());
    }
    if checksum(body) != *tag {
        return Err(SignalFault::Damaged.into());
    }
    if head[1..5] != info_hash(id)[..4] {
        return Err(SignalFault::OtherModel.into());
    }
    let description = Description::from_bytes(compact)?;
    let answers = [head[5], head[6], head[7], head[8]];
    Ok(Code {
        answers: (!description.is_offer()).then_some(answers),
        description,
    })
}

fn write(
    id: ModelId,
    answers: [u8; TAG_BYTES],
    description: &Description,
) -> Result<String, P2pError> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&info_hash(id)[..4]);
    bytes.extend_from_slice(&answers);
    bytes.extend(description.to_bytes()?);
    let tag = checksum(&bytes);
    bytes.extend_from_slice(&tag);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn decode(text: &str) -> Result<Vec<u8>, P2pError> {
    if text.len() > 4 * CODE_BYTES_MAX {
        return Err(SignalFault::TooLong.into());
    }
    let packed: String = text.split_ascii_whitespace().collect();
    // So begins every code; a cut one often has no whole last byte.
    let cause = match packed.starts_with('A') {
        true => SignalFault::Damaged,
        false => SignalFault::NotACode,
    };
    URL_SAFE_NO_PAD.decode(packed).map_err(|_| cause.into())
}

fn checksum(bytes: &[u8]) -> [u8; TAG_BYTES] {
    let digest = sha256(bytes).0;
    std::array::from_fn(|index| digest[index])
}

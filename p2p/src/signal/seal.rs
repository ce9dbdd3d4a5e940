//! A description that only those can read who hold the model's whole root.
//!
//! A tracker knows a model by the info hash, which is a hash of the root: from it nobody finds the
//! key, so a tracker and whoever listens there learn no address from the descriptions.
//!
//! ```text
//! key     HKDF-SHA-256: secret = root, salt = "slm-seal-v1", info = length (u64, little endian)
//! text    base64url, without padding, of nonce (24 bytes) || XChaCha20-Poly1305(compact form)
//! bound   to "offer" or "answer" and the offer's id, as associated data
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use format::ModelId;
use hkdf::Hkdf;
use sha2::Sha256;

use super::Description;
use crate::{OfferId, P2pError, SignalFault};

pub const NONCE_BYTES: usize = 24;
/// Longest sealed text that is looked at.
const SEALED_BYTES_MAX: usize = 2048;
const SALT: &[u8] = b"slm-seal-v1";

/// `nonce` is random and never used again.
pub fn seal(
    id: ModelId,
    offer: OfferId,
    nonce: [u8; NONCE_BYTES],
    description: &Description,
) -> Result<String, P2pError> {
    let plain = description.to_bytes()?;
    let bound = bound(description.is_offer(), offer);
    let payload = Payload {
        msg: &plain,
        aad: &bound,
    };
    let sealed = cipher(id)?.encrypt(&XNonce::from(nonce), payload);
    let sealed = sealed.map_err(|_| SignalFault::NotSealed)?;
    Ok(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
}

/// Opens what somebody sealed who knows the model, as an offer or as an answer to that offer.
pub fn open(
    id: ModelId,
    is_offer: bool,
    offer: OfferId,
    text: &str,
) -> Result<Description, P2pError> {
    if text.len() > SEALED_BYTES_MAX {
        return Err(SignalFault::TooLong.into());
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| SignalFault::NotSealed)?;
    let parts = bytes.split_first_chunk::<NONCE_BYTES>();
    let (nonce, sealed) = parts.ok_or(SignalFault::NotSealed)?;
    let bound = bound(is_offer, offer);
    let payload = Payload {
        msg: sealed,
        aad: &bound,
    };
    let plain = cipher(id)?.decrypt(&XNonce::from(*nonce), payload);
    let description = Description::from_bytes(&plain.map_err(|_| SignalFault::NotSealed)?)?;
    match description.is_offer() == is_offer {
        true => Ok(description),
        false => Err(SignalFault::Damaged.into()),
    }
}

fn cipher(id: ModelId) -> Result<XChaCha20Poly1305, P2pError> {
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(Some(SALT), &id.root.0.0)
        .expand(&id.length.to_le_bytes(), &mut key)
        .map_err(|_| SignalFault::NotSealed)?;
    Ok(XChaCha20Poly1305::new(&key.into()))
}

fn bound(is_offer: bool, offer: OfferId) -> Vec<u8> {
    let kind: &[u8] = if is_offer { b"offer" } else { b"answer" };
    [kind, &offer.0].concat()
}

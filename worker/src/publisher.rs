//! Whose word on lanes and models is believed.

use ed25519_dalek::VerifyingKey;
use protocol::Signature;

/// The publisher's Ed25519 key, compiled in.
#[derive(Clone, Copy, Debug)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// From 64 hexadecimal digits.
    pub const fn from_hex(text: &str) -> Option<PublicKey> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut key = [0; 32];
        let mut at = 0;
        while at < digits.len() {
            let digit = match digits[at] {
                digit @ b'0'..=b'9' => digit - b'0',
                digit @ b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            key[at / 2] = key[at / 2] * 16 + digit;
            at += 1;
        }
        Some(PublicKey(key))
    }

    /// Whether the publisher signed exactly these bytes.
    pub fn has_signed(&self, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
    }
}

//! Names for the numbers that identify a model and its parts.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A Merkle leaf, as BitTorrent v2 fixes it (BEP 52).
pub const LEAF_BYTES: u32 = 16 * 1024;
/// The unit of storage, resume, Range requests and peer transfer.
pub const PIECE_BYTES: u32 = 1024 * 1024;
pub const LEAVES_PER_PIECE: u32 = PIECE_BYTES / LEAF_BYTES;

/// A SHA-256 digest. Text form: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub [u8; 32]);

/// The BEP 52 Merkle root of a whole file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Root(pub Digest);

/// Which file this is. A root alone does not say how long the file is: zero padding is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModelId {
    pub root: Root,
    /// Length of the file in bytes.
    pub length: u64,
}

/// Index of a 1 MiB piece within its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PieceIndex(pub u32);

impl Digest {
    /// Parses 64 hexadecimal digits of either case.
    pub fn from_hex(text: &str) -> Option<Digest> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return None;
        }
        let mut out = [0u8; 32];
        for (byte, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            let high = (pair[0] as char).to_digit(16)?;
            let low = (pair[1] as char).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Digest(out))
    }
}

impl ModelId {
    /// Number of pieces, the last of which may be short. Zero bytes have no piece.
    /// Lengths above 4 PiB, which no store holds, count as `u32::MAX` pieces.
    pub fn pieces(&self) -> u32 {
        u32::try_from(self.length.div_ceil(u64::from(PIECE_BYTES))).unwrap_or(u32::MAX)
    }

    /// First byte and length of a piece within the file.
    pub fn piece_range(&self, piece: PieceIndex) -> (u64, u32) {
        let at = u64::from(piece.0) * u64::from(PIECE_BYTES);
        let len = self.length.saturating_sub(at).min(u64::from(PIECE_BYTES));
        (at, len as u32)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            Digest::from_hex(&text)
                .ok_or_else(|| serde::de::Error::custom("a digest is 64 hexadecimal digits"))
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Digest)
        }
    }
}

//! Number formats of the key/value cache.

use serde::{Deserialize, Serialize};

use crate::abi::{KV_F16, KV_F32, KV_INT8};

/// How keys and values are kept. Each format has its own bits, so it is part of what names a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvFormat {
    F32,
    #[default]
    F16,
    /// Codes of -127 to 127, and one f32 scale for each head and position.
    Int8,
}

impl KvFormat {
    /// From the most exact to the smallest.
    pub const ALL: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Int8];

    /// The number that stands for it in the C ABI.
    pub const fn code(self) -> u32 {
        match self {
            KvFormat::F32 => KV_F32,
            KvFormat::F16 => KV_F16,
            KvFormat::Int8 => KV_INT8,
        }
    }

    pub const fn from_code(code: u32) -> Option<KvFormat> {
        match code {
            KV_F32 => Some(KvFormat::F32),
            KV_F16 => Some(KvFormat::F16),
            KV_INT8 => Some(KvFormat::Int8),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            KvFormat::F32 => "f32",
            KvFormat::F16 => "f16",
            KvFormat::Int8 => "int8",
        }
    }

    /// Bytes of one position of one head, keys or values alone. A model's position takes this
    /// twice for every head of every layer.
    pub const fn head_bytes(self, head_dim: u32) -> u64 {
        let elements = head_dim as u64;
        match self {
            KvFormat::F32 => 4 * elements,
            KvFormat::F16 => 2 * elements,
            KvFormat::Int8 => elements + 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_its_number() {
        for (format, code) in KvFormat::ALL.into_iter().zip(0..) {
            assert_eq!(format.code(), code);
            assert_eq!(KvFormat::from_code(code), Some(format));
        }
        assert_eq!(KvFormat::from_code(3), None);
    }

    /// Heads of 64 elements, as SmolLM2 has them.
    #[test]
    fn bytes_of_a_head() {
        let bytes = KvFormat::ALL.map(|format| format.head_bytes(64));
        assert_eq!(bytes, [256, 128, 68]);
    }
}

//! Number formats of the key/value cache, and what a cache depends on.

use alloc::vec::Vec;

use format::{Digest, Manifest, Root, Rope, SpecialTokens, sha256};
use serde::{Deserialize, Serialize};

use crate::abi::{KV_F16, KV_F32, KV_INT8, RUNTIME_SEMANTICS};
use crate::{Mode, encode};

/// Number of the layout of a page: blocks of 32 positions, layer after layer. A page of another
/// number means something else.
pub const KV_LAYOUT: u32 = 1;

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

    /// Bytes of one position of one head, keys or values alone.
    pub const fn head_bytes(self, head_dim: u32) -> u64 {
        let elements = head_dim as u64;
        match self {
            KvFormat::F32 => 4 * elements,
            KvFormat::F16 => 2 * elements,
            KvFormat::Int8 => elements + 4,
        }
    }

    /// Bytes of one position in one layer: the keys and the values of all heads.
    pub const fn position_bytes(self, kv_heads: u32, head_dim: u32) -> u64 {
        2 * kv_heads as u64 * self.head_bytes(head_dim)
    }
}

/// Everything besides the tokens that keys and values follow from. Where two are equal, a prefix
/// of equal tokens has the same keys and values, bit for bit, in every lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheIdentity<'a> {
    /// Of the file, and so of every weight.
    pub model: Root,
    /// Schema of the manifest.
    pub format: &'a str,
    /// In the order in which they are applied.
    pub adapters: Vec<Root>,
    pub tokenizer: Option<Digest>,
    pub template: Option<Digest>,
    /// What begins and ends a sequence.
    pub special: &'a SpecialTokens,
    /// How positions enter, and how a context is stretched.
    pub rope: &'a Rope,
    pub semantics: u32,
    pub mode: Mode,
    pub kv_format: KvFormat,
    pub kv_layout: u32,
}

impl<'a> CacheIdentity<'a> {
    /// Of a model without adapters, as this build computes.
    pub fn of(
        model: Root,
        manifest: &'a Manifest,
        mode: Mode,
        kv_format: KvFormat,
    ) -> CacheIdentity<'a> {
        let template = manifest.chat_template.as_ref();
        CacheIdentity {
            model,
            format: &manifest.schema,
            adapters: Vec::new(),
            tokenizer: manifest
                .tokenizer
                .as_ref()
                .map(|tokenizer| tokenizer.sha256),
            template: template.map(|template| sha256(template.as_bytes())),
            special: &manifest.special,
            rope: &manifest.architecture.rope,
            semantics: RUNTIME_SEMANTICS,
            mode,
            kv_format,
            kv_layout: KV_LAYOUT,
        }
    }

    /// The name that a kept cache bears. `None` only if there is no memory to write it down.
    pub fn digest(&self) -> Option<Digest> {
        encode(self).ok().map(|bytes| sha256(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use format::{RopePairing, RopeScaling};

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
        let bytes = KvFormat::ALL.map(|format| format.position_bytes(3, 64));
        assert_eq!(bytes, [1536, 768, 408]);
    }

    /// Every field that the contract names (section 8) makes another identity.
    #[test]
    fn an_identity_is_all_of_its_fields() {
        let rope = |base| Rope {
            base,
            pairing: RopePairing::Half,
            dim: 8,
            scaling: RopeScaling::None,
        };
        let (ropes, special) = ([rope(1e4), rope(1e6)], SpecialTokens::default());
        let other = SpecialTokens {
            bos: Some(1),
            ..SpecialTokens::default()
        };
        let [a, b] = [[1; 32], [2; 32]].map(Digest);
        let plain = CacheIdentity {
            model: Root(a),
            format: "tinyrustlm.slm.v1",
            adapters: Vec::new(),
            tokenizer: Some(a),
            template: None,
            special: &special,
            rope: &ropes[0],
            semantics: 1,
            mode: Mode::Int8V1,
            kv_format: KvFormat::F16,
            kv_layout: KV_LAYOUT,
        };
        let changes: [fn(&mut CacheIdentity<'_>, [Digest; 2]); 11] = [
            |_, _| (),
            |it, [_, b]| it.model = Root(b),
            |it, _| it.format = "tinyrustlm.slm.v2",
            |it, [a, b]| it.adapters = vec![Root(a), Root(b)],
            |it, [a, b]| it.adapters = vec![Root(b), Root(a)],
            |it, [_, b]| it.tokenizer = Some(b),
            |it, [a, _]| it.template = Some(a),
            |it, _| it.semantics = 2,
            |it, _| it.mode = Mode::StrictF32V1,
            |it, _| it.kv_format = KvFormat::Int8,
            |it, _| it.kv_layout += 1,
        ];
        let mut digests: Vec<_> = changes
            .iter()
            .map(|change| {
                let mut identity = plain.clone();
                change(&mut identity, [a, b]);
                identity.digest()
            })
            .collect();
        digests.push(
            CacheIdentity {
                special: &other,
                ..plain.clone()
            }
            .digest(),
        );
        digests.push(
            CacheIdentity {
                rope: &ropes[1],
                ..plain.clone()
            }
            .digest(),
        );
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 13);
        assert!(digests.iter().all(Option::is_some));
    }
}

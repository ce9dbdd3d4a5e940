//! What was built, served as `lanes/manifest.json` and signed.
//!
//! The file holds a head and one entry for each artifact, and each of them with an Ed25519
//! signature of exactly its bytes in the file. So a damaged or forged entry costs its lane, and a
//! damaged head costs them all. An entry's signature covers the head too: an entry of one build
//! is none under the head of another.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use format::Digest;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::LaneId;

pub const MANIFEST_SCHEMA: &str = "tinyrustlm.module-manifest.v1";

/// What a signature is of, so that none can stand for something else.
const HEAD_DOMAIN: &[u8] = b"tinyrustlm.module-manifest.v1 head\n";
const ARTIFACT_DOMAIN: &[u8] = b"tinyrustlm.module-manifest.v1 artifact\n";

/// The file. `T` is JSON text that is kept as it was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile<T> {
    /// A [`LaneManifest`].
    pub head: Signed<T>,
    /// Each a [`LaneArtifact`].
    pub artifacts: Vec<Signed<T>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed<T> {
    pub signed: T,
    pub signature: Signature,
}

/// An Ed25519 signature. Text form: 128 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 64]);

/// What all artifacts have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneManifest {
    pub schema: String,
    pub runtime_semantics: u32,
    pub abi_version: u32,
    /// The compiler that built every artifact, with its version and commit.
    pub rustc: String,
    /// What the lanes' requirements are told by; a loader with other probes refuses the manifest.
    pub probes: Vec<ProbeRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeRecord {
    pub name: String,
    pub version: u32,
    pub sha256: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneArtifact {
    pub id: LaneId,
    /// Relative to the manifest; contains the start of the hash.
    pub url: String,
    pub sha256: Digest,
    pub bytes: u64,
    pub required_features: Vec<String>,
    pub forbidden_features: Vec<String>,
}

/// The bytes that the head's signature is of.
pub fn head_message(head: &str) -> Vec<u8> {
    [HEAD_DOMAIN, head.as_bytes()].concat()
}

/// The bytes that an artifact's signature is of.
pub fn artifact_message(head: &str, artifact: &str) -> Vec<u8> {
    let head = format::sha256(head.as_bytes());
    [ARTIFACT_DOMAIN, &head.0, artifact.as_bytes()].concat()
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Signature, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Two digests' worth of digits.
        let halves = text.is_ascii().then(|| text.split_at_checked(64)).flatten();
        let parsed = halves.and_then(|(first, second)| {
            let (first, second) = (Digest::from_hex(first)?, Digest::from_hex(second)?);
            let mut bytes = [0; 64];
            bytes[..32].copy_from_slice(&first.0);
            bytes[32..].copy_from_slice(&second.0);
            Some(Signature(bytes))
        });
        parsed.ok_or_else(|| D::Error::custom("a signature has 128 hexadecimal digits"))
    }
}

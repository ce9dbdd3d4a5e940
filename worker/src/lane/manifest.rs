//! The list of builds, as far as the publisher signed it.

use format::Digest;
use protocol::{
    LaneArtifact, LaneId, LaneManifest, MANIFEST_SCHEMA, ManifestFile, PROBES, abi,
    artifact_message, head_message,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::LaneRefusal;
use crate::PublicKey;

/// A manifest larger than this is refused before it is parsed.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;

/// A head and entries that the publisher signed, and the lanes of entries that it did not sign.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub head: LaneManifest,
    /// Of the signed head's bytes.
    pub sha256: Digest,
    artifacts: Vec<LaneArtifact>,
    forged: Vec<LaneId>,
}

/// What is told of an entry that is not believed.
#[derive(Deserialize)]
struct Claim {
    id: LaneId,
}

impl Manifest {
    /// Parses `lanes/manifest.json`: its head must be signed and speak of this build.
    pub fn read(bytes: &[u8], key: &PublicKey) -> Result<Manifest, LaneRefusal> {
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(LaneRefusal::Manifest("it is too large"));
        }
        let unread = |_| LaneRefusal::Manifest("it is not a lane manifest");
        let file: ManifestFile<&RawValue> = serde_json::from_slice(bytes).map_err(unread)?;
        let text = file.head.signed.get();
        if !key.has_signed(&head_message(text), &file.head.signature) {
            return Err(LaneRefusal::Manifest("the publisher did not sign it"));
        }
        let head: LaneManifest = serde_json::from_str(text).map_err(unread)?;
        check_build(&head)?;
        let mut manifest = Manifest {
            head,
            sha256: format::sha256(text.as_bytes()),
            artifacts: Vec::new(),
            forged: Vec::new(),
        };
        for entry in file.artifacts {
            let signed = entry.signed.get();
            let believed = key.has_signed(&artifact_message(text, signed), &entry.signature);
            match (believed, serde_json::from_str(signed)) {
                (true, Ok(artifact)) => manifest.artifacts.push(artifact),
                // An entry without a readable lane is none; its lane is then not built.
                _ => manifest.forged.extend(claimed(signed)),
            }
        }
        Ok(manifest)
    }

    pub fn artifact(&self, lane: LaneId) -> Result<&LaneArtifact, LaneRefusal> {
        let found = self.artifacts.iter().find(|artifact| artifact.id == lane);
        found.ok_or(match self.forged.contains(&lane) {
            true => LaneRefusal::Signature(lane),
            false => LaneRefusal::NotBuilt(lane),
        })
    }

    /// The hashes of everything that is signed.
    pub fn digests(&self) -> Vec<Digest> {
        let artifacts = self.artifacts.iter();
        artifacts.map(|artifact| artifact.sha256).collect()
    }
}

fn claimed(entry: &str) -> Option<LaneId> {
    let claim: Option<Claim> = serde_json::from_str(entry).ok();
    claim.map(|claim| claim.id)
}

fn check_build(head: &LaneManifest) -> Result<(), LaneRefusal> {
    let other = |what| Err(LaneRefusal::Manifest(what));
    if head.schema != MANIFEST_SCHEMA {
        return other("its schema is another one");
    }
    if head.abi_version != abi::ABI_VERSION {
        return other("its ABI version is another one");
    }
    if head.runtime_semantics != abi::RUNTIME_SEMANTICS {
        return other("its numerical contract is another one");
    }
    let same = head.probes.len() == PROBES.len()
        && head.probes.iter().zip(PROBES).all(|(record, probe)| {
            record.name == probe.name
                && record.version == probe.version
                && record.sha256 == format::sha256(probe.bytes)
        });
    match same {
        true => Ok(()),
        false => other("its builds were judged with other probes"),
    }
}

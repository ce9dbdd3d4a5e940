//! Which lanes a signed manifest offers, and what is left of a damaged one.
#![allow(clippy::unwrap_used)]

use ed25519_dalek::{Signer, SigningKey};
use format::Digest;
use protocol::{
    LANES, LaneArtifact, LaneId, LaneManifest, MANIFEST_SCHEMA, ManifestFile, PROBES, ProbeRecord,
    Signature, Signed, abi, artifact_message, head_message,
};
use serde_json::value::RawValue;
use worker::PublicKey;
use worker::lane::{LaneRefusal, Manifest, ThreadFault, candidate, order, verify};

const MODULE: &[u8] = b"a module";

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn public() -> PublicKey {
    PublicKey(key().verifying_key().to_bytes())
}

fn sign(key: &SigningKey, message: &[u8]) -> Signature {
    Signature(key.sign(message).to_bytes())
}

fn head() -> LaneManifest {
    LaneManifest {
        schema: MANIFEST_SCHEMA.into(),
        runtime_semantics: abi::RUNTIME_SEMANTICS,
        abi_version: abi::ABI_VERSION,
        rustc: "rustc".into(),
        probes: PROBES
            .iter()
            .map(|probe| ProbeRecord {
                name: probe.name.into(),
                version: probe.version,
                sha256: format::sha256(probe.bytes),
            })
            .collect(),
    }
}

fn artifact(id: LaneId) -> LaneArtifact {
    LaneArtifact {
        id,
        url: format!("{}.wasm", id.name()),
        sha256: format::sha256(MODULE),
        bytes: MODULE.len() as u64,
        required_features: vec![],
        forbidden_features: vec![],
    }
}

/// A manifest of every lane, as `xtask` signs it.
fn file(head: &LaneManifest, key: &SigningKey) -> ManifestFile<Box<RawValue>> {
    let raw = |json: String| RawValue::from_string(json).unwrap();
    let head = raw(serde_json::to_string(head).unwrap());
    let artifacts = LANES.iter().map(|lane| {
        let artifact = raw(serde_json::to_string(&artifact(lane.id)).unwrap());
        let message = artifact_message(head.get(), artifact.get());
        Signed {
            signature: sign(key, &message),
            signed: artifact,
        }
    });
    ManifestFile {
        artifacts: artifacts.collect(),
        head: Signed {
            signature: sign(key, &head_message(head.get())),
            signed: head,
        },
    }
}

fn read(file: &ManifestFile<Box<RawValue>>) -> Result<Manifest, LaneRefusal> {
    Manifest::read(&serde_json::to_vec_pretty(file).unwrap(), &public())
}

#[test]
fn a_signed_manifest_offers_every_lane() {
    let manifest = read(&file(&head(), &key())).unwrap();
    for lane in LANES {
        let candidate = candidate(&manifest, lane).unwrap();
        assert_eq!(candidate.artifact, &artifact(lane.id));
        assert_eq!(verify(&candidate, MODULE), Ok(()));
        let flipped = verify(&candidate, b"b module");
        assert!(matches!(flipped, Err(LaneRefusal::Hash { .. })));
        let cut = verify(&candidate, &MODULE[1..]);
        assert!(matches!(cut, Err(LaneRefusal::Length { .. })));
    }
    assert_eq!(
        manifest.digests(),
        vec![format::sha256(MODULE); LANES.len()]
    );
}

#[test]
fn a_manifest_of_another_key_is_refused_whole() {
    let other = SigningKey::from_bytes(&[8; 32]);
    let refused = read(&file(&head(), &other)).unwrap_err();
    assert_eq!(
        refused,
        LaneRefusal::Manifest("the publisher did not sign it")
    );
}

#[test]
fn every_bit_of_the_head_and_of_its_signature_counts() {
    let bytes = serde_json::to_vec(&file(&head(), &key())).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let end = text.find("\"artifacts\"").unwrap();
    for at in 0..end {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(Manifest::read(&damaged, &public()).is_err(), "byte {at}");
    }
}

/// A forged, moved or damaged entry costs its lane and no other.
#[test]
fn a_bad_entry_costs_its_lane() {
    let id = LANES[0].id;
    let mut wrong_signature = file(&head(), &key());
    wrong_signature.artifacts[0].signature.0[5] ^= 1;
    let mut moved = file(&head(), &key());
    moved.artifacts[0].signature = moved.artifacts[1].signature;
    let mut changed = file(&head(), &key());
    let text = changed.artifacts[0].signed.get().replace(".wasm", ".wash");
    changed.artifacts[0].signed = RawValue::from_string(text).unwrap();
    for file in [wrong_signature, moved, changed] {
        let manifest = read(&file).unwrap();
        assert_eq!(manifest.artifact(id), Err(LaneRefusal::Signature(id)));
        for lane in &LANES[1..] {
            assert!(candidate(&manifest, lane).is_ok(), "{}", lane.name);
        }
    }
    let mut missing = file(&head(), &key());
    missing.artifacts.remove(0);
    let manifest = read(&missing).unwrap();
    assert_eq!(manifest.artifact(id), Err(LaneRefusal::NotBuilt(id)));
}

/// An entry is signed together with its head.
#[test]
fn an_entry_of_another_build_is_none() {
    let mut older = head();
    older.rustc = "older".into();
    let mut mixed = file(&head(), &key());
    mixed.artifacts[0] = file(&older, &key()).artifacts.remove(0);
    let id = LANES[0].id;
    let manifest = read(&mixed).unwrap();
    assert_eq!(manifest.artifact(id), Err(LaneRefusal::Signature(id)));
}

#[test]
fn a_head_of_another_build_is_refused_though_it_is_signed() {
    let refused = |change: fn(&mut LaneManifest)| {
        let mut other = head();
        change(&mut other);
        match read(&file(&other, &key())) {
            Err(LaneRefusal::Manifest(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(|head| head.schema.push('2')).contains("schema"));
    assert!(refused(|head| head.abi_version += 1).contains("ABI"));
    assert!(refused(|head| head.runtime_semantics += 1).contains("numerical"));
    assert!(refused(|head| head.probes[0].sha256 = Digest([0; 32])).contains("probes"));
    assert!(refused(|head| head.probes[1].version += 1).contains("probes"));
    assert!(refused(|head| drop(head.probes.pop())).contains("probes"));
}

#[test]
fn lanes_are_tried_in_the_order_of_the_table() {
    let names =
        |forced| order(forced).map(|lanes| lanes.iter().map(|lane| lane.name).collect::<Vec<_>>());
    let all = vec![
        "relaxed-threads-wasm32",
        "relaxed-wasm32",
        "simd128-threads-wasm32",
        "simd128-wasm32",
        "scalar-wasm32",
    ];
    assert_eq!(names(None), Ok(all));
    let scalar = Ok(vec!["scalar-wasm32"]);
    assert_eq!(names(Some("scalar-wasm32")), scalar);
    let unknown = names(Some("fast"));
    assert_eq!(unknown, Err(LaneRefusal::UnknownLane("fast".into())));
}

/// Only what will fail again is remembered: a download can be right the next time.
#[test]
fn what_lasts_and_what_does_not() {
    let lane = LaneId::RelaxedWasm32;
    let failed = LaneRefusal::SelfTest {
        lane,
        failed: 1,
        tests: 2,
        first: 1,
    };
    assert!(failed.is_lasting() && LaneRefusal::Broken(lane).is_lasting());
    let threads = |fault| LaneRefusal::Threads { lane, fault };
    assert!(threads(ThreadFault::Wrong(1)).is_lasting());
    assert!(threads(ThreadFault::Uncounted).is_lasting());
    let (expected, found) = (Digest([0; 32]), Digest([1; 32]));
    let hash = LaneRefusal::Hash {
        lane,
        expected,
        found,
    };
    let remembered = LaneRefusal::Remembered {
        lane,
        what: "It stopped.".into(),
    };
    let late = threads(ThreadFault::Late);
    for refusal in [hash, LaneRefusal::Signature(lane), remembered, late] {
        assert!(!refusal.is_lasting(), "{refusal:?}");
        let report = refusal.report();
        assert!(report.what.contains("relaxed-wasm32") && !report.remedy.is_empty());
    }
}

#[test]
fn a_public_key_is_64_lower_case_digits() {
    let digits = "0f".repeat(32);
    assert_eq!(
        PublicKey::from_hex(&digits).map(|key| key.0),
        Some([0x0f; 32])
    );
    for wrong in [
        "",
        &digits[1..],
        &digits.to_uppercase(),
        &digits.replace('f', "g"),
    ] {
        assert!(PublicKey::from_hex(wrong).is_none(), "{wrong}");
    }
}

//! The table of lanes against itself and against `wasmparser`, and the JSON served beside lanes
//! and models.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use format::{Digest, Root};
use protocol::{
    CATALOGUE_SCHEMA, Catalogue, CatalogueEntry, LANES, LaneArtifact, LaneId, LaneManifest,
    MANIFEST_SCHEMA, PROBES, ProbeRecord, SHARED_PAGES, SHARED_PAGES_MAX, Signature,
    artifact_message, head_message,
};
use wasmparser::{Validator, WasmFeatures};

/// What a feature's name means to the validator.
fn feature(name: &str) -> WasmFeatures {
    match name {
        "simd128" => WasmFeatures::SIMD,
        "relaxed-simd" => WasmFeatures::RELAXED_SIMD,
        "atomics" => WasmFeatures::THREADS,
        "bulk-memory" => WasmFeatures::BULK_MEMORY,
        "memory64" => WasmFeatures::MEMORY64,
        "multimemory" => WasmFeatures::MULTI_MEMORY,
        other => panic!("{other} is not in this test"),
    }
}

fn validates(bytes: &[u8], features: WasmFeatures) -> bool {
    Validator::new_with_features(features)
        .validate_all(bytes)
        .is_ok()
}

#[test]
fn names_are_unique_and_the_same_everywhere() {
    let names: BTreeSet<&str> = LANES.iter().map(|lane| lane.name).collect();
    assert_eq!(names.len(), LANES.len());
    for lane in LANES {
        assert_eq!(lane.id.name(), lane.name);
        assert_eq!(LaneId::from_name(lane.name), Some(lane.id));
        assert_eq!(
            serde_json::to_string(&lane.id).unwrap(),
            format!("\"{}\"", lane.name)
        );
    }
    assert_eq!(
        LaneId::from_name(LaneId::Native.name()),
        Some(LaneId::Native)
    );
    assert_eq!(LaneId::from_name("simd128"), None);
}

#[test]
fn every_required_feature_is_compiled_in_and_probed() {
    for lane in LANES {
        let compiled: Vec<&str> = lane.target_features.split(',').collect();
        for name in lane.required_features {
            assert!(
                compiled.contains(&format!("+{name}").as_str()),
                "{} {name}",
                lane.name
            );
            assert!(
                lane.probes.iter().any(|probe| probe.name == *name),
                "{} {name}",
                lane.name
            );
        }
        for name in lane.forbidden_features {
            assert!(
                !lane.required_features.contains(name),
                "{} {name}",
                lane.name
            );
            assert!(
                !compiled.contains(&format!("+{name}").as_str()),
                "{} {name}",
                lane.name
            );
        }
        // Everything beyond the MVP that is compiled in is either required or in every engine.
        for name in compiled.iter().filter_map(|name| name.strip_prefix('+')) {
            let known = lane.required_features.contains(&name) || name == "mutable-globals";
            assert!(known, "{} {name}", lane.name);
        }
    }
}

#[test]
fn no_lane_asks_for_less_than_one_after_it_and_the_last_for_nothing() {
    for (at, fast) in LANES.iter().enumerate() {
        for slow in &LANES[at + 1..] {
            let asked = |name: &&str| slow.required_features.contains(name);
            let less = fast.required_features.iter().all(asked);
            assert!(!less, "{} before {}", fast.name, slow.name);
        }
    }
    let last = LANES.last().unwrap();
    assert!(last.required_features.is_empty() && last.probes.is_empty());
}

#[test]
fn lanes_with_atomics_share_their_memory_and_no_others() {
    for lane in LANES {
        let atomics = lane.required_features.contains(&"atomics");
        assert_eq!(lane.has_threads(), atomics, "{}", lane.name);
        assert_eq!(lane.forbidden_features.contains(&"atomics"), !atomics);
    }
    assert!(SHARED_PAGES.iter().all(|pages| *pages <= SHARED_PAGES_MAX));
}

/// A probe validates with its feature, and with nothing less than its feature.
#[test]
fn probes_validate_exactly_where_their_feature_exists() {
    for probe in LANES.iter().flat_map(|lane| lane.probes) {
        let own = feature(probe.name);
        // The relaxed instructions are about the vectors that SIMD brought.
        let base = match probe.name {
            "relaxed-simd" => WasmFeatures::WASM1 | WasmFeatures::SIMD,
            _ => WasmFeatures::WASM1,
        };
        assert!(validates(probe.bytes, base | own), "{}", probe.name);
        let others = WasmFeatures::all().difference(own);
        assert!(!validates(probe.bytes, others), "{}", probe.name);
        assert!(probe.version > 0, "{}", probe.name);
    }
}

/// Pinned, so that bytes cannot change without a new version: computed with another program.
#[test]
fn probes_are_known_by_version_and_hash() {
    let pinned = [
        (
            "simd128",
            1,
            "7465c754cdaa345068baa7b7001c64d306ad6e97aa0c11a567302dd47fd0253d",
        ),
        (
            "relaxed-simd",
            1,
            "a300a5ff8fd46ac9e064901e740f16bdefd91244c8357c4ced50c3fb68dec308",
        ),
        (
            "atomics",
            1,
            "85735383c3cdf1eb7413d0ac7f97bd029820d89c99d9cf31653c6d0a01baf2eb",
        ),
        (
            "bulk-memory",
            1,
            "695e06391f2b26a2a1edc899dbc0f84d6a387783077ad11d9e4ef36c0b9c75f5",
        ),
    ];
    assert_eq!(PROBES.len(), pinned.len());
    for (probe, (name, version, sha256)) in PROBES.iter().zip(pinned) {
        let found = format::sha256(probe.bytes).to_string();
        assert_eq!((probe.name, probe.version), (name, version));
        assert_eq!(found, sha256, "{name}: new bytes need a new version");
    }
    for probe in LANES.iter().flat_map(|lane| lane.probes) {
        assert!(PROBES.iter().any(|known| known.name == probe.name));
    }
}

#[test]
fn manifest_json() {
    let head = LaneManifest {
        schema: MANIFEST_SCHEMA.into(),
        runtime_semantics: 1,
        abi_version: 1,
        rustc: "rustc 1.96.0".into(),
        probes: vec![ProbeRecord {
            name: "simd128".into(),
            version: 1,
            sha256: Digest([0xcd; 32]),
        }],
    };
    let expected = format!(
        "{{\"schema\":\"tinyrustlm.module-manifest.v1\",\"runtime_semantics\":1,\"abi_version\":1,\
         \"rustc\":\"rustc 1.96.0\",\
         \"probes\":[{{\"name\":\"simd128\",\"version\":1,\"sha256\":\"{}\"}}]}}",
        "cd".repeat(32)
    );
    assert_eq!(serde_json::to_string(&head).unwrap(), expected);
    assert_eq!(
        serde_json::from_str::<LaneManifest>(&expected).unwrap(),
        head
    );

    let artifact = LaneArtifact {
        id: LaneId::ScalarWasm32,
        url: "scalar-wasm32.0000000000000000.wasm".into(),
        sha256: Digest([0xab; 32]),
        bytes: 7,
        required_features: vec![],
        forbidden_features: vec!["simd128".into()],
    };
    let expected = format!(
        "{{\"id\":\"scalar-wasm32\",\
         \"url\":\"scalar-wasm32.0000000000000000.wasm\",\"sha256\":\"{}\",\"bytes\":7,\
         \"required_features\":[],\"forbidden_features\":[\"simd128\"]}}",
        "ab".repeat(32)
    );
    assert_eq!(serde_json::to_string(&artifact).unwrap(), expected);
    assert_eq!(
        serde_json::from_str::<LaneArtifact>(&expected).unwrap(),
        artifact
    );
    let unknown = expected.replace("bytes", "octets");
    assert!(serde_json::from_str::<LaneArtifact>(&unknown).is_err());
}

/// What is signed is the text as it stands in the file, under a name of its own kind.
#[test]
fn messages_that_are_signed() {
    let head = head_message("{}");
    assert_eq!(head, b"tinyrustlm.module-manifest.v1 head\n{}");
    let artifact = artifact_message("{}", "[]");
    let (start, rest) = artifact.split_at(40);
    assert_eq!(start, b"tinyrustlm.module-manifest.v1 artifact\n\x44");
    // The SHA-256 of `{}`, computed with another program, from its second byte on.
    assert_eq!(format!("{:02x?}", &rest[..3]), "[13, 6f, a3]");
    assert_eq!(&rest[31..], b"[]");
}

#[test]
fn signatures_are_128_digits() {
    let text = format!("\"{}\"", "0a".repeat(64));
    let signature: Signature = serde_json::from_str(&text).unwrap();
    assert_eq!(signature, Signature([0x0a; 64]));
    assert_eq!(serde_json::to_string(&signature).unwrap(), text);
    for wrong in [
        "\"\"".to_string(),
        text.replace("0a0a0a", "0a0a0"),
        text.replace("0a", "é"),
    ] {
        assert!(
            serde_json::from_str::<Signature>(&wrong).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn catalogue_json() {
    let catalogue = Catalogue {
        schema: CATALOGUE_SCHEMA.into(),
        models: vec![CatalogueEntry {
            name: "Tiny".into(),
            licence: None,
            root: Root(Digest([1; 32])),
            length: 300,
            url: "tiny.slm".into(),
            others: Vec::new(),
            pieces_url: "tiny.slm.pieces".into(),
        }],
    };
    let expected = format!(
        "{{\"schema\":\"tinyrustlm.catalogue.v1\",\"models\":[{{\"name\":\"Tiny\",\
         \"licence\":null,\"root\":\"{}\",\"length\":300,\"url\":\"tiny.slm\",\
         \"pieces_url\":\"tiny.slm.pieces\",\"others\":[]}}]}}",
        "01".repeat(32)
    );
    assert_eq!(serde_json::to_string(&catalogue).unwrap(), expected);
    assert_eq!(
        serde_json::from_str::<Catalogue>(&expected).unwrap(),
        catalogue
    );
}

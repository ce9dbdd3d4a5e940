//! The table of lanes. The builder, the prober, the loader and the tests all read this table.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub const MANIFEST_SCHEMA: &str = "tinyrustlm.module-manifest.v1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LaneId {
    #[serde(rename = "scalar-wasm32")]
    ScalarWasm32,
    #[serde(rename = "simd128-wasm32")]
    Simd128Wasm32,
    #[serde(rename = "native")]
    Native,
}

/// One build of the engine for the browser.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub id: LaneId,
    /// Name in addresses, files and receipts.
    pub name: &'static str,
    /// Flags for the compiler, besides the common ones.
    pub target_cpu: &'static str,
    pub target_features: &'static str,
    /// Features as the module's own `target_features` section names them.
    pub required_features: &'static [&'static str],
    pub forbidden_features: &'static [&'static str],
    /// All must validate before the lane is tried.
    pub probes: &'static [Probe],
}

/// A tiny module that validates exactly where a feature exists.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub name: &'static str,
    pub version: u32,
    pub bytes: &'static [u8],
}

/// `(module (func (result v128) i32.const 0 i8x16.splat))`
const SIMD128: Probe = Probe {
    name: "simd128",
    version: 1,
    bytes: &[
        0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // magic, version
        0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, // type: () -> v128
        0x03, 0x02, 0x01, 0x00, // one function of that type
        0x0a, 0x08, 0x01, 0x06, 0x00, 0x41, 0x00, 0xfd, 0x0f,
        0x0b, // i32.const 0, i8x16.splat
    ],
};

/// Fastest first: the loader takes the first that probes, verifies and passes its self-tests.
pub const LANES: &[Lane] = &[
    Lane {
        id: LaneId::Simd128Wasm32,
        name: "simd128-wasm32",
        target_cpu: "mvp",
        target_features: "+mutable-globals,+simd128",
        required_features: &["simd128"],
        forbidden_features: &["relaxed-simd", "atomics", "memory64", "multimemory"],
        probes: &[SIMD128],
    },
    Lane {
        id: LaneId::ScalarWasm32,
        name: "scalar-wasm32",
        target_cpu: "mvp",
        target_features: "+mutable-globals",
        required_features: &[],
        forbidden_features: &[
            "simd128",
            "relaxed-simd",
            "atomics",
            "memory64",
            "multimemory",
        ],
        probes: &[],
    },
];

impl LaneId {
    pub fn name(self) -> &'static str {
        match self {
            LaneId::ScalarWasm32 => "scalar-wasm32",
            LaneId::Simd128Wasm32 => "simd128-wasm32",
            LaneId::Native => "native",
        }
    }

    pub fn from_name(name: &str) -> Option<LaneId> {
        match name {
            "native" => Some(LaneId::Native),
            _ => LANES
                .iter()
                .find(|lane| lane.name == name)
                .map(|lane| lane.id),
        }
    }
}

/// What was built, served as JSON beside the lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneManifest {
    pub schema: String,
    pub runtime_semantics: u32,
    pub abi_version: u32,
    pub artifacts: Vec<LaneArtifact>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneArtifact {
    pub id: LaneId,
    /// Relative to the manifest; contains the start of the hash.
    pub url: String,
    pub sha256: format::Digest,
    pub bytes: u64,
    pub required_features: Vec<String>,
    pub forbidden_features: Vec<String>,
}

//! The table of lanes. The builder, the prober, the loader and the tests all read this table.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LaneId {
    #[serde(rename = "scalar-wasm32")]
    ScalarWasm32,
    #[serde(rename = "simd128-wasm32")]
    Simd128Wasm32,
    #[serde(rename = "native")]
    Native,
    #[serde(rename = "simd128-threads-wasm32")]
    Simd128ThreadsWasm32,
    #[serde(rename = "relaxed-wasm32")]
    RelaxedWasm32,
    #[serde(rename = "relaxed-threads-wasm32")]
    RelaxedThreadsWasm32,
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
    pub memory: LaneMemory,
    /// Features as the module's own `target_features` section names them.
    pub required_features: &'static [&'static str],
    pub forbidden_features: &'static [&'static str],
    /// All must validate before the lane is tried.
    pub probes: &'static [Probe],
}

/// Whose memory a lane computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneMemory {
    /// The module has it, exports it and lets it grow.
    Own,
    /// The host makes it and every thread's instance imports it as `env.memory`. It never grows:
    /// the host makes it with `initial` and `maximum` equal, so that no thread ever sees another
    /// length. The module declares at least what its data and stack take and at most
    /// [`SHARED_PAGES_MAX`], so that any size in between can be imported.
    Shared,
}

/// Pages of 64 KiB that a 32-bit memory can have.
pub const SHARED_PAGES_MAX: u32 = 65_536;
/// Sizes of a shared memory that a host tries, largest first. It must be made before a model is
/// known; browsers give it room in the address space and take real memory only as it is written.
pub const SHARED_PAGES: &[u32] = &[65_536, 32_768, 16_384, 8_192, 4_096];

/// What the linker must do for a shared memory and for instances that share it.
pub const SHARED_LINK_ARGS: &[&str] = &[
    "--shared-memory",
    "--import-memory",
    "--max-memory=4294967296",
    "--export=__stack_pointer",
    "--export=__wasm_init_tls",
    "--export=__tls_size",
    "--export=__tls_align",
    "--export=__tls_base",
];

/// A tiny module that validates exactly where a feature exists. Whoever changes its bytes raises
/// its version: manifests and receipts name both version and hash.
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

/// `(module (func (result v128) i32.const 0 i8x16.splat (twice more)
/// i32x4.relaxed_dot_i8x16_i7x16_add_s))`: the one relaxed instruction that a lane may use.
const RELAXED_SIMD: Probe = Probe {
    name: "relaxed-simd",
    version: 1,
    bytes: &[
        0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // magic, version
        0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, // type: () -> v128
        0x03, 0x02, 0x01, 0x00, // one function of that type
        0x0a, 0x13, 0x01, 0x11, 0x00, // its body
        0x41, 0x00, 0xfd, 0x0f, // i32.const 0, i8x16.splat
        0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f, // twice more
        0xfd, 0x93, 0x02, 0x0b, // i32x4.relaxed_dot_i8x16_i7x16_add_s
    ],
};

/// `(module (memory 1 1 shared) (func (result i32) i32.const 0 i32.atomic.load))`
const ATOMICS: Probe = Probe {
    name: "atomics",
    version: 1,
    bytes: &[
        0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // magic, version
        0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7f, // type: () -> i32
        0x03, 0x02, 0x01, 0x00, // one function of that type
        0x05, 0x04, 0x01, 0x03, 0x01, 0x01, // one shared memory of one page
        0x0a, 0x0a, 0x01, 0x08, 0x00, 0x41, 0x00, // its body: i32.const 0
        0xfe, 0x10, 0x02, 0x00, 0x0b, // i32.atomic.load
    ],
};

/// `(module (memory 1) (func i32.const 0 i32.const 0 i32.const 0 memory.fill))`
const BULK_MEMORY: Probe = Probe {
    name: "bulk-memory",
    version: 1,
    bytes: &[
        0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // magic, version
        0x01, 0x04, 0x01, 0x60, 0x00, 0x00, // type: () -> ()
        0x03, 0x02, 0x01, 0x00, // one function of that type
        0x05, 0x03, 0x01, 0x00, 0x01, // one memory of one page
        0x0a, 0x0d, 0x01, 0x0b, 0x00, // its body
        0x41, 0x00, 0x41, 0x00, 0x41, 0x00, // i32.const 0, three times
        0xfc, 0x0b, 0x00, 0x0b, // memory.fill
    ],
};

/// Every probe once; a receipt says how each came out.
pub const PROBES: &[Probe] = &[SIMD128, RELAXED_SIMD, ATOMICS, BULK_MEMORY];

/// Fastest first: the loader takes the first that probes, verifies and passes its self-tests.
/// Each step down gives up one thing that may have been at fault: the threads, then the relaxed
/// instruction, then both, then all vectors.
pub const LANES: &[Lane] = &[
    Lane {
        id: LaneId::RelaxedThreadsWasm32,
        name: "relaxed-threads-wasm32",
        target_cpu: "mvp",
        target_features: "+mutable-globals,+simd128,+relaxed-simd,+atomics,+bulk-memory",
        memory: LaneMemory::Shared,
        required_features: &["simd128", "relaxed-simd", "atomics", "bulk-memory"],
        forbidden_features: &["memory64", "multimemory"],
        probes: &[SIMD128, RELAXED_SIMD, ATOMICS, BULK_MEMORY],
    },
    Lane {
        id: LaneId::RelaxedWasm32,
        name: "relaxed-wasm32",
        target_cpu: "mvp",
        target_features: "+mutable-globals,+simd128,+relaxed-simd",
        memory: LaneMemory::Own,
        required_features: &["simd128", "relaxed-simd"],
        forbidden_features: &["atomics", "memory64", "multimemory"],
        probes: &[SIMD128, RELAXED_SIMD],
    },
    Lane {
        id: LaneId::Simd128ThreadsWasm32,
        name: "simd128-threads-wasm32",
        target_cpu: "mvp",
        target_features: "+mutable-globals,+simd128,+atomics,+bulk-memory",
        memory: LaneMemory::Shared,
        required_features: &["simd128", "atomics", "bulk-memory"],
        forbidden_features: &["relaxed-simd", "memory64", "multimemory"],
        probes: &[SIMD128, ATOMICS, BULK_MEMORY],
    },
    Lane {
        id: LaneId::Simd128Wasm32,
        name: "simd128-wasm32",
        target_cpu: "mvp",
        target_features: "+mutable-globals,+simd128",
        memory: LaneMemory::Own,
        required_features: &["simd128"],
        forbidden_features: &["relaxed-simd", "atomics", "memory64", "multimemory"],
        probes: &[SIMD128],
    },
    Lane {
        id: LaneId::ScalarWasm32,
        name: "scalar-wasm32",
        target_cpu: "mvp",
        target_features: "+mutable-globals",
        memory: LaneMemory::Own,
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

impl Lane {
    /// Whether the lane can compute with several threads. The page must be cross-origin isolated.
    pub fn has_threads(&self) -> bool {
        self.memory == LaneMemory::Shared
    }
}

impl LaneId {
    pub fn name(self) -> &'static str {
        match self {
            LaneId::ScalarWasm32 => "scalar-wasm32",
            LaneId::Simd128Wasm32 => "simd128-wasm32",
            LaneId::Native => "native",
            LaneId::Simd128ThreadsWasm32 => "simd128-threads-wasm32",
            LaneId::RelaxedWasm32 => "relaxed-wasm32",
            LaneId::RelaxedThreadsWasm32 => "relaxed-threads-wasm32",
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

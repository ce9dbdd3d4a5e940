//! What a finished lane really holds: imports, exports, instructions, memory.
//!
//! Two independent questions are asked, and [`Sections`] reads the module a second time. The
//! validator, given the features of the lane's row and nothing else, must accept the module: that
//! bounds it from above. The count of instructions per proposal shows that a feature was really
//! used: that bounds it from below.

mod sections;

use std::collections::{BTreeMap, BTreeSet};

use protocol::{Lane, LaneMemory, SHARED_PAGES, SHARED_PAGES_MAX};
use wasmparser::{MemoryType, Operator, Parser, Payload, TypeRef, Validator, WasmFeatures};

use crate::error::LaneFault;

pub use sections::Sections;

/// Exports of the linker: its two marks in the memory.
const MARKS: [&str; 2] = ["__data_end", "__heap_base"];
/// Exports of the linker by which a host prepares one more instance over a shared memory.
const THREAD_EXPORTS: [&str; 5] = [
    "__stack_pointer",
    "__wasm_init_tls",
    "__tls_size",
    "__tls_align",
    "__tls_base",
];
const MEMORY: &str = "memory";
/// The one relaxed instruction that a lane may use, in wasmparser's name: with its second operand
/// in 0..=127 every engine gives the exact integers.
const RELAXED_DOT: &str = "I32x4RelaxedDotI8x16I7x16AddS";
/// A lane with the kernel suite has these doors besides.
const SUITE_PREFIX: &str = "suite_";
/// The one way in for bytes.
const READ_IMPORT: &str = "env.host_read";
const MEMORY_IMPORT: &str = "env.memory";

/// What was seen in a module.
#[derive(Debug, Default, PartialEq)]
pub struct Inventory {
    pub imports: Vec<String>,
    pub exports: BTreeSet<String>,
    /// Instructions by proposal, in wasmparser's names; `mvp` is the initial version.
    pub instructions: BTreeMap<&'static str, u64>,
    /// Functions with code.
    pub functions: u32,
    /// Features in the compiler's own list; empty once the module is stripped.
    pub listed_features: BTreeSet<String>,
    /// Memories, imported first.
    pub memories: Vec<Memory>,
    /// Instructions of relaxed SIMD by name.
    pub relaxed: BTreeMap<&'static str, u64>,
    /// Names of the custom sections.
    pub customs: Vec<String>,
    /// A function runs when the module is instantiated.
    pub has_start: bool,
}

/// A memory's limits in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub imported: bool,
    pub shared: bool,
    pub initial: u64,
    pub maximum: Option<u64>,
}

impl Inventory {
    /// Reads a module. What the bytes mean is not judged here.
    pub fn of(module: &[u8]) -> Result<Inventory, LaneFault> {
        read(module).map_err(|error| LaneFault::Invalid {
            at: error.offset() as usize,
            words: error.message().to_owned(),
        })
    }

    /// Whether the module is what the lane's row says and has the C ABI's doors.
    pub fn check(
        &self,
        lane: &Lane,
        doors: &BTreeSet<String>,
        suite: bool,
    ) -> Result<(), LaneFault> {
        self.check_imports(lane)?;
        self.check_exports(lane, doors, suite)?;
        self.check_memory(lane)?;
        self.check_rest(lane)?;
        for (proposal, count) in &self.instructions {
            let feature = feature_of(proposal);
            if feature != "mvp" && !lane.required_features.contains(&feature) {
                return Err(LaneFault::FeatureForbidden {
                    feature: feature.to_owned(),
                    count: *count,
                });
            }
        }
        for feature in lane.required_features {
            if !self
                .instructions
                .keys()
                .any(|name| feature_of(name) == *feature)
            {
                return Err(LaneFault::FeatureUnused { feature });
            }
        }
        Ok(())
    }

    /// Whether the compiler's own list of features agrees with the lane's flags.
    pub fn check_listed(&self, lane: &Lane) -> Result<(), LaneFault> {
        let flags: BTreeSet<&str> = lane
            .target_features
            .split(',')
            .filter_map(|flag| flag.strip_prefix('+'))
            .collect();
        for feature in &self.listed_features {
            // The compiler lists a part of bulk memory, the filling and copying, by itself too.
            let part = feature == "bulk-memory-opt" && flags.contains("bulk-memory");
            if !part && !flags.contains(feature.as_str()) {
                return Err(LaneFault::FeatureUnlisted {
                    feature: feature.clone(),
                });
            }
        }
        Ok(())
    }

    fn check_imports(&self, lane: &Lane) -> Result<(), LaneFault> {
        let expected: BTreeSet<&str> = match lane.memory {
            LaneMemory::Own => BTreeSet::from([READ_IMPORT]),
            LaneMemory::Shared => BTreeSet::from([READ_IMPORT, MEMORY_IMPORT]),
        };
        let found: BTreeSet<&str> = self.imports.iter().map(String::as_str).collect();
        match found == expected && self.imports.len() == expected.len() {
            true => Ok(()),
            false => Err(LaneFault::Imports {
                found: self.imports.clone(),
                expected: expected.into_iter().collect(),
            }),
        }
    }

    fn check_exports(
        &self,
        lane: &Lane,
        doors: &BTreeSet<String>,
        suite: bool,
    ) -> Result<(), LaneFault> {
        let own: &[&str] = match lane.memory {
            LaneMemory::Own => &[MEMORY],
            LaneMemory::Shared => &THREAD_EXPORTS,
        };
        let required = doors.iter().map(String::as_str).chain(own.iter().copied());
        for name in required {
            if !self.exports.contains(name) {
                return Err(LaneFault::MissingExport {
                    name: name.to_owned(),
                });
            }
        }
        for name in &self.exports {
            let expected = doors.contains(name)
                || own.contains(&name.as_str())
                || MARKS.contains(&name.as_str())
                || (suite && name.starts_with(SUITE_PREFIX));
            if !expected {
                return Err(LaneFault::UnexpectedExport { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Nothing that tells where and with what it was built; and only a memory that is shared must
    /// be filled by the first instance, which a start function does.
    fn check_rest(&self, lane: &Lane) -> Result<(), LaneFault> {
        if let Some(name) = self.customs.first() {
            return Err(LaneFault::CustomSection { name: name.clone() });
        }
        if self.has_start != lane.has_threads() {
            return Err(LaneFault::Start {
                found: self.has_start,
            });
        }
        let others = self.relaxed.iter().find(|(name, _)| **name != RELAXED_DOT);
        match others {
            Some((name, count)) => Err(LaneFault::Relaxed {
                name,
                count: *count,
            }),
            None => Ok(()),
        }
    }

    /// One memory: a module's own, or a shared one from outside that may have any size.
    fn check_memory(&self, lane: &Lane) -> Result<(), LaneFault> {
        let fault = || LaneFault::Memory {
            found: self.memories.clone(),
        };
        let [memory] = self.memories[..] else {
            return Err(fault());
        };
        let smallest = SHARED_PAGES.iter().copied().min().unwrap_or_default();
        let fits = match lane.memory {
            LaneMemory::Own => !memory.shared && !memory.imported && memory.maximum.is_none(),
            LaneMemory::Shared => {
                memory.shared
                    && memory.imported
                    && memory.initial <= u64::from(smallest)
                    && memory.maximum == Some(u64::from(SHARED_PAGES_MAX))
            }
        };
        match fits {
            true => Ok(()),
            false => Err(fault()),
        }
    }
}

/// Whether an engine that has the lane's features and no others would take the module.
pub fn validate(module: &[u8], lane: &Lane) -> Result<(), LaneFault> {
    let mut features = WasmFeatures::WASM1;
    for feature in lane.required_features {
        features |= match *feature {
            "simd128" => WasmFeatures::SIMD,
            "relaxed-simd" => WasmFeatures::RELAXED_SIMD,
            "atomics" => WasmFeatures::THREADS,
            "bulk-memory" => WasmFeatures::BULK_MEMORY,
            _ => WasmFeatures::empty(),
        };
    }
    Validator::new_with_features(features)
        .validate_all(module)
        .map(drop)
        .map_err(|error| LaneFault::Invalid {
            at: error.offset() as usize,
            words: error.message().to_owned(),
        })
}

/// The module without its custom sections, which no engine needs and which say where and with
/// what it was built.
pub fn stripped(module: &[u8]) -> Result<Vec<u8>, LaneFault> {
    let invalid = |at: usize| LaneFault::Invalid {
        at,
        words: "a section is cut short".to_owned(),
    };
    let head = module.get(..8).ok_or_else(|| invalid(0))?;
    let mut out = head.to_vec();
    let mut at = 8;
    while at < module.len() {
        let (size, size_len) = leb(&module[at + 1..]).ok_or_else(|| invalid(at))?;
        let end = at + 1 + size_len + size as usize;
        let section = module.get(at..end).ok_or_else(|| invalid(at))?;
        if module[at] != 0 {
            out.extend_from_slice(section);
        }
        at = end;
    }
    Ok(out)
}

/// The functions that the table at the top of `protocol::abi` promises of a lane.
pub fn doors(lane: &Lane) -> BTreeSet<String> {
    const ABI: &str = include_str!("../../protocol/src/abi.rs");
    doors_in(ABI, lane)
}

/// Rows of the table that hold these words are doors of lanes with threads and of no others.
const ONLY_THREADS: &str = "threaded lanes only";

fn doors_in(abi: &str, lane: &Lane) -> BTreeSet<String> {
    abi.lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .filter(|row| lane.has_threads() || !row.contains(ONLY_THREADS))
        .filter_map(|row| row.split('`').next())
        .map(str::to_owned)
        .collect()
}

fn read(module: &[u8]) -> wasmparser::Result<Inventory> {
    let mut seen = Inventory::default();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    if let TypeRef::Memory(memory) = import.ty {
                        seen.memories.push(Memory::of(&memory, true));
                    }
                    seen.imports
                        .push(format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    seen.exports.insert(export?.name.to_owned());
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    seen.memories.push(Memory::of(&memory?, false));
                }
            }
            Payload::CodeSectionEntry(body) => {
                seen.functions += 1;
                let mut operators = body.get_operators_reader()?;
                while !operators.eof() {
                    let (proposal, name) = proposal_of(&operators.read()?);
                    *seen.instructions.entry(proposal).or_default() += 1;
                    if proposal == "relaxed_simd" {
                        *seen.relaxed.entry(name).or_default() += 1;
                    }
                }
            }
            Payload::StartSection { .. } => seen.has_start = true,
            Payload::CustomSection(section) => {
                if section.name() == "target_features" {
                    seen.listed_features = listed(section.data()).unwrap_or_default();
                }
                seen.customs.push(section.name().to_owned());
            }
            _ => {}
        }
    }
    Ok(seen)
}

impl Memory {
    fn of(memory: &MemoryType, imported: bool) -> Memory {
        Memory {
            imported,
            shared: memory.shared,
            initial: memory.initial,
            maximum: memory.maximum,
        }
    }
}

/// The linker's list: a count, then for each feature a prefix byte and a name with its length.
fn listed(data: &[u8]) -> Option<BTreeSet<String>> {
    let (count, mut at) = leb(data)?;
    let mut names = BTreeSet::new();
    for _ in 0..count {
        at += 1;
        let (len, len_len) = leb(data.get(at..)?)?;
        at += len_len;
        let name = data.get(at..at + len as usize)?;
        names.insert(String::from_utf8(name.to_vec()).ok()?);
        at += len as usize;
    }
    Some(names)
}

/// An unsigned LEB128 number of at most 32 bits, and how many bytes it takes.
fn leb(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0u32;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        value |= u32::from(byte & 0x7f).checked_shl(7 * index as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
    }
    None
}

/// The proposal that brought an instruction, and the instruction, in wasmparser's names.
fn proposal_of(operator: &Operator<'_>) -> (&'static str, &'static str) {
    macro_rules! by_proposal {
        ($(
            @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })?
            => $visit:ident ($($ann:tt)*)
        )*) => {
            match operator {
                $( Operator::$op { .. } => (stringify!($proposal), stringify!($op)), )*
                _ => ("unknown", "unknown"),
            }
        };
    }
    wasmparser::for_each_operator!(by_proposal)
}

/// The name that compilers and the table of lanes use for a proposal.
fn feature_of(proposal: &str) -> &str {
    match proposal {
        "simd" => "simd128",
        "relaxed_simd" => "relaxed-simd",
        "threads" => "atomics",
        "bulk_memory" => "bulk-memory",
        "sign_extension" => "sign-ext",
        "saturating_float_to_int" => "nontrapping-fptoint",
        "reference_types" => "reference-types",
        other => other,
    }
}

#[cfg(test)]
mod tests;

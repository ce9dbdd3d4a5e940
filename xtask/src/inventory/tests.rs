//! The modules are written out by hand from the specification's binary format.

use super::*;
use protocol::LANES;

const HEAD: &[u8] = &[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/// `i8x16.splat` of 0, dropped.
const SPLAT: &[u8] = &[0x41, 0x00, 0xfd, 0x0f, 0x1a];
/// `i32.extend8_s` of 0, dropped.
const EXTEND: &[u8] = &[0x41, 0x00, 0xc0, 0x1a];
/// `i8x16.relaxed_swizzle` of two zero vectors, dropped.
const RELAXED: &[u8] = &[
    0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f, 0xfd, 0x80, 0x02, 0x1a,
];

fn section(id: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![id, body.len() as u8];
    out.extend_from_slice(body);
    out
}

fn name(text: &str) -> Vec<u8> {
    let mut out = vec![text.len() as u8];
    out.extend_from_slice(text.as_bytes());
    out
}

/// A module with one import `env.IMPORT`, one function with `code` exported as `rt_step`, and one
/// memory with these limits exported as `memory`.
fn module(import: &str, code: &[u8], limits: &[u8]) -> Vec<u8> {
    let mut imports = vec![1];
    imports.extend([name("env"), name(import), vec![0, 0]].concat());
    let mut memory = vec![1];
    memory.extend_from_slice(limits);
    let mut exports = vec![2];
    exports.extend([name("rt_step"), vec![0, 1], name("memory"), vec![2, 0]].concat());
    let mut body = vec![1, code.len() as u8 + 2, 0];
    body.extend_from_slice(code);
    body.push(0x0b);
    let mut features = name("target_features");
    features.extend([vec![1, b'+'], name("simd128")].concat());
    [
        HEAD.to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(2, &imports),
        section(3, &[1, 0]),
        section(5, &memory),
        section(7, &exports),
        section(10, &body),
        section(0, &features),
    ]
    .concat()
}

fn lane(id: &str) -> &'static Lane {
    LANES.iter().find(|lane| lane.name == id).unwrap()
}

/// `i32x4.relaxed_dot_i8x16_i7x16_add_s` of three zero vectors, dropped.
const DOT: &[u8] = &[
    0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f, 0xfd, 0x93, 0x02, 0x1a,
];

fn check(id: &str, import: &str, code: &[u8], limits: &[u8]) -> Result<(), LaneFault> {
    let doors = BTreeSet::from(["rt_step".to_owned()]);
    let module = stripped(&module(import, code, limits))?;
    let seen = Inventory::of(&module)?;
    let again = Sections::of(&module).map_err(|at| LaneFault::Invalid {
        at,
        words: "a section is not what it says".to_owned(),
    })?;
    again.agree(&seen)?;
    seen.check(lane(id), &doors, false)?;
    validate(&module, lane(id))
}

#[test]
fn lanes_as_they_should_be() {
    assert_eq!(check("scalar-wasm32", "host_read", &[], &[0, 1]), Ok(()));
    assert_eq!(check("simd128-wasm32", "host_read", SPLAT, &[0, 1]), Ok(()));
}

#[test]
fn the_integer_dot_is_the_only_relaxed_instruction() {
    let relaxed = |code: &[u8]| check("relaxed-wasm32", "host_read", code, &[0, 1]);
    assert_eq!(relaxed(DOT), Ok(()));
    let other = relaxed(&[DOT, RELAXED].concat());
    let name = "I8x16RelaxedSwizzle";
    assert_eq!(other, Err(LaneFault::Relaxed { name, count: 1 }));
    let feature = "relaxed-simd";
    assert_eq!(relaxed(SPLAT), Err(LaneFault::FeatureUnused { feature }));
    let simd = check("simd128-wasm32", "host_read", DOT, &[0, 1]);
    assert!(matches!(simd, Err(LaneFault::FeatureForbidden { .. })));
}

/// A module for several threads: a shared memory from outside, an atomic load, a fill, the
/// linker's exports and a start function.
struct Shared {
    memory: Vec<u8>,
    exports: Vec<&'static str>,
    start: bool,
    code: Vec<u8>,
}

impl Shared {
    fn right() -> Shared {
        let mut code = SPLAT.to_vec();
        // `i32.atomic.load` of 0, dropped; `memory.fill` of nothing.
        code.extend([0x41, 0x00, 0xfe, 0x10, 0x02, 0x00, 0x1a]);
        code.extend([0x41, 0x00, 0x41, 0x00, 0x41, 0x00, 0xfc, 0x0b, 0x00]);
        Shared {
            // Shared with a maximum: from 1 to 65,536 pages.
            memory: vec![3, 1, 0x80, 0x80, 0x04],
            exports: [&["rt_step"], &THREAD_EXPORTS[..]].concat(),
            start: true,
            code,
        }
    }

    fn check(&self) -> Result<(), LaneFault> {
        let mut imports = vec![2];
        imports.extend([name("env"), name("host_read"), vec![0, 0]].concat());
        imports.extend([name("env"), name("memory"), vec![2], self.memory.clone()].concat());
        let mut exports = vec![self.exports.len() as u8];
        for export in &self.exports {
            exports.extend([name(export), vec![0, 1]].concat());
        }
        let mut body = vec![1, self.code.len() as u8 + 2, 0];
        body.extend([&self.code[..], &[0x0b]].concat());
        let mut module = [
            HEAD.to_vec(),
            section(1, &[1, 0x60, 0, 0]),
            section(2, &imports),
            section(3, &[1, 0]),
            section(7, &exports),
        ]
        .concat();
        if self.start {
            module.extend(section(8, &[1]));
        }
        module.extend(section(10, &body));
        let seen = Inventory::of(&module)?;
        Sections::of(&module).unwrap().agree(&seen)?;
        let lane = lane("simd128-threads-wasm32");
        seen.check(lane, &BTreeSet::from(["rt_step".to_owned()]), false)?;
        validate(&module, lane)
    }
}

#[test]
fn a_threaded_lane_has_a_shared_memory_from_outside_of_any_size() {
    assert_eq!(Shared::right().check(), Ok(()));
    let memory = |limits: &[u8]| {
        let mut module = Shared::right();
        module.memory = limits.to_vec();
        module.check()
    };
    // Not shared; at most 16 pages; at least 5,000 pages, which is more than the smallest size.
    for limits in [
        &[1, 1, 0x80, 0x80, 0x04][..],
        &[3, 1, 16],
        &[3, 0x88, 0x27, 0x80, 0x80, 0x04],
    ] {
        let refused = memory(limits);
        assert!(
            matches!(refused, Err(LaneFault::Memory { .. })),
            "{refused:?}"
        );
    }
    let mut alone = Shared::right();
    alone.start = false;
    assert_eq!(alone.check(), Err(LaneFault::Start { found: false }));
    let mut closed = Shared::right();
    closed.exports.pop();
    let name = THREAD_EXPORTS[4].to_owned();
    assert_eq!(closed.check(), Err(LaneFault::MissingExport { name }));
    let mut single = Shared::right();
    single.code = SPLAT.to_vec();
    let feature = "atomics";
    assert_eq!(single.check(), Err(LaneFault::FeatureUnused { feature }));
}

#[test]
fn custom_sections_and_start_functions_are_refused() {
    let whole = module("host_read", &[], &[0, 1]);
    let doors = BTreeSet::from(["rt_step".to_owned()]);
    let scalar = lane("scalar-wasm32");
    let named = Inventory::of(&whole).unwrap().check(scalar, &doors, false);
    let name = "target_features".to_owned();
    assert_eq!(named, Err(LaneFault::CustomSection { name }));
    let mut seen = Inventory::of(&stripped(&whole).unwrap()).unwrap();
    seen.has_start = true;
    let started = seen.check(scalar, &doors, false);
    assert_eq!(started, Err(LaneFault::Start { found: true }));
}

#[test]
fn two_readers_must_see_the_same() {
    let module = stripped(&module("host_read", SPLAT, &[0, 1])).unwrap();
    let first = Inventory::of(&module).unwrap();
    let second = || Sections::of(&module).unwrap();
    assert_eq!(second().agree(&first), Ok(()));
    let differs = |what, change: fn(&mut Sections)| {
        let mut seen = second();
        change(&mut seen);
        assert_eq!(seen.agree(&first), Err(LaneFault::Disagreement { what }));
    };
    differs("imports", |seen| seen.imports.clear());
    differs("exports", |seen| seen.exports.clear());
    differs("memories", |seen| seen.memories[0].initial += 1);
    differs("functions", |seen| seen.functions += 1);
    differs("custom sections", |seen| seen.customs.push("name".into()));
    differs("the start function", |seen| seen.has_start = true);
}

/// Our own reader takes no module whose parts are not as long as they say.
#[test]
fn the_second_reader_refuses_what_is_cut_or_left_over() {
    let whole = module("host_read", SPLAT, &[0, 1]);
    assert!(Sections::of(&whole).is_ok());
    for end in [0, 7, 9, whole.len() - 1] {
        assert!(Sections::of(&whole[..end]).is_err(), "{end}");
    }
    let left_over = [HEAD, &section(3, &[0, 0])].concat();
    assert_eq!(Sections::of(&left_over), Err(8));
    let bodiless = [HEAD, &section(3, &[1, 0])].concat();
    assert_eq!(Sections::of(&bodiless), Err(bodiless.len()));
    // A body that does not end with `end`, and a global import, which no lane has.
    let endless = [HEAD, &section(3, &[1, 0]), &section(10, &[1, 1, 0])].concat();
    assert!(Sections::of(&endless).is_err());
    let global = [name("env"), name("g"), vec![3, 0x7f, 0]].concat();
    let global = [HEAD, &section(2, &[&[1][..], &global].concat())].concat();
    assert_eq!(Sections::of(&global), Err(8));
}

#[test]
fn another_import_is_refused() {
    let refused = check("scalar-wasm32", "clock", &[], &[0, 1]);
    let found = vec!["env.clock".to_owned()];
    let expected = vec!["env.host_read"];
    assert_eq!(refused, Err(LaneFault::Imports { found, expected }));
}

#[test]
fn instructions_beyond_the_row_are_refused() {
    let forbidden = |feature: &str, count| {
        Err(LaneFault::FeatureForbidden {
            feature: feature.to_owned(),
            count,
        })
    };
    let scalar = |code| check("scalar-wasm32", "host_read", code, &[0, 1]);
    assert_eq!(scalar(SPLAT), forbidden("simd128", 1));
    assert_eq!(scalar(EXTEND), forbidden("sign-ext", 1));
    let simd = check("simd128-wasm32", "host_read", RELAXED, &[0, 1]);
    let name = "I8x16RelaxedSwizzle";
    assert_eq!(simd, Err(LaneFault::Relaxed { name, count: 1 }));
}

#[test]
fn a_lane_that_does_not_use_its_feature_is_refused() {
    let refused = check("simd128-wasm32", "host_read", EXTEND, &[0, 1]);
    assert!(matches!(refused, Err(LaneFault::FeatureForbidden { .. })));
    let refused = check("simd128-wasm32", "host_read", &[], &[0, 1]);
    assert_eq!(
        refused,
        Err(LaneFault::FeatureUnused { feature: "simd128" })
    );
}

#[test]
fn shared_and_64_bit_memories_are_refused() {
    let shared = check("scalar-wasm32", "host_read", &[], &[3, 1, 1]);
    assert!(
        matches!(shared, Err(LaneFault::Memory { .. })),
        "{shared:?}"
    );
    let wide = check("scalar-wasm32", "host_read", &[], &[4, 1]);
    assert!(matches!(wide, Err(LaneFault::Invalid { .. })), "{wide:?}");
}

#[test]
fn exports_are_the_doors_and_nothing_else() {
    let module = stripped(&module("host_read", &[], &[0, 1])).unwrap();
    let seen = Inventory::of(&module).unwrap();
    let scalar = lane("scalar-wasm32");
    let doors = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let missing = seen.check(scalar, &doors(&["rt_step", "rt_open"]), false);
    let name = "rt_open".to_owned();
    assert_eq!(missing, Err(LaneFault::MissingExport { name }));
    let unexpected = seen.check(scalar, &doors(&[]), true);
    let name = "rt_step".to_owned();
    assert_eq!(unexpected, Err(LaneFault::UnexpectedExport { name }));
}

#[test]
fn the_compilers_feature_list_is_read_and_then_stripped() {
    let module = module("host_read", SPLAT, &[0, 1]);
    let seen = Inventory::of(&module).unwrap();
    assert_eq!(seen.listed_features, BTreeSet::from(["simd128".to_owned()]));
    assert_eq!(seen.check_listed(lane("simd128-wasm32")), Ok(()));
    let feature = "simd128".to_owned();
    let refused = seen.check_listed(lane("scalar-wasm32"));
    assert_eq!(refused, Err(LaneFault::FeatureUnlisted { feature }));

    let seen = Inventory::of(&stripped(&module).unwrap()).unwrap();
    assert!(seen.listed_features.is_empty());
}

#[test]
fn a_cut_module_is_refused() {
    let whole = module("host_read", SPLAT, &[0, 1]);
    for end in [4, 9, whole.len() - 1] {
        let cut = stripped(&whole[..end]);
        assert!(matches!(cut, Err(LaneFault::Invalid { .. })), "{end}");
    }
}

#[test]
fn the_doors_are_read_from_the_abi_table() {
    let doors = doors(lane("scalar-wasm32"));
    assert!(doors.contains("rt_abi") && doors.contains("rt_close"));
    assert!(doors.iter().all(|door| door.starts_with("rt_")));
    let table = "//! | export | signature |\n//! | `rt_a` | `() -> u32`: text |\n/// | `no` |\n\
                 //! | `rt_b` | `()`: threaded lanes only |";
    let names = |id| doors_in(table, lane(id)).into_iter().collect::<Vec<_>>();
    assert_eq!(names("scalar-wasm32"), ["rt_a"]);
    assert_eq!(names("simd128-threads-wasm32"), ["rt_a", "rt_b"]);
}

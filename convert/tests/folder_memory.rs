//! The memory of a folder's conversion when its descriptions are as large as they may be.

mod folder_writer;
mod in_memory;

use convert::ConvertError::{self, BadJson, BadValue, Limit};
use convert::Options;
use folder_writer::Folder;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The bound of the crate.
const MEMORY_MAX: usize = 64 * 1024 * 1024;

/// JSON of about `len` bytes: `unit` again and again between two ends.
fn filled(head: &str, unit: &str, tail: &str, len: usize) -> Vec<u8> {
    let count = (len - head.len() - tail.len()) / unit.len();
    let text = [head, &unit.repeat(count), tail].concat();
    text.into_bytes()
}

/// Converts a folder with one more file; gives the error and the most memory taken meanwhile.
fn measured(name: &str, content: Vec<u8>) -> (Option<ConvertError>, usize) {
    let mut folder = Folder::small();
    folder.files.push((name.into(), content));
    let mut files = folder.write();
    files.sort_by_key(|(file, _)| file != name);
    files.dedup_by(|later, first| later.0 == first.0);
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), &b[..])).collect();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let error = in_memory::folder(&files, Options::default()).err();
    (error, MEMORY.peak_usage().saturating_sub(before))
}

#[test]
fn the_largest_descriptions_fit() {
    for (index, (name, content, right)) in rows().into_iter().enumerate() {
        let (error, peak) = measured(name, content);
        let right = error.as_ref().is_some_and(right);
        assert!(right, "row {index}, {name}: {error:?}");
        assert!(peak < MEMORY_MAX, "row {index}, {name}: {peak} bytes");
    }
}

const MIB: usize = 1024 * 1024;

/// File, content, and whether an error is the right one.
type Row = (&'static str, Vec<u8>, fn(&ConvertError) -> bool);

fn rows() -> Vec<Row> {
    let model = "{\"model\":{\"vocab\":{\"a\":1}}";
    let shard = |json: Vec<u8>| [&(json.len() as u64).to_le_bytes()[..], &json].concat();
    let described = "\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":[";
    vec![
        (
            "model.safetensors",
            shard(filled(
                &format!("{{\"a\":{{{described}"),
                "1,",
                "1]}}",
                8 * MIB,
            )),
            |error| matches!(error, BadJson { .. }),
        ),
        (
            "model.safetensors.index.json",
            filled(
                "{\"weight_map\":{",
                "\"a\":\"b\",",
                "\"c\":\"d\"}}",
                8 * MIB,
            ),
            |error| matches!(error, BadJson { .. }),
        ),
        (
            "tokenizer.json",
            filled(
                "{\"model\":{\"vocab\":{",
                "\"ab\":7,",
                "\"c\":8}}}",
                40 * MIB,
            ),
            |error| matches!(error, BadValue { .. }),
        ),
        (
            "tokenizer.json",
            filled(
                &format!("{model},\"post_processor\":{{\"single\":["),
                "{},",
                "{\"SpecialToken\":{\"id\":0}}]}}",
                40 * MIB,
            ),
            |error| matches!(error, BadJson { .. }),
        ),
        (
            "tokenizer.json",
            filled(&format!("{model},\"x\":["), "0,", "0]]", 40 * MIB),
            |error| matches!(error, BadJson { .. }),
        ),
        ("tokenizer.json", vec![b' '; 41 * MIB], |error| {
            matches!(error, Limit { .. })
        }),
        (
            "tokenizer_config.json",
            filled("{\"a\":[", "0,", "0]]", 4 * MIB),
            |error| matches!(error, BadJson { .. }),
        ),
        (
            "config.json",
            filled("{\"a\":[", "[],", "[]]]", MIB),
            |error| matches!(error, BadJson { .. }),
        ),
    ]
}

//! The outside world enters through listed files only: everything else can be simulated.

use super::Finding;
use super::tree::{Tree, room_of};

/// Words that mean the outside world.
const OUTSIDE: &[(&str, &[&str])] = &[
    (
        "a browser's name",
        &[
            "web_sys",
            "js_sys",
            "wasm_bindgen",
            "wasm_bindgen_futures",
            "JsValue",
            "leptos",
            "rexie",
        ],
    ),
    ("a clock", &["Instant", "SystemTime", "UNIX_EPOCH"]),
    ("a random source", &["getrandom", "thread_rng", "OsRng"]),
    ("async code", &["async", "await"]),
];

/// Where a room may touch the outside world.
enum Shell {
    Nowhere,
    Everywhere,
    /// Files, or folders that end with a slash, below the room.
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

const SHELLS: &[(&str, Shell)] = &[
    ("format", Shell::Nowhere),
    ("protocol", Shell::Nowhere),
    ("convert", Shell::Nowhere),
    ("prompt", Shell::Nowhere),
    ("runtime", Shell::Nowhere),
    (
        "store",
        Shell::Only(&[
            "src/opfs.rs",
            "src/indexeddb.rs",
            "src/indexeddb/",
            "src/later.rs",
            "src/suite.rs",
        ]),
    ),
    ("p2p", Shell::Only(&["src/web.rs", "src/native.rs"])),
    (
        "worker",
        Shell::Only(&[
            "src/shell.rs",
            "src/shell/",
            "src/engine/module.rs",
            "src/engine/module/",
        ]),
    ),
    ("app", Shell::AllBut(&["src/state/", "src/text.rs"])),
    ("cli", Shell::Everywhere),
    ("xtask", Shell::Everywhere),
    ("e2e", Shell::Everywhere),
    ("bench", Shell::Everywhere),
    ("fuzz", Shell::Nowhere),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        if is_shell(&source.path) {
            continue;
        }
        for (what, words) in OUTSIDE {
            // One finding of a kind says enough about a file.
            let mut seen = source.words.iter();
            if let Some(word) = seen.find(|word| words.contains(&word.text.as_str())) {
                let words = format!("`{}` is {what} outside a shell file", word.text);
                findings.push(Finding::new(&source.path, word.line, words));
            }
        }
    }
    findings
}

fn is_shell(path: &str) -> bool {
    let room = room_of(path);
    let below = path.get(room.len() + 1..).unwrap_or_default();
    // A room's outer tests and examples drive it, as a shell does.
    if below.starts_with("tests/") || below.starts_with("examples/") {
        return true;
    }
    let is_listed = |places: &[&str]| {
        places.iter().any(|place| match place.ends_with('/') {
            true => below.starts_with(place),
            false => below == *place,
        })
    };
    match SHELLS.iter().find(|(name, _)| *name == room) {
        Some((_, Shell::Everywhere)) => true,
        Some((_, Shell::Only(places))) => is_listed(places),
        Some((_, Shell::AllBut(places))) => !is_listed(places),
        Some((_, Shell::Nowhere)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, want: &[&str]) {
        let found = super::check(&Tree::sample(&[(path, text)]));
        let found: Vec<&str> = found.iter().map(|finding| finding.words.as_str()).collect();
        assert_eq!(found, want, "{path}");
    }

    #[test]
    fn the_outside_world_in_a_core_is_found() {
        let clock = "`Instant` is a clock outside a shell file";
        check("store/src/import.rs", "use std::time::Instant;", &[clock]);
        let browser = "`web_sys` is a browser's name outside a shell file";
        check("app/src/state/chat.rs", "use web_sys::Window;", &[browser]);
        let task = "`async` is async code outside a shell file";
        check("convert/src/lib.rs", "async fn feed() {}", &[task]);
        let random = "`getrandom` is a random source outside a shell file";
        check("stranger/src/lib.rs", "use getrandom::fill;", &[random]);
    }

    #[test]
    fn shells_tests_and_words_in_strings_are_fine() {
        check("store/src/opfs.rs", "use web_sys::File;", &[]);
        check("worker/src/shell/files.rs", "async fn open() {}", &[]);
        check("app/src/chat.rs", "use leptos::view;", &[]);
        check("store/tests/import.rs", "use std::time::Instant;", &[]);
        check(
            "prompt/src/lib.rs",
            "const A: &str = \"async\"; // Instant",
            &[],
        );
    }
}

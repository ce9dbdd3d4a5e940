//! A Rust file that no `mod` reaches is dead, and the compiler never says so.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Tree;
use crate::source::{Module, Source};

/// Files that cargo compiles by their place.
const ROOTS: &[&str] = &["src/lib.rs", "src/main.rs", "build.rs"];
const ROOT_FOLDERS: &[&str] = &[
    "tests/",
    "examples/",
    "benches/",
    "src/bin/",
    "fuzz_targets/",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut open: Vec<&Source> = tree.sources.iter().filter(|s| is_root(&s.path)).collect();
    let mut reached: BTreeSet<&str> = open.iter().map(|source| source.path.as_str()).collect();
    while let Some(source) = open.pop() {
        for module in &source.modules {
            let places = places_of(&source.path, module);
            let found = tree.sources.iter().find(|s| places.contains(&s.path));
            if let Some(found) = found.filter(|found| reached.insert(&found.path)) {
                open.push(found);
            }
        }
    }
    tree.sources
        .iter()
        .filter(|source| !reached.contains(source.path.as_str()))
        .map(|source| Finding::new(&source.path, 0, "no `mod` reaches this file"))
        .collect()
}

fn is_root(path: &str) -> bool {
    let Some((_, below)) = path.split_once('/') else {
        return false;
    };
    let in_folder = |folder: &str| {
        let name = below.strip_prefix(folder);
        name.is_some_and(|name| !name.contains('/'))
    };
    ROOTS.contains(&below) || ROOT_FOLDERS.iter().any(|folder| in_folder(folder))
}

/// Where the text of `mod name;` may lie.
fn places_of(path: &str, module: &Module) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some(named) = &module.path {
        return vec![format!("{folder}/{named}")];
    }
    let stem = file.trim_end_matches(".rs");
    let owns_folder = is_root(path) || stem == "mod";
    let mut base = match owns_folder {
        true => folder.to_owned(),
        false => format!("{folder}/{stem}"),
    };
    for inline in &module.within {
        base = format!("{base}/{inline}");
    }
    vec![
        format!("{base}/{}.rs", module.name),
        format!("{base}/{}/mod.rs", module.name),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let findings = check(&Tree::sample(files));
        findings.into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_without_mod_is_found() {
        let files = [
            ("a/src/lib.rs", "mod b; // mod d;"),
            ("a/src/b.rs", "mod c { mod e; }"),
            ("a/src/b/c/e.rs", ""),
            ("a/src/d.rs", ""),
            ("a/src/c.rs", ""),
        ];
        assert_eq!(dead(&files), ["a/src/d.rs", "a/src/c.rs"]);
    }

    #[test]
    fn tests_are_roots_and_paths_are_followed() {
        let files = [
            (
                "a/tests/whole.rs",
                "mod page; #[path = \"../src/x.rs\"] mod x;",
            ),
            ("a/tests/page.rs", ""),
            ("a/tests/lost/deep.rs", ""),
            ("a/src/main.rs", "mod one;"),
            ("a/src/one/mod.rs", "mod two;"),
            ("a/src/one/two.rs", ""),
        ];
        assert_eq!(dead(&files), ["a/tests/lost/deep.rs"]);
    }
}

//! Words that name nothing, and words that do not belong into a project.

use super::Finding;
use super::tree::Tree;

/// Names that say nothing about what is inside. Name the noun.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "manager", "helper", "helpers", "common", "misc", "types",
];
/// Text that speaks of how the project came about or of one machine, in any case.
const OUT_OF_PLACE: &[&str] = &[
    "keep in sync",
    "workplace",
    "as requested",
    "my task",
    "the brief",
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted"),
    concat!("npm", "js"),
    concat!("deb", ".debian"),
];
/// Holds the list itself.
const THIS_FILE: &str = "xtask/src/tidy/words.rs";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let stem = stem_of(&file.path);
        if stem
            .split(['_', '-', '.'])
            .any(|word| EMPTY_NAMES.contains(&word))
        {
            findings.push(Finding::new(
                &file.path,
                0,
                "its name says nothing; name the noun",
            ));
        }
        if file.path == THIS_FILE {
            continue;
        }
        for (at, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for words in OUT_OF_PLACE.iter().filter(|words| line.contains(**words)) {
                let words = format!("`{words}` does not belong here");
                findings.push(Finding::new(&file.path, at + 1, words));
            }
        }
    }
    for source in &tree.sources {
        for named in &source.types {
            let words = words_of(&named.name);
            if words
                .iter()
                .any(|word| EMPTY_NAMES.contains(&word.as_str()))
            {
                let words = format!("`{}` says nothing; name the noun", named.name);
                findings.push(Finding::new(&source.path, named.line, words));
            }
        }
    }
    findings
}

fn stem_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// `LoadManager` is `load`, `manager`.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_uppercase() => word.push(letter),
            _ => words.push(letter.to_lowercase().collect()),
        }
    }
    words
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
    fn empty_names_are_found() {
        let file = "its name says nothing; name the noun";
        check("store/src/utils.rs", "", &[file]);
        check("e2e/tests/common.rs", "", &[file]);
        check("app/src/cache_manager.rs", "", &[file]);
        let named = "`ModelLoadManager` says nothing; name the noun";
        check(
            "worker/src/load.rs",
            "pub struct ModelLoadManager;",
            &[named],
        );
        check("worker/src/uncommon.rs", "struct Mistypes;", &[]);
    }

    #[test]
    fn words_out_of_place_are_found() {
        let words = "`keep in sync` does not belong here";
        check("app/src/a.rs", "// Keep in sync with build.sh", &[words]);
        check(
            "docs/a.md",
            "Done as requested.",
            &["`as requested` does not belong here"],
        );
        check("run", "cd /home/me", &["`/home/` does not belong here"]);
    }
}

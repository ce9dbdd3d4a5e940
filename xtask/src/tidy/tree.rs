//! All text files of the checkout.

use std::fs;
use std::path::Path;

use super::Finding;
use crate::error::{Result, XtaskError};
use crate::source::Source;
use crate::stamp;

/// Endings of the files that are read.
const TEXT: &[&str] = &[
    "rs",
    "md",
    "toml",
    "js",
    "mjs",
    "html",
    "css",
    "sh",
    "webmanifest",
];
/// Text without an ending lies at these places.
const SCRIPTS: &[&str] = &["run", "test", ".ci/run", "bench/run", "bench/setup"];
const SCRIPT_FOLDERS: &[&str] = &["scripts/"];
/// Built, fetched or kept by tools; not ours to judge.
const SKIPPED_FOLDERS: &[&str] = &[
    ".git",
    "dist",
    "dist.new",
    "target",
    "fuzz/target",
    "node_modules",
    "models",
];

pub struct Tree {
    pub files: Vec<Text>,
    pub sources: Vec<Source>,
    broken: Vec<Finding>,
}

pub struct Text {
    /// Below the checkout, with forward slashes.
    pub path: String,
    pub text: String,
}

impl Tree {
    pub fn read(root: &Path) -> Result<Tree> {
        let mut files = Vec::new();
        for path in stamp::files_under_but(root, SKIPPED_FOLDERS)? {
            let name = stamp::slashed(root, &path);
            if is_text(&name) {
                let text = fs::read_to_string(&path).map_err(XtaskError::io(&path))?;
                files.push(Text { path: name, text });
            }
        }
        Ok(Tree::of(files))
    }

    fn of(files: Vec<Text>) -> Tree {
        let mut tree = Tree {
            files: Vec::new(),
            sources: Vec::new(),
            broken: Vec::new(),
        };
        for file in files {
            if file.path.ends_with(".rs") {
                match Source::parse(&file.path, &file.text) {
                    Ok(source) => tree.sources.push(source),
                    Err(line) => tree
                        .broken
                        .push(Finding::new(&file.path, line, "is not Rust")),
                }
            }
            tree.files.push(file);
        }
        tree
    }

    /// Files that could not be judged, which is a finding by itself.
    pub fn unreadable(&self) -> Vec<Finding> {
        let clone = |f: &Finding| Finding::new(&f.path, f.line, f.words.as_str());
        self.broken.iter().map(clone).collect()
    }

    /// A tree of a test.
    #[cfg(test)]
    pub fn sample(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| Text {
            path: path.to_string(),
            text: text.to_string(),
        };
        Tree::of(files.iter().map(file).collect())
    }
}

/// The first folder of a path: the room.
pub fn room_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

fn is_text(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    TEXT.contains(&ending)
        || SCRIPTS.contains(&path)
        || SCRIPT_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_rust_is_a_finding() {
        let tree = Tree::sample(&[("a/src/lib.rs", "fn a() {}\n'\n")]);
        let want = Finding::new("a/src/lib.rs", 2, "is not Rust");
        assert_eq!(tree.unreadable(), [want]);
    }

    #[test]
    fn text_is_told_by_name() {
        for path in ["a.rs", "scripts/setup", "run", ".ci/run", "public/sw.js"] {
            assert!(is_text(path), "{path}");
        }
        for path in ["a.png", "LICENSE-MIT", "Cargo.lock", "format/run"] {
            assert!(!is_text(path), "{path}");
        }
    }
}

//! `docs/decisions.md` names what proves each row; a test that it names must exist.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Tree;

const PAGE: &str = "docs/decisions.md";
/// A name of fewer words may be anything; one of so many is a test's.
const WORDS_LEAST: usize = 3;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.files.iter().find(|file| file.path == PAGE) else {
        return vec![Finding::new(PAGE, 0, "is missing")];
    };
    let code = tree.files.iter().filter(|file| file.path.ends_with(".rs"));
    let names: BTreeSet<&str> = code.flat_map(|file| functions(&file.text)).collect();
    let has_file = |path: &str| tree.files.iter().any(|file| file.path == path);
    let mut findings = Vec::new();
    for (at, line) in page.text.lines().enumerate() {
        for span in spans(line) {
            let file = match span.strip_prefix("e2e: ") {
                Some(name) => Some(format!("e2e/tests/{name}.rs")),
                None => span.ends_with(".rs").then(|| span.to_owned()),
            };
            let is_there = match &file {
                Some(file) => has_file(file),
                None => !is_test_name(span) || names.contains(span),
            };
            if !is_there {
                let words = format!("there is no {span:?}");
                findings.push(Finding::new(PAGE, at + 1, words));
            }
        }
    }
    findings
}

/// What stands between single backquotes.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_test_name(span: &str) -> bool {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    span.chars().all(is_name) && span.split('_').count() >= WORDS_LEAST
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("fn ")?;
        let end = rest.find(['(', '<'])?;
        Some(&rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_names_must_exist() {
        let page = "| D1 | a `If-Range` | `a_test_of_it`, `e2e/tests/a.rs`, `e2e: a` |\n\
                    | D2 | b | `no_such_test`, `e2e/tests/b.rs`, `e2e: b` |\n";
        let tree = Tree::sample(&[
            (PAGE, page),
            ("e2e/tests/a.rs", "#[test]\nfn a_test_of_it() {}\n"),
        ]);
        let found = check(&tree);
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 2, 2], "{found:?}");
    }
}

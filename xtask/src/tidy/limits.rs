//! Files and functions stay small enough to be read.

use super::Finding;
use super::tree::Tree;

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// Files over the limit, with the lines they may have. The list may only shrink: an entry that
/// is larger than its file is a finding too.
const LARGER_FILES: &[(&str, usize)] = &[];
/// Functions over the limit, as (file, function, lines). May only shrink.
const LARGER_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Endings of files that people write line by line.
const CODE: &[&str] = &[".rs", ".js", ".mjs", ".css", ".html", ".sh"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = files(tree, LARGER_FILES);
    findings.extend(functions(tree, LARGER_FUNCTIONS));
    findings.extend(columns(tree));
    findings
}

fn files(tree: &Tree, exceptions: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let lines = file.text.lines().count();
        let exception = exceptions.iter().find(|(path, _)| *path == file.path);
        let is_code = CODE.iter().any(|ending| file.path.ends_with(ending));
        let allowed = exception.map_or(FILE_LINES_MAX, |(_, lines)| *lines);
        if is_code && lines > allowed {
            let words = format!("{lines} lines, {allowed} are allowed");
            findings.push(Finding::new(&file.path, 0, words));
        } else if exception.is_some() && lines < allowed {
            let words = format!("{lines} lines: shrink its entry of {allowed} in LARGER_FILES");
            findings.push(Finding::new(&file.path, 0, words));
        }
    }
    let is_here = |path: &str| tree.files.iter().any(|file| file.path == path);
    for (path, _) in exceptions.iter().filter(|(path, _)| !is_here(path)) {
        findings.push(Finding::new(
            path,
            0,
            "is gone: remove its entry in LARGER_FILES",
        ));
    }
    findings
}

fn functions(tree: &Tree, exceptions: &[(&str, &str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = 0;
    for source in &tree.sources {
        for function in &source.functions {
            let lines = function.last - function.first + 1;
            let exception = exceptions
                .iter()
                .find(|(path, name, _)| *path == source.path && *name == function.name);
            used += usize::from(exception.is_some());
            let allowed = exception.map_or(FUNCTION_LINES_MAX, |(_, _, lines)| *lines);
            let words = if lines > allowed {
                format!(
                    "`{}` has {lines} lines, {allowed} are allowed",
                    function.name
                )
            } else if exception.is_some() && lines < allowed {
                format!(
                    "`{}` has {lines} lines: shrink its entry of {allowed}",
                    function.name
                )
            } else {
                continue;
            };
            findings.push(Finding::new(&source.path, function.first, words));
        }
    }
    if used < exceptions.len() {
        let words = "an entry in LARGER_FUNCTIONS names no function";
        findings.push(Finding::new("xtask/src/tidy/limits.rs", 0, words));
    }
    findings
}

fn columns(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (at, line) in source.lines.iter().enumerate() {
            // A table in a comment and a long string cannot be broken.
            let unbreakable = line.trim_start().starts_with("//! |") || line.contains('"');
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && !unbreakable {
                let words = format!("{columns} columns, {COLUMNS_MAX} are allowed");
                findings.push(Finding::new(&source.path, at + 1, words));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> String {
        "//\n".repeat(count)
    }

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "// a\n".repeat(lines - 2))
    }

    fn words(findings: &[Finding]) -> Vec<&str> {
        findings
            .iter()
            .map(|finding| finding.words.as_str())
            .collect()
    }

    #[test]
    fn a_long_file_is_found() {
        let long = lines(401);
        let tree = Tree::sample(&[("a/src/b.rs", &long), ("a/notes.md", &long)]);
        assert_eq!(words(&check(&tree)), ["401 lines, 400 are allowed"]);
        assert!(check(&Tree::sample(&[("a/src/b.rs", &lines(400))])).is_empty());
    }

    #[test]
    fn the_list_of_long_files_may_only_shrink() {
        let tree = Tree::sample(&[("b.rs", &lines(500))]);
        assert!(files(&tree, &[("b.rs", 500)]).is_empty());
        assert_eq!(
            words(&files(&tree, &[("b.rs", 499)])),
            ["500 lines, 499 are allowed"]
        );
        let shrink = ["500 lines: shrink its entry of 501 in LARGER_FILES"];
        assert_eq!(words(&files(&tree, &[("b.rs", 501)])), shrink);
        let gone = files(&tree, &[("b.rs", 500), ("c.rs", 500)]);
        assert_eq!(words(&gone), ["is gone: remove its entry in LARGER_FILES"]);
    }

    #[test]
    fn a_long_function_is_found() {
        let tree = Tree::sample(&[("a/src/b.rs", &function(71))]);
        assert_eq!(
            words(&check(&tree)),
            ["`long` has 71 lines, 70 are allowed"]
        );
        assert!(check(&Tree::sample(&[("a/src/b.rs", &function(70))])).is_empty());
    }

    #[test]
    fn the_list_of_long_functions_may_only_shrink() {
        let tree = Tree::sample(&[("b.rs", &function(80))]);
        assert!(functions(&tree, &[("b.rs", "long", 80)]).is_empty());
        let grown = functions(&tree, &[("b.rs", "long", 79)]);
        assert_eq!(words(&grown), ["`long` has 80 lines, 79 are allowed"]);
        let shrunk = functions(&tree, &[("b.rs", "long", 81)]);
        assert_eq!(
            words(&shrunk),
            ["`long` has 80 lines: shrink its entry of 81"]
        );
        let gone = functions(&tree, &[("b.rs", "long", 80), ("b.rs", "other", 80)]);
        assert_eq!(
            words(&gone),
            ["an entry in LARGER_FUNCTIONS names no function"]
        );
    }

    #[test]
    fn a_long_line_is_found() {
        let line = format!("// {}\n", "a".repeat(98));
        let tree = Tree::sample(&[("a/src/b.rs", &line)]);
        assert_eq!(words(&check(&tree)), ["101 columns, 100 are allowed"]);
    }
}

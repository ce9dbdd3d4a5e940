//! `ARCHITECTURE.md` tells the truth: the functions and files that it names exist.

use super::Finding;
use super::markdown::code_spans;
use super::tree::{Tree, room_of};

const MAP: &str = "ARCHITECTURE.md";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.files.iter().find(|file| file.path == MAP) else {
        return vec![Finding::new(MAP, 0, "is missing")];
    };
    let mut findings = Vec::new();
    for (at, line) in map.text.lines().enumerate() {
        for span in code_spans(line) {
            let exists = match named(span) {
                Some(Name::Function { path, name }) => has_function(tree, &path, name),
                Some(Name::File(path)) => has_file(tree, path),
                None => true,
            };
            if !exists {
                let words = format!("`{span}` does not exist");
                findings.push(Finding::new(MAP, at + 1, words));
            }
        }
    }
    findings
}

enum Name<'a> {
    /// `room::module::Owner::name`, any part but the name left out.
    Function {
        path: Vec<&'a str>,
        name: &'a str,
    },
    File(&'a str),
}

/// What a piece of code in the text names, if it is a function or a file.
fn named(span: &str) -> Option<Name<'_>> {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if span.ends_with(".rs") && !span.contains(['*', '{', ' ']) {
        return Some(Name::File(span));
    }
    let span = span
        .strip_suffix("()")
        .map_or((span, false), |span| (span, true));
    let mut path: Vec<&str> = span.0.split("::").collect();
    if !path.iter().all(|part| is_name(part)) {
        return None;
    }
    let name = path.pop()?;
    let is_function = name.chars().next()?.is_ascii_lowercase();
    // A lone lower-case word is a room or an argument, unless it is a door or called.
    let is_meant = !path.is_empty() || span.1 || name.starts_with("rt_");
    (is_function && is_meant).then_some(Name::Function { path, name })
}

fn has_function(tree: &Tree, path: &[&str], name: &str) -> bool {
    let rooms: Vec<&str> = tree
        .sources
        .iter()
        .map(|source| room_of(&source.path))
        .collect();
    let room = path.first().filter(|first| rooms.contains(first));
    let owner = path
        .last()
        .filter(|last| last.starts_with(|c: char| c.is_ascii_uppercase()));
    tree.sources
        .iter()
        .filter(|source| room.is_none_or(|room| room_of(&source.path) == *room))
        .flat_map(|source| &source.functions)
        .any(|f| f.name == name && owner.is_none_or(|o| f.owner.iter().any(|word| word == o)))
}

fn has_file(tree: &Tree, path: &str) -> bool {
    let below = format!("/{path}");
    tree.sources
        .iter()
        .any(|source| source.path == path || source.path.ends_with(&below))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "impl Session { fn handle() {} } fn into_memory() {} fn rt_open() {}";

    fn check(text: &str, want: &[&str]) {
        let files = [("worker/src/session.rs", CODE), (MAP, text)];
        let found = super::check(&Tree::sample(&files));
        let found: Vec<&str> = found.iter().map(|finding| finding.words.as_str()).collect();
        assert_eq!(found, want, "{text}");
    }

    #[test]
    fn what_does_not_exist_is_found() {
        check(
            "`worker::Session::poll`",
            &["`worker::Session::poll` does not exist"],
        );
        check("`Other::handle`", &["`Other::handle` does not exist"]);
        check("`rt_close`", &["`rt_close` does not exist"]);
        check("`gone()`", &["`gone()` does not exist"]);
        check("`src/gone.rs`", &["`src/gone.rs` does not exist"]);
    }

    #[test]
    fn what_exists_is_fine() {
        check(
            "`worker::Session::handle`, `load::into_memory`, `rt_open`",
            &[],
        );
        check(
            "`session.rs`, `worker/src/session.rs`, `worker`, `Session`, `a + b`",
            &[],
        );
    }

    #[test]
    fn a_missing_map_is_found() {
        let tree = Tree::sample(&[("worker/src/session.rs", CODE)]);
        assert_eq!(super::check(&tree), [Finding::new(MAP, 0, "is missing")]);
    }
}

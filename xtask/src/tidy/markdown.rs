//! Markdown: one title, one sentence per line, so that a change of one sentence is a change of
//! one line.

use super::Finding;
use super::tree::Tree;

/// A full stop after these ends no sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "etc.", "vs.", "cf.", "No.", "approx."];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let pages = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    pages
        .flat_map(|file| page(&file.path, &file.text))
        .collect()
}

fn page(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = prose(text);
    let titles: Vec<usize> = lines
        .iter()
        .filter(|(_, line)| line.starts_with("# "))
        .map(|(at, _)| *at)
        .collect();
    match titles.as_slice() {
        [_] if text.starts_with("# ") => {}
        [] => findings.push(Finding::new(path, 1, "has no title")),
        [first] => findings.push(Finding::new(path, *first, "the title comes first")),
        [_, second, ..] => findings.push(Finding::new(path, *second, "has a second title")),
    }
    for pair in lines.windows(2) {
        let ((at, line), (next_at, next)) = (pair[0], pair[1]);
        if next_at == at + 1 && continues(line, next) {
            findings.push(Finding::new(
                path,
                at,
                "a sentence goes on in the next line",
            ));
        }
    }
    for (at, line) in &lines {
        if !line.starts_with(['#', '|']) && has_two_sentences(line) {
            findings.push(Finding::new(path, *at, "more than one sentence in a line"));
        }
    }
    findings
}

/// Lines outside of code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        if is_fence {
            in_code = !in_code;
        }
        if !in_code && !is_fence {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// Whether a paragraph's line breaks within a sentence.
fn continues(line: &str, next: &str) -> bool {
    let is_text = |line: &str| {
        let first = line.chars().next();
        first.is_some_and(|c| !"#|<>-*+![".contains(c)) && !is_numbered(line)
    };
    let is_paragraph = |line: &str| is_text(line) || is_item(line);
    let ends = [".", "!", "?", ":", ";", ".)", ".*", ".`", "  "];
    is_paragraph(line) && is_text(next) && !ends.iter().any(|end| line.ends_with(end))
}

fn is_item(line: &str) -> bool {
    line.starts_with("- ") || line.starts_with("* ") || is_numbered(line)
}

fn is_numbered(line: &str) -> bool {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    digits > 0 && line[digits..].starts_with(". ")
}

fn has_two_sentences(line: &str) -> bool {
    let line = without_code(line);
    let line = match is_numbered(line.trim_start()) {
        true => line
            .split_once(". ")
            .map_or("", |(_, rest)| rest)
            .to_owned(),
        false => line,
    };
    line.match_indices([' ']).any(|(at, _)| {
        let (before, after) = (
            line[..at].trim_end_matches(['*', '_', '"', ')']),
            &line[at + 1..],
        );
        let ends = before.ends_with(['.', '!', '?']);
        let is_short = ABBREVIATIONS.iter().any(|short| before.ends_with(short));
        let starts = after.trim_start_matches(['*', '_', '"', '(', '[']);
        ends && !is_short && starts.starts_with(|c: char| c.is_uppercase() || c == '`')
    })
}

/// A code span may hold any signs; one letter stands for it.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let text = |(at, part): (usize, &str)| match at % 2 {
        0 => part.to_owned(),
        _ => "`c`".to_owned(),
    };
    parts.map(text).collect()
}

/// The text between single backquotes.
pub fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &[(usize, &str)]) {
        let found = page("a.md", text);
        let found: Vec<(usize, &str)> = found
            .iter()
            .map(|finding| (finding.line, finding.words.as_str()))
            .collect();
        assert_eq!(found, want, "{text}");
    }

    #[test]
    fn titles() {
        check("# One\n\nText.\n\n## Part\n", &[]);
        check("Text.\n", &[(1, "has no title")]);
        check("Text.\n\n# Late\n", &[(3, "the title comes first")]);
        check("# One\n\n# Two\n", &[(3, "has a second title")]);
        check("# One\n\n```\n# a comment of a shell\n```\n", &[]);
    }

    #[test]
    fn a_line_with_two_sentences() {
        let two = "more than one sentence in a line";
        check("# T\n\nFirst. Second.\n", &[(3, two)]);
        check("# T\n\n- Is it? It is.\n", &[(3, two)]);
        check("# T\n\nFirst. `second` is code.\n", &[(3, two)]);
        check(
            "# T\n\nFirst, e.g. Second, and `a. B` too, version 1.2.\n",
            &[],
        );
        check("# T\n\n1. First.\n2. Second.\n", &[]);
        check("# T\n\n| First. Second. | Third. |\n", &[]);
    }

    #[test]
    fn a_sentence_over_two_lines() {
        let broken = "a sentence goes on in the next line";
        check("# T\n\nA sentence\nthat goes on.\n", &[(3, broken)]);
        check("# T\n\n- An item\n  that goes on.\n", &[(3, broken)]);
        check("# T\n\nOne.\nTwo.\n\n- an item\n- another\n", &[]);
    }
}

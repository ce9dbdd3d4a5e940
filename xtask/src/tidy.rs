//! The house rules that a program can check. `STYLE.md` says why they are there.
//!
//! Every check is a function from a [`Tree`] to findings, and has a test with a bad example.

mod imports;
mod limits;
mod map;
mod markdown;
mod proofs;
mod reach;
mod safety;
mod shells;
mod tree;
mod words;

use std::path::Path;

use crate::error::{Result, XtaskError};
use tree::Tree;

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    /// From 1; 0 if the whole file is meant.
    pub line: usize,
    pub words: String,
}

impl Finding {
    fn new(path: &str, line: usize, words: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            words: words.into(),
        }
    }
}

/// Prints what is broken.
///
/// # Errors
/// Anything is.
pub fn check_and_print(root: &Path) -> Result<()> {
    let findings = check(root)?;
    for finding in &findings {
        println!("{}:{}: {}", finding.path, finding.line, finding.words);
    }
    match findings.len() {
        0 => {
            println!("the house is tidy");
            Ok(())
        }
        findings => Err(XtaskError::Untidy { findings }),
    }
}

fn check(root: &Path) -> Result<Vec<Finding>> {
    let tree = Tree::read(root)?;
    let mut findings = imports::check(&imports::edges(root)?);
    for rule in [
        Tree::unreadable,
        shells::check,
        safety::check,
        limits::check,
        words::check,
        reach::check,
        map::check,
        markdown::check,
        proofs::check,
    ] {
        findings.extend(rule(&tree));
    }
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let findings = check(&root).unwrap();
        let lines: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.words))
            .collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}

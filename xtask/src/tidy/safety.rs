//! Unsafe code has an address and a reason.

use super::Finding;
use super::tree::Tree;
use crate::source::{Next, Source};

/// Files, and folders that end with a slash.
const UNSAFE_FILES: &[&str] = &[
    "runtime/src/kernels.rs",
    "runtime/src/kernels/",
    "runtime/src/abi.rs",
    "runtime/src/heap.rs",
    // Borrowed work given to other threads, and Wasm's waiting at an address.
    "runtime/src/team/meeting.rs",
    "runtime/src/team/bell.rs",
    "worker/src/engine/module.rs",
    // An allocator that refuses, to see what is made of it.
    "runtime/tests/refused_memory.rs",
];
const REASON: &str = "SAFETY:";
/// Lines of one statement that may stand between the reason and the word `unsafe`.
const STATEMENT_LINES: usize = 3;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let listed = UNSAFE_FILES.iter().any(|place| match place.ends_with('/') {
            true => source.path.starts_with(place),
            false => source.path == *place,
        });
        for (at, word) in source.words.iter().enumerate() {
            if word.text != "unsafe" {
                continue;
            }
            if !listed {
                findings.push(Finding::new(
                    &source.path,
                    word.line,
                    "unsafe outside its files",
                ));
            }
            let is_impl = source
                .words
                .get(at + 1)
                .is_some_and(|next| next.text == "impl");
            let needs_reason = word.next == Next::Brace || (word.next == Next::Word && is_impl);
            if needs_reason && !has_reason(source, word.line) {
                let words = "an unsafe block without a SAFETY comment";
                findings.push(Finding::new(&source.path, word.line, words));
            }
        }
    }
    findings
}

/// Whether the reason stands beside the block or in the comment above its statement.
fn has_reason(source: &Source, line: usize) -> bool {
    let text = |line: usize| source.lines[line - 1].trim();
    if text(line).contains(REASON) {
        return true;
    }
    let mut above = line - 1;
    let mut skipped = 0;
    while above > 0 && !text(above).starts_with("//") {
        let ends_before = [";", "}", "{"].iter().any(|end| text(above).ends_with(end));
        if ends_before || text(above).is_empty() || skipped == STATEMENT_LINES {
            return false;
        }
        skipped += 1;
        above -= 1;
    }
    while above > 0 && text(above).starts_with("//") {
        if text(above).contains(REASON) {
            return true;
        }
        above -= 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, want: &[(usize, &str)]) {
        let found = super::check(&Tree::sample(&[(path, text)]));
        let found: Vec<(usize, &str)> = found
            .iter()
            .map(|finding| (finding.line, finding.words.as_str()))
            .collect();
        assert_eq!(found, want, "{text}");
    }

    const KERNEL: &str = "runtime/src/kernels/scalar.rs";
    const BARE: &str = "an unsafe block without a SAFETY comment";

    #[test]
    fn unsafe_elsewhere_is_found() {
        let text = "// SAFETY: none.\nunsafe impl Send for A {}";
        check(
            "format/src/ids.rs",
            text,
            &[(2, "unsafe outside its files")],
        );
    }

    #[test]
    fn a_block_without_a_reason_is_found() {
        check(KERNEL, "fn a() {\n    unsafe { b() }\n}", &[(2, BARE)]);
        check(
            KERNEL,
            "// SAFETY: of another.\nlet a = 1;\nunsafe { b() };",
            &[(3, BARE)],
        );
        check(KERNEL, "// Fast.\nlet a = unsafe { b() };", &[(2, BARE)]);
        check(KERNEL, "unsafe impl Send for A {}", &[(1, BARE)]);
    }

    #[test]
    fn a_reason_above_or_beside_is_enough() {
        check(
            KERNEL,
            "// SAFETY: held,\n// as shown.\nlet a =\n    unsafe { b() };",
            &[],
        );
        check(KERNEL, "unsafe { b() } // SAFETY: asserted above.", &[]);
        check(
            KERNEL,
            "#[unsafe(no_mangle)]\nunsafe extern \"C\" fn a() {}",
            &[],
        );
    }
}

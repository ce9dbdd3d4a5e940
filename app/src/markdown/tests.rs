//! Expected trees are written by hand after the CommonMark text, except where the module docs
//! say that we differ: no HTML, no links, no images, and every line end is kept.

use super::Block::{Code, Heading, Paragraph, Quote, Rule};
use super::Span::{Break, Emphasis, Strong};
use super::{Block, Item, List, Span, parse};

fn text(text: &str) -> Span {
    Span::Text(text.into())
}

fn code(text: &str) -> Span {
    Span::Code(text.into())
}

fn item(words: &str) -> Item {
    with(words, Vec::new())
}

fn with(words: &str, inner: Vec<List>) -> Item {
    Item {
        spans: vec![text(words)],
        inner,
    }
}

fn list(start: Option<u64>, items: Vec<Item>) -> List {
    List { start, items }
}

fn block(language: &str, text: &str) -> Block {
    Code {
        language: language.into(),
        text: text.into(),
    }
}

#[test]
fn blocks() {
    let cases = [
        ("", vec![]),
        ("\n \n", vec![]),
        (
            "one\ntwo\n\nthree",
            vec![
                Paragraph(vec![text("one"), Break, text("two")]),
                Paragraph(vec![text("three")]),
            ],
        ),
        (
            "## Title ##\ntext",
            vec![
                Heading(2, vec![text("Title")]),
                Paragraph(vec![text("text")]),
            ],
        ),
        (
            "#hash\n####### seven",
            vec![Paragraph(vec![text("#hash"), Break, text("####### seven")])],
        ),
        (
            "```rust\nlet a = 1;\n\n  b\n```\nafter",
            vec![
                block("rust", "let a = 1;\n\n  b"),
                Paragraph(vec![text("after")]),
            ],
        ),
        // Still being written: the fence is open.
        ("~~~\n# not a title", vec![block("", "# not a title")]),
        ("````\n```\n````", vec![block("", "```")]),
        ("> a\n> b", vec![Quote(vec![text("a"), Break, text("b")])]),
        (
            "a\n\n---\n* * *",
            vec![Paragraph(vec![text("a")]), Rule, Rule],
        ),
        (
            "2024 was\n-5 degrees",
            vec![Paragraph(vec![text("2024 was"), Break, text("-5 degrees")])],
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(parse(source), expected, "{source:?}");
    }
}

#[test]
fn lists() {
    let cases = [
        (
            "- a\n- b\n  - c\n\n- d\nend",
            vec![
                Block::List(list(
                    None,
                    vec![
                        item("a"),
                        with("b", vec![list(None, vec![item("c")])]),
                        item("d"),
                    ],
                )),
                Paragraph(vec![text("end")]),
            ],
        ),
        (
            "3. three\n   - a\n     1. deep\n   - b\n4) four",
            vec![Block::List(list(
                Some(3),
                vec![
                    with(
                        "three",
                        vec![list(
                            None,
                            vec![
                                with("a", vec![list(Some(1), vec![item("deep")])]),
                                item("b"),
                            ],
                        )],
                    ),
                    item("four"),
                ],
            ))],
        ),
        (
            "- a\n1. b",
            vec![
                Block::List(list(None, vec![item("a")])),
                Block::List(list(Some(1), vec![item("b")])),
            ],
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(parse(source), expected, "{source:?}");
    }
}

#[test]
fn spans() {
    let cases = [
        (
            "a **b** c",
            vec![text("a "), Strong(vec![text("b")]), text(" c")],
        ),
        (
            "*a* _b_ __c__",
            vec![
                Emphasis(vec![text("a")]),
                text(" "),
                Emphasis(vec![text("b")]),
                text(" "),
                Strong(vec![text("c")]),
            ],
        ),
        ("***a***", vec![Strong(vec![Emphasis(vec![text("a")])])]),
        (
            "**a *b* c**",
            vec![Strong(vec![
                text("a "),
                Emphasis(vec![text("b")]),
                text(" c"),
            ])],
        ),
        (
            "`a *b*` and ``c ` d``",
            vec![code("a *b*"), text(" and "), code("c ` d")],
        ),
        (
            "snake_case_name 2 * 3 * 4",
            vec![text("snake_case_name 2 * 3 * 4")],
        ),
        ("open ** and `tick", vec![text("open ** and `tick")]),
        ("**open", vec![text("**open")]),
        (r"\*not\* \a", vec![text(r"*not* \a")]),
        ("****", vec![text("****")]),
        ("**é** ü", vec![Strong(vec![text("é")]), text(" ü")]),
    ];
    for (source, expected) in cases {
        let blocks = parse(&format!("x {source}"));
        let mut with_lead = vec![text("x ")];
        with_lead.extend(expected);
        let joined = join(with_lead);
        assert_eq!(blocks, [Paragraph(joined)], "{source:?}");
    }
}

/// Neighbouring texts are one text.
fn join(spans: Vec<Span>) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match (out.last_mut(), span) {
            (Some(Span::Text(before)), Span::Text(more)) => before.push_str(&more),
            (_, span) => out.push(span),
        }
    }
    out
}

/// X13 of the users' list: script and remote images in a model's answer.
#[test]
fn html_links_and_images_stay_text() {
    for source in [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![pixel](https://example.org/p.png?q=secret)",
        "[click](javascript:alert(1))",
        "<https://example.org>",
        "https://example.org/?q=secret",
    ] {
        assert_eq!(parse(source), [Paragraph(vec![text(source)])], "{source:?}");
    }
}

/// Every prefix of a text parses, and an append-only text keeps its finished blocks.
#[test]
fn a_growing_text_keeps_what_is_finished() {
    let source = "# T\n\nHello **big** world\n\n```c\nx*y\n```\n\n- a\n- `b`\n\nend";
    let whole = parse(source);
    for (at, _) in source.char_indices() {
        let part = parse(&source[..at]);
        let finished = part.len().saturating_sub(1);
        assert_eq!(part[..finished], whole[..finished], "{:?}", &source[..at]);
    }
}

/// The work is linear: a quadratic scan of these would not end within the test's patience.
#[test]
fn hostile_text_is_cheap_and_kept() {
    for unit in [
        "**a ", "*a ", "_a ", "`a ``b ", "[(<", "\\", "**a*b_c`", "- ", "> ", "#",
    ] {
        let source = unit.repeat(100_000);
        assert!(!parse(&source).is_empty(), "{unit:?}");
    }
}

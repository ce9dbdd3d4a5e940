//! A small, safe part of Markdown, as plain data.
//!
//! What a model writes is never trusted: there is no variant for HTML, images or links, so none
//! can come out. Their source stands in the text as it was written, address included, and
//! nothing is fetched. Reading order: `blocks` (lines), `inline` (marks within a line).

mod blocks;
mod inline;

pub use blocks::parse;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    Paragraph(Vec<Span>),
    /// Level 1 to 6.
    Heading(u8, Vec<Span>),
    Code {
        language: String,
        text: String,
    },
    List {
        /// The first number, if the list is numbered.
        start: Option<u64>,
        items: Vec<Item>,
    },
    Quote(Vec<Span>),
    Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// 0 for the outermost level; at most [`DEPTH_MAX`].
    pub depth: u8,
    pub spans: Vec<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    Text(String),
    Code(String),
    Strong(Vec<Span>),
    Emphasis(Vec<Span>),
    Break,
}

/// Deeper items are drawn at this depth.
pub const DEPTH_MAX: u8 = 3;

#[cfg(test)]
mod tests;

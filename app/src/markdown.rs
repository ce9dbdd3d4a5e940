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
    List(List),
    Quote(Vec<Span>),
    Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The first number, if the list is numbered.
    pub start: Option<u64>,
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub spans: Vec<Span>,
    /// Lists within the item, down to [`DEPTH_MAX`].
    pub inner: Vec<List>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    Text(String),
    Code(String),
    Strong(Vec<Span>),
    Emphasis(Vec<Span>),
    Break,
}

/// Items further in than this are taken to be this deep.
pub const DEPTH_MAX: u8 = 3;

#[cfg(test)]
mod tests;

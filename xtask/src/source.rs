//! A Rust file as tokens, so that words in strings and comments are not mistaken for code.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// One Rust file, read.
pub struct Source {
    /// Below the checkout, with forward slashes.
    pub path: String,
    pub lines: Vec<String>,
    pub words: Vec<Word>,
    pub functions: Vec<Function>,
    pub modules: Vec<Module>,
    pub types: Vec<Named>,
}

/// An identifier or keyword.
pub struct Word {
    pub text: String,
    /// From 1.
    pub line: usize,
    /// What comes after it.
    pub next: Next,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    Brace,
    Parenthesis,
    Word,
    Other,
}

pub struct Function {
    pub name: String,
    /// First line is that of `fn`, the last that of the closing brace; equal without a body.
    pub first: usize,
    pub last: usize,
    /// Words between `impl` or `trait` and its brace; empty for a free function.
    pub owner: Vec<String>,
}

/// A `mod name;` whose text lies in another file.
pub struct Module {
    /// Inline modules around it, outermost first.
    pub within: Vec<String>,
    pub name: String,
    /// From `#[path = "..."]`.
    pub path: Option<String>,
}

/// A struct, enum, union, trait or type alias.
pub struct Named {
    pub name: String,
    pub line: usize,
}

impl Source {
    /// # Errors
    /// The line at which the text stops being Rust.
    pub fn parse(path: &str, text: &str) -> Result<Source, usize> {
        let tokens: TokenStream = text
            .parse()
            .map_err(|error: proc_macro2::LexError| error.span().start().line)?;
        let mut source = Source {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            words: Vec::new(),
            functions: Vec::new(),
            modules: Vec::new(),
            types: Vec::new(),
        };
        source.walk(tokens, &mut Vec::new(), &[]);
        Ok(source)
    }

    fn walk(&mut self, tokens: TokenStream, within: &mut Vec<String>, owner: &[String]) {
        let level: Vec<TokenTree> = tokens.into_iter().collect();
        // What the next brace at this level belongs to, as far as its head has been seen.
        let mut owner_of_brace: Option<Vec<String>> = None;
        let mut module_of_brace: Option<String> = None;
        for (at, token) in level.iter().enumerate() {
            match token {
                TokenTree::Ident(ident) => {
                    let text = ident.to_string();
                    if let Some(words) = &mut owner_of_brace {
                        words.push(text.clone());
                    }
                    match text.as_str() {
                        "fn" => self.function(&level, at, owner),
                        "mod" => module_of_brace = self.module(&level, at, within),
                        "struct" | "enum" | "union" | "trait" | "type" => self.named(&level, at),
                        _ => {}
                    }
                    if (text == "impl" || text == "trait") && starts_item(&level, at) {
                        owner_of_brace = Some(Vec::new());
                    }
                    self.words.push(Word {
                        text,
                        line: ident.span().start().line,
                        next: next_of(&level, at),
                    });
                }
                TokenTree::Group(group) => {
                    let is_brace = group.delimiter() == Delimiter::Brace;
                    let owner = match is_brace {
                        true => owner_of_brace.take(),
                        false => None,
                    };
                    let module = match is_brace {
                        true => module_of_brace.take(),
                        false => None,
                    };
                    let named = module.is_some();
                    within.extend(module);
                    self.walk(group.stream(), within, owner.as_deref().unwrap_or(&[]));
                    if named {
                        within.pop();
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn function(&mut self, level: &[TokenTree], at: usize, owner: &[String]) {
        let Some(TokenTree::Ident(name)) = level.get(at + 1) else {
            return; // A function pointer's type, or a macro's pattern.
        };
        let first = level[at].span().start().line;
        let last = body_after(level, at).map_or(first, |body| body.span_close().end().line);
        self.functions.push(Function {
            name: name.to_string(),
            first,
            last,
            owner: owner.to_vec(),
        });
    }

    /// Notes `mod name;`, or gives the name of an inline module.
    fn module(&mut self, level: &[TokenTree], at: usize, within: &[String]) -> Option<String> {
        let Some(TokenTree::Ident(name)) = level.get(at + 1) else {
            return None;
        };
        match level.get(at + 2) {
            Some(TokenTree::Punct(end)) if end.as_char() == ';' => {
                self.modules.push(Module {
                    within: within.to_vec(),
                    name: name.to_string(),
                    path: path_before(level, at),
                });
                None
            }
            _ => Some(name.to_string()),
        }
    }

    fn named(&mut self, level: &[TokenTree], at: usize) {
        if let Some(TokenTree::Ident(name)) = level.get(at + 1) {
            self.types.push(Named {
                name: name.to_string(),
                line: name.span().start().line,
            });
        }
    }
}

fn next_of(level: &[TokenTree], at: usize) -> Next {
    match level.get(at + 1) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => Next::Brace,
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            Next::Parenthesis
        }
        Some(TokenTree::Ident(_)) => Next::Word,
        _ => Next::Other,
    }
}

/// An `impl` begins an item unless it stands in a type, as in `-> impl Iterator`.
fn starts_item(level: &[TokenTree], at: usize) -> bool {
    match at.checked_sub(1).map(|before| &level[before]) {
        None => true,
        Some(TokenTree::Group(_)) => true,
        Some(TokenTree::Punct(punct)) => punct.as_char() == ';',
        Some(TokenTree::Ident(word)) => {
            let word = word.to_string();
            ["pub", "unsafe", "default", "auto"].contains(&word.as_str())
        }
        Some(TokenTree::Literal(_)) => false,
    }
}

/// The braces that end a function's head; none if it ends with a semicolon.
fn body_after(level: &[TokenTree], at: usize) -> Option<&Group> {
    for token in &level[at..] {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return Some(group),
            TokenTree::Punct(punct) if punct.as_char() == ';' => return None,
            _ => {}
        }
    }
    None
}

/// The string of a `#[path = "..."]` in front of `mod` or `pub mod`.
fn path_before(level: &[TokenTree], at: usize) -> Option<String> {
    level[..at].iter().rev().take(4).find_map(|token| {
        let TokenTree::Group(group) = token else {
            return None;
        };
        let inside: Vec<TokenTree> = group.stream().into_iter().collect();
        match inside.as_slice() {
            [
                TokenTree::Ident(name),
                TokenTree::Punct(_),
                TokenTree::Literal(value),
            ] if name == "path" => Some(value.to_string().trim_matches('"').to_owned()),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
//! unsafe in a comment
mod outer;
pub mod inline {
    #[path = "elsewhere.rs"]
    mod inner;
}
struct Plain(u8);
impl<T> Walk for Plain {
    fn step(&self) -> impl Iterator<Item = u8> {
        let text = "async fn unsafe";
        text.bytes()
    }
}
fn free() {}
"#;

    #[test]
    fn strings_and_comments_are_no_words() {
        let source = Source::parse("a.rs", TEXT).unwrap();
        for word in ["unsafe", "async"] {
            assert!(
                source.words.iter().all(|found| found.text != word),
                "{word}"
            );
        }
    }

    #[test]
    fn functions_know_their_lines_and_owners() {
        let source = Source::parse("a.rs", TEXT).unwrap();
        let seen: Vec<_> = source
            .functions
            .iter()
            .map(|f| {
                (
                    f.name.as_str(),
                    f.first,
                    f.last,
                    f.owner.contains(&"Plain".to_owned()),
                )
            })
            .collect();
        assert_eq!(seen, [("step", 10, 13, true), ("free", 15, 15, false)]);
    }

    #[test]
    fn modules_know_where_they_stand() {
        let source = Source::parse("a.rs", TEXT).unwrap();
        let seen: Vec<_> = source
            .modules
            .iter()
            .map(|m| (m.within.join("/"), m.name.as_str(), m.path.as_deref()))
            .collect();
        let want = [
            (String::new(), "outer", None),
            ("inline".to_owned(), "inner", Some("elsewhere.rs")),
        ];
        assert_eq!(seen, want);
    }

    #[test]
    fn broken_text_names_its_line() {
        assert_eq!(Source::parse("a.rs", "fn a() {\n'\n").err(), Some(2));
    }
}

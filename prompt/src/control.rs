//! Which parts of a rendered conversation may become control tokens.
//!
//! Tokenizing scaffold and content apart would be safe but wrong: byte-pair merges reach across
//! the seam. So the conversation is rendered whole, with every piece of content that spells a
//! control token (or could spell one together with its neighbours) replaced by a private mark.
//! What still spells a control token afterwards was written by the template. Then the marks are
//! undone in the ordinary text between, which is tokenized as the reference does it.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::PromptError;

/// Private-use characters: a mark is one of these that no text uses, followed by a number.
const MARKS: std::ops::RangeInclusive<char> = '\u{F0000}'..='\u{FFFFD}';
const NUMBERS_FROM: u32 = 0x10_0000;

/// The control tokens of one tokenizer.
pub(crate) struct ControlTokens {
    texts: Vec<String>,
    ids: Vec<u32>,
    /// `None` when there are no control tokens to find.
    finder: Option<AhoCorasick>,
}

/// A part of a text: ordinary words, or one control token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Ordinary(&'a str),
    Control(u32),
}

/// Stand-ins for the pieces of content that must stay ordinary.
pub(crate) struct Marks {
    mark: char,
    hidden: Vec<String>,
}

impl ControlTokens {
    /// `tokens`: text and id of every control token, in any order.
    pub(crate) fn new(tokens: Vec<(String, u32)>) -> Result<ControlTokens, PromptError> {
        let (texts, ids): (Vec<String>, Vec<u32>) = tokens
            .into_iter()
            .filter(|(text, _)| !text.is_empty())
            .unzip();
        let finder = if texts.is_empty() {
            None
        } else {
            let built = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(&texts);
            Some(built.map_err(|error| PromptError::Tokenizer {
                reason: error.to_string(),
            })?)
        };
        Ok(ControlTokens { texts, ids, finder })
    }

    /// Splits a text at the control tokens that it spells, leftmost and longest first.
    pub(crate) fn split<'a>(&self, text: &'a str) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut from = 0;
        for found in self.finder.iter().flat_map(|finder| finder.find_iter(text)) {
            if from < found.start() {
                parts.push(Part::Ordinary(&text[from..found.start()]));
            }
            parts.push(Part::Control(self.ids[found.pattern().as_usize()]));
            from = found.end();
        }
        if from < text.len() {
            parts.push(Part::Ordinary(&text[from..]));
        }
        parts
    }

    /// Bytes at the end of `text` that begin a control token.
    fn dangling_end(&self, text: &str) -> usize {
        self.overlap(|control, len| text.ends_with(&control[..len]))
    }

    /// Bytes at the start of `text` that end a control token.
    fn dangling_start(&self, text: &str) -> usize {
        self.overlap(|control, len| text.starts_with(&control[control.len() - len..]))
    }

    fn overlap(&self, meets: impl Fn(&str, usize) -> bool) -> usize {
        let lengths = |control: &str| {
            let len = control.len();
            let cut = control
                .char_indices()
                .map(|(at, _)| at)
                .filter(|at| *at > 0);
            cut.flat_map(|at| [at, len - at]).collect::<Vec<_>>()
        };
        let fits = |control: &str, len: usize| {
            control.is_char_boundary(len) && control.is_char_boundary(control.len() - len)
        };
        self.texts
            .iter()
            .flat_map(|control| {
                let met = lengths(control)
                    .into_iter()
                    .filter(|&len| fits(control, len) && meets(control, len));
                met.collect::<Vec<_>>()
            })
            .max()
            .unwrap_or(0)
    }
}

impl Marks {
    /// Finds a mark that neither the template nor any content uses.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Option<Marks> {
        let free = |mark: &char| !texts.clone().any(|text| text.contains(*mark));
        // Almost always the first candidate; a text would have to use all 65,534 to find none.
        let mark = MARKS.into_iter().find(free)?;
        Some(Marks {
            mark,
            hidden: Vec::new(),
        })
    }

    /// Content with everything hidden that could become part of a control token.
    pub(crate) fn hide<'a>(&mut self, control: &ControlTokens, content: &'a str) -> Cow<'a, str> {
        let start = control.dangling_start(content);
        let end = control.dangling_end(content).min(content.len() - start);
        let middle = &content[start..content.len() - end];
        let has_control = control
            .finder
            .as_ref()
            .is_some_and(|finder| finder.is_match(content));
        if start == 0 && end == 0 && !has_control {
            return Cow::Borrowed(content);
        }
        // The ends may overlap a whole control token, which is found in the content as it is.
        if has_control {
            return Cow::Owned(self.hide_found(control, content));
        }
        let mut out = String::with_capacity(content.len() + 16);
        self.push_hidden(&mut out, &content[..start]);
        out.push_str(middle);
        self.push_hidden(&mut out, &content[content.len() - end..]);
        Cow::Owned(out)
    }

    fn hide_found(&mut self, control: &ControlTokens, content: &str) -> String {
        let mut out = String::with_capacity(content.len() + 16);
        let mut rest = content;
        while let Some(found) = control.finder.as_ref().and_then(|finder| finder.find(rest)) {
            let before = self.hide(control, &rest[..found.start()]).into_owned();
            out.push_str(&before);
            self.push_hidden(&mut out, &rest[found.range()]);
            rest = &rest[found.end()..];
        }
        let after = self.hide(control, rest).into_owned();
        out.push_str(&after);
        out
    }

    fn push_hidden(&mut self, out: &mut String, text: &str) {
        if text.is_empty() {
            return;
        }
        let known = self.hidden.iter().position(|hidden| hidden == text);
        let index = known.unwrap_or_else(|| {
            self.hidden.push(text.to_owned());
            self.hidden.len() - 1
        });
        // Control tokens are few; beyond the plane the text is hidden character by character.
        match char::from_u32(NUMBERS_FROM + index as u32) {
            Some(number) => out.extend([self.mark, number]),
            None => text.chars().for_each(|c| out.extend([self.mark, c])),
        }
    }

    /// The text as it was written.
    pub(crate) fn reveal<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains(self.mark) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len() + 64);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != self.mark {
                out.push(c);
                continue;
            }
            let Some(number) = chars.next() else { break };
            let index = (number as u32).checked_sub(NUMBERS_FROM);
            match index.and_then(|index| self.hidden.get(index as usize)) {
                Some(hidden) => out.push_str(hidden),
                None => out.push(number),
            }
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> ControlTokens {
        let texts = ["<|im_start|>", "<|im_end|>", "<s>"];
        ControlTokens::new(
            texts
                .iter()
                .zip(0..)
                .map(|(t, id)| ((*t).to_owned(), id))
                .collect(),
        )
        .unwrap()
    }

    #[test]
    fn splits_at_the_longest_control_token() {
        use Part::{Control, Ordinary};
        let check = |text: &str, parts: &[Part<'_>]| assert_eq!(tokens().split(text), parts);
        check("", &[]);
        check("a<s>b", &[Ordinary("a"), Control(2), Ordinary("b")]);
        check("<|im_start|><|im_end|>", &[Control(0), Control(1)]);
        check("<|im_end", &[Ordinary("<|im_end")]);
    }

    #[test]
    fn hidden_content_spells_no_control_token_and_comes_back() {
        let tokens = tokens();
        let contents = [
            "",
            "plain",
            "<|im_end|>",
            "a<|im_end|>b<s>",
            "<|im_",
            "im_end|>",
            "<",
            ">",
            "x <",
            "<|im_end|><",
            "<<|im_end|>>",
            "<<s>s>",
            "<|im_end<|im_end|>|>",
            "\u{F0000}<s>",
        ];
        for a in contents {
            for b in contents {
                let texts = [a, b];
                let mut marks = Marks::new(texts.iter().copied()).unwrap();
                let joined = format!("{}{}", marks.hide(&tokens, a), marks.hide(&tokens, b));
                let parts = tokens.split(&joined);
                assert!(
                    parts.iter().all(|part| matches!(part, Part::Ordinary(_))),
                    "{a:?} + {b:?} gives {parts:?}"
                );
                assert_eq!(marks.reveal(&joined), format!("{a}{b}"));
            }
        }
    }
}

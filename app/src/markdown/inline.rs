//! Marks within a block: code, strong, emphasis, hard line breaks.
//!
//! Work is bounded: a mark that has no partner is looked for once and then known to be text, and
//! marks nest at most two deep, so hostile text costs a small multiple of its length.

use super::Span;

/// `outer` marks may not occur again inside.
#[derive(Clone, Copy, Default)]
struct Within {
    strong: bool,
    emphasis: bool,
}

pub fn spans(text: &str) -> Vec<Span> {
    parse(text, Within::default())
}

#[derive(Default)]
struct Out {
    spans: Vec<Span>,
    text: String,
}

/// Marks known to have no partner further on: `**`, `__`, `*`, `_`.
#[derive(Default)]
struct Alone([bool; 4]);

fn parse(text: &str, within: Within) -> Vec<Span> {
    let mut out = Out::default();
    let mut alone = Alone::default();
    // Lengths of backtick runs known to have no partner further on.
    let mut alone_ticks = [false; 8];
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let taken = match c {
            '\\' => escaped(rest, &mut out),
            '\n' => line_end(&mut out),
            '`' => code(rest, &mut alone_ticks, &mut out),
            '*' | '_' => marked(text, at, within, &mut alone, &mut out),
            _ => 0,
        };
        if taken == 0 {
            out.text.push(c);
            at += c.len_utf8();
        } else {
            at += taken;
        }
    }
    out.flush();
    out.spans
}

impl Out {
    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.spans.push(Span::Text(std::mem::take(&mut self.text)));
        }
    }

    fn push(&mut self, span: Span) {
        self.flush();
        self.spans.push(span);
    }
}

/// A backslash makes a punctuation mark plain.
fn escaped(rest: &str, out: &mut Out) -> usize {
    match rest[1..].chars().next() {
        Some(c) if c.is_ascii_punctuation() => {
            out.text.push(c);
            2
        }
        _ => 0,
    }
}

/// Chat text means its line ends, so each is kept.
fn line_end(out: &mut Out) -> usize {
    let len = out.text.trim_end_matches(' ').len();
    out.text.truncate(len);
    out.push(Span::Break);
    1
}

fn code(rest: &str, alone: &mut [bool; 8], out: &mut Out) -> usize {
    let len = run(rest, b'`');
    let Some(known) = alone.get_mut(len) else {
        return plain(rest, len, out);
    };
    if *known {
        return plain(rest, len, out);
    }
    let mut at = len;
    while let Some(next) = rest[at..].find('`') {
        at += next;
        let closing = run(&rest[at..], b'`');
        if closing == len {
            let inside = &rest[len..at];
            let trimmed = inside
                .strip_prefix(' ')
                .and_then(|inside| inside.strip_suffix(' '))
                .filter(|inside| !inside.trim().is_empty())
                .unwrap_or(inside);
            out.push(Span::Code(trimmed.replace('\n', " ")));
            return at + len;
        }
        at += closing;
    }
    *known = true;
    plain(rest, len, out)
}

/// Takes `len` bytes as they are.
fn plain(rest: &str, len: usize, out: &mut Out) -> usize {
    out.text.push_str(&rest[..len]);
    len
}

fn marked(text: &str, at: usize, within: Within, alone: &mut Alone, out: &mut Out) -> usize {
    let rest = &text[at..];
    let mark = rest.as_bytes()[0];
    let len = run(rest, mark);
    let underscore = mark == b'_';
    // `snake_case` is a word, not a mark.
    let inside_word = underscore
        && text[..at]
            .chars()
            .next_back()
            .is_some_and(char::is_alphanumeric);
    let opens = rest[len..]
        .chars()
        .next()
        .is_some_and(|c| !c.is_whitespace());
    if !opens || inside_word || len > 3 {
        return plain(rest, len, out);
    }
    let want = if len >= 2 && !within.strong { 2 } else { 1 };
    let slot = usize::from(underscore) + if want == 1 { 2 } else { 0 };
    let barred = if want == 2 {
        within.strong
    } else {
        within.emphasis
    };
    if barred || alone.0[slot] {
        return plain(rest, len, out);
    }
    let Some(end) = partner(rest, want, mark) else {
        alone.0[slot] = true;
        return plain(rest, len, out);
    };
    let inner = &rest[want..end];
    let nested = if want == 2 {
        Span::Strong(parse(
            inner,
            Within {
                strong: true,
                ..within
            },
        ))
    } else {
        Span::Emphasis(parse(
            inner,
            Within {
                emphasis: true,
                ..within
            },
        ))
    };
    out.push(nested);
    end + want
}

/// Where the closing mark of `want` bytes begins: after something other than white space, and,
/// for underscores, not before a letter. Code in between is stepped over.
fn partner(rest: &str, want: usize, mark: u8) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = want;
    while at < bytes.len() {
        if bytes[at] != mark {
            at += 1;
            continue;
        }
        let len = run(&rest[at..], mark);
        let after_space = bytes[at - 1].is_ascii_whitespace();
        let before_word = mark == b'_'
            && rest[at + len..]
                .chars()
                .next()
                .is_some_and(char::is_alphanumeric);
        // Of a longer run the last marks close the outer pair.
        if len >= want && (want == 2 || len != 2) && !after_space && !before_word {
            return (at + len > 2 * want).then_some(at + len - want);
        }
        at += len;
    }
    None
}

fn run(text: &str, mark: u8) -> usize {
    text.bytes().take_while(|&b| b == mark).count()
}

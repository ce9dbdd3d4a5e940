//! Lines into blocks. One pass; an unfinished block is taken as it stands, so a text that is
//! still being written parses at every length.

use super::inline::spans;
use super::{Block, DEPTH_MAX, Item, List};

pub fn parse(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open = Open::Nothing;
    for line in text.lines() {
        open = step(open, line, &mut blocks);
    }
    close(open, &mut blocks);
    blocks
}

/// The block that the next line may still belong to.
enum Open {
    Nothing,
    Paragraph(String),
    Quote(String),
    Code(Fenced),
    List(Vec<Row>),
}

/// An item before it is known which list it belongs to.
struct Row {
    depth: u8,
    number: Option<u64>,
    text: String,
}

struct Fenced {
    mark: char,
    len: usize,
    language: String,
    lines: Vec<String>,
}

fn step(open: Open, line: &str, blocks: &mut Vec<Block>) -> Open {
    if let Open::Code(code) = open {
        return step_in_code(code, line, blocks);
    }
    let trimmed = line.trim();
    if trimmed.is_empty() {
        // An item may be followed by an empty line and another item of the same list.
        return match open {
            list @ Open::List(_) => list,
            other => {
                close(other, blocks);
                Open::Nothing
            }
        };
    }
    if let Some(code) = opens(trimmed) {
        close(open, blocks);
        return Open::Code(code);
    }
    if let Some(block) = whole_line(trimmed) {
        close(open, blocks);
        blocks.push(block);
        return Open::Nothing;
    }
    if let Some(row) = item(line) {
        return match open {
            Open::List(mut rows) => {
                rows.push(row);
                Open::List(rows)
            }
            other => {
                close(other, blocks);
                Open::List(vec![row])
            }
        };
    }
    if let Some(text) = trimmed.strip_prefix('>') {
        return match open {
            Open::Quote(mut before) => {
                before.push('\n');
                before.push_str(text.trim_start());
                Open::Quote(before)
            }
            other => {
                close(other, blocks);
                Open::Quote(text.trim_start().to_string())
            }
        };
    }
    continue_with(open, line, blocks)
}

fn step_in_code(mut code: Fenced, line: &str, blocks: &mut Vec<Block>) -> Open {
    let trimmed = line.trim();
    if trimmed.len() >= code.len && trimmed.chars().all(|c| c == code.mark) {
        close(Open::Code(code), blocks);
        return Open::Nothing;
    }
    code.lines.push(line.to_string());
    Open::Code(code)
}

/// A line that begins nothing of its own.
fn continue_with(open: Open, line: &str, blocks: &mut Vec<Block>) -> Open {
    match open {
        Open::Paragraph(mut text) => {
            text.push('\n');
            text.push_str(line.trim_start());
            Open::Paragraph(text)
        }
        // An indented line goes on with the item; any other line ends the list.
        Open::List(mut rows) if line.starts_with([' ', '\t']) => {
            if let Some(row) = rows.last_mut() {
                row.text.push('\n');
                row.text.push_str(line.trim_start());
            }
            Open::List(rows)
        }
        other => {
            close(other, blocks);
            Open::Paragraph(line.trim_start().to_string())
        }
    }
}

fn close(open: Open, blocks: &mut Vec<Block>) {
    match open {
        Open::Nothing => {}
        Open::Paragraph(text) => blocks.push(Block::Paragraph(spans(&text))),
        Open::Quote(text) => blocks.push(Block::Quote(spans(&text))),
        Open::Code(code) => {
            blocks.push(Block::Code {
                language: code.language,
                text: code.lines.join("\n"),
            });
        }
        Open::List(rows) => blocks.extend(lists(&rows).into_iter().map(Block::List)),
    }
}

/// Rows further in than the first belong to the item before them; a row of the other kind begins
/// a new list. Each level is further in than the one around it, so there are few levels.
fn lists(rows: &[Row]) -> Vec<List> {
    let mut out: Vec<List> = Vec::new();
    let mut at = 0;
    while let Some(row) = rows.get(at) {
        let level = rows[0].depth;
        let inside = rows[at + 1..]
            .iter()
            .take_while(|row| row.depth > level)
            .count();
        let next = at + 1 + inside;
        let item = Item {
            spans: spans(&row.text),
            inner: lists(&rows[at + 1..next]),
        };
        match out.last_mut() {
            Some(list) if list.start.is_some() == row.number.is_some() => list.items.push(item),
            _ => out.push(List {
                start: row.number,
                items: vec![item],
            }),
        }
        at = next;
    }
    out
}

fn opens(trimmed: &str) -> Option<Fenced> {
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let len = trimmed.chars().take_while(|&c| c == mark).count();
    let info = trimmed[len..].trim();
    if len < 3 || info.contains(mark) {
        return None;
    }
    let language = info.split_whitespace().next().unwrap_or_default();
    Some(Fenced {
        mark,
        len,
        language: language.chars().take(32).collect(),
        lines: Vec::new(),
    })
}

fn whole_line(trimmed: &str) -> Option<Block> {
    if let Some((level, text)) = heading(trimmed) {
        return Some(Block::Heading(level, spans(text)));
    }
    rule(trimmed).then_some(Block::Rule)
}

fn heading(trimmed: &str) -> Option<(u8, &str)> {
    let level = trimmed.bytes().take_while(|&b| b == b'#').count();
    let text = trimmed.get(level..)?.strip_prefix(' ')?;
    (1..=6)
        .contains(&level)
        .then(|| (level as u8, text.trim_end_matches('#').trim()))
}

fn rule(trimmed: &str) -> bool {
    ['-', '*', '_'].iter().any(|&mark| {
        trimmed.chars().filter(|&c| c == mark).count() >= 3
            && trimmed.chars().all(|c| c == mark || c == ' ')
    })
}

/// A list item. A mark alone is an item whose text is still to come.
fn item(line: &str) -> Option<Row> {
    let body = line.trim_start();
    let indent: usize = line[..line.len() - body.len()]
        .chars()
        .map(|c| if c == '\t' { 4 } else { 1 })
        .sum();
    let depth = (indent / 2).min(usize::from(DEPTH_MAX)) as u8;
    let row = |number, text: &str| Row {
        depth,
        number,
        text: text.to_string(),
    };
    if let Some(rest) = body.strip_prefix(['-', '*', '+']) {
        return item_text(rest).map(|text| row(None, text));
    }
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let text = item_text(body[digits..].strip_prefix(['.', ')'])?)?;
    Some(row(body[..digits].parse().ok(), text))
}

fn item_text(rest: &str) -> Option<&str> {
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

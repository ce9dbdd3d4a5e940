//! Lines into blocks. One pass; an unfinished block is taken as it stands, so a text that is
//! still being written parses at every length.

use super::inline::spans;
use super::{Block, DEPTH_MAX, Item};

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
    Code {
        fence: Fence,
        language: String,
        lines: Vec<String>,
    },
    List {
        start: Option<u64>,
        items: Vec<(u8, String)>,
    },
}

#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    len: usize,
}

fn step(open: Open, line: &str, blocks: &mut Vec<Block>) -> Open {
    if let Open::Code {
        fence,
        language,
        mut lines,
    } = open
    {
        if closes(line, fence) {
            close(
                Open::Code {
                    fence,
                    language,
                    lines,
                },
                blocks,
            );
            return Open::Nothing;
        }
        lines.push(line.to_string());
        return Open::Code {
            fence,
            language,
            lines,
        };
    }
    let trimmed = line.trim();
    if trimmed.is_empty() {
        // An item may be followed by an empty line and another item of the same list.
        return match open {
            list @ Open::List { .. } => list,
            other => {
                close(other, blocks);
                Open::Nothing
            }
        };
    }
    if let Some((fence, language)) = opens(trimmed) {
        close(open, blocks);
        return Open::Code {
            fence,
            language,
            lines: Vec::new(),
        };
    }
    if let Some((level, text)) = heading(trimmed) {
        close(open, blocks);
        blocks.push(Block::Heading(level, spans(text)));
        return Open::Nothing;
    }
    if rule(trimmed) {
        close(open, blocks);
        blocks.push(Block::Rule);
        return Open::Nothing;
    }
    if let Some((depth, number, text)) = item(line) {
        return add_item(open, (depth, number, text), blocks);
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

/// A line that begins nothing of its own.
fn continue_with(open: Open, line: &str, blocks: &mut Vec<Block>) -> Open {
    match open {
        Open::Paragraph(mut text) => {
            text.push('\n');
            text.push_str(line.trim_start());
            Open::Paragraph(text)
        }
        // An indented line goes on with the item; any other line ends the list.
        Open::List { start, mut items } if line.starts_with([' ', '\t']) => {
            if let Some((_, text)) = items.last_mut() {
                text.push('\n');
                text.push_str(line.trim_start());
            }
            Open::List { start, items }
        }
        other => {
            close(other, blocks);
            Open::Paragraph(line.trim_start().to_string())
        }
    }
}

fn add_item(
    open: Open,
    (depth, number, text): (u8, Option<u64>, &str),
    blocks: &mut Vec<Block>,
) -> Open {
    match open {
        // Nested items may be of the other kind; an outer one of the other kind begins a new list.
        Open::List { start, mut items } if depth > 0 || start.is_some() == number.is_some() => {
            items.push((depth, text.to_string()));
            Open::List { start, items }
        }
        other => {
            close(other, blocks);
            Open::List {
                start: number,
                items: vec![(0, text.to_string())],
            }
        }
    }
}

fn close(open: Open, blocks: &mut Vec<Block>) {
    match open {
        Open::Nothing => {}
        Open::Paragraph(text) => blocks.push(Block::Paragraph(spans(&text))),
        Open::Quote(text) => blocks.push(Block::Quote(spans(&text))),
        Open::Code {
            language, lines, ..
        } => {
            blocks.push(Block::Code {
                language,
                text: lines.join("\n"),
            });
        }
        Open::List { start, items } => {
            let items = items
                .into_iter()
                .map(|(depth, text)| Item {
                    depth,
                    spans: spans(&text),
                })
                .collect();
            blocks.push(Block::List { start, items });
        }
    }
}

fn opens(trimmed: &str) -> Option<(Fence, String)> {
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let len = trimmed.chars().take_while(|&c| c == mark).count();
    let info = trimmed[len..].trim();
    if len < 3 || info.contains(mark) {
        return None;
    }
    let language = info.split_whitespace().next().unwrap_or_default();
    Some((Fence { mark, len }, language.chars().take(32).collect()))
}

fn closes(line: &str, fence: Fence) -> bool {
    let trimmed = line.trim();
    trimmed.len() >= fence.len && trimmed.chars().all(|c| c == fence.mark)
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

/// Depth, number and text of a list item. A mark alone is an item whose text is still to come.
fn item(line: &str) -> Option<(u8, Option<u64>, &str)> {
    let body = line.trim_start();
    let indent: usize = line[..line.len() - body.len()]
        .chars()
        .map(|c| if c == '\t' { 4 } else { 1 })
        .sum();
    let depth = (indent / 2).min(usize::from(DEPTH_MAX)) as u8;
    if let Some(rest) = body.strip_prefix(['-', '*', '+']) {
        return item_text(rest).map(|text| (depth, None, text));
    }
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let text = item_text(body[digits..].strip_prefix(['.', ')'])?)?;
    Some((depth, body[..digits].parse().ok(), text))
}

fn item_text(rest: &str) -> Option<&str> {
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

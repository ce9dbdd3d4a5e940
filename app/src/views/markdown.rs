//! Markdown drawn as elements and text nodes. Nothing here can make HTML out of a string.

use leptos::prelude::*;

use crate::markdown::{Block, List, Span, parse};

/// Each block is redrawn only when it changes: while a text grows that is the last one, so what
/// a person has selected above it stays selected.
#[component]
pub fn Markdown(words: Memo<String>) -> impl IntoView {
    let blocks = Memo::new(move |_| words.with(|words| parse(words)));
    let count = Memo::new(move |_| blocks.with(Vec::len));
    view! {
        <For each=move || 0..count.get() key=|at| *at let:at>
            <One blocks at/>
        </For>
    }
}

#[component]
fn One(blocks: Memo<Vec<Block>>, at: usize) -> impl IntoView {
    let block = Memo::new(move |_| blocks.with(|blocks| blocks.get(at).cloned()));
    move || block.get().map(draw)
}

fn draw(block: Block) -> AnyView {
    match block {
        Block::Paragraph(spans) => view! { <p>{inline(spans)}</p> }.into_any(),
        // The page's own headings are h1 and h2.
        Block::Heading(1 | 2, spans) => view! { <h3>{inline(spans)}</h3> }.into_any(),
        Block::Heading(_, spans) => view! { <h4>{inline(spans)}</h4> }.into_any(),
        Block::Code { language, text } => {
            let label = (!language.is_empty()).then_some(language);
            view! {
                <pre tabindex="0" data-language=label>
                    <code>{text}</code>
                </pre>
            }
            .into_any()
        }
        Block::List(list) => draw_list(list),
        Block::Quote(spans) => view! { <blockquote><p>{inline(spans)}</p></blockquote> }.into_any(),
        Block::Rule => view! { <hr/> }.into_any(),
    }
}

fn draw_list(list: List) -> AnyView {
    let rows: Vec<AnyView> = list
        .items
        .into_iter()
        .map(|item| {
            let inner: Vec<AnyView> = item.inner.into_iter().map(draw_list).collect();
            view! { <li>{inline(item.spans)}{inner}</li> }.into_any()
        })
        .collect();
    match list.start {
        Some(start) => view! { <ol start=start.to_string()>{rows}</ol> }.into_any(),
        None => view! { <ul>{rows}</ul> }.into_any(),
    }
}

fn inline(spans: Vec<Span>) -> Vec<AnyView> {
    spans
        .into_iter()
        .map(|span| match span {
            Span::Text(text) => text.into_any(),
            Span::Code(text) => view! { <code>{text}</code> }.into_any(),
            Span::Strong(inner) => view! { <strong>{inline(inner)}</strong> }.into_any(),
            Span::Emphasis(inner) => view! { <em>{inline(inner)}</em> }.into_any(),
            Span::Break => view! { <br/> }.into_any(),
        })
        .collect()
}

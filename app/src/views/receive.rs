//! Taking a model from another browser, by its link.

use leptos::ev::SubmitEvent;
use leptos::html::{Input, P, Textarea};
use leptos::prelude::*;

use super::message::Copy;
use super::routers::Routers;
use super::share::picture;
use crate::page::{Page, fresh_seed};
use crate::state::{Action, Exchange, Origin, read_pasted};
use crate::text;

#[component]
pub fn Receive() -> impl IntoView {
    let page = Page::here();
    let (link, gives) = (NodeRef::<Textarea>::new(), NodeRef::<Input>::new());
    let arrived = page.part(|app| app.sharing.arrived.clone());
    let (pasted, set_pasted) = signal(arrived.get_untracked());
    Effect::new(move |_| set_pasted.set(arrived.get()));
    let begin = move |event: SubmitEvent| {
        event.prevent_default();
        let pasted = link.get_untracked().map(|field| field.value());
        page.act(Action::Receive {
            pasted: pasted.unwrap_or_default(),
            gives: gives.get_untracked().is_some_and(|box_| box_.checked()),
            seed: fresh_seed(),
        });
    };
    // What the link claims; only the root decides what is accepted.
    let claim = move || {
        let (invite, code) = read_pasted(&pasted.get()).ok()?;
        let ways = match (code, invite.trackers.len(), invite.sources.len()) {
            (Some(_), ..) => "by code",
            (None, 0, 0) => "a code is needed, too: ask whoever sent the link",
            (None, _, 0) => "through a tracker",
            (None, 0, _) => "from a server",
            (None, ..) => "through a tracker and from a server",
        };
        let size = text::bytes(invite.id.length);
        Some(format!("{} · {size} · {ways}", invite.name))
    };
    view! {
        <section id="receive">
            <h2>"From another browser"</h2>
            <form class="address" on:submit=begin>
                <label>
                    "The link that somebody gave you, and the code if there is one"
                    <textarea
                        id="receive-input"
                        rows="3"
                        required=true
                        spellcheck="false"
                        node_ref=link
                        prop:value=move || pasted.get()
                        on:input=move |event| set_pasted.set(event_target_value(&event))
                    >
                    </textarea>
                </label>
                <p class="facts" role="status">{claim}</p>
                <label class="check">
                    <input id="receive-gives" type="checkbox" node_ref=gives/>
                    " Also give it to others while this page is open"
                </label>
                <p class="muted">{text::WHAT_A_PEER_LEARNS}</p>
                <div class="actions">
                    <button id="receive-start" class="primary" type="submit">"Receive"</button>
                </div>
            </form>
            <Routers/>
        </section>
    }
}

/// Beside the import that takes from peers: who is there, the licence, and the code to give back.
#[component]
pub fn FromPeers() -> impl IntoView {
    let page = Page::here();
    let model = page.part(|app| match &app.imports.current()?.origin {
        Origin::Invite(invited) => Some(invited.id),
        _ => None,
    });
    let words = page.part(move |app| {
        let model = model.get()?;
        let peers = app
            .sharing
            .room(model)
            .map(|room| text::peers(&room.status));
        let opened = app.imports.current()?.model.as_ref();
        let licence = opened.map(|opened| match &opened.licence {
            Some(licence) => format!("licence: {licence}"),
            None => "licence not stated".into(),
        });
        let words: Vec<String> = peers.into_iter().chain(licence).collect();
        Some(words.join(" · "))
    });
    let exchange = page.part(move |app| app.sharing.exchange(model.get()?).cloned());
    view! {
        <Show when=move || model.get().is_some()>
            <p id="receive-peers" class="facts">{move || words.get()}</p>
            {move || match exchange.get()? {
                Exchange::Making => {
                    Some(view! { <p class="muted">"Making a code …"</p> }.into_any())
                }
                Exchange::Answer(code) => Some(view! { <Answer code/> }.into_any()),
                Exchange::Failed(words) => Some(view! { <p class="warn">{words}</p> }.into_any()),
                _ => None,
            }}
        </Show>
    }
}

#[component]
fn Answer(code: String) -> impl IntoView {
    let words = NodeRef::<P>::new();
    // It stands above the form where the link was pasted, out of sight on most screens.
    Effect::new(move |_| {
        if let Some(words) = words.get() {
            words.scroll_into_view();
        }
    });
    let shown = code.clone();
    let copied = code.clone();
    view! {
        <p id="receive-back" node_ref=words>"Give this code back to whoever sent the link:"</p>
        <div class="share-row">
            <textarea id="receive-answer" rows="3" readonly=true prop:value=shown></textarea>
            <Copy words=Signal::derive(move || copied.clone()) label="Copy code"/>
        </div>
        <details>
            <summary>"Show as a QR code"</summary>
            {picture(&code)}
        </details>
    }
}

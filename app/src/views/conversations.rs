//! The list of conversations: beside the transcript, or a drawer on a narrow screen.

use leptos::prelude::*;

use crate::page::Page;
use crate::state::{Action, ConversationId};

#[component]
pub fn Conversations(drawer: RwSignal<bool>) -> impl IntoView {
    let page = Page::here();
    let listed = page.part(|app| {
        let all = app.chat.conversations().iter();
        all.map(|one| (one.id, one.title.clone()))
            .collect::<Vec<_>>()
    });
    // The one whose removal was asked for and not yet confirmed.
    let doubtful = RwSignal::new(None::<ConversationId>);
    let begin = move |_| {
        drawer.set(false);
        page.act(Action::NewConversation);
    };
    let escape = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" {
            drawer.set(false);
            doubtful.set(None);
        }
    });
    on_cleanup(move || escape.remove());
    view! {
        <aside
            id="conversations"
            class:open=move || drawer.get()
            hidden=move || listed.with(Vec::is_empty)
            aria-label="Conversations"
        >
            <button id="new-conversation" type="button" on:click=begin>
                "New conversation"
            </button>
            <ul>
                <For each=move || listed.get() key=|one| one.clone() let:one>
                    <Row id=one.0 title=one.1 drawer doubtful/>
                </For>
            </ul>
        </aside>
        <Show when=move || drawer.get()>
            <div class="backdrop" on:click=move |_| drawer.set(false)></div>
        </Show>
    }
}

#[component]
fn Row(
    id: ConversationId,
    title: String,
    drawer: RwSignal<bool>,
    doubtful: RwSignal<Option<ConversationId>>,
) -> impl IntoView {
    let page = Page::here();
    let current = page.part(move |app| app.chat.current().is_some_and(|one| one.id == id));
    let asked = move || doubtful.get() == Some(id);
    let open = move |_| {
        drawer.set(false);
        page.act(Action::Open(id));
    };
    let remove = format!("Delete “{title}”");
    let ask = move || match asked() {
        true => view! {
            <button class="danger" type="button" on:click=move |_| page.act(Action::Forget(id))>
                "Delete"
            </button>
        }
        .into_any(),
        false => view! {
            <button
                class="quiet close"
                type="button"
                aria-label=remove.clone()
                on:click=move |_| doubtful.set(Some(id))
            >
                "✕"
            </button>
        }
        .into_any(),
    };
    view! {
        <li>
            <button
                class="title"
                type="button"
                aria-current=move || current.get().then_some("true")
                on:click=open
            >
                {title.clone()}
            </button>
            {ask}
        </li>
    }
}

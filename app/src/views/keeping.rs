//! Space on this device: what is used and left, whether the browser keeps it, and what could go.

use leptos::prelude::*;
use protocol::{ModelSummary, StorageKind};

use super::message::Copy;
use crate::page::{Page, now};
use crate::state::Action;
use crate::text;

#[component]
pub fn Space() -> impl IntoView {
    let page = Page::here();
    page.look_at_storage();
    let durability = page.part(|app| app.durability);
    let kind = page.part(|app| app.start.storage());
    let share = move || {
        let (used, quota) = (durability.get().used?, durability.get().quota?);
        Some(f64::from(text::share(used, quota)) / 100.0)
    };
    view! {
        <section id="space" aria-labelledby="space-title">
            <h2 id="space-title">"Space on this device"</h2>
            <p id="space-words">{move || text::space(&durability.get())}"."</p>
            {move || share().map(|share| view! {
                <div class="progress" aria-hidden="true">
                    <span style:width=format!("{share:.2}%")></span>
                </div>
            })}
            <p class="muted">
                {move || kind.get().map(|kind| format!("{}. ", text::storage(kind)))}
                <span id="kept">{move || text::kept(kind.get(), durability.get().persisted)}</span>
            </p>
            <AskToKeep/>
            <ToMakeRoom/>
        </section>
    }
}

/// Only where it could change something.
#[component]
fn AskToKeep() -> impl IntoView {
    let page = Page::here();
    let worth_asking = page.part(|app| {
        let stays = !matches!(app.start.storage(), None | Some(StorageKind::Memory));
        stays && app.durability.persisted == Some(false)
    });
    let (asked, set_asked) = signal(false);
    let ask = move |_| {
        set_asked.set(true);
        page.act(Action::AskToPersist);
    };
    view! {
        <Show when=move || worth_asking.get()>
            <p class="actions">
                <button id="ask-to-keep" type="button" on:click=ask>
                    "Ask the browser to keep the models"
                </button>
            </p>
            <p class="muted" role="status">
                {move || if asked.get() {
                    "The browser has not agreed. It decides by its own rules: installing the app or \
                     visiting often helps, and a model saved as a file is safe in any case."
                } else {
                    ""
                }}
            </p>
        </Show>
    }
}

/// After an import that did not fit: what is missed least comes first. Nothing goes by itself.
#[component]
fn ToMakeRoom() -> impl IntoView {
    let page = Page::here();
    let proposed = page.part(|app| match app.short_of_room {
        true => app.notes.by_use(app.library.models()),
        false => Vec::new(),
    });
    view! {
        <Show when=move || !proposed.with(Vec::is_empty)>
            <div id="make-room" class="notice plain" role="status">
                <div>
                    <p>"The last import did not fit. These models could make room:"</p>
                    <ul>
                        {move || proposed.get().into_iter().map(proposal).collect_view()}
                    </ul>
                    <p class="muted">"Nothing is deleted unless you delete it in the list above."</p>
                </div>
            </div>
        </Show>
    }
}

fn proposal(model: ModelSummary) -> impl IntoView {
    let page = Page::here();
    let used = page.app.with_untracked(|app| app.notes.last_used(model.id));
    let words = format!(
        "{} · {}",
        text::bytes(model.id.length),
        text::used(now(), used)
    );
    view! { <li>{model.name}" · "{words}</li> }
}

/// What can be done with a model that is whole: its root copied, its file saved.
#[component]
pub fn Taking(model: ModelSummary) -> impl IntoView {
    let page = Page::here();
    let id = model.id;
    let name = model.name.clone();
    view! {
        <Copy words=Signal::derive(move || id.root.to_string()) label="Copy root"/>
        <button
            class="quiet export"
            type="button"
            aria-label=format!("Save {name} as a file")
            on:click=move |_| page.act(Action::Export(id))
        >
            "Save as a file"
        </button>
    }
}

//! Two ways to a model: from this server, or from a file.

use leptos::html::Input;
use leptos::prelude::*;
use protocol::{CatalogueEntry, StorageKind};

use super::address::AddressField;
use super::import::ImportPanel;
use crate::intake;
use crate::page::Page;
use crate::state::{Action, Offers, entry_id};
use crate::text;

/// What this is, in one glance, and how to begin.
#[component]
pub fn Welcome() -> impl IntoView {
    let page = Page::here();
    let busy = page.part(|app| app.imports.current().is_some());
    view! {
        <section class="welcome">
            <h1>"A language model that lives in this tab."</h1>
            <p class="lead">
                "What you write is answered on this device and never leaves it. "
                "No account, no cloud; once a model is here, no network either."
            </p>
            <Show when=move || busy.get() fallback=Ways>
                <ImportPanel/>
            </Show>
            <Keeping/>
        </section>
    }
}

/// How long a model stays here, where that is not for good.
#[component]
pub fn Keeping() -> impl IntoView {
    let page = Page::here();
    let memory_only = page.part(|app| app.start.storage() == Some(StorageKind::Memory));
    view! {
        <Show when=move || memory_only.get()>
            <p id="memory-only" class="warn" role="status">{text::storage(StorageKind::Memory)}"."</p>
        </Show>
    }
}

#[component]
fn Ways() -> impl IntoView {
    view! {
        <div class="ways">
            <FromServer/>
            <FromFile/>
        </div>
    }
}

/// The server's first model that is not here yet, or why there is none.
#[component]
fn FromServer() -> impl IntoView {
    let page = Page::here();
    let offer = page.part(|app| app.library.first_offer().cloned());
    let instead = page.part(|app| match app.library.offers() {
        Offers::Asked => "Asking this server what it offers …".to_string(),
        Offers::Here(_) => "This server offers no model. Take one from a file.".into(),
        Offers::Unavailable(error) => format!("{} {}", error.what, error.remedy),
    });
    view! {
        <div class="way">
            <h2>"From this server"</h2>
            {move || match offer.get() {
                Some(entry) => view! { <GetDefault entry/> }.into_any(),
                None => view! { <p class="muted">{instead.get()}</p> }.into_any(),
            }}
        </div>
    }
}

#[component]
fn GetDefault(entry: CatalogueEntry) -> impl IntoView {
    let page = Page::here();
    let id = entry_id(&entry);
    let kept = page.part(move |app| app.library.find(id).and_then(|model| model.partial));
    let name = entry.name.clone();
    let facts = facts(&entry);
    let verb = move || {
        if kept.get().is_some() {
            "Continue with "
        } else {
            "Get "
        }
    };
    view! {
        <button
            id="get-default"
            class="primary big"
            type="button"
            on:click=move |_| page.act(Action::Get(entry.clone()))
        >
            <span>{verb}{name}</span>
            <span class="facts">{facts}</span>
        </button>
        <p class="muted">
            {move || match kept.get() {
                Some(bytes) => format!("{} are here already and checked.", text::bytes(bytes)),
                None => "Every piece is checked as it comes, and an interruption costs nothing."
                    .into(),
            }}
        </p>
    }
}

/// Size and licence of an offer.
pub fn facts(entry: &CatalogueEntry) -> String {
    let licence = entry.licence.as_deref().unwrap_or("licence not stated");
    format!("{} · {licence}", text::bytes(entry.length))
}

#[component]
fn FromFile() -> impl IntoView {
    view! {
        <div class="way">
            <h2>"From a file"</h2>
            <FilePicker/>
            <p class="muted">
                "Or drop it anywhere on this window: .slm, .gguf with all its parts, or a folder "
                "with safetensors. It is copied once into the browser’s private storage."
            </p>
            <AddressField/>
        </div>
    }
}

/// A real file field under a label that looks like a button. No `accept`: phones grey out every
/// file when they do not know the ending, and the worker tells what a file is anyway.
#[component]
pub fn FilePicker() -> impl IntoView {
    let page = Page::here();
    let field = NodeRef::<Input>::new();
    let folder = NodeRef::<Input>::new();
    let lent = NodeRef::<Input>::new();
    let picked = move |field: NodeRef<Input>| {
        if let Some(input) = field.get_untracked() {
            intake::on_pick(page, &input);
        }
    };
    view! {
        <div class="picker">
            <input
                id="file-input"
                class="covered"
                type="file"
                multiple=true
                node_ref=field
                on:change=move |_| picked(field)
            />
            <label class="button" for="file-input">"Choose files …"</label>
            <input
                id="folder-input"
                class="covered"
                type="file"
                prop:webkitdirectory=true
                node_ref=folder
                on:change=move |_| picked(folder)
            />
            <label class="button" for="folder-input">"Choose a folder …"</label>
            <input
                id="borrow-input"
                class="covered"
                type="file"
                node_ref=lent
                on:change=move |_| {
                    if let Some(input) = lent.get_untracked() {
                        intake::on_borrow(page, &input);
                    }
                }
            />
            <label class="button quiet" for="borrow-input">"Just try a .slm file …"</label>
        </div>
    }
}

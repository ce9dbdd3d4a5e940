//! The models on this device, and where more come from.

use format::ModelId;
use leptos::prelude::*;
use protocol::{CatalogueEntry, ModelSummary};

use super::address::AddressField;
use super::import::ImportPanel;
use super::keeping::{Space, Taking};
use super::offer::{FilePicker, Keeping, facts};
use super::receive::Receive;
use super::share::{ShareButton, SharePanel};
use crate::page::{Page, now};
use crate::state::{Action, Offers, entry_id};
use crate::text;

#[component]
pub fn Models() -> impl IntoView {
    let page = Page::here();
    let here = page.part(|app| app.library.models().to_vec());
    view! {
        <div class="sheet">
            <h1>"Models"</h1>
            <ImportPanel/>
            <section>
                <h2>"On this device"</h2>
                <Keeping/>
                <Show
                    when=move || !here.with(Vec::is_empty)
                    fallback=|| view! { <p class="muted">"No model is here yet."</p> }
                >
                    <ul class="cards">
                        <For each=move || here.get() key=key_of let:model>
                            <Stored model/>
                        </For>
                    </ul>
                </Show>
            </section>
            <Space/>
            <Offered/>
            <Receive/>
            <section>
                <h2>"From a file"</h2>
                <p class="muted">
                    "Drop a .slm file, a .gguf with all its parts or a folder with safetensors "
                    "anywhere on this window, or choose one. "
                    "It is read on this device only and checked before anything is kept."
                </p>
                <FilePicker/>
                <AddressField/>
            </section>
        </div>
    }
}

/// A card is drawn anew when this changes.
fn key_of(model: &ModelSummary) -> (ModelId, Option<u64>, bool) {
    (model.id, model.partial, model.damaged || model.borrowed)
}

#[component]
fn Stored(model: ModelSummary) -> impl IntoView {
    let page = Page::here();
    let id = model.id;
    let loaded = page.part(move |app| app.engine.loaded().is_some_and(|(it, _)| it.id == id));
    let licence = model
        .licence
        .clone()
        .unwrap_or_else(|| "licence not stated".into());
    let state = text::condition(&model);
    let used = page.part(move |app| app.notes.last_used(id));
    let cannot = model
        .partial
        .is_none()
        .then(|| text::cannot_chat(model.chat))
        .flatten();
    let complete = model.partial.is_none();
    let borrowed = model.borrowed;
    let sound = complete && !model.damaged;
    let taken = model.clone();
    let check = page.part(move |app| match app.library.check() {
        Some((checked, done, total)) if checked == id => text::checking(done, total),
        _ if app.library.was_checked(id) => text::CHECKED.into(),
        _ => String::new(),
    });
    let shared = model.clone();
    view! {
        <li class="card stored" class:loaded=move || loaded.get()>
            <div>
                <h3>
                    {model.name}
                    <Show when=move || loaded.get()>
                        <span class="badge">"loaded"</span>
                    </Show>
                </h3>
                <p class="facts">{state}" · "{licence}</p>
                {borrowed.then(|| view! { <p class="warn">{text::BORROWED}</p> })}
                {(complete && !borrowed).then(|| view! {
                    <p class="muted">{move || text::used(now(), used.get())}</p>
                })}
                <p class="muted check" role="status">{move || check.get()}</p>
                {model.damaged.then(|| view! { <Damage id/> })}
                <p class="muted">"Made from "{model.source}</p>
                {cannot.map(|(why, _)| view! { <p class="warn">{why}</p> })}
                <p class="hash" title="The file’s identity: the root of its hash tree">
                    {id.root.to_string()}
                </p>
            </div>
            <div class="actions">
                {if sound {
                    view! {
                        <LoadOrUnload id loaded/>
                        {(!borrowed).then(|| view! {
                            <Taking model=taken/>
                            <ShareButton id/>
                            <Check id loaded/>
                        })}
                    }
                    .into_any()
                } else {
                    let words = if complete { "Repair" } else { "Continue" };
                    view! { <Continue id words/> }.into_any()
                }}
                <Remove id asks={complete && !borrowed}/>
            </div>
            <SharePanel model=shared/>
        </li>
    }
}

#[component]
fn LoadOrUnload(id: ModelId, loaded: Memo<bool>) -> impl IntoView {
    let page = Page::here();
    move || match loaded.get() {
        true => view! {
            <button type="button" on:click=move |_| page.act(Action::Unload)>"Unload"</button>
        }
        .into_any(),
        false => view! {
            <button class="primary" type="button" on:click=move |_| page.act(Action::Load(id))>
                "Load"
            </button>
        }
        .into_any(),
    }
}

/// The file of a loaded model is the engine's, and every load checks every piece.
#[component]
fn Check(id: ModelId, loaded: Memo<bool>) -> impl IntoView {
    let page = Page::here();
    let idle = page.part(|app| app.library.check().is_none());
    view! {
        <Show when=move || !loaded.get()>
            <button
                class="quiet"
                type="button"
                disabled=move || !idle.get()
                on:click=move |_| page.act(Action::Check(id))
            >
                "Check"
            </button>
        </Show>
    }
}

/// Only what the server offers can go on; a file has to be dropped again.
#[component]
fn Continue(id: ModelId, words: &'static str) -> impl IntoView {
    let page = Page::here();
    let entry = page.part(move |app| app.library.entry(id).cloned());
    let idle = page.part(|app| !app.imports.running());
    move || {
        let entry = entry.get()?;
        Some(view! {
            <button
                class="primary"
                type="button"
                disabled=move || !idle.get()
                on:click=move |_| page.act(Action::Get(entry.clone()))
            >
                {words}
            </button>
        })
    }
}

#[component]
fn Damage(id: ModelId) -> impl IntoView {
    let page = Page::here();
    let offered = page.part(move |app| app.library.entry(id).is_some());
    view! { <p class="warn">{move || text::damage(offered.get())}</p> }
}

/// Asks once more before a whole model goes.
#[component]
fn Remove(id: ModelId, asks: bool) -> impl IntoView {
    let page = Page::here();
    let (doubtful, set_doubtful) = signal(false);
    let remove = move |_| {
        if asks && !doubtful.get_untracked() {
            set_doubtful.set(true);
        } else {
            page.act(Action::Delete(id));
        }
    };
    let words = move || match (asks, doubtful.get()) {
        (false, _) => "Discard",
        (true, false) => "Delete",
        (true, true) => "Really delete",
    };
    view! {
        <button class="quiet" class:danger=move || doubtful.get() type="button" on:click=remove>
            {words}
        </button>
    }
}

#[component]
fn Offered() -> impl IntoView {
    let page = Page::here();
    let missing = page.part(|app| match app.library.offers() {
        Offers::Here(entries) => entries
            .iter()
            .filter(|entry| app.library.find(entry_id(entry)).is_none())
            .cloned()
            .collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let instead = page.part(|app| match app.library.offers() {
        Offers::Asked => "Asking …".to_string(),
        Offers::Here(entries) if entries.is_empty() => "This server offers no models.".into(),
        Offers::Here(_) => "All that this server offers is here.".into(),
        Offers::Unavailable(error) => format!("{} {}", error.what, error.remedy),
    });
    view! {
        <section>
            <h2>"From this server"</h2>
            <Show
                when=move || !missing.with(Vec::is_empty)
                fallback=move || view! { <p class="muted">{move || instead.get()}</p> }
            >
                <ul class="cards">
                    <For each=move || missing.get() key=|entry| entry_id(entry) let:entry>
                        <Offer entry/>
                    </For>
                </ul>
            </Show>
        </section>
    }
}

#[component]
fn Offer(entry: CatalogueEntry) -> impl IntoView {
    let page = Page::here();
    let idle = page.part(|app| !app.imports.running());
    let (name, facts) = (entry.name.clone(), facts(&entry));
    view! {
        <li class="card">
            <div>
                <h3>{name}</h3>
                <p class="facts">{facts}</p>
            </div>
            <div class="actions">
                <button
                    class="primary"
                    type="button"
                    disabled=move || !idle.get()
                    on:click=move |_| page.act(Action::Get(entry.clone()))
                >
                    "Get"
                </button>
            </div>
        </li>
    }
}

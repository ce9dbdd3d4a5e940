//! What went wrong, in place above the content, until it is put aside; and the offer of a new
//! version of the page.

use leptos::prelude::*;

use protocol::TabRole;

use crate::page::{Page, tell_boot};
use crate::state::{Action, Notice, Start};
use crate::text;

/// The same page with an engine that takes no more memory than it needs, and no threads.
pub const LESS: &str = "?lane=simd128-wasm32";

/// Set by `boot.js` on the root element when a new version waits.
const UPDATE_MARK: &str = "data-update";
/// `boot.js` tells us by the first and takes a person's word by the second.
const UPDATE_READY: &str = "shell-update-ready";
const UPDATE_ACCEPTED: &str = "shell-update-accepted";

#[component]
pub fn Notices() -> impl IntoView {
    let page = Page::here();
    let shown = page.part(|app| app.notices.shown().to_vec());
    view! {
        <UpdateOffer/>
        <Show when=move || !shown.with(Vec::is_empty)>
            <div id="error" role="alert">
                <For each=move || shown.get() key=|notice| notice.id let:notice>
                    <One notice/>
                </For>
            </div>
        </Show>
        <super::fit::Ways/>
        <Died/>
        <Restart/>
    }
}

#[component]
fn One(notice: Notice) -> impl IntoView {
    let page = Page::here();
    let Notice { id, report } = notice;
    view! {
        <div class="notice">
            <div>
                <p class="notice-title">{text::code(report.code)}</p>
                <p>{report.what}</p>
                <p class="remedy">{report.remedy}</p>
            </div>
            <button
                class="quiet close"
                type="button"
                aria-label="Put this message aside"
                on:click=move |_| page.act(Action::Dismiss(id))
            >
                "✕"
            </button>
        </div>
    }
}

/// A load ended the page or its engine, so it is not repeated without being asked.
#[component]
fn Died() -> impl IntoView {
    let page = Page::here();
    let died = page.part(|app| {
        let id = app.died?;
        let name = app.library.find(id).map(|model| model.name.clone());
        Some((id, name.unwrap_or_else(|| "the model".into())))
    });
    view! {
        <Show when=move || died.with(Option::is_some)>
            <div class="notice plain" id="died" role="status">
                <p>
                    "TinyRustLM ended while it was loading "
                    {move || died.get().map(|(_, name)| name)}
                    ", so it was not loaded again by itself. A smaller model, or one thread, takes \
                     less memory."
                </p>
                <div class="actions">
                    <a class="button quiet" href=LESS>"Try with one thread"</a>
                    <button
                        id="load-again"
                        class="primary"
                        type="button"
                        on:click=move |_| {
                            if let Some((id, _)) = died.get_untracked() {
                                page.act(Action::Load(id));
                            }
                        }
                    >
                        "Load it again"
                    </button>
                </div>
            </div>
        </Show>
    }
}

/// Stays as long as there is no engine, also when the message above has been put aside.
#[component]
fn Restart() -> impl IntoView {
    let page = Page::here();
    let outdated = page.part(|app| app.tabs.role == Some(TabRole::Outdated));
    let failed = page.part(|app| matches!(app.start, Start::Failed(_)));
    let silent = page.part(|app| app.tabs.role == Some(TabRole::Silent));
    view! {
        <Show when=move || silent.get()>
            <div class="notice plain" role="status">
                <p>"The tab that does the work does not answer; it may be asleep."</p>
                <button
                    id="take-over"
                    class="primary"
                    type="button"
                    on:click=move |_| page.act(Action::TakeOver)
                >
                    "Do the work here"
                </button>
            </div>
        </Show>
        <Show when=move || outdated.get()>
            <div class="notice plain" role="status">
                <p>"This tab shows an earlier version than the one that works now."</p>
                <button
                    id="reload"
                    class="primary"
                    type="button"
                    on:click=move |_| window().location().reload().unwrap_or_default()
                >
                    "Reload this tab"
                </button>
            </div>
        </Show>
        <Show when=move || failed.get() && !outdated.get()>
            <div class="notice plain">
                <p>"The engine is not running; conversations can still be read."</p>
                <button
                    class="primary"
                    type="button"
                    on:click=move |_| page.act(Action::Restart)
                >
                    "Start the engine again"
                </button>
            </div>
        </Show>
    }
}

#[component]
fn UpdateOffer() -> impl IntoView {
    let marked = || {
        let root = document().document_element();
        root.is_some_and(|root| root.has_attribute(UPDATE_MARK))
    };
    let (ready, set_ready) = signal(marked());
    let heard = window_event_listener_untyped(UPDATE_READY, move |_| set_ready.set(true));
    on_cleanup(move || heard.remove());
    let accept = move |_| tell_boot(UPDATE_ACCEPTED);
    view! {
        <Show when=move || ready.get()>
            <div class="notice plain" role="status">
                <p>"A new version of TinyRustLM is ready."</p>
                <div class="actions">
                    <button class="quiet" type="button" on:click=move |_| set_ready.set(false)>
                        "Later"
                    </button>
                    <button class="primary" type="button" on:click=accept>
                        "Reload into it"
                    </button>
                </div>
            </div>
        </Show>
    }
}

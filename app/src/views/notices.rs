//! What went wrong, in place above the content, until it is put aside; and the offer of a new
//! version of the page.

use leptos::prelude::*;

use crate::page::Page;
use crate::state::{Action, Notice, Start};
use crate::text;

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

/// Stays as long as there is no engine, also when the message above has been put aside.
#[component]
fn Restart() -> impl IntoView {
    let page = Page::here();
    let failed = page.part(|app| matches!(app.start, Start::Failed(_)));
    view! {
        <Show when=move || failed.get()>
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
    let accept = move |_| {
        if let Ok(event) = web_sys::Event::new(UPDATE_ACCEPTED) {
            // The answer only says whether a listener cancelled the event.
            window().dispatch_event(&event).unwrap_or_default();
        }
    };
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

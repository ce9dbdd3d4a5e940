//! Where a person writes.

use leptos::ev::KeyboardEvent;
use leptos::html::Textarea;
use leptos::prelude::*;

use super::settings::SettingsPanel;
use crate::page::{Page, fresh_seed};
use crate::state::{Action, App};
use crate::text;

/// The field grows with its text up to this many lines.
const ROWS_MAX: usize = 8;

#[component]
pub fn Composer() -> impl IntoView {
    let page = Page::here();
    let settings_open = RwSignal::new(false);
    view! {
        <form
            class="composer"
            on:submit=move |event| {
                event.prevent_default();
                send(page);
            }
        >
            <Show when=move || settings_open.get()>
                <SettingsPanel/>
            </Show>
            <div class="field">
                <label class="covered" for="composer">"Your message"</label>
                <Field/>
                <SendOrStop/>
            </div>
            <div class="below">
                <button
                    id="settings-button"
                    class="quiet"
                    type="button"
                    aria-expanded=move || settings_open.get().to_string()
                    aria-controls="settings"
                    on:click=move |_| settings_open.update(|open| *open = !*open)
                >
                    "Settings"
                </button>
                <span class="muted">"Stays on this device"</span>
                <Context/>
            </div>
        </form>
    }
}

/// What cannot be sent now stays in the field.
fn send(page: Page) {
    let text = page.draft.get_untracked();
    if text.trim().is_empty() || !page.app.with_untracked(App::can_send) {
        return;
    }
    page.draft.set(String::new());
    page.act(Action::Send {
        text,
        seed: fresh_seed(),
    });
}

#[component]
fn Field() -> impl IntoView {
    let page = Page::here();
    let field = NodeRef::<Textarea>::new();
    let key = move |event: KeyboardEvent| {
        // While an input method composes a word, Enter belongs to it.
        if event.key() == "Enter" && !event.shift_key() && !event.is_composing() {
            event.prevent_default();
            send(page);
        }
    };
    let rows = move || {
        let lines = page.draft.with(|text| text.split('\n').count());
        lines.clamp(1, ROWS_MAX).to_string()
    };
    Effect::new(move |_| {
        // Where there is no pointer that hovers, a focused field brings up a keyboard.
        let pointer = window().match_media("(hover: hover)").ok().flatten();
        if let Some(field) = field.get()
            && pointer.is_some_and(|query| query.matches())
        {
            field.focus().unwrap_or_default();
        }
    });
    view! {
        <textarea
            id="composer"
            node_ref=field
            rows=rows
            placeholder="Write a message"
            enterkeyhint="send"
            prop:value=move || page.draft.get()
            on:input=move |event| page.draft.set(event_target_value(&event))
            on:keydown=key
        ></textarea>
    }
}

#[component]
fn SendOrStop() -> impl IntoView {
    let page = Page::here();
    let can_send = page.part(App::can_send);
    let ready = move || can_send.get() && page.draft.with(|text| !text.trim().is_empty());
    let live = page.part(|app| app.chat.live().map(|live| live.stopping));
    let escape = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" && page.app.with_untracked(|app| app.chat.live().is_some()) {
            page.act(Action::Stop);
        }
    });
    on_cleanup(move || escape.remove());
    move || match live.get() {
        None => view! {
            <button id="send" class="primary" type="submit" disabled=move || !ready()>
                "Send"
            </button>
        }
        .into_any(),
        Some(stopping) => view! {
            <button
                id="stop"
                class="primary"
                type="button"
                title="Esc"
                disabled=stopping
                on:click=move |_| page.act(Action::Stop)
            >
                {if stopping { "Stopping" } else { "Stop" }}
            </button>
        }
        .into_any(),
    }
}

/// How much of the model's context this conversation takes.
#[component]
fn Context() -> impl IntoView {
    let page = Page::here();
    let words = page.part(|app| {
        let (_, fit) = app.engine.loaded()?;
        let used = app.chat.positions()?;
        let (used, room) = (u64::from(used), u64::from(fit.context));
        Some(format!(
            "{} of {} tokens",
            text::count(used),
            text::count(room)
        ))
    });
    view! {
        <span class="muted room" title="Length of this conversation, and what the model can hold">
            {move || words.get()}
        </span>
    }
}

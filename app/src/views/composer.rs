//! Where a person writes.

use leptos::ev::KeyboardEvent;
use leptos::html::Textarea;
use leptos::prelude::*;

use super::settings::SettingsPanel;
use crate::page::{Page, fresh_seed};
use crate::state::Action;
use crate::text;

/// The field grows with its text up to this many lines.
const ROWS_MAX: usize = 8;

#[component]
pub fn Composer() -> impl IntoView {
    let page = Page::here();
    let field = NodeRef::<Textarea>::new();
    let draft = RwSignal::new(String::new());
    let settings_open = RwSignal::new(false);
    let can_send = page.part(|app| app.can_send());
    let send = move || {
        let text = draft.get_untracked();
        if text.trim().is_empty() || !can_send.get_untracked() {
            return;
        }
        draft.set(String::new());
        page.act(Action::Send {
            text,
            seed: fresh_seed(),
        });
    };
    let key = move |event: KeyboardEvent| {
        // While an input method composes a word, Enter belongs to it.
        if event.key() == "Enter" && !event.shift_key() && !event.is_composing() {
            event.prevent_default();
            send();
        }
    };
    let rows = move || {
        draft
            .with(|text| text.split('\n').count().clamp(1, ROWS_MAX))
            .to_string()
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
        <form
            class="composer"
            on:submit=move |event| {
                event.prevent_default();
                send();
            }
        >
            <Show when=move || settings_open.get()>
                <SettingsPanel/>
            </Show>
            <div class="field">
                <label class="covered" for="composer">"Your message"</label>
                <textarea
                    id="composer"
                    node_ref=field
                    rows=rows
                    placeholder="Write a message"
                    enterkeyhint="send"
                    prop:value=move || draft.get()
                    on:input=move |event| draft.set(event_target_value(&event))
                    on:keydown=key
                ></textarea>
                <SendOrStop ready=Signal::derive(move || {
                    can_send.get() && draft.with(|text| !text.trim().is_empty())
                })/>
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

#[component]
fn SendOrStop(ready: Signal<bool>) -> impl IntoView {
    let page = Page::here();
    let live = page.part(|app| app.chat.live().map(|live| live.stopping));
    let escape = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" && page.app.with_untracked(|app| app.chat.live().is_some()) {
            page.act(Action::Stop);
        }
    });
    on_cleanup(move || escape.remove());
    move || match live.get() {
        None => view! {
            <button id="send" class="primary" type="submit" disabled=move || !ready.get()>
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

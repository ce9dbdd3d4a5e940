//! The transcript, and below it whatever can be done next.

use leptos::html::Div;
use leptos::prelude::*;
use protocol::ChatAbility;

use super::composer::Composer;
use super::conversations::Conversations;
use super::import::ImportPanel;
use super::message::Message;
use super::offer::Welcome;
use crate::page::{Page, Screen};
use crate::state::{Action, App, Engine};
use crate::text;

/// Within this many pixels of its end the transcript follows what is written.
const NEAR_END_PX: i32 = 96;
/// More models than this are chosen from on their own screen.
const CHOICES_MAX: usize = 3;

#[component]
pub fn Chat() -> impl IntoView {
    let page = Page::here();
    let welcome = page.part(App::first_visit);
    let drawer = RwSignal::new(false);
    view! {
        <div class="chat">
            <Conversations drawer/>
            <div class="talk">
                <DrawerButton drawer/>
                <Transcript welcome/>
                <Foot/>
            </div>
        </div>
    }
}

#[component]
fn DrawerButton(drawer: RwSignal<bool>) -> impl IntoView {
    let page = Page::here();
    let title = page.part(|app| {
        app.chat
            .current()
            .map_or("New conversation".into(), |current| current.title.clone())
    });
    let any = page.part(|app| !app.chat.conversations().is_empty());
    view! {
        <Show when=move || any.get()>
            <div class="where">
                <button
                    id="drawer"
                    class="quiet"
                    type="button"
                    aria-controls="conversations"
                    aria-expanded=move || drawer.get().to_string()
                    on:click=move |_| drawer.update(|open| *open = !*open)
                >
                    "☰ "
                    <span>"Conversations"</span>
                </button>
                <p>{move || title.get()}</p>
            </div>
        </Show>
    }
}

#[component]
fn Transcript(welcome: Memo<bool>) -> impl IntoView {
    let page = Page::here();
    let scroller = NodeRef::<Div>::new();
    let follows = StoredValue::new(true);
    let turns = page.part(|app| {
        let current = app.chat.current();
        current.map_or((None, 0), |current| (Some(current.id), current.turns.len()))
    });
    let length = page.part(|app| {
        app.chat
            .current()
            .and_then(|current| current.turns.last())
            .map_or(0, |t| t.text.len())
    });
    let scrolled = move |_| {
        if let Some(div) = scroller.get_untracked() {
            let below = div.scroll_height() - div.scroll_top() - div.client_height();
            follows.set_value(below < NEAR_END_PX);
        }
    };
    Effect::new(move |before: Option<(_, _)>| {
        let now = turns.get();
        length.track();
        if before != Some(now) {
            follows.set_value(true);
        }
        // After the views have drawn what is new.
        request_animation_frame(move || {
            if let Some(div) = scroller.try_get_untracked().flatten()
                && follows.try_get_value() == Some(true)
            {
                div.set_scroll_top(div.scroll_height());
            }
        });
        now
    });
    let busy = page.part(|app| app.chat.live_here());
    view! {
        <div class="scroller" node_ref=scroller on:scroll=scrolled>
            <Show when=move || welcome.get()>
                <Welcome/>
            </Show>
            <div
                id="messages"
                role="log"
                aria-live="polite"
                aria-label="Conversation"
                aria-busy=move || busy.get().to_string()
            >
                <For
                    each=move || {
                        let (id, count) = turns.get();
                        (0..count).filter_map(move |at| Some((id?, at)))
                    }
                    key=|place| *place
                    let:place
                >
                    <Message conversation=place.0 at=place.1/>
                </For>
            </div>
            <Show when=move || turns.get().1 == 0 && !welcome.get()>
                <Beginning/>
            </Show>
        </div>
    }
}

/// An empty conversation with a model to answer it.
#[component]
fn Beginning() -> impl IntoView {
    let page = Page::here();
    let able = page.part(|app| app.engine.can_chat());
    view! {
        <Show when=move || able.get()>
            <section class="beginning">
                <h1>"Ask it something."</h1>
                <p class="muted">
                    "A small model answers quickly and is often wrong: check what matters."
                </p>
                <ul class="starters">
                    {["Why is the sky blue?", "Write a short story about a fox in the snow.", "What is a prime number?"]
                        .map(|words| view! { <li><Starter words/></li> })}
                </ul>
            </section>
        </Show>
    }
}

#[component]
fn Starter(words: &'static str) -> impl IntoView {
    let page = Page::here();
    let send = move |_| {
        page.act(Action::Send {
            text: words.into(),
            seed: crate::page::fresh_seed(),
        });
    };
    view! { <button type="button" on:click=send>{words}</button> }
}

/// What stands below the transcript.
#[derive(Clone, PartialEq)]
enum Below {
    Nothing,
    Compose,
    Loading,
    CannotChat,
    NoModel,
}

fn below(app: &App) -> Below {
    match &app.engine {
        Engine::Loaded { .. } if app.engine.can_chat() => Below::Compose,
        Engine::Loaded { .. } => Below::CannotChat,
        Engine::Loading { .. } => Below::Loading,
        _ if !app.start.ready() || app.first_visit() => Below::Nothing,
        _ if app.imports.current().is_some() || !app.library.listed() => Below::Nothing,
        _ => Below::NoModel,
    }
}

#[component]
fn Foot() -> impl IntoView {
    let page = Page::here();
    let below = page.part(below);
    // The first page shows the import where it was begun.
    let welcome = page.part(App::first_visit);
    view! {
        <div class="foot">
            <Show when=move || !welcome.get()>
                <ImportPanel/>
            </Show>
            {move || match below.get() {
                Below::Nothing => ().into_any(),
                Below::Compose => view! { <Composer/> }.into_any(),
                Below::Loading => view! { <Loading/> }.into_any(),
                Below::CannotChat => view! { <CannotChat/> }.into_any(),
                Below::NoModel => view! { <NoModel/> }.into_any(),
            }}
        </div>
    }
}

#[component]
fn Loading() -> impl IntoView {
    let page = Page::here();
    let words = page.part(|app| match &app.engine {
        Engine::Loading { done, total, .. } if *total > 0 => {
            format!("{} of {}", text::bytes(*done), text::bytes(*total))
        }
        _ => String::new(),
    });
    let percent = page.part(|app| match &app.engine {
        Engine::Loading { done, total, .. } => text::percent(*done, *total),
        _ => 0,
    });
    view! {
        <section class="import" aria-label="Loading">
            <p class="phase">"Loading the model into memory and checking every piece"</p>
            <div
                class="progress"
                role="progressbar"
                aria-label="Loading"
                aria-valuemin="0"
                aria-valuemax="100"
                aria-valuenow=move || percent.get()
            >
                <span style:width=move || format!("{}%", percent.get())></span>
            </div>
            <p class="numbers"><span>{move || words.get()}</span></p>
        </section>
    }
}

#[component]
fn CannotChat() -> impl IntoView {
    let page = Page::here();
    let why = page.part(|app| {
        app.engine
            .loaded()
            .and_then(|(model, _)| text::cannot_chat(model.chat))
    });
    view! {
        <div class="notice plain" id="cannot-chat">
            <div>
                <p class="notice-title">{move || why.get().map(|(why, _)| why)}</p>
                <p class="remedy">{move || why.get().map(|(_, remedy)| remedy)}</p>
            </div>
        </div>
    }
}

/// Conversations can be read; to go on, a model is one press away.
#[component]
fn NoModel() -> impl IntoView {
    let page = Page::here();
    let models = page.part(|app| {
        let complete = app
            .library
            .models()
            .iter()
            .filter(|model| model.partial.is_none());
        let able = complete.filter(|model| model.chat == ChatAbility::Yes);
        able.map(|model| (model.id, model.name.clone()))
            .take(CHOICES_MAX)
            .collect::<Vec<_>>()
    });
    view! {
        <div class="notice plain">
            <p>"No model is loaded. Conversations can be read; to go on, load one."</p>
            <div class="actions">
                <For each=move || models.get() key=|(id, _)| *id let:choice>
                    <button
                        class="primary"
                        type="button"
                        on:click=move |_| page.act(Action::Load(choice.0))
                    >
                        "Load "{choice.1}
                    </button>
                </For>
                <a class="button" href=Screen::Models.address()>"Models"</a>
            </div>
        </div>
    }
}

//! What is on the screen. Components read parts of the state and give actions back; what they
//! say comes from `text`. Reading order: this file (the frame), `chat` and what it is made of,
//! `models`, `about`.

mod about;
mod address;
mod bench;
mod chat;
mod composer;
mod conversations;
mod fit;
mod import;
mod keeping;
mod markdown;
mod measures;
mod message;
mod models;
mod notices;
mod offer;
mod receive;
mod routers;
mod settings;
mod share;

use leptos::prelude::*;

use crate::page::{Page, Screen};
use crate::state::{Engine, Import, Start};
use crate::text;

#[component]
pub fn Root() -> impl IntoView {
    let page = Page::here();
    view! {
        <a class="skip" href="#main" on:click=skip_to_main>"Skip to the content"</a>
        <Header/>
        <main id="main" tabindex="-1">
            <notices::Notices/>
            {move || match page.screen.get() {
                Screen::Chat => view! { <chat::Chat/> }.into_any(),
                Screen::Models => view! { <models::Models/> }.into_any(),
                Screen::About => view! { <about::About/> }.into_any(),
            }}
        </main>
        <Show when=move || page.dragging.get()>
            <div class="veil" aria-hidden="true">
                <p>"Drop the model here"</p>
                <p class="small">"A .gguf or .slm file. It is read on this device only."</p>
            </div>
        </Show>
    }
}

/// The address after `#` names screens, so the link itself must not be followed.
fn skip_to_main(event: leptos::ev::MouseEvent) {
    event.prevent_default();
    focus("main");
}

/// Puts the cursor into an element, if it is there.
fn focus(id: &str) {
    use wasm_bindgen::JsCast;
    let found = document().get_element_by_id(id);
    if let Some(element) = found.and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok())
    {
        element.focus().unwrap_or_default();
    }
}

#[component]
fn Header() -> impl IntoView {
    view! {
        <header class="bar">
            <a class="brand" href=Screen::Chat.address() aria-label="TinyRustLM, to the chat">
                <img src="icons/mark.svg" alt="" width="28" height="28"/>
                <span>"TinyRustLM"</span>
            </a>
            <nav aria-label="Screens">
                <Tab id="nav-chat" screen=Screen::Chat words="Chat"/>
                <Tab id="nav-models" screen=Screen::Models words="Models"/>
                <Tab id="nav-about" screen=Screen::About words="About"/>
            </nav>
            <Status/>
        </header>
    }
}

#[component]
fn Tab(id: &'static str, screen: Screen, words: &'static str) -> impl IntoView {
    let page = Page::here();
    let current = move || (page.screen.get() == screen).then_some("page");
    view! { <a id=id href=screen.address() aria-current=current>{words}</a> }
}

/// Which model answers, or what is in its way.
#[component]
fn Status() -> impl IntoView {
    let page = Page::here();
    let words = page.part(|app| match &app.engine {
        Engine::Loaded { model, .. } => model.name.clone(),
        Engine::Loading {
            model, done, total, ..
        } => {
            let name = app
                .library
                .find(*model)
                .map_or("a model", |model| &model.name);
            format!("Loading {name}, {} %", text::percent(*done, *total))
        }
        Engine::Failed { .. } => "The model could not be loaded".into(),
        Engine::Empty if app.imports.running() => match app.imports.current() {
            Some(Import {
                progress: Some(p), ..
            }) if p.bytes_total > 0 => {
                format!(
                    "Bringing a model in, {} %",
                    text::percent(p.bytes, p.bytes_total)
                )
            }
            _ => "Bringing a model in".into(),
        },
        Engine::Empty if app.start.ready() => "No model loaded".into(),
        Engine::Empty => match app.start {
            Start::Failed(_) => "The engine is not running".into(),
            _ => "Starting".into(),
        },
    });
    let loaded = page.part(|app| app.engine.loaded().is_some());
    let aside = page.part(|app| match &app.tabs.elsewhere {
        Some(import) => Some(format!(
            "Another tab is bringing in {}, {} %",
            import.name,
            text::percent(import.progress.bytes, import.progress.bytes_total)
        )),
        None => app.tabs.role.and_then(text::role).map(str::to_owned),
    });
    view! {
        <p class="status" class:on=move || loaded.get()>
            <span class="dot" aria-hidden="true"></span>
            <span class="status-words">
                <span id="model-name">{move || words.get()}</span>
                <Show when=move || aside.with(Option::is_some)>
                    <span id="aside" class="muted">{move || aside.get()}</span>
                </Show>
            </span>
        </p>
    }
}

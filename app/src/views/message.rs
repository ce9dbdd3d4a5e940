//! One turn of a conversation.

use leptos::prelude::*;
use protocol::Role;

use super::markdown::Markdown;
use crate::error::AppError;
use crate::page::{Page, fresh_seed};
use crate::state::{Action, App, ConversationId, End, Turn};
use crate::text;

fn turn(app: &App, conversation: ConversationId, at: usize) -> Option<&Turn> {
    app.chat.find(conversation)?.turns.get(at)
}

#[component]
pub fn Message(conversation: ConversationId, at: usize) -> impl IntoView {
    let page = Page::here();
    let asked = page
        .app
        .with_untracked(|app| turn(app, conversation, at).is_some_and(|t| t.role == Role::User));
    let words = page.part(move |app| {
        turn(app, conversation, at)
            .map(|turn| turn.text.clone())
            .unwrap_or_default()
    });
    if asked {
        return view! {
            <article class="message user">
                <p class="who">"You"</p>
                <div class="text">{move || words.get()}</div>
            </article>
        }
        .into_any();
    }
    view! { <Answer conversation at words/> }.into_any()
}

#[component]
fn Answer(conversation: ConversationId, at: usize, words: Memo<String>) -> impl IntoView {
    let page = Page::here();
    let live = page.part(move |app| {
        let last = app
            .chat
            .find(conversation)
            .is_some_and(|c| c.turns.len() == at + 1);
        last && app
            .chat
            .live()
            .is_some_and(|live| live.conversation == conversation)
    });
    let who = page.part(move |app| {
        let end = turn(app, conversation, at).and_then(|turn| turn.end.as_ref());
        let loaded = || app.engine.loaded().map(|(model, _)| model.name.as_str());
        let name = end.map(|end| end.model.as_str()).or_else(loaded);
        name.filter(|name| !name.is_empty())
            .unwrap_or("Model")
            .to_string()
    });
    let reading = page.part(|app| {
        let (done, total) = app.chat.live()?.prefill?;
        Some(format!(
            "Reading, {} %",
            text::percent(u64::from(done), u64::from(total))
        ))
    });
    // What stands where no word has been written yet, or none ever was.
    let instead = move || match live.get() {
        true => reading.get().unwrap_or_else(|| "Reading".into()),
        false => "No answer.".into(),
    };
    view! {
        <article class="message assistant" class:live=move || live.get()>
            <p class="who">{move || who.get()}</p>
            <div>
                <div class="text"><Markdown words/></div>
                <Show when=move || words.with(String::is_empty)>
                    <p class="waiting">{instead}</p>
                </Show>
            </div>
            <Show when=move || !live.get()>
                <Under conversation at words/>
            </Show>
        </article>
    }
}

/// How it ended, what it cost, and what can be done with it.
#[component]
fn Under(conversation: ConversationId, at: usize, words: Memo<String>) -> impl IntoView {
    let page = Page::here();
    let end = page.part(move |app| turn(app, conversation, at).and_then(|turn| turn.end.clone()));
    let figures = move || match end.get()?.end {
        End::Finished { figures, .. } => {
            let (tokens, rate) = text::figures(&figures);
            Some(view! { <span>{tokens}</span> {rate.map(|rate| view! { <span>{rate}</span> })} })
        }
        _ => None,
    };
    let remark = move || match end.get()?.end {
        End::Finished { finish, .. } => text::finish(finish),
        End::Failed(code) => Some(text::code(code)),
        End::Interrupted => Some("Interrupted"),
    };
    let more = move || end.get().map(|end| text::more(&end));
    let again = page.part(move |app| {
        app.can_send() && app.chat.current().is_some_and(|c| c.turns.len() == at + 1)
    });
    let cut = page.part(move |app| turn(app, conversation, at).is_some_and(Turn::can_go_on));
    view! {
        <footer class="under">
            <span class="remark">{remark}</span>
            <span class="figures" title=more>{figures}</span>
            <span class="actions">
                <Show when=move || !words.with(String::is_empty)>
                    <Copy words/>
                </Show>
                <Show when=move || again.get() && cut.get()>
                    <button
                        class="quiet go-on"
                        type="button"
                        on:click=move |_| page.act(Action::GoOn { seed: fresh_seed() })
                    >
                        "Go on"
                    </button>
                </Show>
                <Show when=move || again.get()>
                    <button
                        class="quiet"
                        type="button"
                        on:click=move |_| page.act(Action::Again { seed: fresh_seed() })
                    >
                        "Again"
                    </button>
                </Show>
            </span>
        </footer>
    }
}

/// Copies a text, and says so.
#[component]
pub fn Copy(
    #[prop(into)] words: Signal<String>,
    #[prop(default = "Copy")] label: &'static str,
) -> impl IntoView {
    let page = Page::here();
    let (copied, set_copied) = signal(false);
    let copy = move |_| {
        leptos::task::spawn_local(async move {
            match write_to_clipboard(&words.get_untracked()).await {
                Some(()) => set_copied.set(true),
                None => page.act(Action::Trouble(AppError::ClipboardRefused)),
            }
        });
    };
    view! {
        <button class="quiet" type="button" on:click=copy>
            {move || if copied.get() { "Copied" } else { label }}
        </button>
    }
}

/// Insecure pages have no clipboard at all.
async fn write_to_clipboard(text: &str) -> Option<()> {
    let navigator = window().navigator();
    let clipboard = js_sys::Reflect::get(&navigator, &"clipboard".into()).ok()?;
    if clipboard.is_undefined() {
        return None;
    }
    let promise = navigator.clipboard().write_text(text);
    wasm_bindgen_futures::JsFuture::from(promise)
        .await
        .ok()
        .map(|_| ())
}

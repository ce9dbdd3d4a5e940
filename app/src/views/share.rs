//! Giving a model to other browsers: a link, two codes, and a way to stop at once.

use format::ModelId;
use leptos::ev::SubmitEvent;
use leptos::html::Input;
use leptos::prelude::*;
use p2p::Qr;
use protocol::ModelSummary;

use super::message::Copy;
use crate::page::{Page, fresh_seed};
use crate::state::{Action, Exchange, ShareWish};
use crate::text;

const LIMITS: [(&str, Option<u32>); 4] = [
    ("as fast as possible", None),
    ("at most 5 MB/s", Some(5_000_000)),
    ("at most 1 MB/s", Some(1_000_000)),
    ("at most 200 kB/s", Some(200_000)),
];

#[component]
pub fn ShareButton(id: ModelId) -> impl IntoView {
    let page = Page::here();
    let shared = page.part(move |app| app.sharing.wish(id).is_some());
    let share = move |_| {
        page.act(Action::Share {
            model: id,
            wish: ShareWish::default(),
            seed: fresh_seed(),
        });
    };
    view! {
        <Show when=move || !shared.get()>
            <button class="quiet share" type="button" title=text::WHAT_A_PEER_LEARNS on:click=share>
                "Share"
            </button>
        </Show>
    }
}

/// Shown below a model that is shared.
#[component]
pub fn SharePanel(model: ModelSummary) -> impl IntoView {
    let page = Page::here();
    let id = model.id;
    let shared = page.part(move |app| app.sharing.wish(id).is_some());
    view! {
        <Show when=move || shared.get()>
            <Panel model=model.clone()/>
        </Show>
    }
}

#[component]
fn Panel(model: ModelSummary) -> impl IntoView {
    let page = Page::here();
    let id = model.id;
    let name = model.name.clone();
    let link = page.part(move |app| match app.sharing.invite(id, &name) {
        Ok(fragment) => format!("{}#{fragment}", address()),
        Err(error) => error.to_string(),
    });
    let state = page.part(move |app| match app.sharing.room(id) {
        Some(room) => text::giving(room),
        None => "Getting ready".into(),
    });
    let refused = page.part(move |app| app.sharing.room(id).and_then(|room| room.refused.clone()));
    let licence = match &model.licence {
        Some(licence) => format!("Its licence is {licence}: give it only as that allows."),
        None => "No licence is stated: give it only if you may.".into(),
    };
    view! {
        <section class="sharing" aria-label="Sharing">
            <p class="share-state" role="status">{move || state.get()}</p>
            <p class="muted">{text::WHAT_A_PEER_LEARNS}" "{licence}</p>
            <div class="share-row">
                <input
                    class="share-link"
                    aria-label="Link to this model"
                    readonly=true
                    prop:value=move || link.get()
                />
                <Copy words=link label="Copy link"/>
            </div>
            <details>
                <summary>"Show as a QR code"</summary>
                {move || picture(&link.get())}
            </details>
            <TrackerField id/>
            {move || refused.get().map(|words| view! { <p class="warn">"The tracker says: "{words}</p> })}
            <Speed id/>
            <ByCode id link/>
            <div class="actions">
                <button
                    class="share-stop"
                    type="button"
                    on:click=move |_| page.act(Action::Unshare(id))
                >
                    "Stop sharing"
                </button>
            </div>
        </section>
    }
}

/// The page's own address without what stands behind `#` or `?`.
fn address() -> String {
    let location = window().location();
    let origin = location.origin().unwrap_or_default();
    format!("{origin}{}", location.pathname().unwrap_or_default())
}

/// A text as squares, for a camera.
pub fn picture(words: &str) -> impl IntoView + use<> {
    Qr::new(words).ok().map(|qr| {
        let width = qr.width();
        view! {
            <svg
                class="qr"
                viewBox=format!("0 0 {width} {width}")
                role="img"
                aria-label="QR code of the text above"
                shape-rendering="crispEdges"
            >
                <rect width="100%" height="100%" fill="#fff"/>
                <path d=qr.svg_path() fill="#000"/>
            </svg>
        }
    })
}

fn change(page: Page, id: ModelId, change: impl FnOnce(&mut ShareWish)) {
    let wish = page.app.with_untracked(|app| app.sharing.wish(id));
    if let Some(mut wish) = wish {
        change(&mut wish);
        let seed = fresh_seed();
        page.act(Action::Share {
            model: id,
            wish,
            seed,
        });
    }
}

#[component]
fn TrackerField(id: ModelId) -> impl IntoView {
    let page = Page::here();
    let field = NodeRef::<Input>::new();
    let used = page.part(move |app| app.sharing.wish(id).and_then(|wish| wish.tracker));
    let save = move |event: SubmitEvent| {
        event.prevent_default();
        let text = field.get_untracked().map(|field| field.value());
        let text = text.unwrap_or_default().trim().to_owned();
        change(page, id, |wish| {
            wish.tracker = (!text.is_empty()).then_some(text)
        });
    };
    view! {
        <form class="address" on:submit=save>
            <label>
                "Find each other through a tracker (optional)"
                <span class="address-row">
                    <input
                        class="share-tracker"
                        type="url"
                        placeholder="wss://…"
                        autocomplete="off"
                        spellcheck="false"
                        node_ref=field
                        prop:value=move || used.get().unwrap_or_default()
                    />
                    <button class="share-tracker-use" type="submit">"Use"</button>
                </span>
            </label>
        </form>
    }
}

#[component]
fn Speed(id: ModelId) -> impl IntoView {
    let page = Page::here();
    let choose = move |event| {
        let at: usize = event_target_value(&event).parse().unwrap_or_default();
        let limit = LIMITS.get(at).and_then(|(_, limit)| *limit);
        change(page, id, |wish| wish.limit = limit);
    };
    let options = LIMITS.iter().enumerate();
    let options = options.map(|(at, (words, _))| view! { <option value=at>{*words}</option> });
    view! {
        <label class="share-speed">
            "Give "
            <select on:change=choose>{options.collect_view()}</select>
        </label>
    }
}

/// Two people, two codes, no server.
#[component]
fn ByCode(id: ModelId, link: Memo<String>) -> impl IntoView {
    let page = Page::here();
    let exchange = page.part(move |app| app.sharing.exchange(id).cloned());
    move || match exchange.get() {
        Some(Exchange::Making) => view! { <p class="muted">"Making a code …"</p> }.into_any(),
        Some(Exchange::Offer(_)) => view! { <Offered id link/> }.into_any(),
        Some(Exchange::Connecting | Exchange::Answer(_)) => {
            view! { <p class="muted">"Connecting …"</p> }.into_any()
        }
        other => {
            let failed = match other {
                Some(Exchange::Failed(words)) => Some(words),
                _ => None,
            };
            view! {
                {failed.map(|words| view! { <p class="warn">{words}</p> })}
                <button
                    class="share-offer"
                    type="button"
                    on:click=move |_| page.act(Action::MakeOffer(id))
                >
                    "Connect by code"
                </button>
            }
            .into_any()
        }
    }
}

#[component]
fn Offered(id: ModelId, link: Memo<String>) -> impl IntoView {
    let page = Page::here();
    let field = NodeRef::<Input>::new();
    let connect = move |event: SubmitEvent| {
        event.prevent_default();
        let code = field.get_untracked().map(|field| field.value());
        let code = code.unwrap_or_default().trim().to_owned();
        if !code.is_empty() {
            page.act(Action::TakeAnswer(id, code));
        }
    };
    view! {
        <p class="muted">{text::BY_CODE}</p>
        <div class="share-row">
            <textarea class="share-code" rows="4" readonly=true prop:value=move || link.get()>
            </textarea>
            <Copy words=link label="Copy"/>
        </div>
        <form class="address" on:submit=connect>
            <label>
                "The code that came back"
                <span class="address-row">
                    <input class="share-answer" autocomplete="off" spellcheck="false" node_ref=field/>
                    <button class="share-connect" type="submit">"Connect"</button>
                </span>
            </label>
        </form>
    }
}

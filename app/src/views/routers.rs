//! Servers that help peers through routers: a person's own, or none.

use leptos::prelude::*;

use crate::page::Page;
use crate::state::{Action, FieldError};
use crate::text;

#[component]
pub fn Routers() -> impl IntoView {
    let page = Page::here();
    let kept = page.part(|app| app.settings.ice_servers.clone());
    let (wrong, set_wrong) = signal(None::<FieldError>);
    let change = move |event| {
        let mut settings = page.app.with_untracked(|app| app.settings.clone());
        let set = settings.set_ice_servers(&event_target_value(&event));
        set_wrong.set(set.err());
        if set.is_ok() {
            page.act(Action::Configure(settings));
        }
    };
    view! {
        <details id="routers">
            <summary>"Peers behind other routers"</summary>
            <p class="muted">{text::BEYOND_ROUTERS}</p>
            <div class="setting">
                <label for="ice-servers">"STUN or TURN servers, one a line"</label>
                <textarea
                    id="ice-servers"
                    rows="2"
                    placeholder="stun:HOST:PORT or turn:HOST:PORT,USER,PASSWORD"
                    autocomplete="off"
                    spellcheck="false"
                    aria-describedby="ice-servers-wrong"
                    aria-invalid=move || wrong.get().is_some().to_string()
                    prop:value=move || kept.get()
                    on:change=change
                ></textarea>
                <p id="ice-servers-wrong" class="wrong" role="status">
                    {move || wrong.get().map(FieldError::words)}
                </p>
            </div>
        </details>
    }
}

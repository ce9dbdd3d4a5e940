//! A model from any address that a person names.

use leptos::ev::SubmitEvent;
use leptos::html::Input;
use leptos::prelude::*;

use crate::page::Page;
use crate::state::Action;

#[component]
pub fn AddressField() -> impl IntoView {
    let page = Page::here();
    let field = NodeRef::<Input>::new();
    let fetch = move |event: SubmitEvent| {
        event.prevent_default();
        let address = field.get_untracked().map(|field| field.value());
        let address = address.unwrap_or_default().trim().to_owned();
        if !address.is_empty() {
            page.act(Action::ImportAddress(address));
        }
    };
    view! {
        <form class="address" on:submit=fetch>
            <label for="address-input">"Or from an address"</label>
            <div class="address-row">
                <input
                    id="address-input"
                    type="url"
                    required=true
                    inputmode="url"
                    autocomplete="off"
                    spellcheck="false"
                    placeholder="https://…/model.gguf"
                    node_ref=field
                />
                <button id="address-get" type="submit">"Fetch"</button>
            </div>
        </form>
    }
}

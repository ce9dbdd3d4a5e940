//! How answers are sampled, and what is kept of them. A value is taken when the field is left, and
//! only if it is right.

use leptos::prelude::*;

use crate::page::Page;
use crate::state::{Action, FieldError, MAX_NEW_MAX, Settings};
use crate::text;

type Setter = fn(&mut Settings, &str) -> Result<(), FieldError>;

#[component]
pub fn SettingsPanel() -> impl IntoView {
    let page = Page::here();
    let system = page.app.with_untracked(|app| app.settings.system.clone());
    let set_system = move |event| {
        let mut settings = page.app.with_untracked(|app| app.settings.clone());
        settings.system = event_target_value(&event);
        page.act(Action::Configure(settings));
    };
    view! {
        <section id="settings" class="settings" aria-label="Settings">
            <Field
                id="temperature"
                label="Temperature"
                hint="0 to 2. At 0 always the likeliest word."
                value=|settings| settings.temperature.to_string()
                set=Settings::set_temperature
            />
            <Field
                id="top-p"
                label="Top-p"
                hint="Up to 1. The share of likely words kept."
                value=|settings| settings.top_p.to_string()
                set=Settings::set_top_p
            />
            <Field
                id="max-new"
                label="Longest answer"
                hint=format!("In tokens, 1 to {MAX_NEW_MAX}.")
                value=|settings| settings.max_new.to_string()
                set=Settings::set_max_new
            />
            <Field
                id="seed"
                label="Seed"
                hint="Empty: a new one for each answer."
                value=|settings| settings.seed.map(|seed| seed.to_string()).unwrap_or_default()
                set=Settings::set_seed
            />
            <div class="setting wide">
                <label for="system">"Instructions that come before every conversation"</label>
                <textarea id="system" rows="1" on:change=set_system>{system}</textarea>
            </div>
            <Keep/>
            <button
                class="quiet"
                type="button"
                on:click=move |_| {
                    // What is not shown here stays.
                    let Settings { last_model, ice_servers, .. } =
                        page.app.with_untracked(|app| app.settings.clone());
                    let settings = Settings { last_model, ice_servers, ..Settings::default() };
                    page.act(Action::Configure(settings));
                }
            >
                "Back to the defaults"
            </button>
        </section>
    }
}

/// Whether what was computed of conversations is kept.
#[component]
fn Keep() -> impl IntoView {
    let page = Page::here();
    let keep = page.part(|app| app.settings.keep);
    let set_keep = move |event| {
        let mut settings = page.app.with_untracked(|app| app.settings.clone());
        settings.keep = event_target_checked(&event);
        page.act(Action::Configure(settings));
    };
    let computed = page.part(|app| text::computed(app.settings.keep, app.kept));
    view! {
        <div class="setting wide">
            <label for="keep">
                <input
                    id="keep"
                    type="checkbox"
                    aria-describedby="keep-hint"
                    prop:checked=move || keep.get()
                    on:change=set_keep
                />
                " Let long conversations go on at once"
            </label>
            <p id="keep-hint" class="muted">{move || computed.get()}</p>
        </div>
    }
}

#[component]
fn Field(
    id: &'static str,
    label: &'static str,
    #[prop(into)] hint: String,
    value: fn(&Settings) -> String,
    set: Setter,
) -> impl IntoView {
    let page = Page::here();
    let kept = page.part(move |app| value(&app.settings));
    let (wrong, set_wrong) = signal(None::<FieldError>);
    let change = move |event| {
        let mut settings = page.app.with_untracked(|app| app.settings.clone());
        match set(&mut settings, &event_target_value(&event)) {
            Ok(()) => {
                set_wrong.set(None);
                page.act(Action::Configure(settings));
            }
            Err(error) => set_wrong.set(Some(error)),
        }
    };
    let hint_id = format!("{id}-hint");
    view! {
        <div class="setting">
            <label for=id>{label}</label>
            <input
                id=id
                inputmode="decimal"
                autocomplete="off"
                aria-describedby=hint_id.clone()
                aria-invalid=move || wrong.get().is_some().to_string()
                prop:value=move || kept.get()
                on:change=change
            />
            <p id=hint_id class="muted">
                <span class="wrong">{move || wrong.get().map(FieldError::words)}</span>
                " "
                {hint}
            </p>
        </div>
    }
}

//! Fixed work: how fast this device is, and whether it computes the same bits as another.

use leptos::prelude::*;

use crate::page::Page;
use crate::state::{Action, App, BITS, Outcome, Probe, SPEED};
use crate::text;

#[component]
pub fn Measures() -> impl IntoView {
    let page = Page::here();
    let loaded = page.part(|app| app.engine.loaded().is_some());
    view! {
        <section>
            <h2>"Speed and bits"</h2>
            <Show when=move || !loaded.get()>
                <p class="muted">"Load a model to measure it."</p>
            </Show>
            <div class="measure">
                <Run id="measure" probe=SPEED words="Measure speed"/>
                <p id="measure-result" aria-live="polite">
                    <Result probe=SPEED result=speed/>
                </p>
            </div>
            <div class="measure">
                <Run id="bits" probe=BITS words="Check the bits"/>
                <p id="bits-result" aria-live="polite">
                    <Result probe=BITS result=bits/>
                </p>
                <p class="muted">
                    "The same model gives the same SHA-256 on every device and in every browser. "
                    "Compare it with a friend’s."
                </p>
            </div>
        </section>
    }
}

#[component]
fn Run(id: &'static str, probe: Probe, words: &'static str) -> impl IntoView {
    let page = Page::here();
    let idle = page.part(|app| app.engine.loaded().is_some() && !app.is_at_work());
    view! {
        <button
            id=id
            type="button"
            disabled=move || !idle.get()
            on:click=move |_| page.act(Action::Measure(probe))
        >
            {words}
        </button>
    }
}

#[component]
fn Result(probe: Probe, result: fn(&App) -> Option<String>) -> impl IntoView {
    let page = Page::here();
    let words = page.part(move |app| {
        if app.measures.running() != Some(probe) {
            return result(app).unwrap_or_default();
        }
        match app.measures.progress() {
            Some((done, total)) if done < total => {
                format!(
                    "Reading, {} %",
                    text::percent(u64::from(done), u64::from(total))
                )
            }
            _ => "Working …".into(),
        }
    });
    move || words.get()
}

fn speed(app: &App) -> Option<String> {
    let Outcome { figures, .. } = app.measures.speed()?;
    let read = text::rate(figures.prompt_tokens, figures.prefill_ms)?;
    let write = text::rate(figures.new_tokens, figures.decode_ms)?;
    Some(format!(
        "Reading {read} tokens/s ({} tokens), writing {write} tokens/s ({} tokens)",
        figures.prompt_tokens, figures.new_tokens
    ))
}

fn bits(app: &App) -> Option<String> {
    app.measures
        .bits()
        .map(|outcome| outcome.logits_sha256.to_string())
}

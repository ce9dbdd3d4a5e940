//! The memory that the loaded model takes, part by part.

use leptos::prelude::*;

use crate::page::Page;
use crate::text;

#[component]
pub fn Fit() -> impl IntoView {
    let page = Page::here();
    let plan = page.part(|app| app.engine.loaded().map(|(_, fit)| *fit));
    move || {
        let fit = plan.get()?;
        let parts = text::fit_parts(&fit);
        let bar = parts
            .iter()
            .enumerate()
            .map(|(at, &(_, bytes))| {
                let share = text::share(bytes, fit.total);
                view! {
                    <span class=format!("part part-{at}") style:flex-grow=share.to_string()></span>
                }
            })
            .collect_view();
        let legend = parts
            .iter()
            .enumerate()
            .map(|(at, &(name, bytes))| {
                view! {
                    <li>
                        <span class=format!("key part-{at}") aria-hidden="true"></span>
                        {name}
                        <span class="amount">{text::bytes(bytes)}</span>
                    </li>
                }
            })
            .collect_view();
        let sum = format!(
            "{} of the {} that this build can hold, with room for {} tokens.",
            text::bytes(fit.total),
            text::bytes(fit.limit),
            text::count(u64::from(fit.context)),
        );
        Some(view! {
            <section>
                <h2>"Memory"</h2>
                <p>{sum}</p>
                <div class="stack" aria-hidden="true">{bar}</div>
                <ul class="legend">{legend}</ul>
            </section>
        })
    }
}

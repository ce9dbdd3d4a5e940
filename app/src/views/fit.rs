//! The memory that a model takes, part by part: planned and taken; and what helps if it is too
//! much.

use leptos::prelude::*;
use protocol::{FitReport, Lever, Regions};

use crate::page::Page;
use crate::state::Action;
use crate::text;

#[component]
pub fn Fit() -> impl IntoView {
    let page = Page::here();
    let plan = page.part(|app| app.engine.loaded().map(|(_, fit)| *fit));
    move || {
        let fit = plan.get()?;
        Some(view! {
            <section id="fit">
                <h2>"Memory"</h2>
                <p>{text::fit_sum(&fit)}</p>
                <Bars fit/>
            </section>
        })
    }
}

/// The plan as one bar; what was taken as another beside it, and both in figures.
#[component]
fn Bars(fit: FitReport) -> impl IntoView {
    let planned = fit.regions();
    let whole = fit.total.max(fit.taken.map_or(0, |taken| taken.total()));
    let taken = fit.taken.map(|taken| {
        view! { <Bar name="Taken" regions=taken whole/> }
    });
    let both = text::fit_parts(&planned)
        .into_iter()
        .zip(text::fit_parts(&fit.taken.unwrap_or(planned)));
    let legend = both
        .enumerate()
        .filter(|(_, ((_, planned), _))| *planned > 0)
        .map(|(at, ((name, planned), (_, taken)))| {
            let taken = fit.taken.is_some().then(|| text::bytes(taken));
            view! {
                <li>
                    <span class=format!("key part-{at}") aria-hidden="true"></span>
                    {name}
                    <span class="amount">{text::bytes(planned)}</span>
                    {taken.map(|taken| view! { <span class="amount taken">{taken}</span> })}
                </li>
            }
        })
        .collect_view();
    view! {
        <Bar name="Planned" regions=planned whole/>
        {taken}
        <p class="muted">"Each part as planned, and as it was really taken."</p>
        <ul class="legend">{legend}</ul>
    }
}

#[component]
fn Bar(name: &'static str, regions: Regions, whole: u64) -> impl IntoView {
    let parts = text::fit_parts(&regions)
        .into_iter()
        .enumerate()
        .map(|(at, (_, bytes))| {
            let share = text::share(bytes, whole);
            view! {
                <span class=format!("part part-{at}") style:flex-grow=share.to_string()></span>
            }
        })
        .collect_view();
    let rest = text::share(whole.saturating_sub(regions.total()), whole);
    view! {
        <div class="bar-row">
            <span class="bar-name">{name}</span>
            <div class="stack" aria-hidden="true">
                {parts}
                <span style:flex-grow=rest.to_string()></span>
            </div>
        </div>
    }
}

/// What a memory of one thread can grow to, where a browser and a device give it.
const GROWN_MAX: u64 = 4_000_000_000;

/// A model that does not fit as it is, and the ways in which it does.
#[component]
pub fn Ways() -> impl IntoView {
    let page = Page::here();
    let fit = page.part(|app| app.fit.clone().filter(|fit| fit.over.is_some()));
    let may_take_more = page.part(|app| {
        let limit = app.fit.as_ref().map(|fit| fit.report.limit);
        app.start.shares_memory() && limit.is_some_and(|limit| limit < GROWN_MAX)
    });
    move || {
        let fit = fit.get()?;
        let why = text::too_much(&fit)?;
        let none = fit.levers.is_empty().then(|| {
            view! {
                <p class="remedy">
                    "Nothing that this program can do makes it fit here; choose a smaller model."
                </p>
            }
        });
        let other_lane = may_take_more.get().then(|| {
            view! {
                <li>
                    <a class="button" href=super::notices::LESS>"Compute with one thread"</a>
                    <span class="muted">
                        "The memory that threads share is smaller here than one that grows."
                    </span>
                </li>
            }
        });
        let ways = fit
            .levers
            .iter()
            .enumerate()
            .map(|(at, lever)| way(page, *lever, if at == 0 { "primary" } else { "" }))
            .collect_view();
        Some(view! {
            <section class="notice plain fitting" id="ways" role="status">
                <div>
                    <p class="notice-title">{fit.name.clone()}" does not fit as it is"</p>
                    <p>{why}</p>
                    {none}
                    <ul class="ways-list">{ways} {other_lane}</ul>
                </div>
                <button
                    class="quiet close"
                    type="button"
                    aria-label="Put this message aside"
                    on:click=move |_| page.act(Action::IgnoreFit)
                >
                    "✕"
                </button>
            </section>
        })
    }
}

/// The mildest way stands first and looks like it.
fn way(page: Page, lever: Lever, class: &'static str) -> impl IntoView {
    let (does, costs) = text::lever(&lever);
    view! {
        <li>
            <button
                class=class
                type="button"
                on:click=move |_| page.act(Action::TakeAs(lever.wish))
            >
                {does}
            </button>
            <span class="muted">{costs}</span>
        </li>
    }
}

//! What this page is doing, and what it found out about the browser.

use leptos::prelude::*;
use protocol::ErrorReport;

use super::bench::Bench;
use super::fit::Fit;
use super::measures::Measures;
use super::message::Copy;
use crate::page::{Page, Screen};
use crate::state::{Action, Durability, Start};
use crate::text;

#[component]
pub fn About() -> impl IntoView {
    let page = Page::here();
    page.act(Action::Inspect);
    page.look_at_storage();
    view! {
        <div class="sheet">
            <h1>"About"</h1>
            <p class="lead">
                "TinyRustLM runs small language models in this tab. The page comes from one set "
                "of files, talks to no other host, and works without a network once a model is here."
            </p>
            <Engine/>
            <Downgrades/>
            <Fit/>
            <Measures/>
            <Bench/>
            <Storage/>
            <Records/>
            <Receipt/>
        </div>
    }
}

#[component]
fn Row(label: &'static str, children: Children) -> impl IntoView {
    view! {
        <div class="row">
            <dt>{label}</dt>
            <dd>{children()}</dd>
        </div>
    }
}

#[component]
fn Engine() -> impl IntoView {
    let page = Page::here();
    let lane = page.part(|app| match &app.start {
        Start::Ready { lane, .. } => Some(lane.clone()),
        _ => None,
    });
    let counted = page.part(|app| {
        let known = app.diagnostics.as_ref()?;
        Some(format!(
            "{} scalar, {} SIMD, {} relaxed",
            text::count(known.scalar_calls),
            text::count(known.simd_calls),
            text::count(known.relaxed_calls)
        ))
    });
    view! {
        <section>
            <h2>"Engine"</h2>
            <dl>
                <Row label="Build in use">
                    <span id="lane">
                        {move || lane.get().map_or("none yet", |lane| lane.lane.name())}
                    </span>
                    <p class="muted">{move || lane.get().map(|lane| text::lane(lane.lane))}</p>
                </Row>
                <Row label="Self-tests passed">
                    {move || lane.get().map(|lane| text::count(u64::from(lane.self_tests)))}
                </Row>
                <Row label="Kernel calls so far">
                    {move || counted.get().unwrap_or_else(|| "not asked yet".into())}
                </Row>
                <Row label="Isolated from other origins">
                    {move || lane.get().map(|lane| {
                        if lane.cross_origin_isolated { "yes" } else { "no; one thread is used" }
                    })}
                </Row>
                <Row label="SHA-256 of the build">
                    <span class="hash">
                        {move || lane.get().and_then(|lane| lane.sha256).map(|sha| sha.to_string())}
                    </span>
                </Row>
            </dl>
        </section>
    }
}

/// Every faster build that was refused here, so that slowness is never silent.
#[component]
fn Downgrades() -> impl IntoView {
    let page = Page::here();
    let refused = page.part(|app| match &app.start {
        Start::Ready { downgrades, .. } => downgrades.clone(),
        _ => Vec::new(),
    });
    view! {
        <Show when=move || !refused.with(Vec::is_empty)>
            <section>
                <h2>"Faster builds that were refused"</h2>
                <ul id="downgrades" class="reports">
                    {move || refused.get().into_iter().map(report).collect_view()}
                </ul>
                <p class="actions">
                    <button
                        id="retry-engines"
                        type="button"
                        on:click=move |_| page.act(Action::RetryEngines)
                    >
                        "Try them again"
                    </button>
                </p>
            </section>
        </Show>
    }
}

fn report(report: ErrorReport) -> impl IntoView {
    let place = format!("{:?}, {:?}", report.code, report.stage);
    view! {
        <li>
            <p>{report.what}</p>
            <p class="remedy">{report.remedy}</p>
            <p class="muted code">{place}</p>
        </li>
    }
}

#[component]
fn Storage() -> impl IntoView {
    let page = Page::here();
    let kind = page.part(|app| app.start.storage());
    let durability = page.part(|app| app.durability);
    let stored = page.part(|app| {
        let known = app.diagnostics.as_ref()?;
        Some(text::bytes(known.stored_bytes))
    });
    let talks = page.part(|app| match app.chat.conversations().len() {
        1 => "1 conversation".to_string(),
        n => format!("{} conversations", text::count(n as u64)),
    });
    let used = move || match durability.get() {
        Durability {
            used: Some(used),
            quota: Some(quota),
            ..
        } => {
            format!(
                "{} of {} that this browser allows",
                text::bytes(used),
                text::bytes(quota)
            )
        }
        _ => "this browser does not say".into(),
    };
    view! {
        <section>
            <h2>"Stored on this device"</h2>
            <dl>
                <Row label="Where">
                    <span id="storage">
                        {move || kind.get().map_or("not known yet", text::storage)}
                        ". "
                        {move || text::kept(kind.get(), durability.get().persisted)}
                    </span>
                </Row>
                <Row label="Models">{move || stored.get()}</Row>
                <Row label="Conversations">{move || talks.get()}</Row>
                <Row label="Space">{used}</Row>
            </dl>
            <p class="actions">
                <a class="button" href=Screen::Models.address()>"Delete models …"</a>
                <ForgetAll/>
            </p>
        </section>
    }
}

#[component]
fn ForgetAll() -> impl IntoView {
    let page = Page::here();
    let (doubtful, set_doubtful) = signal(false);
    let any = page.part(|app| !app.chat.conversations().is_empty());
    let forget = move |_| {
        if !doubtful.get_untracked() {
            return set_doubtful.set(true);
        }
        let ids = page.app.with_untracked(|app| {
            app.chat
                .conversations()
                .iter()
                .map(|one| one.id)
                .collect::<Vec<_>>()
        });
        for id in ids {
            page.act(Action::Forget(id));
        }
        set_doubtful.set(false);
    };
    view! {
        <button type="button" class:danger=move || doubtful.get() disabled=move || !any.get() on:click=forget>
            {move || if doubtful.get() { "Really delete all conversations" } else { "Delete all conversations" }}
        </button>
    }
}

#[component]
fn Records() -> impl IntoView {
    let page = Page::here();
    let records = page.part(|app| {
        app.diagnostics
            .as_ref()
            .map(|known| known.records.iter().map(|one| one.report.clone()).collect())
            .unwrap_or_else(Vec::new)
    });
    let whole = page.part(|app| {
        app.diagnostics
            .as_ref()
            .map(|known| text::diagnostics(known, &utc))
            .unwrap_or_default()
    });
    view! {
        <section>
            <h2>"Diagnostics"</h2>
            <p class="muted">
                "What went wrong lately. No words of a conversation, no weights and no file names are in it."
            </p>
            <Show
                when=move || !records.with(Vec::is_empty)
                fallback=|| view! { <p>"Nothing went wrong."</p> }
            >
                <ul class="reports">{move || records.get().into_iter().map(report).collect_view()}</ul>
            </Show>
            <details>
                <summary>"Show what is copied"</summary>
                <pre id="diagnosis">{move || whole.get()}</pre>
            </details>
            <p class="actions">
                <Copy words=whole/>
                <button class="quiet" type="button" on:click=move |_| page.act(Action::Inspect)>
                    "Look again"
                </button>
            </p>
        </section>
    }
}

/// What the engine saw, took and did, for whoever must find a fault.
#[component]
fn Receipt() -> impl IntoView {
    let page = Page::here();
    let whole = page.part(|app| {
        app.diagnostics
            .as_ref()
            .map(text::receipt)
            .unwrap_or_default()
    });
    view! {
        <section>
            <h2>"Engine receipt"</h2>
            <p class="muted">
                "What this browser offers, which build was taken and why, and what really ran."
            </p>
            <details>
                <summary>"Show it"</summary>
                <pre id="receipt">{move || whole.get()}</pre>
            </details>
            <p class="actions"><Copy words=whole/></p>
        </section>
    }
}

/// Milliseconds since 1970 as a date that a person and a program can read.
fn utc(millis: u64) -> String {
    let date = js_sys::Date::new(&(millis as f64).into());
    date.to_iso_string().into()
}

//! The model that is being brought in: phase, bytes, pieces, speed, time, and a way out.

use std::time::Duration;

use leptos::prelude::*;

use super::receive::FromPeers;
use crate::page::{self, Page, now};
use crate::state::{Action, Import, ImportState, Origin};
use crate::text;

#[component]
pub fn ImportPanel() -> impl IntoView {
    let page = Page::here();
    let there = page.part(|app| {
        app.imports
            .current()
            .map(|import| (import.id, import.state))
    });
    move || {
        let (_, state) = there.get()?;
        Some(match state {
            ImportState::Stopped => view! { <Stopped/> }.into_any(),
            _ => view! { <Running/> }.into_any(),
        })
    }
}

/// A part of the current import's words; empty when it has just gone.
fn words(page: Page, part: impl Fn(&Import) -> String + Send + Sync + 'static) -> Memo<String> {
    page.part(move |app| app.imports.current().map(&part).unwrap_or_default())
}

#[component]
fn Running() -> impl IntoView {
    let page = Page::here();
    let name = words(page, |import| import.name.clone());
    let phase = words(page, |import| match (import.state, import.progress) {
        (ImportState::Stopping, _) => "Stopping".into(),
        (_, Some(progress)) => text::phase(progress.phase).into(),
        (_, None) => "Looking at it".into(),
    });
    let stopping = page.part(|app| {
        app.imports
            .current()
            .is_some_and(|import| import.state == ImportState::Stopping)
    });
    view! {
        <section class="import" aria-label="Import">
            <div class="import-head">
                <div>
                    <h2>{move || name.get()}</h2>
                    <p class="phase" aria-live="polite">{move || phase.get()}</p>
                </div>
                <button
                    id="import-cancel"
                    type="button"
                    disabled=move || stopping.get()
                    on:click=move |_| page.act(Action::CancelImport)
                >
                    "Cancel"
                </button>
            </div>
            <Bar/>
            <Fits/>
            <Lull/>
            <Numbers/>
            <FromPeers/>
        </section>
    }
}

/// Said once the header is known, before the weights come.
#[component]
fn Fits() -> impl IntoView {
    let page = Page::here();
    let fits = page.part(|app| {
        let fit = app.fit.as_ref().filter(|fit| fit.over.is_none());
        fit.map(text::fits)
    });
    view! {
        <p id="import-fit" class="muted" hidden=move || fits.get().is_none()>
            {move || fits.get()}
        </p>
    }
}

/// Why nothing comes for now, and how long until it is tried again.
#[component]
fn Lull() -> impl IntoView {
    let page = Page::here();
    let lull = page.part(|app| app.imports.current().and_then(|import| import.lull.clone()));
    let now = RwSignal::new(now());
    let clock = set_interval_with_handle(move || now.set(page::now()), Duration::from_secs(1));
    let clock = clock.ok();
    on_cleanup(move || {
        if let Some(clock) = clock {
            clock.clear();
        }
    });
    view! {
        <p id="import-lull" class="warn" role="status" hidden=move || lull.get().is_none()>
            {move || {
                lull.get()
                    .map(|(why, until)| {
                        format!("{why} {}", text::tried_again(until.saturating_sub(now.get())))
                    })
            }}
        </p>
    }
}

#[component]
fn Bar() -> impl IntoView {
    let page = Page::here();
    // `None` while the size is not known.
    let percent = page.part(|app| {
        let progress = app.imports.current()?.progress?;
        (progress.bytes_total > 0).then(|| text::percent(progress.bytes, progress.bytes_total))
    });
    let spoken = words(page, |import| amount(import).unwrap_or_default());
    view! {
        <div
            id="import-progress"
            class="progress"
            class:unknown=move || percent.get().is_none()
            role="progressbar"
            aria-label="Progress of the import"
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=move || percent.get()
            aria-valuetext=move || spoken.get()
        >
            <span style:width=move || format!("{}%", percent.get().unwrap_or(0))></span>
        </div>
    }
}

#[component]
fn Numbers() -> impl IntoView {
    let page = Page::here();
    let amount = words(page, |import| amount(import).unwrap_or_default());
    let pieces = words(page, |import| match import.progress {
        Some(p) if p.pieces_total > 0 => format!(
            "{} of {} pieces",
            text::count(u64::from(p.pieces)),
            text::count(u64::from(p.pieces_total))
        ),
        _ => String::new(),
    });
    let pace = words(page, |import| {
        let speed = import.pace.bytes_per_second();
        speed
            .map(|speed| format!("{}/s", text::bytes(speed)))
            .unwrap_or_default()
    });
    let left = words(page, |import| {
        let total = import.progress.map_or(0, |progress| progress.bytes_total);
        import
            .pace
            .seconds_left(total)
            .map(text::time_left)
            .unwrap_or_default()
    });
    view! {
        <p class="numbers">
            <span>{move || amount.get()}</span>
            <span>{move || pieces.get()}</span>
            <span>{move || pace.get()}</span>
            <span>{move || left.get()}</span>
        </p>
    }
}

fn amount(import: &Import) -> Option<String> {
    let progress = import.progress?;
    let done = text::bytes(progress.bytes);
    Some(match progress.bytes_total {
        0 => done,
        total => format!("{done} of {}", text::bytes(total)),
    })
}

/// Cancelled or failed: what was checked is still here.
#[component]
fn Stopped() -> impl IntoView {
    let page = Page::here();
    let name = words(page, |import| import.name.clone());
    let kept = words(page, |import| {
        let total = match &import.origin {
            Origin::File { length } | Origin::Borrowed { length } => *length,
            Origin::Catalogue(entry) => entry.length,
            Origin::Files(files) => files.iter().map(|file| file.length).sum(),
            Origin::Address { .. } => import.progress.map_or(0, |p| p.bytes_total),
            Origin::Invite(invited) => invited.id.length,
        };
        match import.kept() {
            0 => "Nothing had been fetched yet.".into(),
            kept => format!("{} of {} are kept.", text::bytes(kept), text::bytes(total)),
        }
    });
    view! {
        <section class="import" aria-label="Import">
            <div class="import-head">
                <div>
                    <h2>{move || name.get()}</h2>
                    <p class="phase">"Stopped. "{move || kept.get()}</p>
                </div>
            </div>
            <div class="actions">
                <button
                    class="primary"
                    type="button"
                    on:click=move |_| page.act(Action::ContinueImport)
                >
                    "Continue"
                </button>
                <button type="button" on:click=move |_| page.act(Action::CloseImport)>
                    "Not now"
                </button>
                <button
                    class="quiet"
                    type="button"
                    on:click=move |_| page.act(Action::DiscardImport)
                >
                    "Discard what was fetched"
                </button>
            </div>
        </section>
    }
}

//! The benchmark: everything that a person can compare between devices, as one document.

use leptos::prelude::*;
use protocol::{BenchFigures, BenchOutcome, BenchPart, BenchRun};

use super::message::Copy;
use crate::page::Page;
use crate::state::Action;
use crate::text;

const FILE: &str = "tinyrustlm-bench.json";

#[component]
pub fn Bench() -> impl IntoView {
    let page = Page::here();
    let running = page.part(|app| app.bench.is_running());
    let idle = page.part(|app| app.engine.loaded().is_some() && !app.is_at_work());
    let outcome = page.part(|app| app.bench.outcome().cloned());
    view! {
        <section id="bench">
            <h2>"Benchmark"</h2>
            <p class="muted">
                "Starts the engine anew, loads the model twice, then reads, writes and stops, three "
                "times each. It takes about half a minute; nothing is sent anywhere."
            </p>
            <p class="actions">
                <Show
                    when=move || running.get()
                    fallback=move || view! {
                        <button
                            id="bench-run"
                            type="button"
                            disabled=move || !idle.get()
                            on:click=move |_| page.act(Action::Bench)
                        >
                            "Run the benchmark"
                        </button>
                    }
                >
                    <button
                        id="bench-stop"
                        type="button"
                        on:click=move |_| page.act(Action::StopBench)
                    >
                        "Stop"
                    </button>
                </Show>
            </p>
            <Show when=move || running.get()>
                <Progress/>
            </Show>
            <div id="bench-result" aria-live="polite">
                {move || outcome.get().map(|outcome| match outcome {
                    BenchOutcome::Complete(figures) => complete(&figures).into_any(),
                    BenchOutcome::Refused(reasons) => view! {
                        <ul class="reports">
                            {reasons.into_iter().map(|reason| view! {
                                <li>
                                    <p>"No figures: "{reason.what}"."</p>
                                    <p class="muted">{part(reason.part)}</p>
                                </li>
                            }).collect_view()}
                        </ul>
                    }.into_any(),
                })}
            </div>
            <Document/>
        </section>
    }
}

#[component]
fn Progress() -> impl IntoView {
    let page = Page::here();
    let percent = page.part(|app| {
        let (done, all) = app.bench.progress().unwrap_or((0, 1));
        text::percent(done as u64, all as u64)
    });
    let words = page.part(|app| app.bench.part().map(part));
    view! {
        <div
            id="bench-progress"
            class="progress"
            role="progressbar"
            aria-label="Benchmark"
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=move || percent.get()
        >
            <span style:width=move || format!("{}%", percent.get())></span>
        </div>
        <p class="muted">{move || words.get()}</p>
    }
}

/// The bundle to copy or to keep, once there is one.
#[component]
fn Document() -> impl IntoView {
    let page = Page::here();
    let json = page.part(|app| {
        let bundle = app.bench.bundle()?;
        serde_json::to_string(&bundle).ok()
    });
    let words = Signal::derive(move || json.get().unwrap_or_default());
    let address = move || {
        let data = js_sys::encode_uri_component(&words.get());
        format!("data:application/json,{data}")
    };
    view! {
        <Show when=move || json.with(Option::is_some)>
            <p class="actions">
                <Copy words/>
                <a id="bench-save" class="button" download=FILE href=address>"Save as a file"</a>
            </p>
        </Show>
    }
}

fn complete(figures: &BenchFigures) -> impl IntoView + use<> {
    let first = figures.first_token_ms;
    let engine = &figures.engine;
    let rows = [
        ("Reading", speed(&figures.prefill)),
        ("Writing", speed(&figures.decode)),
        (
            "First token",
            format!(
                "{} with a new engine, {} with one that has run, {} with the model loaded",
                time(first.cold),
                time(first.cached),
                time(first.warm)
            ),
        ),
        (
            "Loading",
            figures
                .load_ms
                .iter()
                .map(|ms| time(*ms))
                .collect::<Vec<_>>()
                .join(", then "),
        ),
        (
            "Stopping",
            format!(
                "{} at most",
                time(figures.cancel_ms.iter().copied().fold(0.0, f64::max))
            ),
        ),
        ("Memory", text::bytes(figures.memory.total)),
        (
            "Engine",
            format!(
                "{}, {} thread{}; calls: {} scalar, {} SIMD, {} relaxed",
                engine.lane,
                engine.threads,
                if engine.threads == 1 { "" } else { "s" },
                text::count(engine.scalar_calls),
                text::count(engine.simd_calls),
                text::count(engine.relaxed_calls)
            ),
        ),
    ];
    let rows = rows.into_iter().map(|(label, words)| {
        view! {
            <div class="row">
                <dt>{label}</dt>
                <dd>{words}</dd>
            </div>
        }
    });
    view! { <dl>{rows.collect_view()}</dl> }
}

/// The median of the runs.
fn speed(runs: &[BenchRun]) -> String {
    let mut runs = runs.to_vec();
    runs.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    let Some(middle) = runs.get(runs.len() / 2) else {
        return String::new();
    };
    let rate = text::rate(middle.tokens, middle.ms).unwrap_or_else(|| "?".into());
    format!("{rate} tokens/s ({} tokens)", middle.tokens)
}

fn time(ms: f64) -> String {
    match ms {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1000.0),
    }
}

fn part(part: BenchPart) -> &'static str {
    match part {
        BenchPart::Load => "Loading the model",
        BenchPart::FirstToken => "Waiting for a first token",
        BenchPart::Prefill => "Reading",
        BenchPart::Decode => "Writing",
        BenchPart::Cancel => "Stopping in the middle of a long prompt",
    }
}

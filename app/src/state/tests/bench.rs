//! A benchmark from its beginning to its document.

use protocol::{BenchOutcome, BenchPart, Diagnostics, TabRole};

use super::*;

fn done(request: u32, finish: Finish) -> Event {
    Event::Done {
        request: RequestId(request),
        finish,
        figures: Figures {
            prompt_tokens: 128,
            reused_tokens: 0,
            new_tokens: 65,
            prefill_ms: 500.0,
            decode_ms: 1000.0,
        },
    }
}

fn owner(epoch: u64) -> Event {
    Event::Role {
        role: TabRole::Owner,
        epoch,
    }
}

/// The number of the request that the effects send.
fn timed(effects: &[Effect]) -> u32 {
    match effects.last() {
        Some(Effect::Send(Command::Time { request, .. })) => request.0,
        other => panic!("{other:?}"),
    }
}

/// Up to the first loaded model.
fn begun() -> (App, u32) {
    let mut app = chatting();
    assert_eq!(app.apply(NOW, owner(7)), []);
    assert_eq!(app.act(NOW, Action::Bench), [Effect::StartWorker]);
    assert_eq!(app.act(NOW, Action::Bench), [], "one at a time");
    assert_eq!(app.phase(), Phase::Starting);
    // The new worker has a term of its own.
    assert_eq!(app.apply(NOW + 50, owner(8)), []);
    assert!(app.bench.is_running());
    let effects = app.apply(NOW + 100, ready());
    assert_eq!(effects.last(), Some(&load(1)));
    let request = timed(&app.apply(NOW + 300, loaded(1)));
    (app, request)
}

#[test]
fn a_benchmark_gives_every_figure() {
    let (mut app, request) = begun();
    let effects = app.apply(NOW + 400, done(request, Finish::Length));
    assert_eq!(effects, [Effect::Send(Command::Unload)]);
    let effects = app.apply(NOW + 1000, Event::Unloaded);
    assert_eq!(effects.last(), Some(&load(1)));
    let mut request = timed(&app.apply(NOW + 1150, loaded(1)));
    // The token of the reloaded model, the warm one, then reading and writing three times.
    for at in [1200, 1230, 2000, 3000, 4000, 5000, 6000] {
        request = timed(&app.apply(NOW + at, done(request, Finish::Length)));
    }
    let mut effects = app.apply(NOW + 7000, done(request, Finish::Length));
    for at in [8000, 9000, 10_000] {
        request = timed(&effects);
        let prefill = Event::Prefill {
            request: RequestId(request),
            done: 32,
            total: 2000,
        };
        let stop = Command::Stop {
            request: RequestId(request),
        };
        assert_eq!(app.apply(NOW + at, prefill), [Effect::Send(stop)]);
        effects = app.apply(NOW + at + 7, done(request, Finish::Cancelled));
    }
    assert_eq!(effects, [Effect::Send(Command::Diagnostics)]);
    assert!(app.bench.is_running());
    let Event::Ready { lane, .. } = ready() else {
        unreachable!();
    };
    app.apply(
        NOW,
        Event::Diagnostics(Box::new(Diagnostics {
            lane: Some(lane),
            storage: Some(StorageKind::Opfs),
            scalar_calls: 1,
            simd_calls: 2,
            fit: None,
            read_ahead: 0,
            stored_bytes: 0,
            state: "Loaded".into(),
            now_ms: 0,
            records: Vec::new(),
            receipt: Default::default(),
            relaxed_calls: 3,
        })),
    );
    let Some(BenchOutcome::Complete(figures)) = app.bench.outcome() else {
        panic!("{:?}", app.bench);
    };
    assert_eq!(figures.load_ms, [200.0, 150.0]);
    let first = figures.first_token_ms;
    assert_eq!((first.cold, first.cached, first.warm), (400.0, 200.0, 30.0));
    assert_eq!(figures.cancel_ms, [7.0; 3]);
    let runs =
        |runs: &[protocol::BenchRun]| runs.iter().map(|r| (r.tokens, r.ms)).collect::<Vec<_>>();
    assert_eq!(runs(&figures.prefill), [(128, 500.0); 3]);
    assert_eq!(runs(&figures.decode), [(64, 1000.0); 3]);
    let engine = &figures.engine;
    let calls = (engine.scalar_calls, engine.simd_calls, engine.relaxed_calls);
    assert_eq!((calls, engine.threads), ((1, 2, 3), 1));
    assert_eq!(app.phase(), Phase::Ready);
    assert!(app.bench.bundle().is_some());
}

#[test]
fn a_benchmark_that_ends_early_says_why() {
    let refused = |app: &App, part, words: &str| match app.bench.outcome() {
        Some(BenchOutcome::Refused(reasons)) => {
            assert_eq!(reasons[0].part, part);
            assert!(reasons[0].what.contains(words), "{reasons:?}");
        }
        other => panic!("{other:?}"),
    };
    let (mut app, request) = begun();
    let stop = Command::Stop {
        request: RequestId(request),
    };
    assert_eq!(app.act(NOW, Action::StopBench), [Effect::Send(stop)]);
    refused(&app, BenchPart::FirstToken, "the person");

    let (mut app, request) = begun();
    let error = trouble(TrResult::NumericalFailure);
    let subject = Subject::Request(RequestId(request));
    app.apply(NOW, Event::Failed { subject, error });
    refused(&app, BenchPart::FirstToken, "What.");

    let (mut app, _) = begun();
    app.act(NOW, Action::LinkLost(AppError::WorkerDied));
    refused(&app, BenchPart::FirstToken, "stopped");
}

//! The benchmark: one way through a model's life, from a new worker to a stopped request.

use protocol::{
    BENCH_SCHEMA, BENCH_SHORT, BenchBundle, BenchEngine, BenchFigures, BenchFirstToken, BenchModel,
    BenchOutcome, BenchPart, BenchReason, BenchRun, Command, Diagnostics, Event, Figures, Finish,
    FitReport, LaneReport, Measure, Mode, ModelSummary, RequestId, Subject, TrResult, bench_prompt,
};

use super::{App, Effect, Engine, Millis, Start};

/// Repetitions of reading, of writing and of stopping.
const RUNS: usize = 3;
const READ: u32 = 128;
/// The first of them belongs to reading.
const WRITE: u32 = 65;
/// The prompt that is stopped in the middle.
const LONG: u32 = 2000;
/// Every vocabulary has as many.
const VOCAB: u32 = 251;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bench {
    run: Option<Run>,
    outcome: Option<BenchOutcome>,
}

#[derive(Clone, Debug, PartialEq)]
struct Run {
    model: ModelSummary,
    step: Step,
    request: Option<RequestId>,
    /// When the thing was wished for whose time is taken.
    wished: Millis,
    first_wish: Millis,
    lane: Option<LaneReport>,
    fit: Option<FitReport>,
    load_ms: Vec<f64>,
    first_token: Vec<f64>,
    prefill: Vec<BenchRun>,
    decode: Vec<BenchRun>,
    cancel_ms: Vec<f64>,
}

/// In the order they come; those with a number come as often as [`RUNS`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Load,
    FirstToken,
    Unload,
    LoadAgain,
    FirstTokenAgain,
    FirstTokenWarm,
    Read,
    Write,
    LetRun,
    Stop,
    Count,
}

impl Bench {
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Steps done and all steps.
    pub fn progress(&self) -> Option<(usize, usize)> {
        let run = self.run.as_ref()?;
        let once = match run.step {
            Step::Start => 0,
            Step::Load => 1,
            Step::FirstToken => 2,
            Step::Unload => 3,
            Step::LoadAgain => 4,
            Step::FirstTokenAgain => 5,
            Step::FirstTokenWarm => 6,
            Step::Read | Step::Write | Step::LetRun | Step::Stop => 7,
            Step::Count => 8,
        };
        let often = run.prefill.len() + run.decode.len() + run.cancel_ms.len();
        Some((once + often, 9 + 3 * RUNS))
    }

    /// What is being measured now.
    pub fn part(&self) -> Option<BenchPart> {
        self.run.as_ref().map(|run| run.step.part())
    }

    pub fn outcome(&self) -> Option<&BenchOutcome> {
        self.outcome.as_ref()
    }

    /// The whole document; `None` before the first end.
    pub fn bundle(&self) -> Option<BenchBundle> {
        self.outcome.clone().map(|outcome| BenchBundle {
            schema: BENCH_SCHEMA.into(),
            program: env!("CARGO_PKG_VERSION").into(),
            outcome,
        })
    }

    /// Ends a run without figures.
    fn refuse(&mut self, what: &str, code: TrResult) {
        if let Some(run) = self.run.take() {
            self.outcome = Some(BenchOutcome::Refused(vec![BenchReason {
                part: run.step.part(),
                what: what.into(),
                code: Some(code),
            }]));
        }
    }

    /// The worker is gone.
    pub fn lost(&mut self) {
        self.refuse("the engine stopped", TrResult::WorkerFailure);
    }
}

impl Step {
    fn part(self) -> BenchPart {
        match self {
            Step::Start | Step::Load | Step::Unload | Step::LoadAgain => BenchPart::Load,
            Step::FirstToken | Step::FirstTokenAgain | Step::FirstTokenWarm => {
                BenchPart::FirstToken
            }
            Step::Read => BenchPart::Prefill,
            Step::Write => BenchPart::Decode,
            Step::LetRun | Step::Stop | Step::Count => BenchPart::Cancel,
        }
    }
}

impl Run {
    fn took(&self, now: Millis) -> f64 {
        now.saturating_sub(self.wished) as f64
    }

    fn complete(self, diagnostics: &Diagnostics) -> Option<BenchFigures> {
        let lane = self.lane?;
        let [cold, cached, warm] = self.first_token[..] else {
            return None;
        };
        Some(BenchFigures {
            model: BenchModel {
                name: self.model.name,
                id: self.model.id,
            },
            engine: BenchEngine {
                lane: lane.lane.name().into(),
                sha256: lane.sha256,
                mode: Mode::Int8V1,
                threads: diagnostics.receipt.observed.workers_started.max(1),
                scalar_calls: diagnostics.scalar_calls,
                simd_calls: diagnostics.simd_calls,
                relaxed_calls: diagnostics.relaxed_calls,
            },
            load_ms: self.load_ms,
            first_token_ms: BenchFirstToken { cold, cached, warm },
            prefill: self.prefill,
            decode: self.decode,
            memory: self.fit?,
            cancel_ms: self.cancel_ms,
        })
    }
}

impl App {
    /// Starts with a new worker, so that nothing has been computed before.
    pub(super) fn begin_bench(&mut self, now: Millis) -> Vec<Effect> {
        let Some((model, _)) = self.engine.loaded() else {
            return Vec::new();
        };
        if self.is_at_work() || self.imports.running() {
            return Vec::new();
        }
        self.bench.outcome = None;
        self.bench.run = Some(Run {
            model: model.clone(),
            step: Step::Start,
            request: None,
            wished: now,
            first_wish: now,
            lane: None,
            fit: None,
            load_ms: Vec::new(),
            first_token: Vec::new(),
            prefill: Vec::new(),
            decode: Vec::new(),
            cancel_ms: Vec::new(),
        });
        self.start = Start::Waiting;
        self.engine = Engine::Empty;
        self.tabs.renew();
        vec![Effect::StartWorker]
    }

    /// The person has seen enough.
    pub(super) fn stop_bench(&mut self) -> Vec<Effect> {
        let Some(run) = &self.bench.run else {
            return Vec::new();
        };
        let (model, request) = (run.model.id, run.request);
        self.bench
            .refuse("stopped by the person", TrResult::Cancelled);
        let stop = request.map(|request| Command::Stop { request });
        let mut effects: Vec<Effect> = stop.and_then(|stop| self.send(stop)).into_iter().collect();
        if matches!(self.engine, Engine::Empty) {
            effects.extend(self.load(model, false));
        }
        effects
    }

    /// Goes on with the benchmark after an event that the rest of the page has seen.
    pub(super) fn bench_hears(&mut self, now: Millis, event: &Event) -> Vec<Effect> {
        let Some(run) = &mut self.bench.run else {
            return Vec::new();
        };
        match (run.step, event) {
            (Step::Start, Event::Ready { lane, .. }) => {
                run.lane = Some(lane.clone());
                self.bench_loads(now, Step::Load)
            }
            (Step::Load | Step::LoadAgain, Event::Loaded { fit, .. }) => {
                run.load_ms.push(run.took(now));
                run.fit = Some(**fit);
                let next = match run.step {
                    Step::Load => Step::FirstToken,
                    _ => Step::FirstTokenAgain,
                };
                self.bench_asks(next, now, BENCH_SHORT, 1)
            }
            (Step::Unload, Event::Unloaded) => {
                run.first_wish = now;
                self.bench_loads(now, Step::LoadAgain)
            }
            (Step::LetRun, Event::Prefill { request, done, .. })
                if Some(*request) == run.request && *done > 0 =>
            {
                (run.step, run.wished) = (Step::Stop, now);
                let stop = Command::Stop { request: *request };
                self.send(stop).into_iter().collect()
            }
            (
                _,
                Event::Done {
                    request,
                    finish,
                    figures,
                },
            ) if Some(*request) == run.request => self.bench_goes_on(now, *finish, figures),
            (Step::Count, Event::Diagnostics(diagnostics)) => {
                let run = self.bench.run.take();
                let complete = run.and_then(|run| run.complete(diagnostics));
                self.bench.outcome = complete.map(|it| BenchOutcome::Complete(Box::new(it)));
                Vec::new()
            }
            (_, Event::Failed { subject, error }) => {
                let is_mine = match subject {
                    Subject::Start => true,
                    Subject::Load(model) => *model == run.model.id,
                    Subject::Request(request) => Some(*request) == run.request,
                    _ => false,
                };
                if is_mine {
                    self.bench.refuse(&error.what, error.code);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// A request has ended.
    fn bench_goes_on(&mut self, now: Millis, finish: Finish, figures: &Figures) -> Vec<Effect> {
        let Some(run) = &mut self.bench.run else {
            return Vec::new();
        };
        run.request = None;
        match run.step {
            Step::FirstToken => {
                run.first_token
                    .push(now.saturating_sub(run.first_wish) as f64);
                run.step = Step::Unload;
                self.send(Command::Unload).into_iter().collect()
            }
            Step::FirstTokenAgain => {
                run.first_token
                    .push(now.saturating_sub(run.first_wish) as f64);
                self.bench_asks(Step::FirstTokenWarm, now, BENCH_SHORT, 1)
            }
            Step::FirstTokenWarm => {
                run.first_token.push(run.took(now));
                self.bench_asks(Step::Read, now, READ, 1)
            }
            Step::Read => {
                run.prefill.push(BenchRun {
                    tokens: figures.prompt_tokens,
                    ms: figures.prefill_ms,
                    cpu_ms: None,
                });
                self.bench_asks(Step::Write, now, BENCH_SHORT, WRITE)
            }
            Step::Write => {
                run.decode.push(BenchRun {
                    tokens: figures.new_tokens.saturating_sub(1),
                    ms: figures.decode_ms,
                    cpu_ms: None,
                });
                match run.decode.len() < RUNS {
                    true => self.bench_asks(Step::Read, now, READ, 1),
                    false => self.bench_lets_run(now),
                }
            }
            Step::Stop if finish == Finish::Cancelled => {
                run.cancel_ms.push(run.took(now));
                if run.cancel_ms.len() < RUNS {
                    return self.bench_lets_run(now);
                }
                run.step = Step::Count;
                self.send(Command::Diagnostics).into_iter().collect()
            }
            _ => {
                let what = "the long prompt was read before it could be stopped";
                self.bench.refuse(what, TrResult::IllegalState);
                Vec::new()
            }
        }
    }

    fn bench_lets_run(&mut self, now: Millis) -> Vec<Effect> {
        let context = self.engine.loaded().map_or(0, |(_, fit)| fit.context);
        let tokens = LONG.min(context.saturating_sub(1));
        self.bench_asks(Step::LetRun, now, tokens, 1)
    }

    fn bench_loads(&mut self, now: Millis, step: Step) -> Vec<Effect> {
        let Some(run) = &mut self.bench.run else {
            return Vec::new();
        };
        (run.step, run.wished) = (step, now);
        let model = run.model.id;
        // The page would choose a model by itself otherwise.
        self.chosen = true;
        self.load(model, false)
    }

    fn bench_asks(&mut self, step: Step, now: Millis, read: u32, max_new: u32) -> Vec<Effect> {
        let request = self.request();
        let Some(run) = &mut self.bench.run else {
            return Vec::new();
        };
        (run.step, run.wished, run.request) = (step, now, Some(request));
        let time = Command::Time {
            request,
            measure: Measure {
                prompt_ids: bench_prompt(read, VOCAB),
                max_new,
                prefill_tile: 0,
                mode: Mode::Int8V1,
                reuses: false,
            },
        };
        self.send(time).into_iter().collect()
    }
}

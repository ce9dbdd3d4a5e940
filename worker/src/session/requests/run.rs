//! A running request: steps, text, figures.

use prompt::TextStream;
use protocol::abi::{
    FINISH_CANCELLED, FINISH_LENGTH, FINISH_NUMERICAL_COLLAPSE, STEP_DONE, STEP_TOKEN, Step,
};
use protocol::{ErrorReport, Event, Figures, Finish, RequestId, Stage as Place, Subject};
use store::Disk;

use super::Session;
use crate::engine::Engine;
use crate::session::lifecycle::State;
use crate::session::loading::no_model;
use crate::session::meter::Meter;
use crate::words;

pub struct Running {
    pub request: RequestId,
    kind: Kind,
    meter: Meter,
    /// What the newest step said.
    newest: Step,
    told_prefilled: Option<u32>,
    began_ms: u64,
    first_token: Moment,
    /// Set when the last step is done.
    finish: Option<Finish>,
    /// The conversation that is kept, if one is, and its ids so far.
    kept_as: Option<u64>,
    ids: Vec<u32>,
}

pub enum Kind {
    Chat(TextStream),
    /// The ids so far.
    Measure(Vec<u32>),
    Time,
}

/// A time that is known one input later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Ahead,
    JustNow,
    At(u64),
}

impl Running {
    pub fn new(
        request: RequestId,
        kind: Kind,
        kept: Option<(u64, Vec<u32>)>,
        now_ms: u64,
    ) -> Running {
        let (kept_as, ids) = kept.unzip();
        Running {
            kept_as,
            ids: ids.unwrap_or_default(),
            request,
            kind,
            meter: Meter::default(),
            newest: Step::default(),
            told_prefilled: None,
            began_ms: now_ms,
            first_token: Moment::Ahead,
            finish: None,
        }
    }

    /// The conversation that is kept.
    pub fn kept_as(&mut self) -> &mut Option<u64> {
        &mut self.kept_as
    }

    fn figures(&self, now_ms: u64) -> Figures {
        let first_ms = match self.first_token {
            Moment::At(first) => first,
            Moment::Ahead | Moment::JustNow => now_ms,
        };
        Figures {
            prompt_tokens: self.newest.prompt,
            reused_tokens: self.newest.reused,
            new_tokens: self.newest.generated,
            prefill_ms: first_ms.saturating_sub(self.began_ms) as f64,
            decode_ms: now_ms.saturating_sub(first_ms) as f64,
        }
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    /// One step, or the end after the last one.
    pub(super) fn step(&mut self, mut running: Running) {
        let now_ms = self.desk.now_ms;
        if running.first_token == Moment::JustNow {
            running.first_token = Moment::At(now_ms);
        }
        if let Some(finish) = running.finish {
            return self.end_request(running, finish);
        }
        let stepped = self
            .call(Engine::step)
            .map_err(|error| {
                let header = self.seat.model.as_ref().map(|model| &model.header);
                words::engine_error(&error, header)
            })
            .and_then(|step| self.take_step(&mut running, step));
        match stepped {
            Ok(()) => {
                self.requests.running = Some(running);
                self.desk.wake();
            }
            Err(error) => self.fail_request(running.request, error),
        }
    }

    fn take_step(&mut self, running: &mut Running, step: Step) -> Result<(), ErrorReport> {
        running.newest = step;
        if self.seat.state == State::Prefilled {
            self.seat.advance(State::Stepping)?;
        }
        if running.first_token == Moment::Ahead {
            self.tell_prefill(running);
        }
        let has_token = match step.status {
            STEP_TOKEN => true,
            STEP_DONE => step.has_token == 1,
            _ => false,
        };
        if has_token {
            if running.first_token == Moment::Ahead {
                running.first_token = Moment::JustNow;
                self.seat.advance(State::Generating)?;
            }
            let is_stop = step.status == STEP_DONE && finish(step.finish) == Finish::Stop;
            self.take_token(running, step.token, is_stop)?;
        }
        if step.status == STEP_DONE {
            running.finish = Some(finish(step.finish));
        }
        Ok(())
    }

    fn tell_prefill(&mut self, running: &mut Running) {
        let Step {
            prefilled, prompt, ..
        } = running.newest;
        let is_news = running.told_prefilled != Some(prefilled);
        let (done, total) = (u64::from(prefilled), u64::from(prompt));
        if is_news && running.meter.is_due(self.desk.now_ms, done, total) {
            running.told_prefilled = Some(prefilled);
            self.desk.event(Event::Prefill {
                request: running.request,
                done: prefilled,
                total: prompt,
            });
        }
    }

    /// A stop token ends the answer and is no part of its text.
    fn take_token(
        &mut self,
        running: &mut Running,
        id: u32,
        is_stop: bool,
    ) -> Result<(), ErrorReport> {
        let request = running.request;
        if running.kept_as.is_some() {
            running.ids.push(id);
        }
        match &mut running.kind {
            Kind::Measure(ids) => ids.push(id),
            Kind::Chat(stream) if !is_stop => {
                let model = self.seat.model.as_ref().ok_or_else(no_model)?;
                let prompter = model.prompter.as_ref().ok_or_else(no_model)?;
                let text = stream
                    .push(prompter, id)
                    .map_err(|error| words::prompt_error(&error))?;
                self.tell_text(request, text);
            }
            Kind::Chat(_) | Kind::Time => {}
        }
        Ok(())
    }

    fn tell_text(&mut self, request: RequestId, text: String) {
        if !text.is_empty() {
            self.desk.event(Event::Text { request, text });
        }
    }

    /// Stops a request at the page's wish. Committed positions stay.
    pub(super) fn cancel(&mut self, running: Running) {
        let stopped = self.call(Engine::stop);
        let is_over = running.finish.is_some();
        match stopped {
            // The last step was done before the wish came.
            Ok(()) | Err(_) if is_over => {
                let finish = running.finish.unwrap_or(Finish::Cancelled);
                self.end_request(running, finish);
            }
            Ok(()) => self.end_request(running, Finish::Cancelled),
            Err(error) => {
                let error = words::engine_error(&error, None);
                self.fail_request(running.request, error);
            }
        }
    }

    fn end_request(&mut self, mut running: Running, finish: Finish) {
        let request = running.request;
        let figures = running.figures(self.desk.now_ms);
        let state = match finish {
            Finish::Cancelled => {
                self.requests.stopped = Some(request);
                State::Cancelled
            }
            _ => State::Reset,
        };
        let ended = self
            .seat
            .advance(state)
            .and_then(|()| match &mut running.kind {
                Kind::Chat(stream) => {
                    let model = self.seat.model.as_ref().ok_or_else(no_model)?;
                    let prompter = model.prompter.as_ref().ok_or_else(no_model)?;
                    std::mem::take(stream)
                        .finish(prompter)
                        .map(|text| self.tell_text(request, text))
                        .map_err(|error| words::prompt_error(&error))
                }
                Kind::Measure(_) | Kind::Time => Ok(()),
            });
        if let Err(error) = ended {
            return self.fail_request(request, error);
        }
        match running.kind {
            Kind::Measure(ids) if finish != Finish::Cancelled => {
                self.tell_measured(request, figures, ids);
            }
            _ => self.desk.event(Event::Done {
                request,
                finish,
                figures,
            }),
        }
        if let Some(conversation) = running.kept_as {
            self.save(conversation, running.ids);
        }
        self.desk.wake();
    }

    fn tell_measured(&mut self, request: RequestId, figures: Figures, ids: Vec<u32>) {
        match self.call(Engine::digest) {
            Ok(logits_sha256) => self.desk.event(Event::Measured {
                request,
                figures,
                logits_sha256,
                ids,
            }),
            Err(error) => {
                let mut error = words::engine_error(&error, None);
                error.stage = Place::Decode;
                self.desk.fail(Subject::Request(request), error);
            }
        }
    }
}

fn finish(code: u32) -> Finish {
    match code {
        FINISH_LENGTH => Finish::Length,
        FINISH_CANCELLED => Finish::Cancelled,
        FINISH_NUMERICAL_COLLAPSE => Finish::NumericalCollapse,
        _ => Finish::Stop,
    }
}

//! What is asked of the loaded model, one request after another.
//!
//! One engine step a wake, so a stop is seen within a step. Times are those of the inputs: the
//! time of a step is known when the input after it comes, and the last event waits for that.

mod begin;
mod run;

use std::collections::VecDeque;

use protocol::{
    ChatAbility, ErrorReport, Event, Figures, Finish, Measure, Message, RequestId, Sampling,
    Stage as Place, Subject,
};
use store::Disk;

use super::Session;
use super::lifecycle::State;
use crate::engine::Engine;
use crate::words;
use run::Running;

/// Requests that run or wait. A page asks one at a time; a few more do no harm.
pub const REQUESTS_MAX: usize = 4;

#[derive(Default)]
pub struct Requests {
    waiting: VecDeque<Ask>,
    running: Option<Running>,
    /// The newest request that was stopped: the page's word may come twice, once through shared
    /// memory and once as a message.
    stopped: Option<RequestId>,
}

/// A request that has not begun.
struct Ask {
    request: RequestId,
    work: Work,
}

enum Work {
    Chat {
        messages: Vec<Message>,
        sampling: Sampling,
        /// The conversation that is kept.
        kept_as: Option<u64>,
        /// What was kept has been looked for.
        is_looked_for: bool,
    },
    Measure(Measure),
    Time(Measure),
}

impl Requests {
    /// Something is running or waits to run.
    pub fn are_waiting(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// A conversation, or every one, is not to be kept any more.
    pub fn keep_no_more(&mut self, conversation: Option<u64>) {
        let concerned = |kept: &Option<u64>| conversation.is_none() || *kept == conversation;
        let waiting = self
            .waiting
            .iter_mut()
            .filter_map(|ask| match &mut ask.work {
                Work::Chat { kept_as, .. } => Some(kept_as),
                Work::Measure(_) | Work::Time(_) => None,
            });
        let running = self.running.iter_mut().map(Running::kept_as);
        for kept_as in waiting.chain(running) {
            if concerned(kept_as) {
                *kept_as = None;
            }
        }
    }

    fn knows(&self, request: RequestId) -> bool {
        let running = self.running.as_ref().map(|running| running.request);
        running == Some(request) || self.waiting.iter().any(|ask| ask.request == request)
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn on_chat(
        &mut self,
        request: RequestId,
        messages: Vec<Message>,
        sampling: Sampling,
        kept_as: Option<u64>,
    ) {
        let chat = self.seat.model.as_ref().map(|model| model.summary.chat);
        let refused = match chat {
            Some(ChatAbility::NoTokenizer) => Some("this model has no tokenizer"),
            Some(ChatAbility::NoTemplate) => Some("this model has no chat template"),
            Some(ChatAbility::Yes) | None => None,
        };
        if let Some(what) = refused {
            let remedy = "choose an instruction-tuned model";
            let error = words::report(
                protocol::TrResult::UnsupportedFeature,
                Place::Prompt,
                what,
                remedy,
            );
            return self.desk.fail(Subject::Request(request), error);
        }
        let work = Work::Chat {
            messages,
            sampling,
            kept_as,
            is_looked_for: false,
        };
        self.enqueue(request, work);
    }

    pub(super) fn on_measure(&mut self, request: RequestId, measure: Measure) {
        self.enqueue(request, Work::Measure(measure));
    }

    pub(super) fn on_time(&mut self, request: RequestId, measure: Measure) {
        self.enqueue(request, Work::Time(measure));
    }

    fn enqueue(&mut self, request: RequestId, work: Work) {
        let count = self.requests.waiting.len() + usize::from(self.requests.running.is_some());
        // While a request waits for an engine with other options the model counts as loaded.
        let is_loaded =
            self.seat.model.is_some() && (!self.seat.is_loading() || self.requests.are_waiting());
        let refused = if self.requests.knows(request) {
            Some("a request with this number is running")
        } else if !is_loaded {
            Some("no model is loaded")
        } else if count >= REQUESTS_MAX {
            Some("too many requests are waiting")
        } else {
            None
        };
        if let Some(what) = refused {
            let remedy = "load a model, or wait until another request has ended";
            let error = words::illegal(Place::Prompt, what, remedy);
            return self.desk.fail(Subject::Request(request), error);
        }
        self.requests.waiting.push_back(Ask { request, work });
        self.desk.wake();
    }

    pub(super) fn on_stop(&mut self, request: RequestId) {
        let waiting = &mut self.requests.waiting;
        if let Some(at) = waiting.iter().position(|ask| ask.request == request) {
            waiting.remove(at);
            self.desk.event(Event::Done {
                request,
                finish: Finish::Cancelled,
                figures: Figures::default(),
            });
            return self.desk.wake();
        }
        let is_running = |running: &mut Running| running.request == request;
        match self.requests.running.take_if(is_running) {
            Some(running) => self.cancel(running),
            None if self.requests.stopped == Some(request) => {}
            None => {
                let remedy = "its end was told before";
                let error = words::illegal(Place::Decode, "no such request is running", remedy);
                self.desk.fail(Subject::Request(request), error);
            }
        }
    }

    pub(super) fn on_request_wake(&mut self) {
        if let Some(running) = self.requests.running.take() {
            self.step(running);
        } else if self.keeping.is_busy() {
            self.keep_on();
        } else if !self.seat.is_loading() && self.seat.state.is_idle() {
            self.begin_next();
        }
    }

    /// Ends every request with the same failure: the model is gone.
    pub(super) fn fail_requests(&mut self, error: &ErrorReport) {
        let running = self.requests.running.take().map(|running| running.request);
        let waiting = std::mem::take(&mut self.requests.waiting);
        let requests = running
            .into_iter()
            .chain(waiting.into_iter().map(|ask| ask.request));
        for request in requests {
            self.desk.fail(Subject::Request(request), error.clone());
        }
    }

    /// Ends one request with a failure; the model stays if the engine does.
    fn fail_request(&mut self, request: RequestId, error: ErrorReport) {
        let is_fatal = words::is_fatal(error.code);
        if self.seat.state.is_busy() {
            // A failed step ended the request in the engine too.
            self.seat.state.advance(State::Reset).ok();
        }
        self.desk.fail(Subject::Request(request), error.clone());
        if is_fatal {
            self.lose_engine();
            self.desk.event(Event::Unloaded);
            self.fail_requests(&error);
        }
        self.desk.wake();
    }
}

//! From a waiting request to a running one.

use prompt::{ChatMessage, ControlText, Generation, PromptError, Prompter, TextStream};
use protocol::abi::{
    FLAG_COLD, FLAG_DIGEST, FLAG_IGNORE_EOS, MODE_INT8_V1, MODE_STRICT_F32_V1, Options, Plan,
};
use protocol::{ErrorReport, Measure, Message, Mode, Role, Sampling};
use store::Disk;

use super::run::{Kind, Running};
use super::{Ask, Session, Work};
use crate::engine::{Engine, Request};
use crate::session::lifecycle::State;
use crate::session::loading::no_model;
use crate::words;

/// What the engine has to be like for a request.
enum Fit {
    /// As it is.
    Same,
    Other(Options, Plan),
}

/// A request as the engine takes it.
struct Prepared {
    ids: Vec<u32>,
    vocab: u32,
    sampling: Sampling,
    flags: u32,
    kept_as: Option<u64>,
    kind: Kind,
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    /// Begins the first waiting request, or first gives it the engine that it asks for.
    pub(super) fn begin_next(&mut self) {
        let Some(mut ask) = self.requests.waiting.pop_front() else {
            return;
        };
        match self.fit_for(&ask) {
            Ok(Fit::Same) if self.looks_for_kept(&mut ask) => {
                self.requests.waiting.push_front(ask);
            }
            Ok(Fit::Same) => self.begin(ask),
            Ok(Fit::Other(options, plan)) => {
                self.requests.waiting.push_front(ask);
                self.reopen(&options, plan);
            }
            Err(error) => self.fail_request(ask.request, error),
        }
    }

    /// Begins to read back what is kept for a request, once.
    fn looks_for_kept(&mut self, ask: &mut Ask) -> bool {
        let Work::Chat {
            messages,
            kept_as: Some(conversation),
            is_looked_for: is_looked_for @ false,
            ..
        } = &mut ask.work
        else {
            return false;
        };
        *is_looked_for = true;
        let model = self.seat.model.as_ref();
        let prompter = model.and_then(|model| model.prompter.as_ref());
        // A prompt that cannot be made is refused when the request begins.
        match prompter.map(|prompter| chat_ids(prompter, messages)) {
            Some(Ok((ids, _))) => self.restore(*conversation, ids),
            _ => false,
        }
    }

    fn fit_for(&mut self, ask: &Ask) -> Result<Fit, ErrorReport> {
        let model = self.seat.model.as_ref().ok_or_else(no_model)?;
        let usual = Options {
            mode: MODE_INT8_V1,
            context: model.plan.context,
            prefill_tile: 0,
            ..model.options
        };
        let options = match &ask.work {
            Work::Chat { .. } => usual,
            Work::Measure(measure) | Work::Time(measure) => Options {
                mode: match measure.mode {
                    Mode::StrictF32V1 => MODE_STRICT_F32_V1,
                    Mode::Int8V1 => MODE_INT8_V1,
                },
                prefill_tile: measure.prefill_tile,
                ..usual
            },
        };
        let plan = self.plan_again(&options)?;
        let model = self.seat.model.as_ref().ok_or_else(no_model)?;
        Ok(match model.is_open_with(&options, &plan) {
            true => Fit::Same,
            false => Fit::Other(options, plan),
        })
    }

    fn begin(&mut self, ask: Ask) {
        let request = ask.request;
        let begun = self.prepare(ask.work).and_then(|prepared| {
            let Prepared {
                ids,
                vocab,
                sampling,
                flags,
                kept_as,
                kind,
            } = prepared;
            let asked = Request {
                ids: &ids,
                vocab,
                sampling,
                flags,
                number: request.stop_number(),
            };
            self.call(|engine| engine.begin(&asked))
                .map_err(|error| words::engine_error(&error, None))?;
            self.seat.advance(State::Prefilled)?;
            let kept = kept_as.map(|conversation| (conversation, ids));
            Ok(Running::new(request, kind, kept, self.desk.now_ms))
        });
        match begun {
            Ok(running) => {
                self.requests.running = Some(running);
                self.desk.wake();
            }
            Err(error) => self.fail_request(request, error),
        }
    }

    fn prepare(&self, work: Work) -> Result<Prepared, ErrorReport> {
        let model = self.seat.model.as_ref().ok_or_else(no_model)?;
        let rows = model.header.manifest.architecture.vocab;
        match work {
            Work::Chat {
                messages,
                sampling,
                kept_as,
                ..
            } => {
                let prompter = model.prompter.as_ref().ok_or_else(no_model)?;
                let (ids, stream) =
                    chat_ids(prompter, &messages).map_err(|error| words::prompt_error(&error))?;
                Ok(Prepared {
                    ids,
                    vocab: prompter.vocab().min(rows),
                    sampling,
                    flags: 0,
                    kept_as,
                    kind: Kind::Chat(stream),
                })
            }
            Work::Measure(measure) => {
                let timed = fixed(measure, rows);
                Ok(Prepared {
                    flags: timed.flags | FLAG_DIGEST,
                    kind: Kind::Measure(Vec::new()),
                    ..timed
                })
            }
            Work::Time(measure) => Ok(fixed(measure, rows)),
        }
    }
}

/// Every row counts, so that a model without a tokenizer is measured alike.
fn fixed(measure: Measure, rows: u32) -> Prepared {
    Prepared {
        ids: measure.prompt_ids,
        vocab: rows,
        sampling: Sampling {
            max_new: measure.max_new,
            ..Sampling::GREEDY
        },
        flags: FLAG_IGNORE_EOS | if measure.reuses { 0 } else { FLAG_COLD },
        kept_as: None,
        kind: Kind::Time,
    }
}

/// The prompt, and what the answer's text is read with. If the last message is an answer, the
/// model goes on with it.
fn chat_ids(
    prompter: &Prompter,
    messages: &[Message],
) -> Result<(Vec<u32>, TextStream), PromptError> {
    let (messages, begun) = match messages {
        [before @ .., last] if last.role == Role::Assistant => (before, last.content.as_str()),
        all => (all, ""),
    };
    let messages: Vec<ChatMessage<'_>> = messages
        .iter()
        .map(|message| ChatMessage {
            role: message.role.name(),
            content: &message.content,
        })
        .collect();
    let mut ids = prompter.chat(&messages, Generation::Open)?;
    let mut stream = TextStream::default();
    for id in prompter.encode(begun, ControlText::Ordinary)? {
        // These words stand in the answer already; the stream only has to know them.
        stream.push(prompter, id)?;
        ids.push(id);
    }
    Ok((ids, stream))
}

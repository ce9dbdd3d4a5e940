//! A session that answers every prompt with known words, one a step, first come first served.

use std::collections::VecDeque;

use protocol::{Command, Event, Figures, Finish, ImportId, ImportPhase, ImportProgress, RequestId};

use super::{answer_to, ready};

pub struct SimSession {
    started: bool,
    early: VecDeque<Command>,
    asks: VecDeque<(RequestId, VecDeque<String>)>,
    imports: VecDeque<(ImportId, u32)>,
    events: Vec<Event>,
}

const PORTIONS: u32 = 5;

impl SimSession {
    pub fn new() -> SimSession {
        SimSession {
            started: false,
            early: VecDeque::new(),
            asks: VecDeque::new(),
            imports: VecDeque::new(),
            events: Vec::new(),
        }
    }

    pub fn start(&mut self) {
        self.started = true;
        self.events.push(ready());
        for command in std::mem::take(&mut self.early) {
            self.command(command);
        }
    }

    pub fn has_work(&self) -> bool {
        self.started && !(self.asks.is_empty() && self.imports.is_empty() && self.events.is_empty())
    }

    pub fn is_idle(&self) -> bool {
        self.asks.is_empty() && self.imports.is_empty() && self.early.is_empty()
    }

    pub fn command(&mut self, command: Command) {
        if !self.started {
            return self.early.push_back(command);
        }
        match command {
            Command::Chat {
                request, messages, ..
            } => {
                assert!(self.asks.iter().all(|(known, _)| *known != request));
                let words = answer_to(&messages[0].content).into();
                self.asks.push_back((request, words));
            }
            Command::Stop { request } => {
                let before = self.asks.len();
                self.asks.retain(|(known, _)| *known != request);
                if self.asks.len() < before {
                    self.done(request, Finish::Cancelled);
                }
            }
            Command::Import { import, .. } => self.imports.push_back((import, 0)),
            Command::CancelImport { import, .. } => {
                let before = self.imports.len();
                self.imports.retain(|(known, _)| *known != import);
                if self.imports.len() < before {
                    self.events.push(Event::ImportCancelled { import });
                }
            }
            Command::ListModels => self.events.push(Event::Models(Vec::new())),
            _ => {}
        }
    }

    pub fn step(&mut self) -> Vec<Event> {
        if self.events.is_empty() {
            if let Some((request, words)) = self.asks.front_mut() {
                let request = *request;
                match words.pop_front() {
                    Some(text) => self.events.push(Event::Text { request, text }),
                    None => {
                        self.asks.pop_front();
                        self.done(request, Finish::Stop);
                    }
                }
            }
            self.import();
        }
        std::mem::take(&mut self.events)
    }

    fn import(&mut self) {
        let Some((import, done)) = self.imports.pop_front() else {
            return;
        };
        let pieces = done + 1;
        self.events.push(Event::Import(ImportProgress {
            import,
            phase: ImportPhase::Receiving,
            bytes: u64::from(pieces),
            bytes_total: u64::from(PORTIONS),
            pieces,
            pieces_total: PORTIONS,
        }));
        match pieces < PORTIONS {
            true => self.imports.push_back((import, pieces)),
            // The end that needs no summary of a model.
            false => self.events.push(Event::ImportCancelled { import }),
        }
    }

    fn done(&mut self, request: RequestId, finish: Finish) {
        let figures = Figures::default();
        self.events.push(Event::Done {
            request,
            finish,
            figures,
        });
    }
}

//! A page that checks everything it is told.

use std::collections::BTreeMap;

use protocol::{
    Command, Event, Finish, ImportId, ImportSource, Message, RequestId, Role, Sampling, Subject,
    TabRole,
};

use super::answer_to;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    Whole,
    Stopped,
    Interrupted,
    Failed,
}

#[derive(Debug)]
pub struct Asked {
    pub prompt: String,
    pub heard: String,
    pub ended: Option<Ended>,
}

pub struct SimPage {
    number: usize,
    pub last: u32,
    pub asked: BTreeMap<RequestId, Asked>,
    /// True when it has ended.
    pub imports: BTreeMap<ImportId, bool>,
    pub role: Option<(TabRole, u64)>,
    pub epochs: Vec<u64>,
    /// How often progress of another tab's import was told.
    pub elsewhere: u32,
}

impl SimPage {
    pub fn new(number: usize) -> SimPage {
        SimPage {
            number,
            last: 0,
            asked: BTreeMap::new(),
            imports: BTreeMap::new(),
            role: None,
            epochs: Vec::new(),
            elsewhere: 0,
        }
    }

    pub fn ask(&mut self) -> Command {
        self.last += 1;
        let request = RequestId(self.last);
        let prompt = format!(
            "tab{}-{}{}",
            self.number,
            self.last,
            "x".repeat(self.number)
        );
        let messages = vec![Message {
            role: Role::User,
            content: prompt.clone(),
        }];
        self.asked.insert(
            request,
            Asked {
                prompt,
                heard: String::new(),
                ended: None,
            },
        );
        Command::Chat {
            request,
            messages,
            sampling: Sampling::GREEDY,
            kept_as: None,
        }
    }

    pub fn import(&mut self) -> Command {
        self.last += 1;
        let import = ImportId(self.last);
        self.imports.insert(import, false);
        let source = ImportSource::File {
            name: "a.gguf".into(),
            length: 5,
        };
        Command::Import { import, source }
    }

    pub fn all_ended(&self) -> bool {
        let asked = self.asked.values().all(|asked| asked.ended.is_some());
        asked && self.imports.values().all(|ended| *ended)
    }

    pub fn hear(&mut self, event: Event) {
        match event {
            Event::Role { role, epoch } => {
                self.role = Some((role, epoch));
                if self.epochs.last() != Some(&epoch) {
                    self.epochs.push(epoch);
                }
            }
            Event::Text { request, text } => {
                let asked = self.asked.get_mut(&request).expect("an own request");
                assert_eq!(asked.ended, None, "words after the end of {asked:?}");
                asked.heard.push_str(&text);
                let whole = answer_to(&asked.prompt).concat();
                assert!(
                    whole.starts_with(&asked.heard),
                    "foreign or torn words in {asked:?}"
                );
            }
            Event::Done {
                request, finish, ..
            } => {
                let how = match finish {
                    Finish::Cancelled => Ended::Stopped,
                    _ => Ended::Whole,
                };
                self.end(request, how);
            }
            Event::Interrupted { request } => self.end(request, Ended::Interrupted),
            Event::Failed {
                subject: Subject::Request(request),
                ..
            } => {
                // What ended before, or was never asked for, cannot be stopped: that is no end.
                let asked = self.asked.get(&request);
                if asked.is_some_and(|asked| asked.ended.is_none()) {
                    self.end(request, Ended::Failed);
                }
            }
            Event::ImportCancelled { import } => {
                let ended = self.imports.get_mut(&import).expect("an own import");
                assert!(!*ended, "an import ended twice");
                *ended = true;
            }
            Event::Import(progress) => {
                assert_eq!(self.imports.get(&progress.import), Some(&false));
            }
            Event::Elsewhere(Some(_)) => self.elsewhere += 1,
            _ => {}
        }
    }

    fn end(&mut self, request: RequestId, how: Ended) {
        let asked = self.asked.get_mut(&request).expect("an own request");
        assert_eq!(asked.ended, None, "a second end of {asked:?}");
        asked.ended = Some(how);
        if how == Ended::Whole {
            assert_eq!(asked.heard, answer_to(&asked.prompt).concat());
        }
    }
}

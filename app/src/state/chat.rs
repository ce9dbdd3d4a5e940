//! Conversations, and the answer that is being written.
//!
//! A conversation is complete without a model: it can be read, opened and deleted while nothing
//! is loaded. What a person wrote is never lost to a failure; the answer says how it ended.

mod shared;

use protocol::{Figures, Finish, Message, RequestId, Role, TrResult};

pub use shared::{Reconciled, reconcile};

use super::Millis;

/// Titles are cut to this many characters.
pub const TITLE_CHARS_MAX: usize = 60;
/// An answer that is being written is saved this often, so that a crash costs at most this much.
const SAVE_EVERY_MS: u64 = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(pub u64);

#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    pub id: ConversationId,
    pub title: String,
    pub updated: Millis,
    /// Of the kept record that this is based on; 0 is none.
    pub revision: u64,
    pub turns: Vec<Turn>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub role: Role,
    pub text: String,
    /// Only of an answer.
    pub end: Option<TurnEnd>,
}

/// How an answer ended, and who gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    pub model: String,
    pub seed: u64,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Finished {
        finish: Finish,
        figures: Figures,
    },
    Failed(TrResult),
    /// The page or its engine went away in the middle of it.
    Interrupted,
}

/// The answer in the making. Its text is the last turn of its conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    pub request: RequestId,
    pub conversation: ConversationId,
    /// Prompt tokens done and wanted, while the model is still reading.
    pub prefill: Option<(u32, u32)>,
    pub stopping: bool,
    model: String,
    seed: u64,
    saved: Millis,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chat {
    /// Newest first.
    conversations: Vec<Conversation>,
    /// `None` is a new conversation in which nothing has been said.
    current: Option<ConversationId>,
    live: Option<Live>,
}

impl Turn {
    /// An answer that was cut off, and has words to go on from.
    pub fn can_go_on(&self) -> bool {
        let end = self.end.as_ref().map(|end| end.end);
        let is_cut = match end {
            Some(End::Interrupted) => true,
            Some(End::Finished { finish, .. }) => {
                matches!(finish, Finish::Length | Finish::Cancelled)
            }
            Some(End::Failed(_)) | None => false,
        };
        is_cut && self.role == Role::Assistant && !self.text.is_empty()
    }
}

/// The first line of what was asked, cut at a word where possible.
pub fn title_of(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("Untitled");
    if line.chars().count() <= TITLE_CHARS_MAX {
        return line.to_string();
    }
    let cut: String = line.chars().take(TITLE_CHARS_MAX - 1).collect();
    let whole = cut
        .rfind(' ')
        .filter(|&at| at > cut.len() / 2)
        .map_or(&cut[..], |at| &cut[..at]);
    format!("{}…", whole.trim_end())
}

impl Conversation {
    /// What the model is given: pairs that were answered, then the question. A question whose
    /// answer is empty is left out, because templates want the roles to alternate.
    pub fn messages(&self, system: &str) -> Vec<Message> {
        let mut out = Vec::with_capacity(self.turns.len() + 1);
        if !system.trim().is_empty() {
            out.push(Message {
                role: Role::System,
                content: system.trim().into(),
            });
        }
        for (at, turn) in self.turns.iter().enumerate() {
            let answer = self.turns.get(at + 1);
            let unanswered = answer.is_some_and(|answer| answer.text.is_empty());
            let last_question = at + 2 >= self.turns.len();
            match turn.role {
                Role::User if unanswered && !last_question => {}
                Role::Assistant if turn.text.is_empty() => {}
                role => out.push(Message {
                    role,
                    content: turn.text.clone(),
                }),
            }
        }
        out
    }

    fn asked(&mut self, text: String) {
        self.turns.push(Turn {
            role: Role::User,
            text,
            end: None,
        });
    }
}

impl Chat {
    pub fn conversations(&self) -> &[Conversation] {
        &self.conversations
    }

    pub fn current(&self) -> Option<&Conversation> {
        self.find(self.current?)
    }

    pub fn find(&self, id: ConversationId) -> Option<&Conversation> {
        self.conversations
            .iter()
            .find(|conversation| conversation.id == id)
    }

    pub fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// The current conversation is the one being answered in.
    pub fn live_here(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| Some(live.conversation) == self.current)
    }

    /// Nothing has been said in the current conversation.
    pub fn is_empty(&self) -> bool {
        self.current()
            .is_none_or(|conversation| conversation.turns.is_empty())
    }

    /// Positions the newest finished answer of the current conversation took.
    pub fn positions(&self) -> Option<u32> {
        let end = self.current()?.turns.last()?.end.as_ref()?;
        match end.end {
            End::Finished { figures, .. } => Some(figures.prompt_tokens + figures.new_tokens),
            _ => None,
        }
    }

    /// What earlier visits left; an answer without an end was cut off by the page's own end.
    pub fn restore(&mut self, mut kept: Vec<Conversation>) {
        for turn in kept
            .iter_mut()
            .flat_map(|conversation| &mut conversation.turns)
        {
            if turn.role == Role::Assistant && turn.end.is_none() {
                turn.end = Some(TurnEnd {
                    model: String::new(),
                    seed: 0,
                    end: End::Interrupted,
                });
            }
        }
        // What was said before the database answered is newer than anything in it.
        kept.retain(|conversation| self.find(conversation.id).is_none());
        self.conversations.append(&mut kept);
        self.sort();
        if self.current.is_none() {
            self.current = self
                .conversations
                .first()
                .map(|conversation| conversation.id);
        }
    }

    pub fn open(&mut self, id: ConversationId) {
        if self.find(id).is_some() {
            self.current = Some(id);
        }
    }

    pub fn begin_new(&mut self) {
        self.current = None;
    }

    /// The conversation is gone; true if it was there.
    pub fn forget(&mut self, id: ConversationId) -> bool {
        let before = self.conversations.len();
        self.conversations
            .retain(|conversation| conversation.id != id);
        if self.current == Some(id) {
            self.current = None;
        }
        before != self.conversations.len()
    }

    /// Adds a question to the current conversation, or begins one with it.
    pub fn ask(&mut self, now: Millis, text: String) -> ConversationId {
        let id = match self.current.filter(|id| self.find(*id).is_some()) {
            Some(id) => id,
            None => self.insert(now, title_of(&text)),
        };
        self.current = Some(id);
        if let Some(conversation) = self.get(id) {
            conversation.asked(text);
            conversation.updated = now;
        }
        self.sort();
        id
    }

    /// Takes back the last answer of the current conversation, so that it can be given again.
    pub fn retract(&mut self) -> Option<ConversationId> {
        let id = self.current?;
        let conversation = self.get(id)?;
        if conversation.turns.last()?.role == Role::Assistant {
            conversation.turns.pop();
        }
        (conversation.turns.last()?.role == Role::User).then_some(id)
    }

    /// Opens the answer that `request` will fill.
    pub fn answer(&mut self, now: Millis, request: RequestId, model: String, seed: u64) {
        let Some(id) = self.current else { return };
        let Some(conversation) = self.get(id) else {
            return;
        };
        conversation.turns.push(Turn {
            role: Role::Assistant,
            text: String::new(),
            end: None,
        });
        self.live = Some(Live {
            request,
            conversation: id,
            prefill: None,
            stopping: false,
            model,
            seed,
            saved: now,
        });
    }

    /// The last answer of the current conversation, cut off with some words, loses its end; true
    /// if there is one.
    pub fn reopen(&mut self) -> bool {
        let conversation = self.current.and_then(|id| self.get(id));
        let turn = conversation.and_then(|conversation| conversation.turns.last_mut());
        match turn {
            Some(turn) if turn.can_go_on() => {
                turn.end = None;
                true
            }
            _ => false,
        }
    }

    /// `request` adds to the answer that was reopened.
    pub fn go_on(&mut self, now: Millis, request: RequestId, model: String, seed: u64) {
        if let Some(conversation) = self.current {
            self.live = Some(Live {
                request,
                conversation,
                prefill: None,
                stopping: false,
                model,
                seed,
                saved: now,
            });
        }
    }

    pub fn prefill(&mut self, request: RequestId, done: u32, total: u32) {
        if let Some(live) = self.live.as_mut().filter(|live| live.request == request) {
            live.prefill = Some((done, total));
        }
    }

    /// More of the answer; the conversation, when it is time to save it.
    pub fn text(&mut self, now: Millis, request: RequestId, text: &str) -> Option<ConversationId> {
        let live = self.live.as_mut().filter(|live| live.request == request)?;
        live.prefill = None;
        let id = live.conversation;
        let due = now.saturating_sub(live.saved) >= SAVE_EVERY_MS;
        if due {
            live.saved = now;
        }
        self.get(id)?.turns.last_mut()?.text.push_str(text);
        due.then_some(id)
    }

    /// The answer is over, well or not. The conversation, if the request was the live one.
    pub fn end(&mut self, now: Millis, request: RequestId, end: End) -> Option<ConversationId> {
        let live = self.live.take_if(|live| live.request == request)?;
        let conversation = self.get(live.conversation)?;
        conversation.updated = now;
        conversation.turns.last_mut()?.end = Some(TurnEnd {
            model: live.model,
            seed: live.seed,
            end,
        });
        self.sort();
        Some(live.conversation)
    }

    /// Marks the live answer as being stopped; its request, the first time.
    pub fn stop(&mut self) -> Option<RequestId> {
        let live = self.live.as_mut().filter(|live| !live.stopping)?;
        live.stopping = true;
        Some(live.request)
    }

    /// The worker is gone, and with it the answer's end.
    pub fn lost(&mut self, now: Millis) -> Option<ConversationId> {
        let request = self.live.as_ref()?.request;
        self.end(now, request, End::Interrupted)
    }

    /// Identified by the time it began; two in one millisecond are told apart by counting on.
    fn insert(&mut self, now: Millis, title: String) -> ConversationId {
        let mut id = ConversationId(now);
        while self.find(id).is_some() {
            id.0 += 1;
        }
        self.conversations.push(Conversation {
            id,
            title,
            updated: now,
            revision: 0,
            turns: Vec::new(),
        });
        id
    }

    fn get(&mut self, id: ConversationId) -> Option<&mut Conversation> {
        self.conversations
            .iter_mut()
            .find(|conversation| conversation.id == id)
    }

    fn sort(&mut self) {
        self.conversations
            .sort_by_key(|conversation| std::cmp::Reverse((conversation.updated, conversation.id)));
    }
}

//! What a person does in a conversation.

use protocol::{Command, RequestId, StorageKind};

use super::{Action, App, Chat, Effect, Millis};

impl App {
    pub(super) fn act_in_chat(&mut self, now: Millis, action: Action) -> Vec<Effect> {
        match action {
            Action::Send { text, seed } => {
                let text = text.trim();
                if text.is_empty() || !self.can_send() {
                    return Vec::new();
                }
                self.chat.ask(now, text.to_string());
                self.answer(now, seed)
            }
            Action::Again { seed } => {
                if !self.can_send() || self.chat.retract().is_none() {
                    return Vec::new();
                }
                self.answer(now, seed)
            }
            Action::GoOn { seed } => {
                if !self.can_send() || !self.chat.reopen() {
                    return Vec::new();
                }
                self.ask_model(now, seed, Chat::go_on)
            }
            Action::Stop => {
                let stop = self.chat.stop().map(|request| Command::Stop { request });
                stop.and_then(|command| self.send(command))
                    .into_iter()
                    .collect()
            }
            Action::NewConversation => {
                self.chat.begin_new();
                vec![Effect::OpenChat]
            }
            Action::Open(id) => {
                self.chat.open(id);
                vec![Effect::OpenChat]
            }
            Action::Forget(id) => {
                let mut effects = Vec::new();
                if self.chat.live().is_some_and(|live| live.conversation == id) {
                    effects = self.act_in_chat(now, Action::Stop);
                }
                if self.chat.forget(id) {
                    effects.push(Effect::RemoveConversation(id));
                    if self.settings.keep || self.kept.0 > 0 {
                        let conversation = Some(id.0);
                        effects.extend(self.send(Command::ForgetKept { conversation }));
                    }
                }
                effects
            }
            _ => Vec::new(),
        }
    }

    /// Asks the model for the answer to the last question of the current conversation.
    fn answer(&mut self, now: Millis, seed: u64) -> Vec<Effect> {
        self.ask_model(now, seed, Chat::answer)
    }

    fn ask_model(
        &mut self,
        now: Millis,
        seed: u64,
        open: fn(&mut Chat, Millis, RequestId, String, u64),
    ) -> Vec<Effect> {
        let (Some(conversation), Some((model, _))) = (self.chat.current(), self.engine.loaded())
        else {
            return Vec::new();
        };
        let (id, name) = (conversation.id, model.name.clone());
        let messages = conversation.messages(&self.settings.system);
        let seed = self.settings.seed.unwrap_or(seed);
        let sampling = self.settings.sampling(seed);
        // What only memory holds would take it from the model.
        let stays = self.start.storage() != Some(StorageKind::Memory);
        let kept_as = (self.settings.keep && stays).then_some(id.0);
        let request = self.request();
        open(&mut self.chat, now, request, name, seed);
        let mut effects = vec![Effect::SaveConversation(id)];
        effects.extend(self.send(Command::Chat {
            request,
            messages,
            sampling,
            kept_as,
        }));
        effects
    }
}

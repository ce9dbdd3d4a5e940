//! Conversations that several tabs have open.
//!
//! Each tab keeps what it says; nobody's words are lost. A conversation carries the revision of
//! the kept record that it is based on. Who saves over a record that another tab has changed since
//! then takes the longer of the two if one goes on from the other, and otherwise keeps both.

use super::{Chat, Conversation, ConversationId, Turn};

/// What a tab has saved a conversation as.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled {
    Ours,
    /// Theirs goes on from ours.
    Theirs,
    /// Neither goes on from the other: theirs stays, and ours is kept beside it.
    Both,
}

/// Decides over a record that another tab has written meanwhile.
pub fn reconcile(ours: &Conversation, theirs: &Conversation) -> Reconciled {
    if goes_on_from(&ours.turns, &theirs.turns) {
        Reconciled::Ours
    } else if goes_on_from(&theirs.turns, &ours.turns) {
        Reconciled::Theirs
    } else {
        Reconciled::Both
    }
}

/// The same words first, of which the last may have been still in the making.
fn goes_on_from(longer: &[Turn], shorter: &[Turn]) -> bool {
    let Some((last, before)) = shorter.split_last() else {
        return true;
    };
    let same = |(a, b): (&Turn, &Turn)| a.role == b.role && a.text == b.text;
    let Some(there) = longer.get(before.len()) else {
        return false;
    };
    longer.iter().zip(before).all(same)
        && there.role == last.role
        && there.text.starts_with(&last.text)
}

impl Chat {
    /// Another tab has saved this. What is being answered here stays as it is until it is saved.
    pub fn adopt(&mut self, theirs: Conversation) {
        if self
            .live
            .as_ref()
            .is_some_and(|live| live.conversation == theirs.id)
        {
            return;
        }
        match self.get(theirs.id) {
            Some(ours) => *ours = theirs,
            None => self.conversations.push(theirs),
        }
        self.sort();
    }

    /// Another tab has deleted this. An answer in the making brings it back when it is saved.
    pub fn gone(&mut self, id: ConversationId) {
        if self
            .live
            .as_ref()
            .is_none_or(|live| live.conversation != id)
        {
            self.forget(id);
        }
    }

    /// Ours is kept under a new name, because another tab went on otherwise under the old one.
    pub fn parted(&mut self, old: ConversationId, new: ConversationId, theirs: Conversation) {
        if let Some(ours) = self.get(old) {
            ours.id = new;
            ours.revision = 0;
        }
        if self.current == Some(old) {
            self.current = Some(new);
        }
        if let Some(live) = &mut self.live
            && live.conversation == old
        {
            live.conversation = new;
        }
        self.conversations.push(theirs);
        self.sort();
    }
}

#[cfg(test)]
mod tests {
    use protocol::Role;

    use super::*;

    fn talk(words: &[&str]) -> Conversation {
        let roles = [Role::User, Role::Assistant].into_iter().cycle();
        let turn = |(role, text): (Role, &&str)| Turn {
            role,
            text: (*text).into(),
            end: None,
        };
        Conversation {
            id: ConversationId(1),
            title: "T".into(),
            updated: 0,
            revision: 3,
            turns: roles.zip(words).map(turn).collect(),
        }
    }

    /// Expected by the rule in this file's head: no word of either side is missing afterwards.
    #[test]
    fn no_words_are_lost() {
        let cases: [(&[&str], &[&str], Reconciled); 6] = [
            (&["a", "b"], &["a", "b"], Reconciled::Ours),
            (&["a", "b", "c"], &["a", "b"], Reconciled::Ours),
            (&["a", "be"], &["a", "b"], Reconciled::Ours),
            (&["a", "b"], &["a", "b", "c", "d"], Reconciled::Theirs),
            (&["a", "b", "c"], &["a", "b", "x"], Reconciled::Both),
            (&["a", "b"], &["a", "x", "c"], Reconciled::Both),
        ];
        for (ours, theirs, expected) in cases {
            let found = reconcile(&talk(ours), &talk(theirs));
            assert_eq!(found, expected, "{ours:?} {theirs:?}");
        }
    }

    #[test]
    fn a_parted_conversation_is_there_twice() {
        let mut chat = Chat::default();
        chat.adopt(talk(&["a", "b"]));
        chat.open(ConversationId(1));
        chat.parted(ConversationId(1), ConversationId(9), talk(&["a", "x"]));
        let ids: Vec<u64> = chat.conversations().iter().map(|one| one.id.0).collect();
        assert_eq!(ids, [9, 1]);
        assert_eq!(chat.current(), chat.find(ConversationId(9)));
    }
}

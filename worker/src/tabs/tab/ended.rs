//! The end of an owner's term, and what it leaves undone.

use protocol::{Command, Epoch, Event, TabRole};

use super::{Stand, Tab, TabOutput};

impl Tab {
    /// A later edition waits, and nobody waits for an answer.
    pub(super) fn leave_if_idle(&mut self) {
        if let Stand::Owning { epoch, hub } = &self.stand
            && self.leaving
            && self.doubt.is_none()
            && hub.is_idle()
        {
            self.retire(*epoch);
        }
    }

    /// From now on this tab only shows that it must be loaded again.
    pub(super) fn retire(&mut self, epoch: Epoch) {
        if self.owns() {
            self.stop();
        }
        self.stand = Stand::Outdated;
        for (command, attached) in std::mem::take(&mut self.held) {
            match command {
                Command::Chat { .. }
                | Command::Measure { .. }
                | Command::Time { .. }
                | Command::Import { .. }
                | Command::CancelImport { .. } => self.pending.asked(&command, attached),
                _ => self.refuse_outdated(&command, attached),
            }
        }
        self.give_up();
        self.tell_role(TabRole::Outdated, epoch);
    }

    pub(super) fn refuse_outdated(&mut self, command: &Command, attached: Option<u32>) {
        let what = "this tab is of an earlier build than the one that does the work";
        self.refuse(command, what, "reload this tab");
        self.out.extend(attached.map(TabOutput::LetGo));
    }

    /// Lets go of the storage, and of the files that other tabs have sent.
    pub(super) fn stop(&mut self) {
        self.out.push_back(TabOutput::Stop);
        if let Stand::Owning { hub, .. } = &self.stand {
            self.out.extend(hub.files().map(TabOutput::LetGo));
        }
    }

    /// What the last owner left undone ends here, but for what can be asked of the next one.
    pub(super) fn keep_for_next(&mut self) {
        for again in self.interrupt().into_iter().rev() {
            self.held.push_front(again);
        }
    }

    /// There will be no next one for this tab.
    pub(super) fn give_up(&mut self) {
        for (command, attached) in self.interrupt() {
            if let Command::Import { import, .. } = command {
                self.page(Event::ImportCancelled { import });
            }
            self.out.extend(attached.map(TabOutput::LetGo));
        }
    }

    pub(super) fn interrupt(&mut self) -> Vec<(Command, Option<u32>)> {
        let left = self.pending.interrupt();
        for request in left.requests {
            self.page(Event::Interrupted { request });
        }
        for (import, file) in left.cancelled {
            self.page(Event::ImportCancelled { import });
            self.out.extend(file.map(TabOutput::LetGo));
        }
        left.again
    }
}

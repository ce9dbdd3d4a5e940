//! What a tab hears of the others, and whom it believes.

use protocol::{
    Ask, Call, Edition, Epoch, Event, Stage, Subject, TabRole, Tell, ToClient, ToOwner,
};

use super::{OWN_BITS, Stand, Tab, TabOutput, is_later};
use crate::words;

impl Tab {
    pub(super) fn on_call(&mut self, call: Call) {
        match call {
            Call::Who { .. } => self.announce(),
            Call::Owner { epoch, edition } => self.on_owner(epoch, &edition),
            Call::Known { epoch } => {
                self.newest = self.newest.max(epoch);
                let newest = self.newest;
                if let Stand::Owning { epoch: mine, .. } = &mut self.stand
                    && *mine < newest
                {
                    // Nobody would hear this owner: its clock went back since the last one.
                    *mine = Epoch(newest.0 + (1 << OWN_BITS));
                    let epoch = *mine;
                    self.newest = epoch;
                    self.out.push_back(TabOutput::Listen(epoch));
                    self.announce();
                    self.tell_role(TabRole::Owner, epoch);
                }
            }
            Call::Yield { edition } => {
                if self.owns() && is_later(&edition, &self.edition) {
                    self.leaving = true;
                }
            }
        }
    }

    fn on_owner(&mut self, epoch: Epoch, edition: &Edition) {
        if epoch < self.newest {
            let epoch = self.newest;
            return self.out.push_back(TabOutput::Call(Call::Known { epoch }));
        }
        self.newest = epoch;
        self.quiet = 0;
        match self.stand {
            Stand::Owning { epoch: mine, .. } if mine == epoch => return,
            // The lock is another's: it was taken while this tab slept.
            Stand::Owning { .. } => self.on_deposed(),
            Stand::Following { epoch: known, .. } if known == epoch => return,
            Stand::Outdated => return,
            _ => {}
        }
        if edition.build == self.edition.build {
            self.keep_for_next();
            self.stand = Stand::Following {
                epoch,
                welcomed: false,
            };
            self.ask(epoch, Ask::Hello);
        } else if is_later(&self.edition, edition) {
            self.keep_for_next();
            self.stand = Stand::Seeking;
            let edition = self.edition.clone();
            self.out.push_back(TabOutput::Call(Call::Yield { edition }));
            self.tell_role(TabRole::Waiting, epoch);
        } else {
            self.retire(epoch);
        }
    }

    pub(super) fn on_asked(&mut self, asked: ToOwner, attached: Option<u32>) {
        let ToOwner { epoch, client, ask } = asked;
        match &mut self.stand {
            Stand::Owning { epoch: mine, hub } if *mine == epoch => match ask {
                Ask::Hello => {
                    let tell = Tell::Welcome;
                    let told = ToClient { epoch, tell };
                    self.out.push_back(TabOutput::Watch(client));
                    self.out.push_back(TabOutput::Tell { client, told });
                    if !hub.join(client) {
                        let what = "too many tabs are open";
                        let error = words::illegal(Stage::Start, what, "close some of them");
                        let subject = Subject::Start;
                        let tell = Tell::Event(Event::Failed { subject, error });
                        let told = ToClient { epoch, tell };
                        self.out.push_back(TabOutput::Tell { client, told });
                    }
                }
                Ask::Command(command) if hub.serves(client) => {
                    hub.command(client, command, attached);
                }
                Ask::Command(_) => self.let_go(attached),
            },
            _ => self.let_go(attached),
        }
    }

    /// Files came with something that is not done here.
    fn let_go(&mut self, attached: Option<u32>) {
        self.out.extend(attached.map(TabOutput::LetGo));
    }

    pub(super) fn on_told(&mut self, told: ToClient) {
        let ToClient { epoch, tell } = told;
        let Stand::Following {
            epoch: known,
            welcomed,
        } = &mut self.stand
        else {
            return;
        };
        // An owner that slept through its own end is not heard.
        if *known != epoch {
            return;
        }
        self.quiet = 0;
        match tell {
            Tell::Welcome => {
                *welcomed = true;
                self.tell_role(TabRole::Follower, epoch);
                self.give_held();
            }
            Tell::Event(event) => self.page(event),
        }
        if matches!(self.told, Some((TabRole::Silent, _))) {
            self.tell_role(TabRole::Follower, epoch);
        }
    }
}

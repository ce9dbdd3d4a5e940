//! What goes between the worker and other browsers through this page.

use js_sys::ArrayBuffer;
use leptos::prelude::{WithUntracked, WithValue};
use protocol::{Event, ImportSource, TabRole};

use super::{Hands, Page};
use crate::saved;
use crate::share::Rooms;
use crate::state::{Action, Effect};

impl Page {
    pub(super) fn rooms(self) -> Rooms {
        self.hands.with_value(|hands: &Hands| hands.rooms.clone())
    }

    /// A peer's message, for the worker.
    pub fn pass_to_worker(self, link: u32, bytes: &ArrayBuffer) {
        self.hands.with_value(|hands: &Hands| {
            if let Some(worker) = &hands.link {
                worker.pass(link, bytes);
            }
        });
    }

    pub(super) fn hear_of_peers(self, event: &Event) {
        // A follower's page has no connections.
        let role = self.app.with_untracked(|app| app.tabs.role);
        if let Event::Swarm(event) = event
            && role == Some(TabRole::Owner)
        {
            self.rooms().hear(self, event);
        }
    }

    pub(super) fn meet(self, effect: Effect) {
        let rooms = self.rooms();
        match effect {
            Effect::LeavePeers(model) => rooms.leave(model),
            Effect::LeaveAllPeers => rooms.leave_all(),
            _ => {}
        }
    }

    /// A link in the page's own address is shown; only a person's word begins anything.
    pub(super) fn read_address(self) {
        let hash = web_sys::window().and_then(|window| window.location().hash().ok());
        if let Some(link) = hash.filter(|hash| hash.starts_with("#slm1=")) {
            self.act(Action::Invited(link));
        }
    }

    /// What this tab was fetching when it was left.
    pub(super) fn take_up(self) {
        match saved::take_import_mark() {
            Some(ImportSource::Catalogue(entry)) => self.act(Action::Get(entry)),
            Some(ImportSource::Address { url }) => self.act(Action::ImportAddress(url)),
            Some(ImportSource::Invite(invited)) => self.act(Action::ReceiveAgain(invited)),
            _ => {
                if let Some(invited) = saved::unfinished_invite() {
                    self.act(Action::Unfinished(invited));
                }
            }
        }
    }
}

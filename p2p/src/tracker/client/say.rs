//! What a client says besides its announcements.

use super::{Line, TrackerClient};
use crate::tracker::door::TrackerOut;
use crate::tracker::message::{Announce, OfferId, PeerId, SdpText};

impl TrackerClient {
    /// An answer says `left`, too: there are trackers that would count a seeder as none.
    pub(super) fn say_answer(&mut self, to: PeerId, offer_id: OfferId, sdp: String) {
        let Line::Up { name, .. } = self.line else {
            return;
        };
        let mut announce = Announce::new(self.hash, name, "update", self.progress);
        announce.to_peer_id = Some(to);
        announce.offer_id = Some(offer_id);
        announce.answer = Some(SdpText {
            kind: "answer".into(),
            sdp,
        });
        self.send(&announce);
    }

    pub(super) fn tell_complete(&mut self) {
        if self.progress.left > 0 {
            self.told_complete = false;
        } else if !self.told_complete
            && let Line::Up { name, joined: true } = self.line
        {
            self.told_complete = true;
            let mut announce = Announce::new(self.hash, name, "completed", self.progress);
            announce.numwant = Some(0);
            self.send(&announce);
        }
    }

    pub(super) fn say_scrape(&mut self) {
        if matches!(self.line, Line::Up { .. }) {
            let words = serde_json::json!({ "action": "scrape", "info_hash": [self.hash] });
            self.out.push_back(TrackerOut::Send(words.to_string()));
        }
    }

    pub(super) fn stop(&mut self) {
        self.drop_offers();
        if let Line::Up { name, joined: true } = self.line {
            let mut announce = Announce::new(self.hash, name, "stopped", self.progress);
            announce.numwant = Some(0);
            self.send(&announce);
        }
        if !matches!(self.line, Line::Down { .. }) {
            self.out.push_back(TrackerOut::Close);
        }
        self.line = Line::Stopped;
    }

    pub(super) fn send(&mut self, announce: &Announce) {
        // Strings and finite numbers always have a JSON form.
        if let Ok(text) = serde_json::to_string(announce) {
            self.out.push_back(TrackerOut::Send(text));
        }
    }
}

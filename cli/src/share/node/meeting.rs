//! How a node meets others: offers and answers, through trackers.

use std::time::Instant;

use p2p::{Description, LinkId, OfferId, PeerId, PeerKey, TrackerOut};

use super::Node;
use crate::share::connection::{Connection, MEET, MEET_BY_HAND};
use crate::share::happening::{Happening, Watcher};
use crate::share::random;
use crate::share::rendezvous::LineId;

impl Node {
    pub(super) fn on_tracker(&mut self, line: LineId, out: TrackerOut, watcher: &mut dyn Watcher) {
        if let TrackerOut::Counts { complete, .. } = out {
            self.tracker_is_here(line, complete);
        }
        match out {
            TrackerOut::MakeOffers(count) => {
                for _ in 0..count {
                    self.make_offer(line);
                }
            }
            TrackerOut::Expired(offer_id) => drop(self.offers.remove(&offer_id)),
            TrackerOut::Offer {
                from,
                offer_id,
                offer,
            } if self.may_meet(from) => self.make_answer(line, from, offer_id, offer),
            TrackerOut::Answer {
                from,
                offer_id,
                answer,
            } => {
                if let Some((link, pending)) = self.offers.remove(&offer_id)
                    && self.may_meet(from)
                {
                    self.join(link, pending.accept((PeerKey(from.0), answer)));
                }
            }
            TrackerOut::Refused(reason) => {
                self.tracker_is_here(line, None);
                watcher.said(format!("the tracker refuses: {reason}"));
            }
            TrackerOut::Warned(words) => watcher.said(format!("the tracker warns: {words}")),
            // The line itself does the rest.
            _ => {}
        }
    }

    fn may_meet(&self, peer: PeerId) -> bool {
        let room = self.connections.len() < p2p::PEERS_MAX;
        room && !self.swarm.is_banned(PeerKey(peer.0))
    }

    fn make_offer(&mut self, line: LineId) {
        let Ok(bytes) = random() else { return };
        let (offer_id, link) = (OfferId(bytes), self.new_link());
        let (reach, tell) = (self.reach.clone(), self.tell.clone());
        tokio::spawn(async move {
            let made = Connection::offer(link, &reach, tell.clone()).await.ok();
            tell.send(Happening::Offered {
                line,
                offer_id,
                made,
                link,
            })
            .await
            .is_ok()
        });
    }

    fn make_answer(&mut self, line: LineId, to: PeerId, offer_id: OfferId, offer: Description) {
        let link = self.new_link();
        let (reach, tell) = (self.reach.clone(), self.tell.clone());
        tokio::spawn(async move {
            let offer = (PeerKey(to.0), &offer);
            let made = Connection::answer(link, &reach, offer, tell.clone())
                .await
                .ok();
            tell.send(Happening::Answered {
                line,
                to,
                offer_id,
                made,
                link,
            })
            .await
            .is_ok()
        });
    }

    /// A connection that will be open soon, or never.
    pub(super) fn join(&mut self, link: LinkId, connection: Connection) {
        self.connections.insert(link, connection);
        self.meeting.insert(link, Instant::now() + MEET);
    }

    /// The same where a person carries the answer.
    pub fn join_slowly(&mut self, link: LinkId, connection: Connection) {
        self.connections.insert(link, connection);
        self.meeting.insert(link, Instant::now() + MEET_BY_HAND);
    }
}

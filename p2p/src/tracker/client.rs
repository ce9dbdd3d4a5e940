//! One model at one tracker, from the side of a peer.
//!
//! The owner opens the socket when told to, and makes and holds the connections that offers stand
//! for. Descriptions are sealed and opened here: nothing that goes out names an address, and what
//! comes from somebody who does not know the model is passed over.

mod offers;
mod say;

use std::collections::{BTreeMap, VecDeque};

use format::ModelId;

use super::door::{TrackerIn, TrackerOut};
use super::message::{
    Announce, FromTracker, InfoHash, OfferId, OfferText, PeerId, Progress, SdpText, read,
};
use super::{OFFER_LIFE_MS, OFFERS_MAX};
use crate::signal::{open, seal};
use crate::{P2pError, info_hash};

/// How long the first announcement waits for its offers to be made.
const OFFERS_WAIT_MS: u64 = 6_000;
/// How long a tracker may take for the reply to an announcement.
const REPLY_WAIT_MS: u64 = 30_000;
const INTERVAL_MS: u64 = 120_000;
const INTERVAL_MS_MIN: u64 = 10_000;
const INTERVAL_MS_MAX: u64 = 3_600_000;
/// Who still looks for peers asks again so soon, then twice as late each time.
const EAGER_MS: u64 = 10_000;
const RECONNECT_MS: u64 = 2_000;
const RECONNECT_MS_MAX: u64 = 300_000;
/// Offers of others that are looked at in one interval of this length: each costs a connection.
const STRANGERS_MAX: u32 = 16;
const STRANGERS_MS: u64 = 10_000;

enum Line {
    Down { retry_at: u64 },
    Connecting,
    Up { name: PeerId, joined: bool },
    Stopped,
}

pub struct TrackerClient {
    id: ModelId,
    hash: InfoHash,
    line: Line,
    /// Failures in a row.
    failures: u32,
    /// For waits that differ between peers.
    dice: u64,
    progress: Progress,
    told_complete: bool,
    seek: usize,
    /// Offers that were made and not yet announced, in the tracker's form.
    ready: Vec<OfferText>,
    /// Offers that are being made, and how long an announcement waits for them.
    asked: usize,
    offers_due: Option<u64>,
    /// Offers that are out, and when they end.
    out_there: BTreeMap<OfferId, u64>,
    /// Those of the last announcement, and those that the tracker had nobody to give to.
    announced: Vec<OfferText>,
    unused: Vec<OfferText>,
    interval_ms: u64,
    eager_ms: u64,
    announce_at: u64,
    reply_due: Option<u64>,
    strangers: (u64, u32),
    now_ms: u64,
    out: VecDeque<TrackerOut>,
}

impl TrackerClient {
    /// `left` is how many bytes of the model are missing; `dice` is random.
    pub fn new(id: ModelId, left: u64, dice: u64) -> TrackerClient {
        TrackerClient {
            id,
            hash: InfoHash(info_hash(id)),
            line: Line::Down { retry_at: 0 },
            failures: 0,
            dice: dice | 1,
            progress: Progress {
                left,
                uploaded: 0,
                downloaded: 0,
            },
            told_complete: left == 0,
            seek: 0,
            ready: Vec::new(),
            asked: 0,
            offers_due: None,
            out_there: BTreeMap::new(),
            announced: Vec::new(),
            unused: Vec::new(),
            interval_ms: INTERVAL_MS,
            eager_ms: EAGER_MS,
            announce_at: 0,
            reply_due: None,
            strangers: (0, 0),
            now_ms: 0,
            out: VecDeque::new(),
        }
    }

    pub fn handle(&mut self, now_ms: u64, input: TrackerIn<'_>) -> Result<(), P2pError> {
        self.now_ms = now_ms;
        if matches!(self.line, Line::Stopped) {
            return Ok(());
        }
        match input {
            TrackerIn::Opened { name } => self.on_opened(PeerId(name)),
            TrackerIn::Text(text) => self.on_text(text),
            TrackerIn::Closed => self.on_closed(),
            TrackerIn::Offer {
                offer_id,
                nonce,
                offer,
            } => {
                let sdp = seal(self.id, offer_id, nonce, offer)?;
                self.asked = self.asked.saturating_sub(1);
                let offer = SdpText {
                    kind: "offer".into(),
                    sdp,
                };
                self.ready.push(OfferText { offer_id, offer });
            }
            TrackerIn::Answer {
                to,
                offer_id,
                nonce,
                answer,
            } => {
                let sdp = seal(self.id, offer_id, nonce, answer)?;
                self.say_answer(to, offer_id, sdp);
            }
            TrackerIn::Progress(progress) => {
                self.progress = progress;
                self.tell_complete();
            }
            TrackerIn::Seek(count) => self.on_seek(count.min(OFFERS_MAX)),
            TrackerIn::Scrape => self.say_scrape(),
            TrackerIn::Time => {}
            TrackerIn::Stop => {
                self.stop();
                return Ok(());
            }
        }
        self.go_on();
        Ok(())
    }

    pub fn poll(&mut self) -> Option<TrackerOut> {
        self.out.pop_front()
    }

    fn on_opened(&mut self, name: PeerId) {
        self.line = Line::Up {
            name,
            joined: false,
        };
        // An offer of an earlier socket has another name on it.
        self.drop_offers();
        self.reply_due = None;
        self.eager_ms = EAGER_MS;
        self.announce_at = self.now_ms;
    }

    fn on_closed(&mut self) {
        self.drop_offers();
        self.reply_due = None;
        let wait = RECONNECT_MS
            .saturating_mul(1 << self.failures.min(10))
            .min(RECONNECT_MS_MAX);
        self.failures += 1;
        let retry_at = self.now_ms + wait + self.roll(wait);
        self.line = Line::Down { retry_at };
    }

    fn on_seek(&mut self, count: usize) {
        if count > self.seek {
            self.eager_ms = EAGER_MS;
            self.announce_at = self.announce_at.min(self.now_ms);
        }
        self.seek = count;
    }

    fn on_text(&mut self, text: &str) {
        let Line::Up { name, .. } = self.line else {
            return;
        };
        for said in read(text, self.hash) {
            match said {
                FromTracker::Counts {
                    complete,
                    incomplete,
                    interval_s,
                } => {
                    self.failures = 0;
                    self.reply_due = None;
                    self.keep_unused(complete.zip(incomplete));
                    if let Some(seconds) = interval_s {
                        let wanted = seconds.saturating_mul(1000);
                        self.interval_ms = wanted.clamp(INTERVAL_MS_MIN, INTERVAL_MS_MAX);
                    }
                    self.out.push_back(TrackerOut::Counts {
                        complete,
                        incomplete,
                    });
                }
                FromTracker::Scrape {
                    complete,
                    incomplete,
                    ..
                } => {
                    let (complete, incomplete) = (Some(complete), Some(incomplete));
                    self.out.push_back(TrackerOut::Counts {
                        complete,
                        incomplete,
                    });
                }
                FromTracker::Offer {
                    from,
                    offer_id,
                    sdp,
                } if from != name => {
                    self.on_offer(from, offer_id, &sdp);
                }
                FromTracker::Answer {
                    from,
                    offer_id,
                    sdp,
                } if from != name => {
                    self.on_answer(from, offer_id, &sdp);
                }
                FromTracker::Offer { .. } | FromTracker::Answer { .. } => {}
                FromTracker::Refused { reason } => {
                    self.reply_due = None;
                    self.eager_ms = self.interval_ms;
                    self.announce_at = self.now_ms + self.interval_ms;
                    self.out.push_back(TrackerOut::Refused(reason));
                }
                FromTracker::Warned { words } => self.out.push_back(TrackerOut::Warned(words)),
            }
        }
    }

    fn on_offer(&mut self, from: PeerId, offer_id: OfferId, sdp: &str) {
        let (since, count) = self.strangers;
        self.strangers = match self.now_ms.saturating_sub(since) >= STRANGERS_MS {
            true => (self.now_ms, 1),
            false => (since, count + 1),
        };
        if self.strangers.1 > STRANGERS_MAX {
            return;
        }
        if let Ok(offer) = open(self.id, true, offer_id, sdp) {
            self.out.push_back(TrackerOut::Offer {
                from,
                offer_id,
                offer,
            });
        }
    }

    fn on_answer(&mut self, from: PeerId, offer_id: OfferId, sdp: &str) {
        if !self.out_there.contains_key(&offer_id) {
            return;
        }
        // A forged answer does not use the offer up.
        if let Ok(answer) = open(self.id, false, offer_id, sdp) {
            self.out_there.remove(&offer_id);
            self.out.push_back(TrackerOut::Answer {
                from,
                offer_id,
                answer,
            });
        }
    }

    /// Everything that time or an input has made due.
    fn go_on(&mut self) {
        if let Line::Down { retry_at } = self.line
            && self.now_ms >= retry_at
        {
            self.line = Line::Connecting;
            self.out.push_back(TrackerOut::Connect);
        }
        if self.reply_due.is_some_and(|due| self.now_ms >= due) {
            self.out.push_back(TrackerOut::Close);
            self.on_closed();
        }
        self.expire();
        if matches!(self.line, Line::Up { .. }) {
            self.announce_in_time();
        }
        self.watch();
    }

    /// An announcement begins with making its offers, and waits for them a little.
    fn announce_in_time(&mut self) {
        if self.offers_due.is_none() {
            if self.now_ms < self.announce_at {
                return;
            }
            let open = self.out_there.len() + self.ready.len();
            self.asked = self.seek.saturating_sub(open);
            if self.asked > 0 {
                self.out.push_back(TrackerOut::MakeOffers(self.asked));
            }
            self.offers_due = Some(self.now_ms + OFFERS_WAIT_MS);
        }
        if self.asked == 0 || self.offers_due.is_some_and(|due| self.now_ms >= due) {
            self.announce();
        }
    }

    fn announce(&mut self) {
        let Line::Up {
            name,
            ref mut joined,
        } = self.line
        else {
            return;
        };
        let event = if *joined { "update" } else { "started" };
        *joined = true;
        self.told_complete = self.progress.left == 0;
        self.asked = 0;
        self.offers_due = None;
        let mut offers = std::mem::take(&mut self.ready);
        for offer in &offers {
            self.out_there
                .insert(offer.offer_id, self.now_ms + OFFER_LIFE_MS);
        }
        let unused = std::mem::take(&mut self.unused);
        offers.extend(
            unused
                .into_iter()
                .filter(|offer| self.out_there.contains_key(&offer.offer_id)),
        );
        self.announced.clone_from(&offers);
        let mut announce = Announce::new(self.hash, name, event, self.progress);
        announce.numwant = Some(offers.len() as u64);
        announce.offers = Some(offers);
        self.send(&announce);
        self.reply_due = Some(self.now_ms + REPLY_WAIT_MS);
        let wait = match self.seek {
            0 => self.interval_ms,
            _ => self.eager_ms.min(self.interval_ms),
        };
        self.eager_ms = self.eager_ms.saturating_mul(2);
        self.announce_at = self.now_ms + wait;
    }

    fn watch(&mut self) {
        let next = match self.line {
            Line::Down { retry_at } => Some(retry_at),
            Line::Up { .. } => {
                let due = self.offers_due.unwrap_or(self.announce_at);
                let offers = self.out_there.values().copied().min();
                [Some(due), offers, self.reply_due]
                    .into_iter()
                    .flatten()
                    .min()
            }
            Line::Connecting | Line::Stopped => None,
        };
        self.out.extend(next.map(TrackerOut::WakeAt));
    }

    /// A number below `limit`, other for every peer (xorshift).
    fn roll(&mut self, limit: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % limit.max(1)
    }
}

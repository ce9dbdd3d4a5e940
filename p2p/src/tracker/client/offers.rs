//! Offers that were announced: for how long they stand, and what becomes of those that nobody got.

use super::{TrackerClient, TrackerOut};
use crate::tracker::OfferId;

impl TrackerClient {
    /// A tracker gives one offer to each peer that is there, the first ones first, and forgets the
    /// rest: those are announced again for as long as they live.
    pub(super) fn keep_unused(&mut self, counts: Option<(u32, u32)>) {
        let mut announced = std::mem::take(&mut self.announced);
        // The counts include who asks.
        if let Some((complete, incomplete)) = counts {
            let others = complete.saturating_add(incomplete).saturating_sub(1);
            let given = announced.len().min(others as usize);
            self.unused.extend(announced.drain(given..));
        }
    }

    pub(super) fn expire(&mut self) {
        let over = |(id, until): (&OfferId, &u64)| (self.now_ms >= *until).then_some(*id);
        let over: Vec<OfferId> = self.out_there.iter().filter_map(over).collect();
        for offer_id in over {
            self.out_there.remove(&offer_id);
            self.out.push_back(TrackerOut::Expired(offer_id));
        }
    }

    pub(super) fn drop_offers(&mut self) {
        self.asked = 0;
        self.offers_due = None;
        let ready = std::mem::take(&mut self.ready)
            .into_iter()
            .map(|offer| offer.offer_id);
        let out_there = std::mem::take(&mut self.out_there).into_keys();
        self.announced.clear();
        self.unused.clear();
        self.out
            .extend(ready.chain(out_there).map(TrackerOut::Expired));
    }
}

//! An owner after a sleep that nobody announced: a closed lid, a stopped process.

use std::collections::VecDeque;

use super::{Tab, TabOutput};

/// A worker that hears nothing of time for so long has slept: no step of its own work lasts so.
const SLEEP_MS: u64 = 20_000;

impl Tab {
    /// An owner that slept without being told so may have lost its lock, and its files with it.
    pub(super) fn notice_sleep(&mut self, now_ms: u64) {
        let before = self.seen_ms.replace(now_ms).unwrap_or(now_ms);
        let has_slept = now_ms.saturating_sub(before) >= SLEEP_MS;
        if has_slept && self.owns() && self.doubt.is_none() {
            self.doubt = Some(VecDeque::new());
            self.out.push_back(TabOutput::Check);
        }
    }

    pub(super) fn end_doubt(&mut self) {
        for input in self.doubt.take().into_iter().flatten() {
            self.take(input);
            self.drain_hub();
        }
    }
}

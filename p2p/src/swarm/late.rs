//! What does not come: it is asked of others, and who never answers is left.

use super::Swarm;
use super::peer::{LeafAt, Peer};
use crate::Fault;
use crate::door::LinkId;
use crate::wire::Message;

/// Nothing came for so long, or for four times as long as it used to take.
const LATE_MS: u64 = 3_000;
const STRIKES_MAX: u32 = 3;
/// Owing and giving nothing.
const SILENT_MS: u64 = 30_000;
const HELLO_MS: u64 = 10_000;
/// After so much silence a ping is sent, and after three times as much the peer is gone.
const PING_MS: u64 = 20_000;

enum Verdict {
    Fine,
    Ping,
    Late,
    Leave,
}

impl Swarm {
    pub(super) fn give_up_late(&mut self) {
        let links: Vec<LinkId> = self.peers.keys().copied().collect();
        for link in links {
            match self.judge(link) {
                Verdict::Fine => {}
                Verdict::Ping => {
                    self.send(link, &Message::Ping(0));
                }
                Verdict::Late => self.give_up(link),
                Verdict::Leave => self.leave(link, Fault::Silent),
            }
        }
    }

    fn judge(&mut self, link: LinkId) -> Verdict {
        let now_ms = self.now_ms;
        let owes_layer = self.layer_pull.from == Some(link);
        let Some(peer) = self.peers.get_mut(&link) else {
            return Verdict::Fine;
        };
        let passed = |since: u64| now_ms.saturating_sub(since);
        if !peer.is_ready() {
            return match passed(peer.opened_ms) >= HELLO_MS {
                true => Verdict::Leave,
                false => Verdict::Fine,
            };
        }
        let waits = peer.outstanding() > 0 || !peer.hashes_asked.is_empty() || owes_layer;
        let owes = waits || !peer.asked.is_empty();
        if waits && passed(peer.waited_from_ms) >= patience(peer) {
            peer.strikes += 1;
            return match peer.strikes >= STRIKES_MAX {
                true => Verdict::Leave,
                false => Verdict::Late,
            };
        }
        let silent_from = peer.given_ms.max(oldest(peer));
        if owes && passed(silent_from) >= SILENT_MS || passed(peer.heard_ms) >= 3 * PING_MS {
            return Verdict::Leave;
        }
        if passed(peer.heard_ms) >= PING_MS && !peer.is_pinged {
            peer.is_pinged = true;
            return Verdict::Ping;
        }
        Verdict::Fine
    }

    /// Others are asked for what it owes; one leaf at a time it may show that it is alive.
    fn give_up(&mut self, link: LinkId) {
        let now_ms = self.now_ms;
        let Some(peer) = self.peers.get_mut(&link) else {
            return;
        };
        peer.window = 1;
        peer.waited_from_ms = now_ms;
        let waited = peer.asked.iter().filter(|(_, asked)| !asked.is_given_up);
        let leaves: Vec<LeafAt> = waited.map(|(at, _)| *at).collect();
        let stuck: Vec<_> = peer.hashes_asked.iter().copied().collect();
        for at in &leaves {
            self.cancel(link, *at);
        }
        self.release(link, leaves);
        for piece in stuck {
            self.begin_anew(link, piece);
        }
        if self.layer_pull.from == Some(link) {
            self.layer_pull.is_slow(link);
        }
    }
}

fn patience(peer: &Peer) -> u64 {
    LATE_MS.max(4 * peer.latency_ms)
}

fn oldest(peer: &Peer) -> u64 {
    let asked = peer.asked.values().map(|asked| asked.at_ms);
    asked.min().unwrap_or(peer.waited_from_ms)
}

//! A tracker: who is there for each info hash, and a post office for offers and answers.
//!
//! It keeps names and counts in memory and nothing else, knows no address, and writes no log. All
//! it holds is bounded: what does not fit is refused with a reason, and who is silent is forgotten.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::message::{
    Announce, InfoHash, OfferId, OfferText, PeerId, SdpText, from_binary_string, parse,
    to_binary_string,
};
use super::{OFFERS_MAX, TRACKER_TEXT_BYTES_MAX};

/// How often a client shall announce itself.
pub const INTERVAL_S: u64 = 120;
/// A peer that has said nothing for so long is forgotten: two intervals and a little.
const SILENCE_MS: u64 = 270_000;
/// Sockets at a time.
pub const SOCKETS_MAX: usize = 4096;
/// Models that one socket may be there for.
const SWARMS_PER_SOCKET_MAX: usize = 64;
/// Peers of one model; a random few of them meet anyway.
const PEERS_MAX: usize = 4096;
/// Messages of one socket in [`RATE_MS`], more than any client sends.
const RATE_MAX: u32 = 200;
const RATE_MS: u64 = 10_000;
/// Info hashes of one scrape.
const SCRAPE_MAX: usize = 64;

/// Number of a socket; whoever accepts it gives it, and never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

#[derive(Debug, PartialEq)]
pub enum TrackerServerOut {
    Send { to: SocketId, text: String },
    Close(SocketId),
}

struct Peer {
    socket: SocketId,
    is_seeder: bool,
    heard_ms: u64,
}

#[derive(Default)]
struct Swarm {
    peers: BTreeMap<PeerId, Peer>,
    downloaded: u32,
}

#[derive(Default)]
struct Socket {
    /// What it is there for, and its name there.
    names: BTreeMap<InfoHash, PeerId>,
    heard_ms: u64,
    rate: (u64, u32),
}

pub struct TrackerServer {
    swarms: BTreeMap<InfoHash, Swarm>,
    sockets: BTreeMap<SocketId, Socket>,
    dice: u64,
    now_ms: u64,
    out: VecDeque<TrackerServerOut>,
}

impl TrackerServer {
    /// `dice` is random; it decides whose offer goes to whom.
    pub fn new(dice: u64) -> TrackerServer {
        TrackerServer {
            swarms: BTreeMap::new(),
            sockets: BTreeMap::new(),
            dice: dice | 1,
            now_ms: 0,
            out: VecDeque::new(),
        }
    }

    /// A socket is open. It is closed at once if there are too many.
    pub fn opened(&mut self, now_ms: u64, socket: SocketId) {
        self.now_ms = now_ms;
        if self.sockets.len() == SOCKETS_MAX {
            self.out.push_back(TrackerServerOut::Close(socket));
            return;
        }
        let heard_ms = now_ms;
        self.sockets.insert(
            socket,
            Socket {
                heard_ms,
                ..Socket::default()
            },
        );
    }

    pub fn closed(&mut self, now_ms: u64, socket: SocketId) {
        self.now_ms = now_ms;
        let Some(gone) = self.sockets.remove(&socket) else {
            return;
        };
        for (hash, name) in gone.names {
            self.leave(hash, name);
        }
    }

    pub fn text(&mut self, now_ms: u64, socket: SocketId, text: &str) {
        self.now_ms = now_ms;
        let Some(known) = self.sockets.get_mut(&socket) else {
            return;
        };
        known.heard_ms = now_ms;
        let (since, count) = known.rate;
        known.rate = match now_ms.saturating_sub(since) >= RATE_MS {
            true => (now_ms, 1),
            false => (since, count + 1),
        };
        if known.rate.1 > RATE_MAX || text.len() > TRACKER_TEXT_BYTES_MAX {
            return self.throw_out(socket);
        }
        let Some(value) = parse(text) else {
            return self.refuse(socket, "", None, "not an object of JSON");
        };
        match value["action"].as_str() {
            Some("announce") => self.on_announce(socket, value),
            Some("scrape") => self.on_scrape(socket, &value),
            // A later version of the protocol may say more.
            _ => {}
        }
    }

    /// Forgets who is silent. To be called every half minute or so.
    pub fn time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let is_late = |heard_ms: u64| now_ms.saturating_sub(heard_ms) >= SILENCE_MS;
        let late = self
            .sockets
            .iter()
            .filter(|(_, socket)| is_late(socket.heard_ms));
        let late: Vec<SocketId> = late.map(|(id, _)| *id).collect();
        for socket in late {
            self.throw_out(socket);
        }
        // A socket may live on without one of its models.
        let late = self.swarms.iter().flat_map(|(hash, swarm)| {
            let late = swarm
                .peers
                .iter()
                .filter(|(_, peer)| is_late(peer.heard_ms));
            late.map(|(name, _)| (*hash, *name))
        });
        let late: Vec<(InfoHash, PeerId)> = late.collect();
        for (hash, name) in late {
            self.forget(hash, name);
        }
    }

    pub fn poll(&mut self) -> Option<TrackerServerOut> {
        self.out.pop_front()
    }

    fn on_announce(&mut self, socket: SocketId, value: Value) {
        let hash_text = value["info_hash"].as_str().map(str::to_owned);
        let announce: Announce = match serde_json::from_value(value) {
            Ok(announce) => announce,
            Err(_) => {
                let reason = "an announcement lacks something, or it is of a wrong kind";
                return self.refuse(socket, "announce", hash_text, reason);
            }
        };
        let (hash, name) = (announce.info_hash, announce.peer_id);
        if announce.event.as_deref() == Some("stopped") {
            if self.is_own(socket, hash, name) {
                self.forget(hash, name);
            }
            return self.send_counts(socket, hash);
        }
        if let Err(reason) = self.enter(socket, &announce) {
            return self.refuse(socket, "announce", hash_text, reason);
        }
        if let (Some(to), Some(offer_id), Some(answer)) =
            (announce.to_peer_id, announce.offer_id, &announce.answer)
        {
            return self.pass_answer(hash, name, to, offer_id, answer);
        }
        self.send_counts(socket, hash);
        let to_nobody = announce.event.as_deref() == Some("completed");
        let offers = announce.offers.filter(|_| !to_nobody).unwrap_or_default();
        self.pass_offers(hash, name, &offers);
    }

    fn send_counts(&mut self, to: SocketId, hash: InfoHash) {
        let (complete, incomplete) = self.counts(hash);
        let reply = json!({
            "action": "announce",
            "interval": INTERVAL_S,
            "info_hash": hash,
            "complete": complete,
            "incomplete": incomplete,
        });
        self.send(to, &reply);
    }

    fn is_own(&self, socket: SocketId, hash: InfoHash, name: PeerId) -> bool {
        let known = self.sockets.get(&socket);
        known.is_some_and(|socket| socket.names.get(&hash) == Some(&name))
    }

    /// Puts the peer among those of the model, or renews what is known of it.
    fn enter(&mut self, socket: SocketId, announce: &Announce) -> Result<(), &'static str> {
        let (hash, name) = (announce.info_hash, announce.peer_id);
        let known = self
            .sockets
            .get_mut(&socket)
            .ok_or("the socket is closed")?;
        let own = known.names.get(&hash).copied();
        if own.is_none() && known.names.len() == SWARMS_PER_SOCKET_MAX {
            return Err("too many info hashes on one socket");
        }
        let swarm = self.swarms.entry(hash).or_default();
        match swarm.peers.get(&name) {
            Some(peer) if peer.socket != socket => return Err("the name is in use"),
            None if swarm.peers.len() >= PEERS_MAX => return Err("too many peers"),
            _ => {}
        }
        if let Some(old) = own.filter(|old| *old != name) {
            swarm.peers.remove(&old);
        }
        known.names.insert(hash, name);
        let was_seeder = swarm.peers.get(&name).is_some_and(|peer| peer.is_seeder);
        let is_seeder = announce.left == Some(0)
            || announce.event.as_deref() == Some("completed")
            || (announce.left.is_none() && was_seeder);
        if announce.event.as_deref() == Some("completed") && !was_seeder {
            swarm.downloaded = swarm.downloaded.saturating_add(1);
        }
        let heard_ms = self.now_ms;
        swarm.peers.insert(
            name,
            Peer {
                socket,
                is_seeder,
                heard_ms,
            },
        );
        Ok(())
    }

    /// Each offer goes to another peer, chosen at random; who has everything meets only those who
    /// have not.
    fn pass_offers(&mut self, hash: InfoHash, from: PeerId, offers: &[OfferText]) {
        let Some(swarm) = self.swarms.get(&hash) else {
            return;
        };
        let from_seeder = swarm.peers.get(&from).is_some_and(|peer| peer.is_seeder);
        let meets =
            |(name, peer): &(&PeerId, &Peer)| **name != from && !(from_seeder && peer.is_seeder);
        let others = swarm
            .peers
            .iter()
            .filter(meets)
            .map(|(_, peer)| peer.socket);
        let mut others: Vec<SocketId> = others.collect();
        for offer in offers.iter().take(OFFERS_MAX) {
            if others.is_empty() {
                return;
            }
            let chosen = (self.roll() % others.len() as u64) as usize;
            let to = others.swap_remove(chosen);
            let words = json!({
                "action": "announce",
                "offer": offer.offer,
                "offer_id": offer.offer_id,
                "peer_id": from,
                "info_hash": hash,
            });
            self.send(to, &words);
        }
    }

    fn pass_answer(
        &mut self,
        hash: InfoHash,
        from: PeerId,
        to: PeerId,
        offer_id: OfferId,
        answer: &SdpText,
    ) {
        let swarm = self.swarms.get(&hash);
        let Some(socket) = swarm
            .and_then(|swarm| swarm.peers.get(&to))
            .map(|peer| peer.socket)
        else {
            return;
        };
        let words = json!({
            "action": "announce",
            "answer": answer,
            "offer_id": offer_id,
            "peer_id": from,
            "info_hash": hash,
        });
        self.send(socket, &words);
    }

    fn on_scrape(&mut self, socket: SocketId, value: &Value) {
        let asked = match &value["info_hash"] {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            Value::String(one) => vec![one.as_str()],
            // Who asks for everything gets nothing: that list is nobody's business.
            _ => Vec::new(),
        };
        let mut files = serde_json::Map::new();
        for text in asked.into_iter().take(SCRAPE_MAX) {
            let Some(hash) = from_binary_string(text).map(InfoHash) else {
                let reason = "an info hash is a string of 20 bytes";
                return self.refuse(socket, "scrape", None, reason);
            };
            let (complete, incomplete) = self.counts(hash);
            let downloaded = self.swarms.get(&hash).map_or(0, |swarm| swarm.downloaded);
            let file = json!({
                "complete": complete,
                "incomplete": incomplete,
                "downloaded": downloaded,
            });
            files.insert(to_binary_string(&hash.0), file);
        }
        let flags = json!({ "min_request_interval": INTERVAL_S });
        self.send(
            socket,
            &json!({ "action": "scrape", "files": files, "flags": flags }),
        );
    }

    fn counts(&self, hash: InfoHash) -> (usize, usize) {
        let peers = self.swarms.get(&hash).map(|swarm| &swarm.peers);
        let all = peers.map_or(0, BTreeMap::len);
        let seeders = peers.map_or(0, |peers| peers.values().filter(|it| it.is_seeder).count());
        (seeders, all - seeders)
    }

    fn throw_out(&mut self, socket: SocketId) {
        self.out.push_back(TrackerServerOut::Close(socket));
        self.closed(self.now_ms, socket);
    }

    fn forget(&mut self, hash: InfoHash, name: PeerId) {
        let swarm = self.swarms.get(&hash);
        let socket = swarm
            .and_then(|swarm| swarm.peers.get(&name))
            .map(|peer| peer.socket);
        if let Some(socket) = socket.and_then(|socket| self.sockets.get_mut(&socket)) {
            socket.names.remove(&hash);
        }
        self.leave(hash, name);
    }

    fn leave(&mut self, hash: InfoHash, name: PeerId) {
        if let Some(swarm) = self.swarms.get_mut(&hash) {
            swarm.peers.remove(&name);
            if swarm.peers.is_empty() {
                self.swarms.remove(&hash);
            }
        }
    }

    fn refuse(&mut self, to: SocketId, action: &str, hash: Option<String>, reason: &str) {
        let mut words = json!({ "action": action, "failure reason": reason });
        if let Some(hash) = hash {
            words["info_hash"] = hash.into();
        }
        self.send(to, &words);
    }

    fn send(&mut self, to: SocketId, words: &Value) {
        let text = words.to_string();
        self.out.push_back(TrackerServerOut::Send { to, text });
    }

    /// A number that no client can foresee (xorshift).
    fn roll(&mut self) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice
    }
}

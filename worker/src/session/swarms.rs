//! Models that come from peers and go to them: one `p2p::Swarm` each.
//!
//! An import takes what comes (`fetch`), a stored model is given as it lies; both may be true of
//! one model, one after the other. Servers are asked through transfers like any import's.

mod outputs;

use std::collections::{BTreeMap, VecDeque};

use format::{ModelId, PIECE_BYTES, PieceIndex, PieceLayer};
use p2p::{Fault, LinkId, PeerKey, Sharing, Swarm, UploadLimits, Want};
use protocol::{ErrorReport, Event, InvitedModel, PeerReport, SwarmEvent, SwarmStatus};
use store::Bitfield;

use super::Output;
use super::desk::Desk;
use super::transfers::Arrival;
use crate::source::{Source, SourceFault};
use crate::words;
use outputs::layer_of;

/// Between two reports of one model, unless peers came or went.
const STATUS_MS: u64 = 500;
/// Numbers of servers begin here; a page does not count so far.
const SERVERS: u32 = 1 << 31;

#[derive(Default)]
pub struct Swarms {
    by_model: BTreeMap<ModelId, Entry>,
    links: BTreeMap<LinkId, ModelId>,
    servers: BTreeMap<Source, (ModelId, Server)>,
    last: u32,
    wake_ms: Option<u64>,
    arrived: VecDeque<Arrival>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// Of the file.
    File(LinkId),
    /// Of the hashes of its pieces.
    Layer,
}

struct Entry {
    swarm: Swarm,
    name: String,
    trackers: Vec<String>,
    /// What an import takes from.
    fetch: Option<Source>,
    gives: bool,
    /// The whole model lies under its own name.
    is_stored: bool,
    /// Pieces that peers want and that cannot be read just now.
    unread: Vec<PieceIndex>,
    told_ms: Option<u64>,
    told_peers: usize,
}

impl Entry {
    fn new(swarm: Swarm, name: String, trackers: Vec<String>) -> Entry {
        Entry {
            swarm,
            name,
            trackers,
            fetch: None,
            gives: false,
            is_stored: false,
            unread: Vec::new(),
            told_ms: None,
            told_peers: 0,
        }
    }

    fn links(&self) -> usize {
        self.swarm.links()
    }

    fn status(&self) -> SwarmStatus {
        let model = self.swarm.id();
        let status = self.swarm.status();
        let peers = status.peers.iter().map(|peer| PeerReport {
            link: (!peer.is_server).then_some(peer.link.0),
            pieces: peer.pieces,
            down: peer.down,
            up: peer.up,
        });
        SwarmStatus {
            model,
            name: self.name.clone(),
            trackers: self.trackers.clone(),
            fetches: self.fetch.is_some(),
            gives: self.gives,
            pieces: status.pieces,
            pieces_total: model.pieces(),
            down: status.down,
            up: status.up,
            peers: peers.collect(),
        }
    }
}

impl Swarms {
    pub fn arrived(&mut self) -> Option<Arrival> {
        self.arrived.pop_front()
    }

    fn fetched_by(&self, source: Source) -> Option<ModelId> {
        let mut entries = self.by_model.iter();
        let found = entries.find(|(_, entry)| entry.fetch == Some(source));
        found.map(|(id, _)| *id)
    }

    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }
}

// What an import asks.
impl Desk {
    /// Begins with the hashes of the pieces, which come as bytes of the source.
    pub fn fetch_from_peers(&mut self, invited: InvitedModel) -> Result<Source, ErrorReport> {
        let id = invited.id;
        let source = Source::Peers(self.swarms.number());
        if !self.swarms.by_model.contains_key(&id) {
            let seed = invited.seed.wrapping_add(self.now_ms);
            let swarm = Swarm::new(id, seed).map_err(|error| words::sharing_error(&error))?;
            let entry = Entry::new(swarm, invited.name, invited.trackers);
            self.swarms.by_model.insert(id, entry);
        }
        if let Some(entry) = self.swarms.by_model.get_mut(&id) {
            entry.fetch = Some(source);
            entry.gives |= invited.gives;
            let gives = entry.gives;
            let layer = entry.swarm.layer().cloned();
            if gives {
                self.swarm(id, p2p::Input::Share(Sharing::On));
            }
            if let Some(layer) = layer {
                self.swarms.arrived.push_back(layer_of(source, &layer));
            }
        }
        for url in &invited.sources {
            self.ask_server(id, url);
        }
        self.swarm(id, p2p::Input::Want(Want::Layer));
        self.tell_swarm(id);
        Ok(source)
    }

    fn ask_server(&mut self, id: ModelId, url: &str) {
        let file = self.file_address(url, id.length);
        let link = LinkId(SERVERS + self.swarms.number());
        self.swarms.servers.insert(file, (id, Server::File(link)));
        self.swarms.links.insert(link, id);
        self.swarm(id, p2p::Input::OpenedServer { link });
        let len = 32 * id.pieces();
        let layer = self.file_address(&format!("{url}.pieces"), len.into());
        self.swarms.servers.insert(layer, (id, Server::Layer));
        self.need(layer, 0, len);
    }

    /// The beginning of the file, one piece after another, before the rest is wanted.
    pub fn need_of_peers(&mut self, source: Source, at: u64, len: u32) {
        if let Some(id) = self.swarms.fetched_by(source) {
            let end = (at + u64::from(len)).div_ceil(u64::from(PIECE_BYTES));
            self.swarm(id, p2p::Input::Want(Want::First(end as u32)));
        }
    }

    /// Everything else, in any order.
    pub fn fetch_rest(&mut self, source: Source, have: &Bitfield) {
        let Some(id) = self.swarms.fetched_by(source) else {
            return;
        };
        for piece in (0..id.pieces()).map(PieceIndex) {
            if have.contains(piece) {
                self.swarm(id, p2p::Input::Stored { piece });
            }
        }
        self.swarm(id, p2p::Input::Want(Want::All));
    }

    pub fn piece_stored(&mut self, source: Source, piece: PieceIndex) {
        if let Some(id) = self.swarms.fetched_by(source) {
            self.swarm(id, p2p::Input::Stored { piece });
        }
    }

    pub fn import_read(&mut self, source: Source, piece: PieceIndex, bytes: Option<Vec<u8>>) {
        if let Some(id) = self.swarms.fetched_by(source) {
            match bytes {
                Some(_) => self.swarm(id, p2p::Input::Read { piece, bytes }),
                // It has its own name soon, and is read then.
                None => self.swarms.put_off(id, piece),
            }
        }
    }

    /// The import is over. A whole model goes on being given, if a person wished so.
    pub fn end_fetch(&mut self, source: Source) {
        let Some(id) = self.swarms.fetched_by(source) else {
            return;
        };
        self.drop_servers(id);
        let Some(entry) = self.swarms.by_model.get_mut(&id) else {
            return;
        };
        entry.fetch = None;
        let is_whole = entry.swarm.status().pieces == id.pieces();
        if !(entry.gives && is_whole) {
            return self.end_swarm(id);
        }
        entry.is_stored = true;
        let unread = std::mem::take(&mut entry.unread);
        self.swarm(id, p2p::Input::Want(Want::Nothing));
        for piece in unread {
            self.read_for_peer(id, piece);
        }
        self.tell_swarm(id);
    }

    fn drop_servers(&mut self, id: ModelId) {
        let of_model = self.swarms.servers.iter().filter(|(_, (of, _))| *of == id);
        let sources: Vec<Source> = of_model.map(|(source, _)| *source).collect();
        for source in sources {
            self.drop_server(source);
        }
    }

    fn drop_server(&mut self, source: Source) {
        if let Some((id, Server::File(link))) = self.swarms.servers.remove(&source) {
            self.swarms.links.remove(&link);
            self.swarm(id, p2p::Input::Closed { link });
        }
        self.cancel_source(source);
    }
}

// What sharing asks.
impl Desk {
    pub fn shares(&self, id: ModelId) -> bool {
        self.swarms
            .by_model
            .get(&id)
            .is_some_and(|entry| entry.gives)
    }

    pub fn is_fetched(&self, id: ModelId) -> bool {
        self.swarms
            .by_model
            .get(&id)
            .is_some_and(|entry| entry.fetch.is_some())
    }

    /// Gives a whole stored model to whoever connects.
    pub fn share_stored(
        &mut self,
        layer: PieceLayer,
        name: String,
        (trackers, limit, seed): (Vec<String>, Option<u32>, u64),
    ) -> Result<(), ErrorReport> {
        let id = layer.id;
        let seed = seed.wrapping_add(self.now_ms);
        let swarm = Swarm::new(id, seed).map_err(|error| words::sharing_error(&error))?;
        let mut entry = Entry::new(swarm, name, trackers);
        entry.gives = true;
        entry.is_stored = true;
        self.swarms.by_model.insert(id, entry);
        self.swarm(id, p2p::Input::Layer(layer));
        for piece in (0..id.pieces()).map(PieceIndex) {
            self.swarm(id, p2p::Input::Stored { piece });
        }
        self.limit(id, limit);
        self.swarm(id, p2p::Input::Share(Sharing::On));
        self.tell_swarm(id);
        Ok(())
    }

    /// It is shared already, and now in this way.
    pub fn change_share(&mut self, id: ModelId, trackers: Vec<String>, limit: Option<u32>) {
        if let Some(entry) = self.swarms.by_model.get_mut(&id) {
            entry.trackers = trackers;
        }
        self.limit(id, limit);
        self.tell_swarm(id);
    }

    fn limit(&mut self, id: ModelId, total: Option<u32>) {
        let limits = UploadLimits { total, each: None };
        self.swarm(id, p2p::Input::Limit(limits));
    }

    /// At once; what an import takes goes on coming.
    pub fn unshare(&mut self, id: ModelId) {
        let Some(entry) = self.swarms.by_model.get_mut(&id) else {
            return;
        };
        entry.gives = false;
        if entry.fetch.is_none() {
            return self.end_swarm(id);
        }
        self.swarm(id, p2p::Input::Share(Sharing::Off));
        self.tell_swarm(id);
    }

    fn end_swarm(&mut self, id: ModelId) {
        self.swarm(id, p2p::Input::Stop);
        self.swarms.by_model.remove(&id);
        self.swarms.links.retain(|_, of| *of != id);
        self.out.push_back(Output::ReleaseStored(id));
        self.event(Event::Swarm(SwarmEvent::Ended { model: id }));
    }

    pub fn peer_opened(&mut self, id: ModelId, link: u32, key: [u8; 20]) {
        let (link, key) = (LinkId(link), PeerKey(key));
        if self.swarms.links.contains_key(&link) {
            return;
        }
        if self.swarms.by_model.contains_key(&id) {
            self.swarms.links.insert(link, id);
            self.swarm(id, p2p::Input::Opened { link, key });
        } else {
            self.tell_close(link, &Fault::Stopped);
        }
    }

    pub fn peer_closed(&mut self, link: u32) {
        let link = LinkId(link);
        if let Some(id) = self.swarms.links.remove(&link) {
            self.swarm(id, p2p::Input::Closed { link });
        }
    }

    pub fn peer_drained(&mut self, link: u32, bytes: u32) {
        let link = LinkId(link);
        if let Some(id) = self.swarms.links.get(&link).copied() {
            self.swarm(id, p2p::Input::Drained { link, bytes });
        }
    }

    pub fn peer_said(&mut self, link: u32, bytes: &[u8]) {
        let link = LinkId(link);
        if let Some(id) = self.swarms.links.get(&link).copied() {
            self.swarm(id, p2p::Input::Message { link, bytes });
        }
    }

    pub fn stored_read(&mut self, id: ModelId, piece: PieceIndex, bytes: Option<Vec<u8>>) {
        self.swarm(id, p2p::Input::Read { piece, bytes });
    }

    pub fn serves_swarm(&self, source: Source) -> bool {
        self.swarms.servers.contains_key(&source)
    }

    /// Bytes of a server that helps a swarm, or why there will be none.
    pub fn server_said(&mut self, source: Source, at: u64, bytes: Result<Vec<u8>, SourceFault>) {
        let Some((id, server)) = self.swarms.servers.get(&source).copied() else {
            return;
        };
        match (server, bytes) {
            (Server::Layer, Ok(bytes)) => {
                if let Ok(layer) = PieceLayer::parse(id, &bytes) {
                    self.swarm(id, p2p::Input::Layer(layer));
                }
                self.drop_server(source);
            }
            (Server::File(link), Ok(bytes)) => {
                let piece = PieceIndex((at / u64::from(PIECE_BYTES)) as u32);
                let bytes = Some(bytes);
                self.swarm(id, p2p::Input::Fetched { link, piece, bytes });
            }
            (_, Err(fault)) => {
                self.records.push(fault.report());
                self.drop_server(source);
            }
        }
    }

    pub fn time_of_swarms(&mut self) {
        if self.swarms.wake_ms.is_none_or(|at| at > self.now_ms) {
            return;
        }
        self.swarms.wake_ms = None;
        let ids: Vec<ModelId> = self.swarms.by_model.keys().copied().collect();
        for id in ids {
            self.swarm(id, p2p::Input::Time);
        }
    }
}

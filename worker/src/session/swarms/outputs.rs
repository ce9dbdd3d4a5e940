//! What a swarm wants, handed on.

use format::{ModelId, PieceIndex, PieceLayer};
use p2p::{Fault, LinkId};
use protocol::{Event, SwarmEvent};

use super::{STATUS_MS, Server, Swarms};
use crate::session::Output;
use crate::session::desk::Desk;
use crate::session::transfers::Arrival;
use crate::source::Source;
use crate::words;

impl Swarms {
    /// The piece cannot be read now, and will be later.
    pub(super) fn put_off(&mut self, id: ModelId, piece: PieceIndex) {
        if let Some(entry) = self.by_model.get_mut(&id) {
            entry.unread.push(piece);
        }
    }
}

impl Desk {
    /// One input, and everything that the swarm wants then.
    pub(super) fn swarm(&mut self, id: ModelId, input: p2p::Input<'_>) {
        let Some(entry) = self.swarms.by_model.get_mut(&id) else {
            return;
        };
        entry.swarm.handle(self.now_ms, input);
        while let Some(output) = self.swarm_wants(id) {
            self.do_for_swarm(id, output);
        }
        self.tell_swarm_now_and_then(id);
    }

    fn swarm_wants(&mut self, id: ModelId) -> Option<p2p::Output> {
        self.swarms.by_model.get_mut(&id)?.swarm.poll()
    }

    fn do_for_swarm(&mut self, id: ModelId, output: p2p::Output) {
        let fetch = self.swarms.by_model.get(&id).and_then(|entry| entry.fetch);
        match output {
            p2p::Output::Send { link, bytes } => {
                let link = link.0;
                self.out.push_back(Output::PeerSend { link, bytes });
            }
            p2p::Output::Close { link, fault } => self.close_link(link, &fault),
            p2p::Output::Read { piece } => self.read_for_peer(id, piece),
            p2p::Output::Fetch { link, piece } => {
                let server = (id, Server::File(link));
                let mut servers = self.swarms.servers.iter();
                let source = servers.find(|(_, known)| **known == server);
                if let Some(source) = source.map(|(source, _)| *source) {
                    let (at, len) = id.piece_range(piece);
                    self.need(source, at, len);
                }
            }
            p2p::Output::Layer(layer) => {
                let arrived = fetch.map(|source| layer_of(source, &layer));
                self.swarms.arrived.extend(arrived);
            }
            p2p::Output::Store(whole) => {
                let piece = whole.piece();
                match fetch {
                    Some(source) => {
                        let arrived = Arrival::Whole(source, whole);
                        self.swarms.arrived.push_back(arrived);
                        // Whether it is read from the disk later is the import's to say.
                        self.swarm(id, p2p::Input::Kept { piece });
                    }
                    None => self.swarm(id, p2p::Input::Lost { piece }),
                }
            }
            p2p::Output::WakeAt(at_ms) => {
                if self.swarms.wake_ms.is_none_or(|known| at_ms < known) {
                    self.swarms.wake_ms = Some(at_ms);
                    self.out.push_back(Output::WakeAt(at_ms));
                }
            }
            // The import sees it by itself.
            p2p::Output::Finished => {}
        }
    }

    pub(super) fn read_for_peer(&mut self, id: ModelId, piece: PieceIndex) {
        let Some(entry) = self.swarms.by_model.get(&id) else {
            return;
        };
        match (entry.fetch, entry.is_stored) {
            (Some(source), _) => self.swarms.arrived.push_back(Arrival::Read(source, piece)),
            (None, true) => {
                let model = id;
                self.out.push_back(Output::ReadStored { model, piece });
            }
            (None, false) => self.swarms.put_off(id, piece),
        }
    }

    fn close_link(&mut self, link: LinkId, fault: &Fault) {
        self.swarms.links.remove(&link);
        let server = self.swarms.servers.iter();
        let mut server = server.filter(|(_, (_, known))| *known == Server::File(link));
        match server.next().map(|(source, _)| *source) {
            Some(source) => {
                self.swarms.servers.remove(&source);
                self.cancel_source(source);
            }
            None => self.tell_close(link, fault),
        }
    }

    pub(super) fn tell_close(&mut self, link: LinkId, fault: &Fault) {
        if fault.is_a_lie() {
            self.records.push(words::peer_lied(link, fault));
        }
        self.event(Event::Swarm(SwarmEvent::Close {
            link: link.0,
            why: fault.to_string(),
            is_lie: fault.is_a_lie(),
        }));
    }

    fn tell_swarm_now_and_then(&mut self, id: ModelId) {
        let now_ms = self.now_ms;
        let is_due = self.swarms.by_model.get(&id).is_some_and(|entry| {
            let is_late = |told| now_ms.saturating_sub(told) >= STATUS_MS;
            let told = entry.told_ms;
            // Before the first report whoever begins it has more to say.
            told.is_some() && (told.is_some_and(is_late) || entry.told_peers != entry.links())
        });
        if is_due {
            self.tell_swarm(id);
        }
    }

    pub(super) fn tell_swarm(&mut self, id: ModelId) {
        let now_ms = self.now_ms;
        if let Some(entry) = self.swarms.by_model.get_mut(&id) {
            entry.told_ms = Some(now_ms);
            entry.told_peers = entry.links();
            let status = entry.status();
            self.event(Event::Swarm(SwarmEvent::Status(status)));
        }
    }
}

/// The piece layer as bytes of the source.
pub(super) fn layer_of(source: Source, layer: &PieceLayer) -> Arrival {
    let (at, bytes) = (0, Ok(layer.to_bytes()));
    Arrival::Bytes { source, at, bytes }
}

//! Connections to other browsers. They exist only in a window, so the window makes them and hands
//! what comes to the worker, which alone knows what it means.
//!
//! Reading order: here (all models that peers speak of), `peer` (one connection), `line` (one
//! model at one tracker).

mod line;
mod peer;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use format::ModelId;
use js_sys::ArrayBuffer;
use leptos::task::spawn_local;
use p2p::{Description, P2pError, answer_code, offer_code, offer_tag, read_code};
use protocol::{Command, Meeting, Met, SwarmCommand, SwarmEvent, SwarmStatus};

use crate::error::AppError;
use crate::page::Page;
use crate::text;
use line::Line;
use peer::Peer;

/// Connections of one model, as many as its swarm takes.
const PEERS_MAX: usize = p2p::PEERS_MAX;
/// Offers that wait for a person's answer. Each is a live connection.
const OFFERS_MAX: usize = 2;
/// Who wants more peers than this has enough.
const PEERS_ENOUGH: usize = 4;

#[derive(Clone, Default)]
pub struct Rooms(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    rooms: BTreeMap<ModelId, Room>,
    peers: BTreeMap<u32, Rc<Peer>>,
    last: u32,
}

#[derive(Default)]
struct Room {
    lines: BTreeMap<String, Rc<Line>>,
    /// Offers that people were given, by their tags.
    offers: Vec<([u8; 4], Rc<Peer>)>,
}

impl Rooms {
    pub fn hear(&self, page: Page, event: &SwarmEvent) {
        match event {
            SwarmEvent::Status(status) => self.keep_up(page, status),
            SwarmEvent::Ended { model } => self.leave(*model),
            SwarmEvent::Meet(meeting) => self.meet(page, meeting.clone()),
            // The other pages' business.
            SwarmEvent::Met { .. } => {}
            SwarmEvent::Close { link, .. } => {
                let peer = self.0.borrow_mut().peers.remove(link);
                if let Some(peer) = peer {
                    peer.close();
                }
            }
        }
    }

    /// Bytes of the worker for a peer.
    pub fn send(&self, link: u32, bytes: &ArrayBuffer) {
        let peer = self.0.borrow().peers.get(&link).cloned();
        if let Some(peer) = peer {
            peer.send(bytes);
        }
    }

    /// Every connection and line of a model ends now.
    pub fn leave(&self, model: ModelId) {
        let (room, peers) = {
            let mut state = self.0.borrow_mut();
            let room = state.rooms.remove(&model).unwrap_or_default();
            let all = std::mem::take(&mut state.peers);
            let (gone, kept) = all.into_iter().partition(|(_, peer)| peer.model == model);
            state.peers = kept;
            let gone: BTreeMap<u32, Rc<Peer>> = gone;
            (room, gone)
        };
        room.lines.values().for_each(|line| line.stop());
        room.offers.iter().for_each(|(_, peer)| peer.close());
        peers.values().for_each(|peer| peer.close());
    }

    /// The worker is gone; so is everything that it knew of.
    pub fn leave_all(&self) {
        let models: Vec<ModelId> = {
            let state = self.0.borrow();
            let of_peers = state.peers.values().map(|peer| peer.model);
            state.rooms.keys().copied().chain(of_peers).collect()
        };
        models.into_iter().for_each(|model| self.leave(model));
    }

    fn keep_up(&self, page: Page, status: &SwarmStatus) {
        let wanted: Vec<String> = status.trackers.clone();
        let (gone, lines) = {
            let mut state = self.0.borrow_mut();
            let room = state.rooms.entry(status.model).or_default();
            let known = std::mem::take(&mut room.lines);
            let (kept, gone) = known.into_iter().partition(|(url, _)| wanted.contains(url));
            room.lines = kept;
            let gone: BTreeMap<String, Rc<Line>> = gone;
            for url in wanted {
                let rooms = self.clone();
                let begin = || Line::open(page, rooms, status.model, &url);
                room.lines.entry(url.clone()).or_insert_with(begin);
            }
            let lines: Vec<Rc<Line>> = room.lines.values().cloned().collect();
            (gone, lines)
        };
        gone.values().for_each(|line| line.stop());
        let wants_more = status.fetches && status.peers.len() < PEERS_ENOUGH;
        for line in lines {
            line.keep_up(status, if wants_more { OFFERS_MAX } else { 0 });
        }
    }

    /// One more connection may be made.
    fn has_room(&self, model: ModelId) -> bool {
        let state = self.0.borrow();
        let of_model = state.peers.values().filter(|peer| peer.model == model);
        of_model.count() < PEERS_MAX
    }

    /// A connection that is being made; the worker hears of it when it is open.
    fn begin(&self, page: Page, model: ModelId) -> Result<Rc<Peer>, AppError> {
        let link = {
            let mut state = self.0.borrow_mut();
            state.last += 1;
            state.last
        };
        let rooms = self.clone();
        let ended = move || {
            let known = rooms.0.borrow_mut().peers.remove(&link);
            if known.is_some() {
                page.tell_peer(SwarmCommand::Closed { link });
            }
        };
        let peer = Peer::new(page, model, link, ended)?;
        self.0.borrow_mut().peers.insert(link, Rc::clone(&peer));
        Ok(peer)
    }

    fn forget(&self, peer: &Peer) {
        self.0.borrow_mut().peers.remove(&peer.link);
        peer.close();
    }

    async fn offer(&self, page: Page, model: ModelId) -> Result<(Rc<Peer>, Description), AppError> {
        let peer = self.begin(page, model)?;
        match peer.offer().await {
            Ok(offer) => Ok((peer, offer)),
            Err(error) => {
                self.forget(&peer);
                Err(error)
            }
        }
    }

    async fn answer(
        &self,
        page: Page,
        model: ModelId,
        offer: &Description,
    ) -> Result<Description, AppError> {
        let peer = self.begin(page, model)?;
        let answer = peer.answer(offer).await;
        if answer.is_err() {
            self.forget(&peer);
        }
        answer
    }
}

// The exchange of codes between two people.
impl Rooms {
    /// One step of it, for this page or for one that has no connections.
    fn meet(&self, page: Page, meeting: Meeting) {
        let rooms = self.clone();
        spawn_local(async move {
            let model = meeting.model();
            let met = match meeting {
                Meeting::Offer { .. } => rooms.offer_code(page, model).await.map(Met::Offer),
                Meeting::Answer { code, .. } => {
                    let answer = rooms.code_for(page, model, &code).await;
                    answer.map(Met::Answer)
                }
                Meeting::Take { code, .. } => {
                    let taken = rooms.accept(model, &code).await;
                    taken.map(|()| Met::Connecting)
                }
            };
            let met = met.unwrap_or_else(|error| {
                let report = text::report(&error);
                Met::Failed(format!("{} {}", report.what, report.remedy))
            });
            page.tell_peer(SwarmCommand::Met { model, met });
        });
    }

    async fn offer_code(&self, page: Page, model: ModelId) -> Result<String, AppError> {
        let (peer, offer) = self.offer(page, model).await?;
        let code = offer_code(model, &offer).map_err(AppError::Code)?;
        let tag = offer_tag(&code).map_err(AppError::Code)?;
        let oldest = {
            let mut state = self.0.borrow_mut();
            let offers = &mut state.rooms.entry(model).or_default().offers;
            offers.push((tag, peer));
            (offers.len() > OFFERS_MAX).then(|| offers.remove(0).1)
        };
        if let Some(oldest) = oldest {
            self.forget(&oldest);
        }
        Ok(code)
    }

    /// Answers the code of somebody who offers a connection.
    async fn code_for(&self, page: Page, model: ModelId, code: &str) -> Result<String, AppError> {
        let offered = read_code(model, code).map_err(AppError::Code)?;
        if offered.answers.is_some() {
            return Err(AppError::NotAnOffer);
        }
        let tag = offer_tag(code).map_err(AppError::Code)?;
        let answer = self.answer(page, model, &offered.description).await?;
        answer_code(model, tag, &answer).map_err(AppError::Code)
    }

    /// Takes the code that came back.
    async fn accept(&self, model: ModelId, code: &str) -> Result<(), AppError> {
        let code = read_code(model, code).map_err(AppError::Code)?;
        let offered = {
            let mut state = self.0.borrow_mut();
            let offers = state.rooms.get_mut(&model).map(|room| &mut room.offers);
            offers.and_then(|offers| {
                let at = offers
                    .iter()
                    .position(|(tag, _)| Some(*tag) == code.answers)?;
                Some(offers.remove(at).1)
            })
        };
        let peer = offered.ok_or(AppError::NoSuchOffer)?;
        peer.accept(&code.description).await
    }
}

/// Bytes that nobody can guess, if the browser has any: without them nothing is sealed or named.
fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}

impl Page {
    pub(crate) fn tell_peer(self, command: SwarmCommand) {
        self.send(&Command::Swarm(command));
    }
}

impl From<P2pError> for AppError {
    fn from(error: P2pError) -> AppError {
        AppError::Code(error)
    }
}

//! Models that go to other browsers and come from them: what a person wished, what the worker
//! reports, and the exchange of codes with another person.

use std::collections::BTreeMap;

use format::ModelId;
use p2p::{Invite, P2pError};
use protocol::{
    Command, InvitedModel, Meeting, Met, SwarmCommand, SwarmEvent, SwarmStatus, TabRole,
};

use super::{Action, App, Effect, Millis, Origin, Pace};
use crate::text;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing {
    /// What a person shares in this tab, until the page is closed.
    wishes: BTreeMap<ModelId, ShareWish>,
    rooms: BTreeMap<ModelId, RoomView>,
    exchange: Option<(ModelId, Exchange)>,
    /// A link that came with the page's own address, and what a person makes of it.
    pub arrived: String,
    /// What an earlier visit began to take and did not end.
    unfinished: Option<InvitedModel>,
}

/// How a person shares a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareWish {
    /// Address of a tracker, or nothing.
    pub tracker: Option<String>,
    /// Bytes a second, at most.
    pub limit: Option<u32>,
}

/// One model that peers speak of, as the worker last said.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomView {
    pub status: SwarmStatus,
    pub up: Pace,
    /// What a tracker refused.
    pub refused: Option<String>,
    /// How many have it and how many want it, says a tracker.
    pub counts: Option<(u32, u32)>,
}

/// Codes that two people exchange.
#[derive(Clone, Debug, PartialEq)]
pub enum Exchange {
    /// The browser is asked where it can be reached.
    Making,
    /// To be given to the other person, who gives another back.
    Offer(String),
    /// To be given back.
    Answer(String),
    /// Both sides know each other; the connection is being made.
    Connecting,
    Failed(String),
}

impl From<Met> for Exchange {
    fn from(met: Met) -> Exchange {
        match met {
            Met::Offer(code) => Exchange::Offer(code),
            Met::Answer(code) => Exchange::Answer(code),
            Met::Connecting => Exchange::Connecting,
            Met::Failed(words) => Exchange::Failed(words),
        }
    }
}

impl Sharing {
    /// How a model is given, as a person wished in this tab, or as it is without: from another
    /// tab, or because a person allowed it when it came.
    pub fn wish(&self, model: ModelId) -> Option<ShareWish> {
        let given = || {
            let status = &self
                .rooms
                .get(&model)
                .filter(|room| room.status.gives)?
                .status;
            Some(ShareWish {
                tracker: status.trackers.first().cloned(),
                limit: None,
            })
        };
        self.wishes.get(&model).cloned().or_else(given)
    }

    pub fn room(&self, model: ModelId) -> Option<&RoomView> {
        self.rooms.get(&model)
    }

    pub fn exchange(&self, model: ModelId) -> Option<&Exchange> {
        let (of, exchange) = self.exchange.as_ref()?;
        (*of == model).then_some(exchange)
    }

    /// The link that leads others to a shared model; with an open offer, to this page alone.
    pub fn invite(&self, model: ModelId, name: &str) -> Result<String, P2pError> {
        let offer = match self.exchange(model) {
            Some(Exchange::Offer(code)) => Some(code.clone()),
            _ => None,
        };
        let wish = self.wish(model).unwrap_or_default();
        let invite = Invite {
            id: model,
            name: name.into(),
            sources: Vec::new(),
            trackers: wish.tracker.into_iter().collect(),
            offer,
        };
        invite.to_text()
    }

    /// The worker is gone, and with it every transfer; whether there may have been any.
    pub fn lost(&mut self) -> bool {
        let was_idle = self.rooms.is_empty() && self.wishes.is_empty() && self.exchange.is_none();
        self.rooms.clear();
        self.exchange = None;
        !was_idle
    }
}

/// What a person pasted: a link, and perhaps a code behind it.
pub fn read_pasted(pasted: &str) -> Result<(Invite, Option<String>), P2pError> {
    let mut words = pasted.split_whitespace();
    let link = words.next().unwrap_or_default();
    let fragment = link.split_once('#').map_or(link, |(_, fragment)| fragment);
    let invite = Invite::parse(fragment)?;
    let code: String = words.collect();
    let code = (!code.is_empty()).then_some(code);
    let code = code.or_else(|| invite.offer.clone());
    Ok((invite, code))
}

impl App {
    pub(super) fn act_on_sharing(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Share { model, wish, seed } => {
                if !self.library.complete(model) {
                    return Vec::new();
                }
                self.sharing.wishes.insert(model, wish);
                self.ask_to_share(model, seed)
            }
            Action::Unshare(model) => {
                self.sharing.wishes.remove(&model);
                self.sharing.exchange = None;
                let unshare = Command::Swarm(SwarmCommand::Unshare { model });
                let mut effects = vec![Effect::LeavePeers(model)];
                effects.extend(self.send(unshare));
                effects
            }
            Action::Receive {
                pasted,
                gives,
                seed,
            } => self.receive(&pasted, gives, seed),
            Action::ReceiveAgain(invited) => {
                self.import(invited.name.clone(), Origin::Invite(invited))
            }
            Action::Unfinished(invited) => {
                self.sharing.unfinished = Some(invited);
                self.take_up_unfinished()
            }
            Action::Invited(link) => {
                self.sharing.arrived = link;
                Vec::new()
            }
            Action::MakeOffer(model) => self.meet(Meeting::Offer { model }),
            Action::TakeAnswer(model, code) => self.meet(Meeting::Take { model, code }),
            Action::TrackerSaid {
                model,
                counts,
                refused,
            } => {
                if let Some(room) = self.sharing.rooms.get_mut(&model) {
                    room.counts = counts.or(room.counts);
                    room.refused = refused;
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn ask_to_share(&mut self, model: ModelId, seed: u64) -> Vec<Effect> {
        let Some(wish) = self.sharing.wishes.get(&model).cloned() else {
            return Vec::new();
        };
        let share = SwarmCommand::Share {
            model,
            trackers: wish.tracker.into_iter().collect(),
            limit: wish.limit,
            seed,
        };
        self.send(Command::Swarm(share)).into_iter().collect()
    }

    /// A new owner of the files knows nothing of what was shared before.
    pub(super) fn share_again(&mut self, seed: u64) -> Vec<Effect> {
        let models: Vec<ModelId> = self.sharing.wishes.keys().copied().collect();
        let effects = models
            .into_iter()
            .map(|model| self.ask_to_share(model, seed));
        effects.collect::<Vec<_>>().concat()
    }

    /// A transfer that a closed tab interrupted goes on by itself, once, where that needs no
    /// person: codes are gone with their page.
    pub(super) fn take_up_unfinished(&mut self) -> Vec<Effect> {
        let may = self.tabs.role != Some(TabRole::Follower) && !self.imports.running();
        let is_partial = |invited: &InvitedModel| {
            let known = self.library.find(invited.id);
            known.is_some_and(|model| model.partial.is_some())
        };
        let has_ways =
            |invited: &InvitedModel| !(invited.trackers.is_empty() && invited.sources.is_empty());
        let ready = self.sharing.unfinished.as_ref();
        let ready = ready.is_some_and(|invited| may && is_partial(invited) && has_ways(invited));
        match self.sharing.unfinished.take_if(|_| ready) {
            Some(invited) => self.import(invited.name.clone(), Origin::Invite(invited)),
            None => Vec::new(),
        }
    }

    fn receive(&mut self, pasted: &str, gives: bool, seed: u64) -> Vec<Effect> {
        let (invite, code) = match read_pasted(pasted) {
            Ok(read) => read,
            Err(error) => {
                self.notices.add(text::invite_refused(&error));
                return Vec::new();
            }
        };
        let model = invite.id;
        let invited = InvitedModel {
            id: model,
            name: invite.name.clone(),
            sources: invite.sources,
            trackers: invite.trackers,
            gives,
            seed,
        };
        // A second code for a transfer that runs is one more peer.
        let runs = self.imports.current().is_some_and(
            |import| matches!(&import.origin, Origin::Invite(running) if running.id == model),
        );
        let mut effects = match runs && self.imports.running() {
            true => Vec::new(),
            false => self.import(invite.name, Origin::Invite(invited)),
        };
        if let Some(code) = code.filter(|_| self.imports.running()) {
            effects.extend(self.meet(Meeting::Answer { model, code }));
        }
        effects
    }

    /// The page with the connections does it, which may be another tab's.
    fn meet(&mut self, meeting: Meeting) -> Vec<Effect> {
        self.sharing.exchange = Some((meeting.model(), Exchange::Making));
        let meet = Command::Swarm(SwarmCommand::Meet(meeting));
        self.send(meet).into_iter().collect()
    }

    pub(super) fn heard_of_peers(&mut self, now: Millis, event: SwarmEvent) -> Vec<Effect> {
        match event {
            SwarmEvent::Status(status) => {
                let model = status.model;
                let before = self.sharing.rooms.remove(&model);
                let mut room = before.unwrap_or_else(|| RoomView {
                    status: status.clone(),
                    up: Pace::default(),
                    refused: None,
                    counts: None,
                });
                room.up.note(now, status.up);
                let is_connected = status.peers.len() > room.status.peers.len();
                room.status = status;
                self.sharing.rooms.insert(model, room);
                // The exchange of codes has done its work.
                if is_connected && self.sharing.exchange(model).is_some() {
                    self.sharing.exchange = None;
                }
            }
            SwarmEvent::Ended { model } => {
                self.sharing.rooms.remove(&model);
                self.sharing.wishes.remove(&model);
                if self.sharing.exchange(model).is_some() {
                    self.sharing.exchange = None;
                }
            }
            SwarmEvent::Met { model, met } => self.sharing.exchange = Some((model, met.into())),
            SwarmEvent::Close { link, why, is_lie } => {
                if is_lie {
                    self.notices.add(text::peer_lied(link, &why));
                }
            }
            SwarmEvent::Meet(_) => {}
        }
        Vec::new()
    }
}

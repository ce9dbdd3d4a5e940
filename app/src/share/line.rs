//! One model at one tracker: a socket, and the connections that offers stand for. What is said is
//! `p2p::TrackerClient`'s.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use format::ModelId;
use leptos::task::spawn_local;
use p2p::{OfferId, PeerId, Progress, TrackerClient, TrackerIn, TrackerOut};
use protocol::SwarmStatus;
use wasm_bindgen::prelude::*;
use web_sys::{MessageEvent, WebSocket};

use super::peer::Peer;
use super::{Rooms, random};
use crate::page::Page;
use crate::state::Action;

pub struct Line {
    page: Page,
    rooms: Rooms,
    model: ModelId,
    url: String,
    client: RefCell<TrackerClient>,
    socket: RefCell<Option<WebSocket>>,
    offers: RefCell<BTreeMap<OfferId, Rc<Peer>>>,
    is_over: Cell<bool>,
}

impl Line {
    pub fn open(page: Page, rooms: Rooms, model: ModelId, url: &str) -> Rc<Line> {
        // It only spreads attempts in time.
        let dice = random().map_or(0, u64::from_le_bytes);
        let line = Rc::new(Line {
            page,
            rooms,
            model,
            url: url.to_owned(),
            client: RefCell::new(TrackerClient::new(model, model.length, dice)),
            socket: RefCell::new(None),
            offers: RefCell::default(),
            is_over: Cell::new(false),
        });
        let begun = Rc::clone(&line);
        // Whoever opens it holds the rooms.
        spawn_local(async move { begun.give(TrackerIn::Time) });
        line
    }

    /// How much is here, and how many offers shall wait for more peers.
    pub fn keep_up(self: &Rc<Self>, status: &SwarmStatus, offers: usize) {
        let length = status.model.length;
        let done = u64::from(status.pieces) * length / u64::from(status.pieces_total.max(1));
        let progress = Progress {
            left: if status.fetches { length - done } else { 0 },
            uploaded: status.up,
            downloaded: status.down,
        };
        let line = Rc::clone(self);
        spawn_local(async move {
            line.give(TrackerIn::Progress(progress));
            line.give(TrackerIn::Seek(offers));
        });
    }

    pub fn stop(self: &Rc<Self>) {
        self.is_over.set(true);
        if self
            .client
            .borrow_mut()
            .handle(now(), TrackerIn::Stop)
            .is_ok()
        {
            while let Some(output) = self.next() {
                if let TrackerOut::Send(text) = output {
                    self.say(&text);
                }
            }
        }
        self.hang_up();
        for peer in self.offers.take().into_values() {
            self.rooms.forget(&peer);
        }
    }

    fn hang_up(&self) {
        if let Some(socket) = self.socket.take() {
            socket.set_onopen(None);
            socket.set_onmessage(None);
            socket.set_onclose(None);
            socket.close().unwrap_or_default();
        }
    }

    fn next(&self) -> Option<TrackerOut> {
        self.client.borrow_mut().poll()
    }

    fn give(self: &Rc<Self>, input: TrackerIn<'_>) {
        if self.is_over.get() {
            return;
        }
        let taken = self.client.borrow_mut().handle(now(), input);
        if let Err(error) = taken {
            let refused = Some(error.to_string());
            self.tell(None, refused);
        }
        while let Some(output) = self.next() {
            self.perform(output);
        }
    }

    fn tell(&self, counts: Option<(u32, u32)>, refused: Option<String>) {
        let model = self.model;
        self.page.act(Action::TrackerSaid {
            model,
            counts,
            refused,
        });
    }

    fn perform(self: &Rc<Self>, output: TrackerOut) {
        match output {
            TrackerOut::Connect => self.connect(),
            TrackerOut::Send(text) => self.say(&text),
            TrackerOut::Close => self.hang_up(),
            TrackerOut::WakeAt(at_ms) => {
                let line = Rc::downgrade(self);
                let wait = at_ms.saturating_sub(now()) + 1;
                leptos::prelude::set_timeout(
                    move || {
                        if let Some(line) = line.upgrade() {
                            line.give(TrackerIn::Time);
                        }
                    },
                    std::time::Duration::from_millis(wait),
                );
            }
            TrackerOut::MakeOffers(count) => (0..count).for_each(|_| self.offer()),
            TrackerOut::Expired(offer) => {
                let peer = self.offers.borrow_mut().remove(&offer);
                if let Some(peer) = peer {
                    self.rooms.forget(&peer);
                }
            }
            TrackerOut::Offer {
                from,
                offer_id,
                offer,
            } => self.answer(from, offer_id, offer),
            TrackerOut::Answer {
                offer_id, answer, ..
            } => {
                let peer = self.offers.borrow_mut().remove(&offer_id);
                if let Some(peer) = peer {
                    let rooms = self.rooms.clone();
                    spawn_local(async move {
                        if peer.accept(&answer).await.is_err() {
                            rooms.forget(&peer);
                        }
                    });
                }
            }
            TrackerOut::Counts {
                complete,
                incomplete,
            } => self.tell(complete.zip(incomplete), None),
            TrackerOut::Refused(words) | TrackerOut::Warned(words) => self.tell(None, Some(words)),
        }
    }

    fn connect(self: &Rc<Self>) {
        let Ok(socket) = WebSocket::new(&self.url) else {
            let line = Rc::clone(self);
            return spawn_local(async move { line.give(TrackerIn::Closed) });
        };
        let on = |act: fn(&Rc<Line>)| {
            let line = Rc::downgrade(self);
            let act = Closure::<dyn FnMut()>::new(move || {
                if let Some(line) = line.upgrade() {
                    act(&line);
                }
            });
            // It is collected with its socket.
            act.into_js_value().unchecked_into::<js_sys::Function>()
        };
        socket.set_onopen(Some(&on(|line| match random() {
            Some(name) => line.give(TrackerIn::Opened { name }),
            None => line.give(TrackerIn::Closed),
        })));
        socket.set_onclose(Some(&on(|line| {
            line.socket.take();
            line.give(TrackerIn::Closed);
        })));
        let line = Rc::downgrade(self);
        let heard = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            if let (Some(line), Some(text)) = (line.upgrade(), message.data().as_string()) {
                line.give(TrackerIn::Text(&text));
            }
        });
        socket.set_onmessage(Some(heard.into_js_value().unchecked_ref()));
        self.socket.replace(Some(socket));
    }

    fn say(&self, text: &str) {
        if let Some(socket) = &*self.socket.borrow() {
            // A socket that is not open says so by its own event.
            socket.send_with_str(text).unwrap_or_default();
        }
    }

    fn offer(self: &Rc<Self>) {
        let line = Rc::clone(self);
        spawn_local(async move {
            let made = line.rooms.offer(line.page, line.model).await;
            let Ok((peer, offer)) = made else { return };
            if line.is_over.get() {
                return line.rooms.forget(&peer);
            }
            let (Some(id), Some(nonce)) = (random(), random()) else {
                return line.rooms.forget(&peer);
            };
            let offer_id = OfferId(id);
            line.offers.borrow_mut().insert(offer_id, peer);
            line.give(TrackerIn::Offer {
                offer_id,
                nonce,
                offer: &offer,
            });
        });
    }

    fn answer(self: &Rc<Self>, to: PeerId, offer_id: OfferId, offer: p2p::Description) {
        if !self.rooms.has_room(self.model) {
            return;
        }
        let line = Rc::clone(self);
        spawn_local(async move {
            let made = line.rooms.answer(line.page, line.model, &offer).await;
            if let (Ok(answer), Some(nonce)) = (made, random()) {
                line.give(TrackerIn::Answer {
                    to,
                    offer_id,
                    nonce,
                    answer: &answer,
                });
            }
        });
    }
}

fn now() -> u64 {
    let clock = web_sys::window().and_then(|window| window.performance());
    clock.map_or(0, |clock| clock.now() as u64)
}

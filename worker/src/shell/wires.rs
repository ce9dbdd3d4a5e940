//! Channels between the workers of several tabs.
//!
//! A broadcast channel with a name that only two know is a port that nobody has to hand on: no
//! third party can die, and every engine has it in workers. Bytes are `protocol`'s; a file's
//! handle travels beside them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use js_sys::{Array, ArrayBuffer, Uint8Array};
use protocol::{Call, ClientId, Epoch, ToClient, ToOwner, decode, encode};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use web_sys::{Blob, BroadcastChannel, MessageEvent};

const COMMON: &str = "tinyrustlm-tabs";

type Hear = Closure<dyn FnMut(MessageEvent)>;

/// A channel that is heard, and what hears it.
struct Ear {
    channel: BroadcastChannel,
    _hear: Hear,
}

pub struct Wires {
    common: Option<Ear>,
    _own: Option<Ear>,
    /// As the owner, for what clients ask.
    asked: RefCell<Option<Ear>>,
    /// To the owner of an epoch.
    owner: RefCell<Option<(Epoch, BroadcastChannel)>>,
    clients: RefCell<BTreeMap<ClientId, BroadcastChannel>>,
}

impl Wires {
    /// The channels of a client. Without any, a tab is alone and works alone.
    pub fn new(
        me: ClientId,
        on_call: impl FnMut(Call) + 'static,
        on_told: impl FnMut(ToClient, Option<Blob>) + 'static,
    ) -> Wires {
        let (mut on_call, mut on_told) = (on_call, on_told);
        Wires {
            common: ear(COMMON, move |bytes, _| {
                if let Ok(call) = decode(&bytes) {
                    on_call(call);
                }
            }),
            _own: ear(&of_client(me), move |bytes, files| {
                if let Ok(told) = decode(&bytes) {
                    on_told(told, files.into_iter().next());
                }
            }),
            asked: RefCell::default(),
            owner: RefCell::default(),
            clients: RefCell::default(),
        }
    }

    pub fn call(&self, call: &Call) {
        if let Some(ear) = &self.common {
            post(&ear.channel, call, &[]);
        }
    }

    /// Hears what is asked of the owner of this epoch.
    pub fn listen(&self, epoch: Epoch, on_asked: impl FnMut(ToOwner, Vec<Blob>) + 'static) {
        let mut on_asked = on_asked;
        let ear = ear(&of_owner(epoch), move |bytes, files| {
            if let Ok(asked) = decode(&bytes) {
                on_asked(asked, files);
            }
        });
        if let Some(before) = self.asked.replace(ear) {
            before.channel.close();
        }
    }

    pub fn stop_listening(&self) {
        if let Some(before) = self.asked.take() {
            before.channel.close();
        }
        for channel in self.clients.take().into_values() {
            channel.close();
        }
    }

    pub fn ask(&self, asked: &ToOwner, files: &[&Blob]) {
        let mut owner = self.owner.borrow_mut();
        let known = owner
            .as_ref()
            .is_some_and(|(epoch, _)| *epoch == asked.epoch);
        if !known {
            if let Some((_, before)) = owner.take() {
                before.close();
            }
            *owner = BroadcastChannel::new(&of_owner(asked.epoch))
                .ok()
                .map(|channel| (asked.epoch, channel));
        }
        if let Some((_, channel)) = &*owner {
            post(channel, asked, files);
        }
    }

    pub fn tell(&self, client: ClientId, told: &ToClient, file: Option<&Blob>) {
        let mut clients = self.clients.borrow_mut();
        let channel = match clients.get(&client) {
            Some(channel) => channel,
            None => {
                let Ok(channel) = BroadcastChannel::new(&of_client(client)) else {
                    return;
                };
                clients.entry(client).or_insert(channel)
            }
        };
        post(channel, told, file.as_slice());
    }

    pub fn forget(&self, client: ClientId) {
        if let Some(channel) = self.clients.borrow_mut().remove(&client) {
            channel.close();
        }
    }
}

fn of_client(client: ClientId) -> String {
    format!("tinyrustlm-tab-{:016x}", client.0)
}

fn of_owner(epoch: Epoch) -> String {
    format!("tinyrustlm-owner-{:016x}", epoch.0)
}

fn ear(name: &str, mut hear: impl FnMut(Vec<u8>, Vec<Blob>) + 'static) -> Option<Ear> {
    let channel = BroadcastChannel::new(name).ok()?;
    let hear = Hear::new(move |message: MessageEvent| {
        if let Some((bytes, files)) = unpack(&message.data()) {
            hear(bytes, files);
        }
    });
    channel.set_onmessage(Some(hear.as_ref().unchecked_ref()));
    Some(Ear {
        channel,
        _hear: hear,
    })
}

/// Bytes, and the files that came with them.
pub fn unpack(data: &JsValue) -> Option<(Vec<u8>, Vec<Blob>)> {
    let (buffer, files) = match data.dyn_ref::<Array>() {
        Some(list) => {
            let files = list.iter().skip(1);
            let files = files.filter_map(|file| file.dyn_into::<Blob>().ok());
            (list.get(0), files.collect())
        }
        None => (data.clone(), Vec::new()),
    };
    let buffer = buffer.dyn_ref::<ArrayBuffer>()?;
    Some((Uint8Array::new(buffer).to_vec(), files))
}

fn post<T: Serialize>(channel: &BroadcastChannel, message: &T, files: &[&Blob]) {
    let Ok(bytes) = encode(message) else { return };
    let buffer = Uint8Array::from(bytes.as_slice()).buffer();
    let data = Array::of1(&buffer);
    for file in files {
        data.push(file);
    }
    // A channel refuses only when it is closed, and what is closed is not asked any more.
    channel.post_message(&data).ok();
}

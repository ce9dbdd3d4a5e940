//! One connection: a data channel, and what has to be known before there is one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use format::ModelId;
use js_sys::{Array, ArrayBuffer};
use leptos::prelude::WithUntracked;
use p2p::{Description, IceServer, MESSAGE_BYTES_MAX};
use protocol::SwarmCommand;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    MessageEvent, RtcConfiguration, RtcDataChannel, RtcDataChannelEvent, RtcDataChannelState,
    RtcDataChannelType, RtcIceGatheringState, RtcIceServer, RtcPeerConnection,
    RtcPeerConnectionState, RtcSdpType, RtcSessionDescriptionInit,
};

use crate::error::AppError;
use crate::page::Page;

const CHANNEL: &str = "slm";
/// So much may wait before the worker is told that it went down again.
const LOW_BYTES: u32 = 256 * 1024;
/// How long a browser may look for its own addresses.
const GATHER_MS: i32 = 5_000;
const GATHER_STEP_MS: i32 = 50;

pub struct Peer {
    pub model: ModelId,
    pub link: u32,
    page: Page,
    connection: RtcPeerConnection,
    channel: RefCell<Option<RtcDataChannel>>,
    /// The beginning of the other side's certificate's hash.
    key: Cell<[u8; 20]>,
    /// The worker knows that the channel is open.
    is_told: Cell<bool>,
    is_over: Cell<bool>,
    ended: Box<dyn Fn()>,
    /// Bytes that were given to the channel, and of these what the worker knows to be gone.
    given: Cell<u64>,
    told: Cell<u64>,
    /// Kept alive as long as the connection may call them.
    listeners: RefCell<Vec<JsValue>>,
}

impl Peer {
    pub fn new(
        page: Page,
        model: ModelId,
        link: u32,
        ended: impl Fn() + 'static,
    ) -> Result<Rc<Peer>, AppError> {
        let configuration = RtcConfiguration::new();
        configuration.set_ice_servers(&ice_servers(page));
        let connection = RtcPeerConnection::new_with_configuration(&configuration);
        let connection = connection.map_err(|_| AppError::NoConnections)?;
        let peer = Rc::new(Peer {
            model,
            link,
            page,
            connection,
            channel: RefCell::new(None),
            key: Cell::new([0; 20]),
            is_told: Cell::new(false),
            is_over: Cell::new(false),
            ended: Box::new(ended),
            given: Cell::new(0),
            told: Cell::new(0),
            listeners: RefCell::default(),
        });
        let known = Rc::downgrade(&peer);
        let changed = Closure::<dyn FnMut()>::new(move || {
            if let Some(peer) = known.upgrade()
                && matches!(
                    peer.connection.connection_state(),
                    RtcPeerConnectionState::Failed | RtcPeerConnectionState::Closed
                )
            {
                peer.end();
            }
        });
        let changed = peer.keep(changed.into_js_value());
        peer.connection.set_onconnectionstatechange(Some(&changed));
        Ok(peer)
    }

    fn keep(&self, listener: JsValue) -> js_sys::Function {
        self.listeners.borrow_mut().push(listener.clone());
        listener.unchecked_into()
    }

    pub async fn offer(self: &Rc<Self>) -> Result<Description, AppError> {
        self.take(self.connection.create_data_channel(CHANNEL));
        let offer = JsFuture::from(self.connection.create_offer()).await;
        self.describe(true, offer).await
    }

    pub async fn answer(self: &Rc<Self>, offer: &Description) -> Result<Description, AppError> {
        let known = Rc::downgrade(self);
        let opened =
            Closure::<dyn FnMut(RtcDataChannelEvent)>::new(move |event: RtcDataChannelEvent| {
                if let Some(peer) = known.upgrade() {
                    peer.take(event.channel());
                }
            });
        let opened = self.keep(opened.into_js_value());
        self.connection.set_ondatachannel(Some(&opened));
        self.set_remote(RtcSdpType::Offer, offer).await?;
        let answer = JsFuture::from(self.connection.create_answer()).await;
        self.describe(false, answer).await
    }

    pub async fn accept(&self, answer: &Description) -> Result<(), AppError> {
        self.set_remote(RtcSdpType::Answer, answer).await
    }

    async fn set_remote(&self, kind: RtcSdpType, theirs: &Description) -> Result<(), AppError> {
        let init = RtcSessionDescriptionInit::new(kind);
        init.set_sdp(&theirs.to_sdp()?);
        let set = self.connection.set_remote_description(&init);
        JsFuture::from(set)
            .await
            .map_err(|_| AppError::NoConnections)?;
        self.key
            .set(std::array::from_fn(|index| theirs.fingerprint[index]));
        Ok(())
    }

    /// Sets what the browser made of its own side, and waits until it knows its addresses.
    async fn describe(
        &self,
        is_offer: bool,
        made: Result<JsValue, JsValue>,
    ) -> Result<Description, AppError> {
        let made = made.map_err(|_| AppError::NoConnections)?;
        let init: RtcSessionDescriptionInit = made.unchecked_into();
        let set = self.connection.set_local_description(&init);
        JsFuture::from(set)
            .await
            .map_err(|_| AppError::NoConnections)?;
        let mut waited = 0;
        while self.connection.ice_gathering_state() != RtcIceGatheringState::Complete
            && waited < GATHER_MS
        {
            sleep(GATHER_STEP_MS).await;
            waited += GATHER_STEP_MS;
        }
        let local = self
            .connection
            .local_description()
            .ok_or(AppError::NoConnections)?;
        Ok(Description::from_sdp(is_offer, &local.sdp())?)
    }

    /// The channel is heard from the first moment on.
    fn take(self: &Rc<Self>, channel: RtcDataChannel) {
        channel.set_binary_type(RtcDataChannelType::Arraybuffer);
        channel.set_buffered_amount_low_threshold(LOW_BYTES);
        let known = Rc::downgrade(self);
        let heard = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            if let Some(peer) = known.upgrade() {
                peer.hear(&message.data());
            }
        });
        channel.set_onmessage(Some(&self.keep(heard.into_js_value())));
        let on = |act: fn(&Peer)| {
            let known = Rc::downgrade(self);
            let act = Closure::<dyn FnMut()>::new(move || {
                if let Some(peer) = known.upgrade() {
                    act(&peer);
                }
            });
            self.keep(act.into_js_value())
        };
        channel.set_onopen(Some(&on(Peer::tell_open)));
        channel.set_onclose(Some(&on(Peer::end)));
        channel.set_onbufferedamountlow(Some(&on(Peer::tell_drained)));
        let is_open = channel.ready_state() == RtcDataChannelState::Open;
        self.channel.replace(Some(channel));
        if is_open {
            self.tell_open();
        }
    }

    /// Once: of a channel that the other side made a browser may say it twice, by its state when it
    /// comes and by an event.
    fn tell_open(&self) {
        if self.is_told.replace(true) {
            return;
        }
        self.page.tell_peer(SwarmCommand::Opened {
            model: self.model,
            link: self.link,
            key: self.key.get(),
        });
    }

    /// A message goes to the worker as it is; one that is none, or too long, ends it.
    fn hear(&self, data: &JsValue) {
        match data.dyn_ref::<ArrayBuffer>() {
            Some(bytes) if bytes.byte_length() as usize <= MESSAGE_BYTES_MAX => {
                self.page.pass_to_worker(self.link, bytes);
            }
            _ => self.end(),
        }
    }

    pub fn send(&self, bytes: &ArrayBuffer) {
        let channel = self.channel.borrow().clone();
        let Some(channel) = channel else { return };
        self.given
            .set(self.given.get() + u64::from(bytes.byte_length()));
        if channel.send_with_array_buffer(bytes).is_err() {
            // It is closed, or its queue is full, which the worker's own limit prevents.
            return self.end();
        }
        self.tell_drained();
    }

    fn tell_drained(&self) {
        let waiting = self
            .channel
            .borrow()
            .as_ref()
            .map_or(0, RtcDataChannel::buffered_amount);
        let gone = self.given.get().saturating_sub(waiting.into());
        let bytes = gone.saturating_sub(self.told.get());
        // Less is told with the next message, or when nothing waits any more.
        if bytes >= u64::from(LOW_BYTES) / 2 || waiting == 0 && bytes > 0 {
            self.told.set(gone);
            let (link, bytes) = (self.link, bytes as u32);
            self.page.tell_peer(SwarmCommand::Drained { link, bytes });
        }
    }

    /// It ended by itself.
    fn end(&self) {
        if !self.is_over.get() {
            self.close();
            (self.ended)();
        }
    }

    /// Ends it. What was still to be sent is not sent.
    pub fn close(&self) {
        self.is_over.set(true);
        self.connection.set_onconnectionstatechange(None);
        self.connection.set_ondatachannel(None);
        if let Some(channel) = self.channel.take() {
            channel.set_onmessage(None);
            channel.set_onopen(None);
            channel.set_onclose(None);
            channel.set_onbufferedamountlow(None);
            channel.close();
        }
        self.connection.close();
    }
}

async fn sleep(milliseconds: i32) {
    let promise = js_sys::Promise::new(&mut |resolve, _| {
        let window = web_sys::window();
        let set = window.map(|window| {
            window.set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, milliseconds)
        });
        if !matches!(set, Some(Ok(_))) {
            // A window without timers is about to end.
            resolve.call0(&JsValue::NULL).unwrap_or_default();
        }
    });
    JsFuture::from(promise).await.unwrap_or_default();
}

/// Nobody is asked for this page's address unless a person names servers: what the network itself
/// tells is enough in most homes.
fn ice_servers(page: Page) -> Array {
    let named = page
        .app
        .with_untracked(|app| IceServer::parse_lines(&app.settings.ice_servers));
    let servers = named.unwrap_or_default().into_iter().map(|named| {
        let server = RtcIceServer::new();
        server.set_urls(&JsValue::from(named.url));
        server.set_username(&named.user);
        server.set_credential(&named.password);
        server
    });
    servers.collect()
}

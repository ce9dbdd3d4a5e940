//! A page with one plain `RTCPeerConnection`, and a swarm in the test that speaks through it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::Browser;
use format::{ModelId, PieceIndex};
use p2p::{Input, LinkId, Output, PeerKey, Swarm};
use serde_json::{Value, json};

const LINK: LinkId = LinkId(1);
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes `take(channel)`, `gathered()` and `peer`.
const START: &str = "
    window.peer?.pc.close();
    const pc = new RTCPeerConnection();
    const peer = window.peer = { pc, inbox: [], isOpen: false };
    const take = channel => {
        peer.channel = channel;
        channel.binaryType = 'arraybuffer';
        channel.onopen = () => { peer.isOpen = true; };
        channel.onmessage = message => {
            let text = '';
            for (const byte of new Uint8Array(message.data)) text += String.fromCharCode(byte);
            peer.inbox.push(btoa(text));
        };
        if (channel.readyState == 'open') peer.isOpen = true;
    };
    const gathered = () => new Promise(resolve => {
        const look = () => { if (pc.iceGatheringState == 'complete') resolve(); };
        pc.onicegatheringstatechange = look;
        setTimeout(resolve, 5000);
        look();
    });";

pub struct PlainPage<'a> {
    browser: &'a Browser,
    swarm: Swarm,
    model: Vec<u8>,
    got: BTreeMap<PieceIndex, Vec<u8>>,
    outbox: Vec<String>,
    unsent: u32,
    start: Instant,
    is_open: bool,
    pub is_finished: bool,
}

impl<'a> PlainPage<'a> {
    /// The page's answer to an offer, as SDP.
    pub async fn answer(browser: &Browser, offer: &str) -> String {
        let script = format!(
            "{START}
             pc.ondatachannel = event => take(event.channel);
             await pc.setRemoteDescription({{ type: 'offer', sdp: args[0] }});
             await pc.setLocalDescription(await pc.createAnswer());
             await gathered();
             return pc.localDescription.sdp;"
        );
        text(browser.js(&script, &[json!(offer)]).await.unwrap())
    }

    pub async fn offer(browser: &Browser) -> String {
        let script = format!(
            "{START}
             take(pc.createDataChannel('slm'));
             await pc.setLocalDescription(await pc.createOffer());
             await gathered();
             return pc.localDescription.sdp;"
        );
        text(browser.js(&script, &[]).await.unwrap())
    }

    /// Takes the answer to the page's offer.
    pub async fn accept(browser: &Browser, answer: &str) {
        let script = "await window.peer.pc.setRemoteDescription({ type: 'answer', sdp: args[0] });";
        browser.js(script, &[json!(answer)]).await.unwrap();
    }

    /// `model` is what is here to be given.
    pub fn new(browser: &'a Browser, id: ModelId, model: Vec<u8>) -> PlainPage<'a> {
        PlainPage {
            browser,
            swarm: Swarm::new(id, 1).unwrap(),
            model,
            got: BTreeMap::new(),
            outbox: Vec::new(),
            unsent: 0,
            start: Instant::now(),
            is_open: false,
            is_finished: false,
        }
    }

    pub fn put(&mut self, input: Input<'_>) {
        self.swarm
            .handle(self.start.elapsed().as_millis() as u64, input);
        while let Some(output) = self.swarm.poll() {
            match output {
                Output::Send { bytes, .. } => {
                    self.unsent += bytes.len() as u32;
                    self.outbox.push(base64(&bytes));
                }
                Output::Read { piece } => {
                    let (at, len) = self.swarm.id().piece_range(piece);
                    let bytes = self.model[at as usize..][..len as usize].to_vec();
                    self.put(Input::Read {
                        piece,
                        bytes: Some(bytes),
                    });
                }
                Output::Store(whole) => {
                    let (piece, bytes) = (whole.piece(), whole.into_bytes());
                    self.got.insert(piece, bytes);
                    self.put(Input::Stored { piece });
                }
                Output::Finished => self.is_finished = true,
                Output::Close { fault, .. } => assert!(!fault.is_a_lie(), "{fault}"),
                Output::Layer(_) | Output::Fetch { .. } | Output::WakeAt(_) => {}
            }
        }
    }

    /// All that came, in order.
    pub fn bytes(&self) -> Vec<u8> {
        self.got.values().flatten().copied().collect()
    }

    pub async fn run_until(&mut self, mut is_done: impl FnMut(&PlainPage) -> bool) {
        while !is_done(self) {
            assert!(self.start.elapsed() < PATIENCE, "{:?}", self.swarm.status());
            self.step().await;
        }
    }

    /// Gives the page what goes out, and takes what came in.
    async fn step(&mut self) {
        const SCRIPT: &str = "
            const peer = window.peer;
            for (const text of args[0]) {
                peer.channel.send(Uint8Array.from(atob(text), char => char.charCodeAt(0)));
            }
            if (!peer.inbox.length) await new Promise(resolve => setTimeout(resolve, 5));
            const inbox = peer.inbox.splice(0);
            return { inbox, isOpen: peer.isOpen,
                     waiting: peer.channel?.bufferedAmount ?? 0 };";
        let outbox = std::mem::take(&mut self.outbox);
        let state = self.browser.js(SCRIPT, &[json!(outbox)]).await.unwrap();
        if state["isOpen"] == json!(true) && !self.is_open {
            self.is_open = true;
            self.put(Input::Opened {
                link: LINK,
                key: PeerKey([1; 20]),
            });
        }
        for message in state["inbox"].as_array().unwrap() {
            let bytes = from_base64(message.as_str().unwrap());
            self.put(Input::Message {
                link: LINK,
                bytes: &bytes,
            });
        }
        if self.outbox.is_empty() && state["waiting"] == json!(0) {
            let bytes = std::mem::take(&mut self.unsent);
            self.put(Input::Drained { link: LINK, bytes });
        }
        self.put(Input::Time);
    }
}

fn text(value: Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn from_base64(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

//! The tracker of a server: sockets around [`TrackerServer`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use p2p::{SocketId, TRACKER_TEXT_BYTES_MAX, TrackerServer, TrackerServerOut};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Messages that wait for one slow socket; one more ends it.
const WAITING_MAX: usize = 64;
/// How often silence is looked for.
const SWEEP: Duration = Duration::from_secs(30);

pub struct Tracker {
    inner: Mutex<Inner>,
    start: Instant,
}

struct Inner {
    server: TrackerServer,
    sockets: BTreeMap<SocketId, mpsc::Sender<String>>,
    last: u64,
}

impl Tracker {
    pub fn new() -> Result<Arc<Tracker>, Failure> {
        let dice = u64::from_le_bytes(crate::share::random()?);
        let server = TrackerServer::new(dice);
        let inner = Inner {
            server,
            sockets: BTreeMap::new(),
            last: 0,
        };
        Ok(Arc::new(Tracker {
            inner: Mutex::new(inner),
            start: Instant::now(),
        }))
    }

    /// Forgets the silent, for as long as the program runs.
    pub async fn sweep(self: Arc<Tracker>) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let now_ms = self.now_ms();
            let mut inner = self.lock();
            inner.server.time(now_ms);
            inner.carry_out();
        }
    }

    fn open(&self, outgoing: mpsc::Sender<String>) -> SocketId {
        let mut inner = self.lock();
        inner.last += 1;
        let socket = SocketId(inner.last);
        inner.sockets.insert(socket, outgoing);
        inner.server.opened(self.now_ms(), socket);
        inner.carry_out();
        socket
    }

    fn text(&self, socket: SocketId, text: &str) {
        let mut inner = self.lock();
        inner.server.text(self.now_ms(), socket, text);
        inner.carry_out();
    }

    fn close(&self, socket: SocketId) {
        let mut inner = self.lock();
        inner.sockets.remove(&socket);
        inner.server.closed(self.now_ms(), socket);
        inner.carry_out();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        match self.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

impl Inner {
    /// A socket without its sender is closed by the task that holds it.
    fn carry_out(&mut self) {
        while let Some(out) = self.server.poll() {
            match out {
                TrackerServerOut::Send { to, text } => {
                    let sender = self.sockets.get(&to);
                    if sender.is_some_and(|sender| sender.try_send(text).is_err()) {
                        self.sockets.remove(&to);
                    }
                }
                TrackerServerOut::Close(socket) => drop(self.sockets.remove(&socket)),
            }
        }
    }
}

pub async fn announce(State(tracker): State<Arc<Tracker>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .max_message_size(TRACKER_TEXT_BYTES_MAX)
        .max_frame_size(TRACKER_TEXT_BYTES_MAX)
        .on_upgrade(move |socket| hold(tracker, socket))
}

async fn hold(tracker: Arc<Tracker>, mut socket: WebSocket) {
    let (outgoing, mut waiting) = mpsc::channel(WAITING_MAX);
    let number = tracker.open(outgoing);
    loop {
        let is_open = tokio::select! {
            text = waiting.recv() => match text {
                Some(text) => socket.send(Message::text(text)).await.is_ok(),
                None => false,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    tracker.text(number, text.as_str());
                    true
                }
                // Other programs send the same JSON as bytes.
                Some(Ok(Message::Binary(bytes))) => match std::str::from_utf8(&bytes) {
                    Ok(text) => {
                        tracker.text(number, text);
                        true
                    }
                    Err(_) => false,
                },
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
                Some(Ok(Message::Close(_)) | Err(_)) | None => false,
            },
        };
        if !is_open {
            break;
        }
    }
    tracker.close(number);
}

//! A line to one tracker: the socket below a [`TrackerClient`].

use std::time::{Duration, Instant};

use format::ModelId;
use futures_util::{SinkExt, StreamExt};
use p2p::{
    Description, NONCE_BYTES, OfferId, PeerId, Progress, TRACKER_TEXT_BYTES_MAX, TrackerClient,
    TrackerIn, TrackerOut,
};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::happening::Happening;
use crate::failure::Failure;

/// How long a server may take to accept the socket.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// What the node wants said.
pub enum Order {
    Offer {
        offer_id: OfferId,
        offer: Description,
    },
    Answer {
        to: PeerId,
        offer_id: OfferId,
        answer: Description,
    },
    Progress(Progress),
    Seek(usize),
    Stop,
}

/// Number of a line within its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineId(pub usize);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct Line {
    number: LineId,
    url: String,
    client: TrackerClient,
    socket: Option<Socket>,
    start: Instant,
    wake_ms: Option<u64>,
    tell: mpsc::Sender<Happening>,
}

/// Keeps to one tracker until told to stop.
pub fn keep(
    number: LineId,
    url: String,
    id: ModelId,
    left: u64,
    tell: mpsc::Sender<Happening>,
) -> Result<mpsc::UnboundedSender<Order>, Failure> {
    let (orders, mut inbox) = mpsc::unbounded_channel();
    let dice = u64::from_le_bytes(super::random()?);
    let client = TrackerClient::new(id, left, dice);
    let start = Instant::now();
    let mut line = Line {
        number,
        url,
        client,
        socket: None,
        start,
        wake_ms: None,
        tell,
    };
    tokio::spawn(async move {
        let mut goes_on = line.put(TrackerIn::Time).await;
        while goes_on.is_some() {
            goes_on = line.turn(&mut inbox).await;
        }
    });
    Ok(orders)
}

enum Heard {
    Order(Option<Order>),
    Socket(Option<Message>),
    Time,
}

impl Line {
    /// Waits for one thing and deals with it. `None` when the line is over.
    async fn turn(&mut self, inbox: &mut mpsc::UnboundedReceiver<Order>) -> Option<()> {
        let wake_ms = self.wake_ms.unwrap_or(u64::MAX);
        let wait = Duration::from_millis(wake_ms.saturating_sub(self.now_ms()).min(86_400_000));
        let socket = self.socket.as_mut();
        let heard = tokio::select! {
            order = inbox.recv() => Heard::Order(order),
            message = next(socket) => Heard::Socket(message),
            () = sleep(wait) => Heard::Time,
        };
        match heard {
            Heard::Order(None | Some(Order::Stop)) => {
                let _is_said = timeout(GOODBYE, self.put(TrackerIn::Stop)).await.is_ok();
                None
            }
            Heard::Order(Some(order)) => self.obey(order).await,
            Heard::Socket(Some(Message::Text(text))) => {
                self.put(TrackerIn::Text(text.as_str())).await
            }
            Heard::Socket(Some(Message::Close(_)) | None) => {
                self.socket = None;
                self.tell_away("it closed the connection".into()).await?;
                self.put(TrackerIn::Closed).await
            }
            Heard::Socket(Some(_)) => Some(()),
            Heard::Time => {
                self.wake_ms = None;
                self.put(TrackerIn::Time).await
            }
        }
    }

    async fn obey(&mut self, order: Order) -> Option<()> {
        let nonce: [u8; NONCE_BYTES] = super::random().ok()?;
        let input = match &order {
            Order::Offer { offer_id, offer } => TrackerIn::Offer {
                offer_id: *offer_id,
                nonce,
                offer,
            },
            Order::Answer {
                to,
                offer_id,
                answer,
            } => TrackerIn::Answer {
                to: *to,
                offer_id: *offer_id,
                nonce,
                answer,
            },
            Order::Progress(progress) => TrackerIn::Progress(*progress),
            Order::Seek(count) => TrackerIn::Seek(*count),
            Order::Stop => TrackerIn::Stop,
        };
        self.put(input).await
    }

    /// Gives one input and carries out what comes of it.
    async fn put(&mut self, input: TrackerIn<'_>) -> Option<()> {
        let now_ms = self.now_ms();
        // A description of our own that cannot be sealed is not sent; the next one may be.
        let _is_taken = self.client.handle(now_ms, input).is_ok();
        while let Some(out) = self.client.poll() {
            match out {
                TrackerOut::Connect => self.connect().await?,
                TrackerOut::Send(text) => {
                    if let Some(socket) = &mut self.socket
                        && socket.send(Message::text(text)).await.is_err()
                    {
                        self.socket = None;
                        self.hang_up();
                    }
                }
                TrackerOut::Close => {
                    if let Some(mut socket) = self.socket.take() {
                        self.tell_away("it does not answer".into()).await?;
                        let _is_said = timeout(GOODBYE, socket.close(None)).await.is_ok();
                    }
                }
                TrackerOut::WakeAt(at) => self.wake_ms = Some(at),
                out => {
                    let happening = Happening::Tracker {
                        line: self.number,
                        out,
                    };
                    self.tell.send(happening).await.ok()?;
                }
            }
        }
        Some(())
    }

    async fn connect(&mut self) -> Option<()> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(TRACKER_TEXT_BYTES_MAX))
            .max_frame_size(Some(TRACKER_TEXT_BYTES_MAX));
        let attempt = connect_async_with_config(&self.url, Some(config), false);
        match timeout(CONNECT, attempt).await {
            Ok(Ok((socket, _))) => {
                self.socket = Some(socket);
                let now_ms = self.now_ms();
                let opened = TrackerIn::Opened {
                    name: super::random().ok()?,
                };
                let _is_taken = self.client.handle(now_ms, opened).is_ok();
            }
            Ok(Err(error)) => {
                self.hang_up();
                self.tell_away(format!("it cannot be reached ({error})"))
                    .await?;
            }
            Err(_) => {
                self.hang_up();
                self.tell_away("it does not answer".into()).await?;
            }
        }
        Some(())
    }

    async fn tell_away(&self, why: String) -> Option<()> {
        let line = self.number;
        let away = Happening::TrackerAway { line, why };
        self.tell.send(away).await.ok()
    }

    fn hang_up(&mut self) {
        let now_ms = self.now_ms();
        let _is_taken = self.client.handle(now_ms, TrackerIn::Closed).is_ok();
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

/// The next frame; `None` when the socket is over. Without a socket nothing ever comes.
async fn next(socket: Option<&mut Socket>) -> Option<Message> {
    match socket {
        Some(socket) => socket.next().await?.ok(),
        None => std::future::pending().await,
    }
}

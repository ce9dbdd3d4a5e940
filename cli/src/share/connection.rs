//! One connection to one peer: a data channel, from its first description to its end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::BytesMut;
use p2p::{Description, LinkId, PeerKey};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use webrtc::data_channel::{DataChannel, DataChannelEvent, RTCDataChannelInit};
use webrtc::peer_connection::{
    PeerConnection, PeerConnectionBuilder, PeerConnectionEventHandler, RTCConfigurationBuilder,
    RTCIceGatheringState, RTCIceServer, RTCPeerConnectionState, RTCSessionDescription,
    SettingEngineBuilder,
};

use super::happening::Happening;
use super::udp::{WideSockets, listen_on};
use crate::failure::Failure;

/// What a channel may hold back before the swarm is told to wait.
const SEND_BYTES: usize = 256 * 1024;
/// How long addresses are gathered before a description goes out with those that are known.
const GATHER: Duration = Duration::from_secs(5);
/// How long two that have exchanged descriptions may take to meet.
pub const MEET: Duration = Duration::from_secs(30);
/// The same where people carry the descriptions. An offer of a browser lives as long as its page.
pub const MEET_BY_HAND: Duration = Duration::from_secs(600);
const GOODBYE: Duration = Duration::from_secs(1);
/// Name of the channel; everything else that a peer opens is ignored.
const LABEL: &str = "slm";

/// How connections are made.
#[derive(Clone, Default)]
pub struct Reach {
    /// Only this address of this machine.
    pub listen: Option<IpAddr>,
    /// STUN and TURN servers: none unless the person named them.
    pub servers: Vec<RTCIceServer>,
}

/// A connection that is to be, or is. Dropping it closes it.
pub struct Connection {
    pc: Arc<dyn PeerConnection>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
}

/// Tells of one connection.
struct Ears {
    link: LinkId,
    gathered: watch::Sender<bool>,
    /// By what the peer is known again, once its description is here.
    key: watch::Receiver<PeerKey>,
    queue: std::sync::Mutex<Option<mpsc::UnboundedReceiver<Vec<u8>>>>,
    tell: mpsc::Sender<Happening>,
}

impl Connection {
    /// Makes an offer; its answer goes to [`Connection::accept`].
    pub async fn offer(
        link: LinkId,
        reach: &Reach,
        tell: mpsc::Sender<Happening>,
    ) -> Result<(Pending, Description), Failure> {
        let (pending, mut gathered) = Pending::build(link, reach, tell).await?;
        let init = RTCDataChannelInit {
            ordered: true,
            ..RTCDataChannelInit::default()
        };
        let channel = pending
            .connection
            .pc
            .create_data_channel(LABEL, Some(init))
            .await;
        let channel = channel.map_err(failed)?;
        tokio::spawn(pending.ears.clone().drive(channel));
        let pc = &pending.connection.pc;
        let offer = pc.create_offer(None).await.map_err(failed)?;
        let description = describe(pc, offer, true, &mut gathered).await?;
        Ok((pending, description))
    }

    /// Answers somebody's offer, who is known again by the key.
    pub async fn answer(
        link: LinkId,
        reach: &Reach,
        (key, offer): (PeerKey, &Description),
        tell: mpsc::Sender<Happening>,
    ) -> Result<(Connection, Description), Failure> {
        let (pending, mut gathered) = Pending::build(link, reach, tell).await?;
        pending.key.send_replace(key);
        let pc = &pending.connection.pc;
        let sdp = offer.to_sdp().map_err(super::refuse)?;
        let offer = RTCSessionDescription::offer(sdp).map_err(failed)?;
        pc.set_remote_description(offer).await.map_err(failed)?;
        let answer = pc.create_answer(None).await.map_err(failed)?;
        let description = describe(pc, answer, false, &mut gathered).await?;
        Ok((pending.connection, description))
    }

    /// Says goodbye, so that the other side need not find out by silence.
    pub async fn close(self) {
        let _is_said = timeout(GOODBYE, self.pc.close()).await.is_ok();
    }

    /// Queues a message; the swarm hears when it has left.
    pub fn send(&self, bytes: Vec<u8>) {
        // A closed connection has said so by itself.
        let _is_open = self.outgoing.send(bytes).is_ok();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let pc = self.pc.clone();
        // Outside a runtime the program is at its end, and its sockets with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { pc.close().await.is_ok() });
        }
    }
}

/// An offer that nobody has answered.
pub struct Pending {
    connection: Connection,
    ears: Arc<Ears>,
    key: watch::Sender<PeerKey>,
}

impl Pending {
    async fn build(
        link: LinkId,
        reach: &Reach,
        tell: mpsc::Sender<Happening>,
    ) -> Result<(Pending, watch::Receiver<bool>), Failure> {
        let (gathered, is_gathered) = watch::channel(false);
        let (key, key_here) = watch::channel(PeerKey::default());
        let (outgoing, queue) = mpsc::unbounded_channel();
        let queue = std::sync::Mutex::new(Some(queue));
        let ears = Arc::new(Ears {
            link,
            gathered,
            key: key_here,
            queue,
            tell,
        });
        let addresses: Vec<SocketAddr> = listen_on(reach.listen);
        let loopback = addresses.iter().all(|address| address.ip().is_loopback());
        let settings = SettingEngineBuilder::new().with_include_loopback_candidate(loopback);
        let configuration = RTCConfigurationBuilder::new().with_ice_servers(reach.servers.clone());
        let pc = PeerConnectionBuilder::new()
            .with_configuration(configuration.build())
            .with_setting_engine(settings.build())
            .with_handler(Arc::new(Handler(ears.clone())))
            .with_runtime(Arc::new(WideSockets))
            .with_udp_addrs(addresses)
            .with_data_channel_send_buffer_limit(SEND_BYTES)
            .with_dedicated_reactor_pool_size(1)
            .build()
            .await
            .map_err(failed)?;
        let connection = Connection {
            pc: Arc::new(pc),
            outgoing,
        };
        Ok((
            Pending {
                connection,
                ears,
                key,
            },
            is_gathered,
        ))
    }

    /// Takes somebody's answer to this offer. Whoever holds the connection hears of it from now on.
    pub fn accept(self, (key, answer): (PeerKey, Description)) -> Connection {
        self.key.send_replace(key);
        let pc = self.connection.pc.clone();
        let ears = self.ears;
        tokio::spawn(async move {
            let sdp = answer.to_sdp().ok()?;
            let answer = RTCSessionDescription::answer(sdp).ok()?;
            if pc.set_remote_description(answer).await.is_err() {
                let closed = Happening::Closed { link: ears.link };
                ears.tell.send(closed).await.ok()?;
            }
            Some(())
        });
        self.connection
    }
}

/// Where there is no tracker with names a peer is known again by its certificate.
pub fn key_of(description: &Description) -> PeerKey {
    PeerKey(std::array::from_fn(|index| description.fingerprint[index]))
}

/// Sets the local description and waits for the addresses that go into it.
async fn describe(
    pc: &Arc<dyn PeerConnection>,
    description: RTCSessionDescription,
    is_offer: bool,
    gathered: &mut watch::Receiver<bool>,
) -> Result<Description, Failure> {
    pc.set_local_description(description)
        .await
        .map_err(failed)?;
    // What is known by then has to do.
    let _in_time = timeout(GATHER, gathered.wait_for(|done| *done))
        .await
        .is_ok();
    let local = pc.local_description().await;
    let local = local.ok_or_else(|| Failure::Machine("a connection has no description".into()))?;
    Description::from_sdp(is_offer, &local.sdp).map_err(super::refuse)
}

/// The words of the library may hold addresses: only its kind of failure is passed on.
fn failed(_: webrtc::error::Error) -> Failure {
    Failure::Machine("a connection could not be prepared".into())
}

struct Handler(Arc<Ears>);

#[async_trait]
impl PeerConnectionEventHandler for Handler {
    async fn on_ice_gathering_state_change(&self, state: RTCIceGatheringState) {
        if state == RTCIceGatheringState::Complete {
            self.0.gathered.send_replace(true);
        }
    }

    async fn on_connection_state_change(&self, state: RTCPeerConnectionState) {
        if matches!(
            state,
            RTCPeerConnectionState::Failed | RTCPeerConnectionState::Closed
        ) {
            let closed = Happening::Closed { link: self.0.link };
            // Must not wait here: the connection's own task runs this.
            let tell = self.0.tell.clone();
            tokio::spawn(async move { tell.send(closed).await.is_ok() });
        }
    }

    async fn on_data_channel(&self, channel: Arc<dyn DataChannel>) {
        // Waiting for its events here would stall the connection.
        tokio::spawn(self.0.clone().drive(channel));
    }
}

impl Ears {
    /// Carries one channel's messages both ways until it ends. Only the first one counts.
    async fn drive(self: Arc<Ears>, channel: Arc<dyn DataChannel>) {
        if channel.label().await.ok().as_deref() != Some(LABEL) {
            return;
        }
        let mut queue = match self.queue.lock() {
            Ok(mut queue) => queue.take(),
            Err(_) => None,
        };
        let link = self.link;
        while let Some(event) = channel.poll().await {
            let said = match event {
                DataChannelEvent::OnOpen => {
                    let Some(queue) = queue.take() else { continue };
                    tokio::spawn(carry_out(link, channel.clone(), queue, self.tell.clone()));
                    Happening::Opened {
                        link,
                        key: *self.key.borrow(),
                    }
                }
                DataChannelEvent::OnMessage(message) if !message.is_string => Happening::Message {
                    link,
                    bytes: message.data.to_vec(),
                },
                DataChannelEvent::OnClose => break,
                _ => continue,
            };
            if self.tell.send(said).await.is_err() {
                return;
            }
        }
        let _is_heard = self.tell.send(Happening::Closed { link }).await.is_ok();
    }
}

async fn carry_out(
    link: LinkId,
    channel: Arc<dyn DataChannel>,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    tell: mpsc::Sender<Happening>,
) {
    while let Some(bytes) = queue.recv().await {
        let len = bytes.len() as u32;
        if channel.send(BytesMut::from(&bytes[..])).await.is_err() {
            return;
        }
        let drained = Happening::Drained { link, bytes: len };
        if tell.send(drained).await.is_err() {
            return;
        }
    }
}

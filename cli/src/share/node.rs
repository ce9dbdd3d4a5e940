//! One task that holds one swarm: what happens goes in, what the swarm wants is done.

mod hope;
mod meeting;
mod servers;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use format::{ModelId, PieceIndex, PieceLayer};
use p2p::{Fault, Input, LinkId, OfferId, Output, Progress, Status, Swarm, Want};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::connection::{Connection, Pending, Reach, key_of};
use super::happening::{Happening, Watcher};
use super::rendezvous::{self, LineId, Order};
use super::shelf::{Arriving, Finished};
use crate::failure::Failure;
use hope::{Line, Patience};
use servers::Server;

/// Things that wait to be heard; connections read no further while it is full.
const HEARD_MAX: usize = 256;
/// How often time passes when nothing else happens.
const TICK: Duration = Duration::from_millis(500);

/// How long a tracker may take to be told that this is the end.
const GOODBYE: Duration = Duration::from_secs(2);

pub enum Shelf {
    Finished(Finished),
    Arriving(Box<Arriving>),
}

pub struct Node {
    id: ModelId,
    swarm: Swarm,
    shelf: Shelf,
    reach: Reach,
    connections: BTreeMap<LinkId, Connection>,
    /// Connections that are not open yet, and when they are given up.
    meeting: BTreeMap<LinkId, Instant>,
    offers: BTreeMap<OfferId, (LinkId, Pending)>,
    lines: Vec<Line>,
    servers: Vec<Server>,
    patience: Patience,
    last_link: u32,
    start: Instant,
    wake_ms: Option<u64>,
    finished: bool,
    hear: mpsc::Receiver<Happening>,
    tell: mpsc::Sender<Happening>,
}

impl Node {
    pub fn new(id: ModelId, shelf: Shelf, reach: Reach) -> Result<Node, Failure> {
        let seed = u64::from_le_bytes(super::random()?);
        let swarm = Swarm::new(id, seed).map_err(super::refuse)?;
        let (tell, hear) = mpsc::channel(HEARD_MAX);
        Ok(Node {
            id,
            swarm,
            shelf,
            reach,
            connections: BTreeMap::new(),
            meeting: BTreeMap::new(),
            offers: BTreeMap::new(),
            lines: Vec::new(),
            servers: Vec::new(),
            patience: Patience::default(),
            last_link: 0,
            start: Instant::now(),
            wake_ms: None,
            finished: false,
            hear,
            tell,
        })
    }

    /// To tell the node what happens outside of it.
    pub fn teller(&self) -> mpsc::Sender<Happening> {
        self.tell.clone()
    }

    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    pub fn new_link(&mut self) -> LinkId {
        self.last_link += 1;
        LinkId(self.last_link)
    }

    pub fn put(&mut self, input: Input<'_>) {
        self.swarm.handle(self.now_ms(), input);
    }

    /// `seek` offers are kept open there.
    pub fn add_tracker(&mut self, url: &str, seek: usize) -> Result<(), Failure> {
        let (number, left) = (LineId(self.lines.len()), self.left());
        let line = rendezvous::keep(number, url.to_owned(), self.id, left, self.tell.clone())?;
        self.lines.push(Line::new(line, seek, url));
        self.seek();
        Ok(())
    }

    /// What [`Node::run`] is to bring.
    pub fn want(&mut self, want: Want) {
        self.finished = false;
        self.put(Input::Want(want));
    }

    /// The first bytes of what arrives, if so many pieces are here.
    pub fn beginning(&self, pieces: u32) -> Option<Vec<u8>> {
        let Shelf::Arriving(arriving) = &self.shelf else {
            return None;
        };
        let read = (0..pieces).map(|piece| arriving.read(PieceIndex(piece)));
        Some(read.collect::<Option<Vec<_>>>()?.concat())
    }

    /// Goes on until what is wanted is here, or until the person ends it. Gives whether it is here.
    pub async fn run(&mut self, watcher: &mut dyn Watcher) -> Result<bool, Failure> {
        loop {
            self.obey(watcher)?;
            if self.finished {
                return Ok(true);
            }
            self.see_hope()?;
            let due = self.wake_ms.map(|wake| wake.saturating_sub(self.now_ms()));
            let wait = due.map_or(TICK, |due| TICK.min(Duration::from_millis(due)));
            tokio::select! {
                happening = self.hear.recv() => match happening {
                    None | Some(Happening::End) => return Ok(false),
                    Some(happening) => self.on(happening, watcher)?,
                },
                () = sleep(wait) => self.on_time(watcher)?,
            }
        }
    }

    /// Says goodbye to everybody. Gives what was done.
    pub async fn close(mut self) -> (Status, Shelf) {
        let status = self.swarm.status();
        self.put(Input::Stop);
        self.tell_lines();
        for line in &self.lines {
            let _is_kept = line.orders.send(Order::Stop).is_ok();
        }
        self.offers.clear();
        for connection in std::mem::take(&mut self.connections).into_values() {
            connection.close().await;
        }
        // The goodbyes are said by tasks of their own.
        for line in &self.lines {
            let _in_time = tokio::time::timeout(GOODBYE, line.orders.closed()).await;
        }
        (status, self.shelf)
    }

    fn on(&mut self, happening: Happening, watcher: &mut dyn Watcher) -> Result<(), Failure> {
        match happening {
            Happening::Opened { link, key } => {
                self.meeting.remove(&link);
                self.put(Input::Opened { link, key });
            }
            Happening::Message { link, bytes } => {
                self.put(Input::Message {
                    link,
                    bytes: &bytes,
                });
            }
            Happening::Drained { link, bytes } => self.put(Input::Drained { link, bytes }),
            Happening::Closed { link } => self.drop_link(link),
            Happening::Tracker { line, out } => self.on_tracker(line, out, watcher),
            Happening::TrackerAway { line, why } => self.tracker_is_away(line, why, watcher),
            Happening::Offered {
                line,
                offer_id,
                made,
                link,
            } => {
                if let Some((pending, offer)) = made {
                    self.offers.insert(offer_id, (link, pending));
                    self.order(line, Order::Offer { offer_id, offer });
                }
            }
            Happening::Answered {
                line,
                to,
                offer_id,
                made,
                link,
            } => {
                if let Some((connection, answer)) = made {
                    self.join(link, connection);
                    self.order(
                        line,
                        Order::Answer {
                            to,
                            offer_id,
                            answer,
                        },
                    );
                }
            }
            Happening::AnsweredByHand {
                link,
                pending,
                answer,
            } => self.join(link, pending.accept((key_of(&answer), answer))),
            Happening::Fetched { link, piece, bytes } => {
                self.on_fetched(link, piece, bytes, watcher);
            }
            Happening::NoLayer { server, trouble } => self.on_no_layer(server, trouble, watcher),
            Happening::ServerAgain { server } => self.open_server(server),
            Happening::Layer(layer) => self.put(Input::Layer(layer)),
            Happening::End => {}
        }
        Ok(())
    }

    fn on_time(&mut self, watcher: &mut dyn Watcher) -> Result<(), Failure> {
        self.wake_ms = None;
        self.put(Input::Time);
        let now = Instant::now();
        let late = self.meeting.iter().filter(|(_, until)| **until <= now);
        let late: Vec<LinkId> = late.map(|(link, _)| *link).collect();
        late.into_iter().for_each(|link| self.drop_link(link));
        let now_ms = self.now_ms();
        if let Shelf::Arriving(arriving) = &mut self.shelf {
            arriving.tick(now_ms)?;
        }
        self.tell_lines();
        self.seek();
        self.say_what_is_waited_for(watcher);
        watcher.progress(self.here(), &self.swarm.status());
        Ok(())
    }

    /// Does everything that the swarm wants by now.
    fn obey(&mut self, watcher: &mut dyn Watcher) -> Result<(), Failure> {
        while let Some(output) = self.swarm.poll() {
            match output {
                Output::Send { link, mut bytes } => {
                    if let Shelf::Finished(finished) = &self.shelf {
                        finished.twist(&mut bytes);
                    }
                    if let Some(connection) = self.connections.get(&link) {
                        connection.send(bytes);
                    }
                }
                Output::Close { link, fault } => self.leave(link, &fault, watcher),
                Output::Read { piece } => {
                    let bytes = match &mut self.shelf {
                        Shelf::Finished(finished) => finished.read(piece),
                        Shelf::Arriving(arriving) => arriving.read(piece),
                    };
                    self.put(Input::Read { piece, bytes });
                }
                Output::Fetch { link, piece } => self.ask_server(link, piece),
                Output::Layer(layer) => self.begin(&layer)?,
                Output::Store(whole) => {
                    let now_ms = self.now_ms();
                    if let Shelf::Arriving(arriving) = &mut self.shelf {
                        arriving.store(now_ms, &whole)?;
                    }
                    let piece = whole.piece();
                    self.put(Input::Stored { piece });
                    watcher.progress(self.here(), &self.swarm.status());
                }
                Output::Finished => self.finished = true,
                Output::WakeAt(at) => self.wake_ms = Some(at),
            }
        }
        Ok(())
    }

    /// What is here from an earlier start is not asked for again.
    pub fn begin(&mut self, layer: &PieceLayer) -> Result<(), Failure> {
        let now_ms = self.now_ms();
        if let Shelf::Arriving(arriving) = &mut self.shelf {
            for piece in arriving.begin(now_ms, layer)? {
                self.put(Input::Stored { piece });
            }
            self.tell_lines();
        }
        Ok(())
    }

    fn leave(&mut self, link: LinkId, fault: &Fault, watcher: &mut dyn Watcher) {
        if !self.leave_server(link, fault, watcher) {
            watcher.left(link, fault);
            self.meeting.remove(&link);
            self.connections.remove(&link);
        }
    }

    fn drop_link(&mut self, link: LinkId) {
        self.meeting.remove(&link);
        if self.connections.remove(&link).is_some() {
            self.put(Input::Closed { link });
        }
    }

    fn order(&self, line: LineId, order: Order) {
        if let Some(line) = self.lines.get(line.0) {
            let _is_kept = line.orders.send(order).is_ok();
        }
    }

    fn tell_lines(&self) {
        let status = self.swarm.status();
        let (uploaded, downloaded) = (status.up, status.down);
        for line in &self.lines {
            let progress = Progress {
                left: self.left(),
                uploaded,
                downloaded,
            };
            let _is_kept = line.orders.send(Order::Progress(progress)).is_ok();
        }
    }

    /// Who has enough peers looks for no more.
    fn seek(&self) {
        let has_room = self.connections.len() < p2p::PEERS_MAX;
        for line in &self.lines {
            let offers = if has_room { line.offers } else { 0 };
            let _is_kept = line.orders.send(Order::Seek(offers)).is_ok();
        }
    }

    fn here(&self) -> u64 {
        match &self.shelf {
            Shelf::Finished(_) => self.id.length,
            Shelf::Arriving(arriving) => arriving.bytes(),
        }
    }

    /// Bytes that are not here yet.
    pub fn left(&self) -> u64 {
        self.id.length - self.here()
    }

    pub fn id(&self) -> ModelId {
        self.id
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

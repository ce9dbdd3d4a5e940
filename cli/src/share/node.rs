//! One task that holds one swarm: what happens goes in, what the swarm wants is done.

mod meeting;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use format::{ModelId, PieceLayer};
use p2p::{Fault, Input, LinkId, OfferId, Output, Progress, Status, Swarm};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::connection::{Connection, Pending, Reach, key_of};
use super::happening::{Happening, Watcher};
use super::rendezvous::{self, LineId, Order};
use super::shelf::{Arriving, Finished};
use super::source::Source;
use crate::failure::Failure;

/// Things that wait to be heard; connections read no further while it is full.
const HEARD_MAX: usize = 256;
/// How often time passes when nothing else happens.
const TICK: Duration = Duration::from_millis(500);
/// Pause before a server that failed is asked again.
const SERVER_PAUSE: Duration = Duration::from_secs(10);

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
    /// Trackers, and how many offers are kept open there.
    lines: Vec<(mpsc::UnboundedSender<Order>, usize)>,
    sources: BTreeMap<LinkId, Source>,
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
            sources: BTreeMap::new(),
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
        self.lines.push((line, seek));
        self.seek();
        Ok(())
    }

    pub fn add_source(&mut self, source: Source) {
        if self.swarm.layer().is_none() {
            source.fetch_layer(self.id, self.tell.clone());
        }
        let link = self.new_link();
        self.sources.insert(link, source);
        self.put(Input::OpenedServer { link });
    }

    /// Goes on until everything is here, if something is to come, or until the person ends it.
    /// Gives whether it finished, and what it did.
    pub async fn run(
        mut self,
        watcher: &mut dyn Watcher,
    ) -> Result<(bool, Status, Shelf), Failure> {
        loop {
            self.obey(watcher)?;
            if self.finished {
                break;
            }
            let due = self.wake_ms.map(|wake| wake.saturating_sub(self.now_ms()));
            let wait = due.map_or(TICK, |due| TICK.min(Duration::from_millis(due)));
            tokio::select! {
                happening = self.hear.recv() => match happening {
                    None | Some(Happening::End) => break,
                    Some(happening) => self.on(happening, watcher)?,
                },
                () = sleep(wait) => self.on_time(watcher)?,
            }
        }
        let status = self.swarm.status();
        self.put(Input::Stop);
        self.tell_lines();
        for (line, _) in &self.lines {
            let _is_kept = line.send(Order::Stop).is_ok();
        }
        self.offers.clear();
        for connection in std::mem::take(&mut self.connections).into_values() {
            connection.close().await;
        }
        // The goodbyes are said by tasks of their own.
        for (line, _) in &self.lines {
            let _in_time = tokio::time::timeout(Duration::from_secs(2), line.closed()).await;
        }
        Ok((self.finished, status, self.shelf))
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
                self.put(Input::Fetched { link, piece, bytes });
            }
            Happening::ServerAgain { source } => self.add_source(source),
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
        watcher.progress(self.here(), &self.swarm.status());
        Ok(())
    }

    /// Does everything that the swarm wants by now.
    fn obey(&mut self, watcher: &mut dyn Watcher) -> Result<(), Failure> {
        while let Some(output) = self.swarm.poll() {
            match output {
                Output::Send { link, bytes } => {
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
                Output::Fetch { link, piece } => {
                    if let Some(source) = self.sources.get(&link) {
                        source.fetch(self.id, link, piece, self.tell.clone());
                    }
                }
                Output::Layer(layer) => self.begin(&layer)?,
                Output::Store { piece, bytes } => {
                    let now_ms = self.now_ms();
                    if let Shelf::Arriving(arriving) = &mut self.shelf {
                        arriving.store(now_ms, piece, &bytes)?;
                    }
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
        watcher.left(link, fault);
        self.meeting.remove(&link);
        self.connections.remove(&link);
        if let Some(source) = self.sources.remove(&link)
            && *fault == Fault::Silent
        {
            let tell = self.tell.clone();
            tokio::spawn(async move {
                sleep(SERVER_PAUSE).await;
                tell.send(Happening::ServerAgain { source }).await.is_ok()
            });
        }
    }

    fn drop_link(&mut self, link: LinkId) {
        self.meeting.remove(&link);
        if self.connections.remove(&link).is_some() {
            self.put(Input::Closed { link });
        }
    }

    fn order(&self, line: LineId, order: Order) {
        if let Some((line, _)) = self.lines.get(line.0) {
            let _is_kept = line.send(order).is_ok();
        }
    }

    fn tell_lines(&self) {
        let status = self.swarm.status();
        let (uploaded, downloaded) = (status.up, status.down);
        for (line, _) in &self.lines {
            let progress = Progress {
                left: self.left(),
                uploaded,
                downloaded,
            };
            let _is_kept = line.send(Order::Progress(progress)).is_ok();
        }
    }

    /// Who has enough peers looks for no more.
    fn seek(&self) {
        let has_room = self.connections.len() < p2p::PEERS_MAX;
        for (line, offers) in &self.lines {
            let offers = if has_room { *offers } else { 0 };
            let _is_kept = line.send(Order::Seek(offers)).is_ok();
        }
    }

    fn here(&self) -> u64 {
        match &self.shelf {
            Shelf::Finished(_) => self.id.length,
            Shelf::Arriving(arriving) => arriving.bytes(),
        }
    }

    fn left(&self) -> u64 {
        self.id.length - self.here()
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

//! Many swarms on one simulated network, with liars among them; everything comes from one seed.
//!
//! What has to hold is checked while it runs: `checks` sees every message and every stored piece.

#![allow(dead_code)]

mod checks;
mod liar;
mod models;
mod network;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use format::PieceIndex;
use p2p::{Fault, Input, LinkId, Output, PeerKey, Sharing, Swarm, UploadLimits, Want};

pub use checks::Checks;
pub use liar::{LIES, Lie};
pub use models::{Model, models};
use network::{Chance, Link};

/// A transfer of a few MiB that takes longer than this hangs.
const TIME_MAX_MS: u64 = 900_000;

pub struct World {
    pub seed: u64,
    pub now_ms: u64,
    pub chance: Chance,
    pub model: &'static Model,
    pub nodes: Vec<Node>,
    pub links: BTreeMap<LinkId, Link>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    last: u64,
    last_link: u32,
    pub checks: Checks,
}

pub struct Node {
    pub swarm: Swarm,
    pub lie: Option<Lie>,
    pub wants: bool,
    pub sharing: Sharing,
    pub limits: UploadLimits,
    pub is_alive: bool,
    pub stored: BTreeSet<PieceIndex>,
    pub is_finished: bool,
    /// Milliseconds that its disk takes.
    pub disk_ms: u64,
    pub started_ms: u64,
    /// Events of an earlier life are not heard.
    pub life: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Deliver {
        to: usize,
        link: LinkId,
        bytes: Vec<u8>,
        is_lie: bool,
    },
    Drained {
        node: usize,
        link: LinkId,
        bytes: u32,
    },
    Closed {
        node: usize,
        link: LinkId,
    },
    Stored {
        node: usize,
        life: u32,
        piece: PieceIndex,
    },
    Read {
        node: usize,
        life: u32,
        piece: PieceIndex,
    },
    Fetched {
        node: usize,
        link: LinkId,
        piece: PieceIndex,
    },
    Time {
        node: usize,
        life: u32,
    },
    Connect {
        node: usize,
    },
    Kill {
        node: usize,
    },
    Restart {
        node: usize,
    },
    Flood {
        node: usize,
    },
}

/// What kind of world a seed makes.
pub struct Plan {
    pub honest: usize,
    pub lies: Vec<Lie>,
    /// Some of the receivers go away, others are started again.
    pub is_rough: bool,
    pub server: Option<Server>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Good,
    Lying,
    /// Answers every third request.
    Poor,
}

impl World {
    /// Node 0 has everything and never goes away.
    pub fn new(seed: u64, plan: &Plan) -> World {
        let mut chance = Chance(seed);
        let model = &models()[chance.below(models().len() as u64) as usize];
        let mut world = World {
            seed,
            now_ms: 0,
            chance,
            model,
            nodes: Vec::new(),
            links: BTreeMap::new(),
            events: BinaryHeap::new(),
            last: 0,
            last_link: 0,
            checks: Checks::new(seed),
        };
        for index in 0..plan.honest + plan.lies.len() {
            let lie = index.checked_sub(plan.honest).map(|at| plan.lies[at]);
            world.add(index == 0 || lie.is_some(), lie);
        }
        for node in 1..world.nodes.len() {
            let at = world.chance.below(1000);
            world.at(at, Event::Connect { node });
            let (when, fate) = (world.chance.below(20_000), world.chance.below(3));
            if plan.is_rough && node < plan.honest {
                match fate {
                    0 => world.at(when, Event::Kill { node }),
                    1 => world.at(when, Event::Restart { node }),
                    _ => {}
                }
            }
            if world.nodes[node].wants
                && let Some(server) = plan.server
            {
                world.open_server(node, server);
            }
        }
        world
    }

    fn add(&mut self, has_all: bool, lie: Option<Lie>) {
        let index = self.nodes.len();
        let is_shy = index > 0 && lie.is_none() && self.chance.below(3) == 0;
        let rate = (index > 0 && self.chance.below(3) == 0).then_some(2 << 20);
        let stored = match has_all {
            true => (0..self.model.id.pieces()).map(PieceIndex).collect(),
            false => BTreeSet::new(),
        };
        self.nodes.push(Node {
            swarm: Swarm::new(self.model.id, self.chance.draw()).unwrap(),
            lie,
            wants: !has_all,
            sharing: if is_shy { Sharing::Off } else { Sharing::On },
            limits: UploadLimits {
                total: rate,
                each: None,
            },
            is_alive: true,
            stored,
            is_finished: has_all,
            disk_ms: self.chance.below(30),
            started_ms: 0,
            life: 0,
        });
        self.begin(index);
    }

    /// Tells a fresh swarm what its node has and wants.
    fn begin(&mut self, node: usize) {
        let (sharing, limits) = (self.nodes[node].sharing, self.nodes[node].limits);
        let stored: Vec<PieceIndex> = self.nodes[node].stored.iter().copied().collect();
        for piece in stored {
            self.give(node, Input::Stored { piece });
        }
        if !self.nodes[node].wants {
            self.give(node, Input::Layer(self.model.layer.clone()));
        }
        self.give(node, Input::Share(sharing));
        self.give(node, Input::Limit(limits));
        if self.nodes[node].wants {
            self.give(node, Input::Want(Want::All));
        }
    }

    pub fn at(&mut self, at_ms: u64, event: Event) {
        self.last += 1;
        self.events.push(Reverse((at_ms, self.last, event)));
    }

    fn after(&mut self, ms: u64, event: Event) {
        self.at(self.now_ms + ms, event);
    }

    /// Until every honest receiver that lives has everything.
    pub fn run(&mut self) {
        while self
            .nodes
            .iter()
            .any(|node| node.is_alive && node.wants && !node.is_finished)
        {
            let Some(Reverse((at_ms, _, event))) = self.events.pop() else {
                panic!("seed {}: nothing happens any more", self.seed);
            };
            assert!(at_ms < TIME_MAX_MS, "seed {}: it takes too long", self.seed);
            self.now_ms = at_ms;
            self.happen(event);
        }
        self.checks.at_the_end(&self.nodes, self.model);
    }

    fn happen(&mut self, event: Event) {
        let lives = |world: &World, node: usize, life| world.nodes[node].life == life;
        match event {
            Event::Deliver {
                to,
                link,
                bytes,
                is_lie,
            } => {
                if self.is_open(link, to) {
                    self.checks.heard(to, link, &bytes, self.model);
                    let before = self.checks.closed.len();
                    self.give(
                        to,
                        Input::Message {
                            link,
                            bytes: &bytes,
                        },
                    );
                    if is_lie && self.nodes[to].lie.is_none() {
                        self.checks.after_lie(to, link, &bytes, before);
                    }
                }
            }
            Event::Drained { node, link, bytes } => {
                if self.is_open(link, node) {
                    self.checks.drained(node, link, bytes);
                    self.give(node, Input::Drained { link, bytes });
                }
            }
            Event::Closed { node, link } => self.hang_up(node, link),
            Event::Stored { node, life, piece } if lives(self, node, life) => {
                self.nodes[node].stored.insert(piece);
                self.give(node, Input::Stored { piece });
            }
            Event::Read { node, life, piece } if lives(self, node, life) => {
                let bytes = self.model.piece(piece).to_vec();
                let bytes = Some(bytes);
                self.give(node, Input::Read { piece, bytes });
            }
            Event::Fetched { node, link, piece } => self.answer_fetch(node, link, piece),
            Event::Time { node, life } if lives(self, node, life) => self.give(node, Input::Time),
            Event::Connect { node } => self.connect(node),
            Event::Kill { node } => {
                self.nodes[node].is_alive = false;
                self.drop_links(node);
            }
            Event::Restart { node } => self.restart(node),
            Event::Flood { node } => self.flood(node),
            Event::Stored { .. } | Event::Read { .. } | Event::Time { .. } => {}
        }
    }

    /// A page that is loaded again: what was stored is there, the rest is forgotten.
    fn restart(&mut self, node: usize) {
        if self.nodes[node].is_finished {
            return;
        }
        self.drop_links(node);
        let server = self.close_servers(node);
        let seed = self.chance.draw();
        let it = &mut self.nodes[node];
        it.life += 1;
        it.started_ms = self.now_ms;
        it.swarm = Swarm::new(self.model.id, seed).unwrap();
        let on_disk = it.stored.clone();
        self.checks.restarted(node, on_disk);
        self.begin(node);
        if let Some(server) = server {
            self.open_server(node, server);
        }
    }

    pub fn give(&mut self, node: usize, input: Input<'_>) {
        let now_ms = self.now_ms;
        self.nodes[node].swarm.handle(now_ms, input);
        while let Some(output) = self.nodes[node].swarm.poll() {
            self.perform(node, output);
        }
        if self.nodes[node].lie.is_none() {
            self.checks.memory(&self.nodes[node]);
        }
    }

    fn perform(&mut self, node: usize, output: Output) {
        let it = &self.nodes[node];
        let (life, disk_ms) = (it.life, it.disk_ms);
        match output {
            Output::Send { link, bytes } => self.send(node, link, bytes),
            Output::Close { link, fault } => self.close(node, link, fault),
            Output::Read { piece } => {
                assert!(
                    it.stored.contains(&piece),
                    "seed {}: {piece:?} is not here",
                    self.seed
                );
                self.after(disk_ms, Event::Read { node, life, piece });
            }
            Output::Fetch { link, piece } => {
                self.checks.fetched(node, piece, it);
                let took = 5 + self.chance.below(400);
                self.after(took, Event::Fetched { node, link, piece });
            }
            Output::Store(whole) => {
                let (piece, bytes) = (whole.piece(), whole.into_bytes());
                self.checks.stored(node, piece, &bytes, self.model, it);
                self.after(disk_ms, Event::Stored { node, life, piece });
            }
            Output::WakeAt(at) => self.at(at, Event::Time { node, life }),
            Output::Finished => {
                self.nodes[node].is_finished =
                    self.nodes[node].stored.len() as u32 == self.model.id.pieces()
            }
            Output::Layer(layer) => assert_eq!(layer, self.model.layer),
        }
    }
}

/// By what the others know a node again.
pub fn key(node: usize) -> PeerKey {
    let mut key = [7; 20];
    key[0] = node as u8;
    PeerKey(key)
}

pub fn is_lie(fault: &Fault) -> bool {
    fault.is_a_lie()
}

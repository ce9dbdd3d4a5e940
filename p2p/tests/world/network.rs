//! Connections with delay, jitter and a bandwidth; in order on each, in any order between them.

use format::PieceIndex;
use p2p::{Fault, Input, LinkId};

use super::{Event, Server, World, key};

/// SplitMix64.
pub struct Chance(pub u64);

impl Chance {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}

pub struct Link {
    pub ends: [End; 2],
    delay_ms: u64,
    /// Bytes a millisecond.
    rate: u64,
    server: Option<Server>,
    asked: u32,
}

#[derive(Clone, Copy)]
pub struct End {
    pub node: usize,
    pub is_open: bool,
    /// When what it sent last has left, and when it has come.
    left_ms: u64,
    came_ms: u64,
}

impl Link {
    fn side(&self, node: usize) -> Option<usize> {
        self.ends.iter().position(|end| end.node == node)
    }
}

impl World {
    /// Looks for another peer, now and again later.
    pub fn connect(&mut self, node: usize) {
        if !self.nodes[node].is_alive {
            return;
        }
        let again = 500 + self.chance.below(2_500);
        let at = self.now_ms + again;
        self.at(at, Event::Connect { node });
        let other = match self.chance.below(3) {
            0 => 0,
            _ => self.chance.below(self.nodes.len() as u64) as usize,
        };
        let them = &self.nodes[other];
        let known = |link: &Link| {
            let open = link.ends.iter().filter(|end| end.is_open);
            let nodes: Vec<usize> = open.map(|end| end.node).collect();
            nodes.contains(&node) && nodes.contains(&other)
        };
        let refuses = self.nodes[node].swarm.is_banned(key(other));
        if other == node || !them.is_alive || refuses || self.links.values().any(known) {
            return;
        }
        let (delay_ms, rate) = (1 + self.chance.below(150), 50 + self.chance.below(4_000));
        let link = self.add_link(node, other, delay_ms, rate);
        let name = key(other);
        self.give(node, Input::Opened { link, key: name });
        let name = key(node);
        self.give(other, Input::Opened { link, key: name });
        for liar in [node, other] {
            if self.nodes[liar].lie == Some(super::Lie::Flood) {
                self.after(1_000, Event::Flood { node: liar });
            }
        }
    }

    fn add_link(&mut self, a: usize, b: usize, delay_ms: u64, rate: u64) -> LinkId {
        self.last_link += 1;
        let link = LinkId(self.last_link);
        let end = |node| End {
            node,
            is_open: true,
            left_ms: 0,
            came_ms: 0,
        };
        let ends = [end(a), end(b)];
        let link_of = Link {
            ends,
            delay_ms,
            rate,
            server: None,
            asked: 0,
        };
        self.links.insert(link, link_of);
        link
    }

    pub fn open_server(&mut self, node: usize, server: Server) {
        let link = self.add_link(node, usize::MAX, 0, 1);
        if let Some(known) = self.links.get_mut(&link) {
            known.server = Some(server);
        }
        self.give(node, Input::OpenedServer { link });
    }

    /// What it asked of servers is not answered any more.
    pub fn close_servers(&mut self, node: usize) -> Option<Server> {
        let mut server = None;
        for known in self.links.values_mut() {
            if known.server.is_some() && known.ends[0].node == node {
                server = known.server.filter(|_| known.ends[0].is_open).or(server);
                known.ends[0].is_open = false;
            }
        }
        server
    }

    pub fn answer_fetch(&mut self, node: usize, link: LinkId, piece: PieceIndex) {
        if !self.is_open(link, node) {
            return;
        }
        let Some(known) = self.links.get_mut(&link) else {
            return;
        };
        known.asked += 1;
        let mut bytes = Some(self.model.piece(piece).to_vec());
        match known.server {
            Some(Server::Lying) => {
                if let Some(bytes) = &mut bytes {
                    bytes[0] ^= 1;
                }
            }
            Some(Server::Poor) if known.asked % 3 != 0 => bytes = None,
            _ => {}
        }
        let is_lie = known.server == Some(Server::Lying);
        self.give(node, Input::Fetched { link, piece, bytes });
        assert!(
            !is_lie || !self.is_open(link, node),
            "seed {}: believed",
            self.seed
        );
    }

    pub fn is_open(&self, link: LinkId, node: usize) -> bool {
        let end = |link: &Link| link.side(node).is_some_and(|side| link.ends[side].is_open);
        self.links.get(&link).is_some_and(end)
    }

    pub fn send(&mut self, node: usize, link: LinkId, bytes: Vec<u8>) {
        if self.nodes[node].lie.is_none() {
            self.checks
                .sent(node, link, &bytes, &self.nodes[node], self.now_ms);
        }
        for (bytes, is_lie) in self.told(node, bytes) {
            self.transmit(node, link, bytes, is_lie);
        }
    }

    pub fn transmit(&mut self, node: usize, link: LinkId, bytes: Vec<u8>, is_lie: bool) {
        let now_ms = self.now_ms;
        let jitter = self.chance.below(20);
        let Some(known) = self.links.get_mut(&link) else {
            return;
        };
        let Some(side) = known.side(node).filter(|side| known.ends[*side].is_open) else {
            return;
        };
        let took = bytes.len() as u64 / known.rate;
        let (to, delay_ms) = (known.ends[1 - side].node, known.delay_ms);
        let end = &mut known.ends[side];
        end.left_ms = end.left_ms.max(now_ms) + took;
        end.came_ms = end.came_ms.max(end.left_ms + delay_ms + jitter);
        let (left, came) = (end.left_ms, end.came_ms);
        let sent = bytes.len() as u32;
        self.at(
            left,
            Event::Drained {
                node,
                link,
                bytes: sent,
            },
        );
        self.at(
            came,
            Event::Deliver {
                to,
                link,
                bytes,
                is_lie,
            },
        );
    }

    pub fn close(&mut self, node: usize, link: LinkId, fault: Fault) {
        let Some(known) = self.links.get_mut(&link) else {
            return;
        };
        let Some(side) = known.side(node) else {
            return;
        };
        known.ends[side].is_open = false;
        let other = known.ends[1 - side];
        let came = other.came_ms.max(known.ends[side].came_ms).max(self.now_ms) + known.delay_ms;
        if other.node < self.nodes.len() {
            self.at(
                came,
                Event::Closed {
                    node: other.node,
                    link,
                },
            );
        }
        let by_honest = self.nodes[node].lie.is_none();
        let of_honest = self
            .nodes
            .get(other.node)
            .is_some_and(|it| it.lie.is_none());
        if by_honest {
            self.checks.closed(node, link, fault, of_honest);
        }
    }

    pub fn hang_up(&mut self, node: usize, link: LinkId) {
        let Some(known) = self.links.get_mut(&link) else {
            return;
        };
        let side = known.side(node);
        if let Some(side) = side.filter(|side| known.ends[*side].is_open) {
            known.ends[side].is_open = false;
            self.checks.hung_up(node, link);
            self.give(node, Input::Closed { link });
        }
    }

    /// The node is gone; the others notice a little later.
    pub fn drop_links(&mut self, node: usize) {
        let mut gone = Vec::new();
        for (link, known) in &mut self.links {
            if let Some(side) = known.side(node)
                && known.server.is_none()
                && std::mem::take(&mut known.ends[side].is_open)
            {
                gone.push((*link, known.ends[1 - side].node, known.delay_ms));
            }
        }
        for (link, other, delay_ms) in gone {
            self.checks.hung_up(node, link);
            let at = self.now_ms + 20 * delay_ms;
            self.at(at, Event::Closed { node: other, link });
        }
    }
}

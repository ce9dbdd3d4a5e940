//! What has to hold at any moment.

use std::collections::{BTreeMap, BTreeSet};

use format::{LEAF_BYTES, PIECE_BYTES, PieceIndex};
use p2p::{
    ARRIVING_MAX, ENDGAME_PIECES, Fault, LinkId, MESSAGE_BYTES_MAX, Message, Reject,
    STORE_QUEUE_BYTES_MAX,
};

use super::{Model, Node};

type Leaf = (PieceIndex, u8);

#[derive(Default)]
pub struct Checks {
    seed: u64,
    /// Leaves that a node waits for, and of whom.
    waits: BTreeMap<usize, BTreeMap<Leaf, BTreeSet<LinkId>>>,
    /// Verified leaves.
    here: BTreeMap<usize, BTreeSet<Leaf>>,
    hashes: BTreeMap<usize, BTreeSet<PieceIndex>>,
    stored: BTreeMap<usize, BTreeSet<PieceIndex>>,
    unsent: BTreeMap<(usize, LinkId), u64>,
    up: BTreeMap<usize, u64>,
    pub closed: Vec<(usize, LinkId, Fault)>,
    pub lies_met: u32,
    pub repeats: u32,
}

impl Checks {
    pub fn new(seed: u64) -> Checks {
        Checks {
            seed,
            ..Checks::default()
        }
    }

    /// An honest node says something.
    pub fn sent(&mut self, node: usize, link: LinkId, bytes: &[u8], it: &Node, now_ms: u64) {
        let seed = self.seed;
        assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        let unsent = self.unsent.entry((node, link)).or_default();
        *unsent += bytes.len() as u64;
        // Short messages do not wait for long ones.
        assert!(
            *unsent <= (512 + 64) * 1024,
            "seed {seed}: {unsent} bytes wait"
        );
        match Message::decode(bytes).unwrap() {
            Message::Request(run) => {
                for leaf in run.leaves() {
                    self.asked(node, link, (run.piece(), leaf), it);
                }
            }
            Message::Cancel(run) => {
                for leaf in run.leaves() {
                    self.no_longer(node, link, (run.piece(), leaf));
                }
            }
            Message::Leaves { bytes, .. } => {
                let up = self.up.entry(node).or_default();
                *up += bytes.len() as u64;
                if let Some(rate) = it.limits.total {
                    let most = (now_ms + 1) * u64::from(rate) / 1000 + u64::from(rate) / 4;
                    assert!(*up <= most + 65_536, "seed {seed}: {up} bytes went out");
                }
                assert_eq!(
                    it.sharing,
                    p2p::Sharing::On,
                    "seed {seed}: it does not share"
                );
            }
            _ => {}
        }
    }

    fn asked(&mut self, node: usize, link: LinkId, leaf: Leaf, it: &Node) {
        let seed = self.seed;
        let here = self.here.entry(node).or_default();
        assert!(
            !here.contains(&leaf),
            "seed {seed}: node {node} has {leaf:?} and asks for it"
        );
        let waits = self.waits.entry(node).or_default().entry(leaf).or_default();
        assert!(
            waits.insert(link),
            "seed {seed}: {leaf:?} twice of {link:?}"
        );
        if waits.len() > 1 {
            self.repeats += 1;
            let stored = self.stored.get(&node).map_or(0, BTreeSet::len) as u32;
            let left = it.swarm.id().pieces() - stored;
            assert!(
                left <= ENDGAME_PIECES,
                "seed {seed}: {leaf:?} of several, {left} before the end"
            );
        }
    }

    fn no_longer(&mut self, node: usize, link: LinkId, leaf: Leaf) {
        let waits = self.waits.entry(node).or_default();
        if let Some(links) = waits.get_mut(&leaf) {
            links.remove(&link);
        }
    }

    /// A node hears something.
    pub fn heard(&mut self, node: usize, link: LinkId, bytes: &[u8], model: &Model) {
        match Message::decode(bytes) {
            Ok(Message::Hashes { piece, hashes }) => {
                let right = format::leaf_hashes(model.piece(piece));
                if hashes.iter().eq(right.iter().map(|hash| &hash.0)) {
                    self.hashes.entry(node).or_default().insert(piece);
                }
            }
            Ok(Message::Leaves {
                piece,
                first,
                bytes,
            }) => {
                let knows = self.hashes.get(&node).is_some_and(|it| it.contains(&piece));
                for (leaf, bytes) in (first..).zip(bytes.chunks(LEAF_BYTES as usize)) {
                    self.no_longer(node, link, (piece, leaf));
                    if knows && bytes == model.leaf(piece, leaf) {
                        self.here.entry(node).or_default().insert((piece, leaf));
                    }
                }
            }
            Ok(Message::Reject(run, Reject::NotHere | Reject::NotSharing)) => {
                for leaf in run.leaves() {
                    self.no_longer(node, link, (run.piece(), leaf));
                }
            }
            _ => {}
        }
    }

    pub fn fetched(&mut self, node: usize, piece: PieceIndex, it: &Node) {
        let seed = self.seed;
        assert!(
            !it.stored.contains(&piece),
            "seed {seed}: node {node} has {piece:?}"
        );
    }

    pub fn stored(
        &mut self,
        node: usize,
        piece: PieceIndex,
        bytes: &[u8],
        model: &Model,
        it: &Node,
    ) {
        let seed = self.seed;
        assert!(
            bytes == model.piece(piece),
            "seed {seed}: {piece:?} is wrong"
        );
        assert!(!it.stored.contains(&piece), "seed {seed}: {piece:?} twice");
        let is_new = self.stored.entry(node).or_default().insert(piece);
        assert!(is_new, "seed {seed}: {piece:?} is stored twice");
    }

    pub fn drained(&mut self, node: usize, link: LinkId, bytes: u32) {
        if let Some(unsent) = self.unsent.get_mut(&(node, link)) {
            *unsent = unsent.saturating_sub(bytes.into());
        }
    }

    pub fn closed(&mut self, node: usize, link: LinkId, fault: Fault, of_honest: bool) {
        let seed = self.seed;
        assert!(
            !of_honest || !fault.is_a_lie(),
            "seed {seed}: node {node} calls an honest peer a liar: {fault}"
        );
        self.closed.push((node, link, fault));
        self.hung_up(node, link);
    }

    pub fn hung_up(&mut self, node: usize, link: LinkId) {
        for links in self.waits.entry(node).or_default().values_mut() {
            links.remove(&link);
        }
        self.unsent.remove(&(node, link));
    }

    /// A lie was heard: its author is left at once, unless nobody needed its words.
    pub fn after_lie(&mut self, node: usize, link: LinkId, bytes: &[u8], before: usize) {
        self.lies_met += 1;
        let is_left = self.closed[before..]
            .iter()
            .any(|(by, of, fault)| (*by, *of) == (node, link) && fault.is_a_lie());
        let is_needless = match Message::decode(bytes) {
            Ok(Message::Leaves {
                piece,
                first,
                bytes,
            }) => {
                let here = self.here.entry(node).or_default();
                let count = bytes.len().div_ceil(LEAF_BYTES as usize) as u8;
                let stored = self.stored.get(&node).is_some_and(|it| it.contains(&piece));
                let knows = self.hashes.get(&node).is_some_and(|it| it.contains(&piece));
                stored || !knows || here.contains(&(piece, first + count - 1))
            }
            // Another gave them meanwhile.
            Ok(Message::Hashes { piece, .. }) => {
                self.hashes.get(&node).is_some_and(|it| it.contains(&piece)) || !is_left
            }
            _ => false,
        };
        let seed = self.seed;
        assert!(
            is_left || is_needless,
            "seed {seed}: node {node} took a lie of {link:?}"
        );
    }

    /// What was on its way to the disk is lost with the page.
    pub fn restarted(&mut self, node: usize, on_disk: BTreeSet<PieceIndex>) {
        self.waits.remove(&node);
        self.hashes.remove(&node);
        if let Some(here) = self.here.get_mut(&node) {
            here.retain(|(piece, _)| on_disk.contains(piece));
        }
        self.stored.insert(node, on_disk);
    }

    pub fn memory(&self, it: &Node) {
        let piece = u64::from(PIECE_BYTES);
        // Pieces that arrive, that are given out, that wait for the disk, and those of servers.
        let most =
            (ARRIVING_MAX as u64 + 8 + ARRIVING_MAX as u64 + 4) * piece + STORE_QUEUE_BYTES_MAX;
        let held = it.swarm.held_bytes();
        assert!(held <= most, "seed {}: {held} bytes in memory", self.seed);
    }

    pub fn at_the_end(&self, nodes: &[Node], model: &Model) {
        for node in nodes.iter().filter(|node| node.is_alive && node.wants) {
            assert_eq!(
                node.stored.len() as u32,
                model.id.pieces(),
                "seed {}",
                self.seed
            );
        }
    }
}

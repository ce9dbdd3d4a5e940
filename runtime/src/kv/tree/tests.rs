//! Against what the tree stands for: every page holds what its whole prefix gives.

use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::kernels::suite::operands::Random;

/// Pages as a model would fill them: a position's content follows from all tokens up to it.
struct Filled {
    tree: Tree,
    pages: Vec<[u64; KV_BLOCK]>,
}

fn content(ids: &[u32]) -> u64 {
    ids.iter().fold(17, |hash: u64, id| {
        (hash ^ u64::from(*id)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Filled {
    fn new(pages: usize) -> Filled {
        Filled {
            tree: Tree::new(pages).unwrap(),
            pages: vec![[0; KV_BLOCK]; pages],
        }
    }

    /// Enters, computes what is not known, and commits it; gives how much was known.
    fn run(&mut self, ids: &[u32]) -> usize {
        let known = self.enter(ids);
        self.compute(ids, known);
        self.tree.commit(ids);
        self.check(ids);
        self.tree.leave();
        known
    }

    fn enter(&mut self, ids: &[u32]) -> usize {
        let found = self.tree.enter(ids);
        if let Some((from, to)) = found.copy {
            self.pages[to as usize] = self.pages[from as usize];
        }
        self.check(&ids[..found.known]);
        found.known
    }

    fn compute(&mut self, ids: &[u32], from: usize) {
        assert!(self.tree.reach(ids.len()));
        for position in from..ids.len() {
            let page = self.tree.path()[position / KV_BLOCK] as usize;
            self.pages[page][position % KV_BLOCK] = content(&ids[..=position]);
        }
    }

    /// The path's pages hold what these tokens give, and all pages are somewhere.
    fn check(&self, ids: &[u32]) {
        for position in 0..ids.len() {
            let page = self.tree.path()[position / KV_BLOCK] as usize;
            let found = self.pages[page][position % KV_BLOCK];
            assert_eq!(found, content(&ids[..=position]), "position {position}");
        }
        let free: BTreeSet<u32> = self.tree.free.iter().copied().collect();
        let path: BTreeSet<u32> = self.tree.path.iter().copied().collect();
        assert_eq!(
            (free.len(), path.len()),
            (self.tree.free.len(), self.tree.path.len())
        );
        assert!(free.is_disjoint(&path));
        for (page, node) in self.tree.nodes.iter().enumerate() {
            let page = page as u32;
            let places = [free.contains(&page), path.contains(&page), node.len > 0];
            assert!(places.contains(&true), "page {page} is lost");
            assert!(!(free.contains(&page) && node.len > 0 && node.is_on_path));
            assert!(node.child == NONE || node.len as usize == KV_BLOCK);
        }
    }
}

/// A few tokens only, so that sequences often begin alike.
fn sequence(random: &mut Random, old: &[Vec<u32>], most: usize) -> Vec<u32> {
    let mut ids = match old.len() {
        0 => Vec::new(),
        count => {
            let old = &old[random.below(count)];
            old[..random.below(old.len() + 1)].to_vec()
        }
    };
    let len = 1 + random.below(most);
    while ids.len() < len {
        ids.push(random.below(3) as u32);
    }
    ids
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[test]
fn what_was_ever_committed_is_known_while_there_is_room() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let mut filled = Filled::new(1000);
        let mut old: Vec<Vec<u32>> = Vec::new();
        for _ in 0..100 {
            let ids = sequence(&mut random, &old, 150);
            let expected = old.iter().map(|old| common(old, &ids)).max().unwrap_or(0);
            assert_eq!(filled.tree.known(&ids), expected);
            assert_eq!(filled.run(&ids), expected);
            old.push(ids);
        }
    }
}

#[test]
fn where_room_is_short_nothing_is_wrong_and_no_request_fails() {
    for seed in 0..200 {
        let mut random = Random(1000 + seed);
        let pages = 1 + random.below(12);
        let mut filled = Filled::new(pages);
        let mut old: Vec<Vec<u32>> = Vec::new();
        for _ in 0..60 {
            let ids = sequence(&mut random, &old, pages * KV_BLOCK);
            let ids = &ids[..ids.len().min(pages * KV_BLOCK)];
            match random.below(4) {
                // Given up at some position, or before anything was computed.
                0 => {
                    let known = filled.enter(ids);
                    let upto = known + random.below(ids.len() - known + 1);
                    filled.compute(ids, known);
                    filled.tree.commit(&ids[..upto]);
                    filled.check(&ids[..upto]);
                    filled.tree.leave();
                    assert!(filled.tree.known(ids) >= upto);
                    old.push(ids[..upto].to_vec());
                }
                _ => {
                    filled.run(ids);
                    assert_eq!(filled.tree.known(ids), ids.len());
                    old.push(ids.to_vec());
                }
            }
        }
        filled.tree.clear();
        assert_eq!(filled.tree.free.len(), pages);
        assert_eq!(filled.run(&[1, 2, 3]), 0);
    }
}

#[test]
fn the_conversation_used_longest_ago_goes_first_and_from_its_end() {
    let mut filled = Filled::new(8);
    let start = [7; KV_BLOCK];
    let [a, b, c] = [1, 2, 3].map(|id| [&start[..], &[id; 2 * KV_BLOCK]].concat());
    for ids in [&a, &b, &c, &a] {
        filled.run(ids);
    }
    // Seven pages are in use; one more takes the free one, the next the end of `b`.
    filled.run(&[4; 2 * KV_BLOCK]);
    assert_eq!(filled.tree.known(&a), a.len());
    assert_eq!(filled.tree.known(&b), 2 * KV_BLOCK);
    assert_eq!(filled.tree.known(&c), c.len());
}

#[test]
fn more_than_all_pages_is_refused() {
    let mut filled = Filled::new(2);
    filled.run(&[1; 2 * KV_BLOCK]);
    filled.tree.enter(&[2]);
    assert!(filled.tree.reach(2 * KV_BLOCK));
    assert!(!filled.tree.reach(2 * KV_BLOCK + 1));
}

//! Which pages hold which tokens: a radix tree over blocks of 32 committed positions.
//!
//! A node is a page and the tokens whose keys and values lie on it. Its parent holds the 32 tokens
//! before them, so the way from the root to a node is a whole prefix, and two conversations that
//! begin alike share the pages of what they have in common. A node with fewer than 32 tokens has no
//! children; nodes that differ within a block are siblings.
//!
//! ```text
//! root -- system prompt -- first question -- answer (12)
//!                     \--- another question (31)
//! ```
//!
//! The running request has a path through the tree and beyond: pages at its end that hold nothing
//! committed yet belong to it alone. A page is taken back only when another one is needed: the leaf
//! that was used longest ago, and never one of the path.
//!
//! Nothing is allocated after the tree was made. It knows nothing of what the pages hold.

use alloc::vec::Vec;

use protocol::Stage;

use crate::RuntimeError;
use crate::error::{reserve_memory, take_memory};
use crate::kernels::KV_BLOCK;

/// No page.
pub const NONE: u32 = u32::MAX;

pub struct Tree {
    /// One for each page.
    nodes: Vec<Node>,
    /// Pages that hold nothing, the next one last.
    free: Vec<u32>,
    /// First child of the root.
    first: u32,
    /// The pages of the running request's blocks.
    path: Vec<u32>,
    /// Positions of the path that are committed.
    committed: usize,
    /// Counts requests.
    now: u64,
}

#[derive(Clone)]
struct Node {
    used: u64,
    tokens: [u32; KV_BLOCK],
    /// Committed positions; 0 outside of the tree.
    len: u32,
    parent: u32,
    child: u32,
    sibling: u32,
    /// Of the running request.
    is_on_path: bool,
}

impl Default for Node {
    fn default() -> Node {
        Node {
            used: 0,
            tokens: [0; KV_BLOCK],
            len: 0,
            parent: NONE,
            child: NONE,
            sibling: NONE,
            is_on_path: false,
        }
    }
}

/// What a request finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Leading tokens whose keys and values stand on the path's pages, once the copy is made.
    pub known: usize,
    /// Content that goes from one page to another.
    pub copy: Option<(u32, u32)>,
}

/// How far a prefix is known.
struct Walk {
    /// Whole blocks, and the node of the last one.
    blocks: usize,
    last: u32,
    /// The node that goes on longest from there, and tokens that it has in common.
    next: u32,
    common: usize,
}

impl Tree {
    /// Bytes that [`Tree::new`] takes.
    pub fn bytes(pages: u64) -> Option<u64> {
        pages.checked_mul((size_of::<Node>() + 2 * size_of::<u32>()) as u64)
    }

    pub fn new(pages: usize) -> Result<Tree, RuntimeError> {
        let mut free = reserve_memory(pages, Stage::Allocate)?;
        free.extend((0..pages as u32).rev());
        Ok(Tree {
            nodes: take_memory(pages, Stage::Allocate)?,
            free,
            first: NONE,
            path: reserve_memory(pages, Stage::Allocate)?,
            committed: 0,
            now: 0,
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let words = self.free.capacity() + self.path.capacity();
        (self.nodes.capacity() * size_of::<Node>() + words * size_of::<u32>()) as u64
    }

    /// The page of each block of the running request.
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// Tokens of `ids` from the first on that are known.
    pub fn known(&self, ids: &[u32]) -> usize {
        let walk = self.walk(ids);
        walk.blocks * KV_BLOCK + walk.common
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.leave();
        self.free.clear();
        self.free.extend((0..self.nodes.len() as u32).rev());
        self.nodes.fill(Node::default());
        self.first = NONE;
    }

    /// Begins a request: its path are the pages of what is known of `ids`.
    ///
    /// A block that is known in part goes on in place if nothing else follows there, and otherwise
    /// on a page of its own.
    pub fn enter(&mut self, ids: &[u32]) -> Found {
        self.leave();
        self.now += 1;
        let walk = self.walk(ids);
        self.go_to(walk.last);
        let mut found = Found {
            known: walk.blocks * KV_BLOCK + walk.common,
            copy: None,
        };
        self.committed = walk.blocks * KV_BLOCK;
        if walk.common == 0 {
            return found;
        }
        if walk.common == self.nodes[walk.next as usize].len as usize {
            self.join(walk.next);
            self.committed = found.known;
        } else if self.extend() {
            // The page may have been taken from that very node; then its content is there already.
            let page = self.path[walk.blocks];
            found.copy = (page != walk.next).then_some((walk.next, page));
            self.commit(&ids[..found.known]);
        } else {
            found.known = self.committed;
        }
        found
    }

    /// Makes the path reach position `end`. `false` if there are not so many pages.
    pub fn reach(&mut self, end: usize) -> bool {
        while self.path.len() * KV_BLOCK < end {
            if !self.extend() {
                return false;
            }
        }
        true
    }

    /// The positions of `ids` are valid from now on. The path must reach so far.
    pub fn commit(&mut self, ids: &[u32]) {
        while self.committed < ids.len() {
            let block = self.committed / KV_BLOCK;
            let end = ids.len().min((block + 1) * KV_BLOCK);
            let page = self.path[block];
            let node = &mut self.nodes[page as usize];
            let was_known = node.len > 0;
            let first = block * KV_BLOCK;
            node.tokens[..end - first].copy_from_slice(&ids[first..end]);
            node.len = (end - first) as u32;
            if !was_known {
                let parent = block.checked_sub(1).map_or(NONE, |above| self.path[above]);
                self.link(page, parent);
            }
            self.committed = end;
        }
    }

    /// Ends the request. Pages without anything committed fall free.
    pub fn leave(&mut self) {
        while let Some(page) = self.path.pop() {
            let node = &mut self.nodes[page as usize];
            node.is_on_path = false;
            if node.len == 0 {
                self.free.push(page);
            }
        }
        self.committed = 0;
    }

    /// The page of block `block` of `ids`, and how many of its tokens are known.
    pub fn page(&self, ids: &[u32], block: usize) -> Option<(u32, usize)> {
        let end = ids.len().min((block + 1) * KV_BLOCK);
        let walk = self.walk(&ids[..end]);
        match walk.blocks.checked_sub(block)? {
            0 => (walk.common > 0).then_some((walk.next, walk.common)),
            _ => Some((walk.last, KV_BLOCK)),
        }
    }

    /// As far as whole blocks are known, and how the next begins.
    fn walk(&self, ids: &[u32]) -> Walk {
        let mut walk = Walk {
            blocks: 0,
            last: NONE,
            next: NONE,
            common: 0,
        };
        loop {
            let rest = &ids[walk.blocks * KV_BLOCK..];
            (walk.next, walk.common) = self.longest(walk.last, rest);
            if walk.common < KV_BLOCK {
                return walk;
            }
            walk.last = walk.next;
            walk.blocks += 1;
        }
    }

    /// The child that has most tokens in common with `ids`. Of several one that has no others, so
    /// that it can go on in place.
    fn longest(&self, parent: u32, ids: &[u32]) -> (u32, usize) {
        let (mut best, mut common) = (NONE, 0);
        let mut page = self.first_child(parent);
        while page != NONE {
            let node = &self.nodes[page as usize];
            let tokens = &node.tokens[..node.len as usize];
            let same = tokens.iter().zip(ids).take_while(|(a, b)| a == b).count();
            if same > common || (same == common && same > 0 && same == tokens.len()) {
                (best, common) = (page, same);
            }
            page = node.sibling;
        }
        (best, common)
    }

    fn first_child(&self, parent: u32) -> u32 {
        match parent {
            NONE => self.first,
            parent => self.nodes[parent as usize].child,
        }
    }

    /// The path becomes the way to this node.
    fn go_to(&mut self, last: u32) {
        let mut page = last;
        while page != NONE {
            self.join(page);
            page = self.nodes[page as usize].parent;
        }
        self.path.reverse();
    }

    fn join(&mut self, page: u32) {
        let node = &mut self.nodes[page as usize];
        (node.is_on_path, node.used) = (true, self.now);
        self.path.push(page);
    }

    /// One page more for the path.
    fn extend(&mut self) -> bool {
        let Some(page) = self.free.pop().or_else(|| self.take_oldest()) else {
            return false;
        };
        self.nodes[page as usize] = Node::default();
        self.join(page);
        true
    }

    /// The leaf used longest ago leaves the tree.
    fn take_oldest(&mut self) -> Option<u32> {
        let is_spare = |node: &Node| node.len > 0 && node.child == NONE && !node.is_on_path;
        let spare = self.nodes.iter().enumerate();
        let oldest = spare
            .filter(|(_, node)| is_spare(node))
            .min_by_key(|(_, node)| node.used);
        let page = oldest?.0 as u32;
        self.unlink(page);
        Some(page)
    }

    fn link(&mut self, page: u32, parent: u32) {
        let sibling = self.first_child(parent);
        let node = &mut self.nodes[page as usize];
        (node.parent, node.sibling) = (parent, sibling);
        *self.first_of(parent) = page;
    }

    fn unlink(&mut self, page: u32) {
        let Node {
            parent, sibling, ..
        } = self.nodes[page as usize];
        let mut before = self.first_child(parent);
        if before == page {
            *self.first_of(parent) = sibling;
            return;
        }
        while before != NONE {
            let node = &mut self.nodes[before as usize];
            if node.sibling == page {
                node.sibling = sibling;
                return;
            }
            before = node.sibling;
        }
    }

    fn first_of(&mut self, parent: u32) -> &mut u32 {
        match parent {
            NONE => &mut self.first,
            parent => &mut self.nodes[parent as usize].child,
        }
    }
}

#[cfg(test)]
mod tests;

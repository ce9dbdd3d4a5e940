//! Pages of the layers that see only a window: a ring for each of a few conversations.
//!
//! These layers need no more of a sequence than its last positions, so they have fewer pages than
//! the tree. A block's page goes to a later block when the window has left it, but not before it is
//! needed: until then an earlier place of the sequence can still be gone on from. So what is known
//! here may end before what the tree knows.

use alloc::vec::Vec;
use core::ops::Range;

use protocol::Stage;

use super::tree::NONE;
use crate::RuntimeError;
use crate::error::{reserve_memory, take_memory};
use crate::kernels::KV_BLOCK;

/// Conversations that can go on by turns without computing a window again.
const RINGS: u64 = 2;

pub struct Rings {
    /// Positions that one sees, itself included.
    window: usize,
    /// The ring's page of each page of the tree.
    of: Vec<u32>,
    pages: Vec<Page>,
    /// The ring's page of each block of the running request.
    path: Vec<u32>,
    committed: usize,
    now: u64,
}

#[derive(Clone, Copy)]
struct Page {
    used: u64,
    /// The page of the tree that it belongs to.
    owner: u32,
    block: u32,
    /// Committed positions.
    len: u32,
}

impl Default for Page {
    fn default() -> Page {
        Page {
            used: 0,
            owner: NONE,
            block: 0,
            len: 0,
        }
    }
}

/// Pages that layers with this window take where the tree has `blocks` pages.
pub fn ring_pages(window: u32, tile: u32, blocks: u64) -> u64 {
    // The window of a tile's first position, the tile, and a block cut at either end.
    let seen = u64::from(window) + u64::from(tile);
    blocks.min(RINGS * (seen.div_ceil(KV_BLOCK as u64) + 1))
}

impl Rings {
    /// Bytes that [`Rings::new`] takes.
    pub fn bytes(pages: u64, blocks: u64) -> Option<u64> {
        let own = pages.checked_mul(size_of::<Page>() as u64)?;
        blocks
            .checked_mul(2 * size_of::<u32>() as u64)?
            .checked_add(own)
    }

    pub fn new(window: u32, pages: usize, blocks: usize) -> Result<Rings, RuntimeError> {
        let mut of = reserve_memory(blocks, Stage::Allocate)?;
        of.resize(blocks, NONE);
        Ok(Rings {
            window: window as usize,
            of,
            pages: take_memory(pages, Stage::Allocate)?,
            path: reserve_memory(blocks, Stage::Allocate)?,
            committed: 0,
            now: 0,
        })
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let words = self.of.capacity() + self.path.capacity();
        (self.pages.capacity() * size_of::<Page>() + words * size_of::<u32>()) as u64
    }

    /// The page of each block of the running request, where there is one.
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// The ring's page of a page of the tree, if all its first `len` positions are known.
    pub fn page(&self, owner: u32, len: usize) -> Option<u32> {
        let page = self.of[owner as usize];
        let known = self.pages.get(page as usize)?.len as usize;
        (known >= len).then_some(page)
    }

    pub fn clear(&mut self) {
        self.of.fill(NONE);
        self.pages.fill(Page::default());
        self.path.clear();
    }

    /// A page of the tree has got another meaning.
    pub fn release(&mut self, owner: u32) {
        let page = core::mem::replace(&mut self.of[owner as usize], NONE);
        if let Some(page) = self.pages.get_mut(page as usize) {
            *page = Page::default();
        }
    }

    /// Begins a request on the tree's path, of which `known` positions are known; gives how many
    /// of them every layer knows.
    pub fn enter(&mut self, path: &[u32], known: usize) -> usize {
        self.now += 1;
        self.path.clear();
        for owner in path {
            let page = self.of[*owner as usize];
            if let Some(page) = self.pages.get_mut(page as usize) {
                page.used = self.now;
            }
            self.path.push(page);
        }
        let mut usable = known;
        while let Some(block) = self.gap(path, usable) {
            usable = block * KV_BLOCK;
        }
        self.committed = usable;
        usable
    }

    /// The path's last page of the tree was taken to go on otherwise than another one, after
    /// position `known`. Gives what is to be copied for that.
    pub fn branch(
        &mut self,
        path: &[u32],
        [from, to]: [u32; 2],
        known: usize,
    ) -> Option<(u32, u32)> {
        let last = path.len() - 1;
        let len = known - last * KV_BLOCK;
        self.release(to);
        let source = self.page(from, len);
        self.enter(path, 0);
        let source = source?;
        let page = self.take(to, last, self.first(known))?;
        self.fill(page, len);
        // The page may be the source's own; then its content is there already.
        (source != page).then_some((source, page))
    }

    /// First block that a position sees.
    fn first(&self, position: usize) -> usize {
        (position + 1).saturating_sub(self.window) / KV_BLOCK
    }

    /// The last block that position `at` needs and that is not known.
    fn gap(&self, path: &[u32], at: usize) -> Option<usize> {
        let seen = (at + 1).saturating_sub(self.window)..at;
        if seen.is_empty() {
            return None;
        }
        let mut blocks = seen.start / KV_BLOCK..seen.end.div_ceil(KV_BLOCK);
        blocks.rfind(|block| {
            let len = KV_BLOCK.min(at - block * KV_BLOCK);
            path.get(*block)
                .is_none_or(|owner| self.page(*owner, len).is_none())
        })
    }

    /// Gives pages to the blocks of these positions. `false` if there are not so many.
    pub fn reach(&mut self, path: &[u32], positions: Range<usize>) -> bool {
        let first = self.first(positions.start);
        self.path.resize(path.len(), NONE);
        let blocks = positions.start / KV_BLOCK..positions.end.div_ceil(KV_BLOCK);
        let owners = path.iter().enumerate().take(blocks.end).skip(blocks.start);
        for (block, owner) in owners {
            if self.path[block] == NONE && self.take(*owner, block, first).is_none() {
                return false;
            }
        }
        true
    }

    /// A page for a block: a free one, or one that the running request does not need, which is
    /// every block before `first`. It spends its own once it has a ring of them, so that another
    /// conversation keeps its; else the one used longest ago.
    fn take(&mut self, owner: u32, block: usize, first: usize) -> Option<u32> {
        let is_own = |index: usize, page: &Page| {
            let place = self.path.get(page.block as usize);
            page.owner != NONE && place == Some(&(index as u32))
        };
        let is_needed = |index, page: &Page| page.block as usize >= first && is_own(index, page);
        let own = self.path.iter().filter(|page| **page != NONE).count();
        let spends_own = own >= self.pages.len() / RINGS as usize;
        let spare = self.pages.iter().enumerate();
        let oldest = spare
            .filter(|(index, page)| !is_needed(*index, page))
            .min_by_key(|(index, page)| {
                let later = is_own(*index, page) != spends_own;
                (page.owner != NONE, later, page.used, page.block)
            })?;
        let index = oldest.0;
        let before = self.pages[index];
        if before.owner != NONE {
            self.of[before.owner as usize] = NONE;
            if self.path.get(before.block as usize) == Some(&(index as u32)) {
                self.path[before.block as usize] = NONE;
            }
        }
        self.pages[index] = Page {
            used: self.now,
            owner,
            block: block as u32,
            len: 0,
        };
        self.of[owner as usize] = index as u32;
        if let Some(place) = self.path.get_mut(block) {
            *place = index as u32;
        }
        Some(index as u32)
    }

    /// Positions before `end` are valid from now on.
    pub fn commit(&mut self, end: usize) {
        while self.committed < end {
            let block = self.committed / KV_BLOCK;
            self.committed = end.min((block + 1) * KV_BLOCK);
            self.fill(self.path[block], self.committed - block * KV_BLOCK);
        }
    }

    /// So many positions of a page are valid.
    pub fn fill(&mut self, page: u32, len: usize) {
        if let Some(page) = self.pages.get_mut(page as usize) {
            page.len = page.len.max(len as u32);
        }
    }
}

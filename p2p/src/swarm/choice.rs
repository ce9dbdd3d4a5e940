//! What to ask next of one peer.

use format::PieceIndex;

use super::arriving::Arriving;
use super::{ARRIVING_MAX, ENDGAME_PIECES, Swarm};
use crate::door::{LinkId, Want};
use crate::wire::Run;

/// Numbers from a seed (SplitMix64, by Sebastiano Vigna).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}

/// Leaves to ask, and whether the piece is opened by this.
pub enum Next {
    Open(PieceIndex),
    Ask(Run),
}

impl Swarm {
    /// The best use of so many leaves of a peer's window: its own pieces, a new one, those that
    /// others began, and at the very end leaves that others owe.
    pub(super) fn next_of(&mut self, link: LinkId, room: u32) -> Option<Next> {
        let mine = self.begun(link, |it| it.opener == link);
        if let Some(run) = self.unasked(link, room, &mine) {
            return Some(Next::Ask(run));
        }
        if self.arriving.len() < ARRIVING_MAX
            && let Some(piece) = self.choose_piece(Some(link))
        {
            return Some(Next::Open(piece));
        }
        let begun = self.begun(link, |it| it.takes(link));
        let helped = self.unasked(link, room, &begun);
        let twice = || match self.remaining() <= ENDGAME_PIECES {
            true => self.asked_of_others(link, room, &begun),
            false => None,
        };
        helped.or_else(twice).map(Next::Ask)
    }

    /// Pieces under way that this peer has.
    fn begun(&self, link: LinkId, which: impl Fn(&Arriving) -> bool) -> Vec<PieceIndex> {
        let Some(peer) = self.peers.get(&link) else {
            return Vec::new();
        };
        let begun = self.arriving.iter();
        let begun = begun.filter(|(piece, it)| which(it) && peer.has.contains(**piece));
        begun.map(|(piece, _)| *piece).collect()
    }

    fn unasked(&self, link: LinkId, room: u32, of: &[PieceIndex]) -> Option<Run> {
        let peer = self.peers.get(&link)?;
        of.iter().find_map(|piece| {
            let owes = |leaf| peer.owes(*piece, leaf);
            run_of(*piece, self.arriving.get(piece)?.unasked(room, owes))
        })
    }

    fn asked_of_others(&self, link: LinkId, room: u32, of: &[PieceIndex]) -> Option<Run> {
        let peer = self.peers.get(&link)?;
        of.iter().find_map(|piece| {
            let owes = |leaf| peer.owes(*piece, leaf);
            run_of(*piece, self.arriving.get(piece)?.missing(room, owes))
        })
    }

    /// The rarest piece that is not here and not under way; of a peer, or of a server, which has
    /// everything. The very first is any: all newcomers would else ask for the same.
    pub(super) fn choose_piece(&mut self, of: Option<LinkId>) -> Option<PieceIndex> {
        let peer = match of {
            Some(link) => Some(self.peers.get(&link)?),
            None => None,
        };
        let (is_in_order, end) = match self.want {
            Want::Nothing | Want::Layer => (true, 0),
            Want::First(count) => (true, count.min(self.id.pieces())),
            Want::All => (false, self.id.pieces()),
        };
        let fits = |piece: &PieceIndex| {
            let is_free = peer
                .is_none_or(|peer| peer.has.contains(*piece) && !peer.hashes_asked.contains(piece));
            is_free && self.is_open(*piece, of.is_none())
        };
        let mut open = (0..end).map(PieceIndex).filter(fits);
        if is_in_order {
            return open.next();
        }
        let is_first = self.done.is_empty() && self.arriving.is_empty() && self.storing.is_empty();
        let rarity = |piece: PieceIndex| match is_first {
            true => 0,
            false => self
                .peers
                .values()
                .filter(|peer| peer.has.contains(piece))
                .count(),
        };
        let (mut best, mut least) = (Vec::new(), usize::MAX);
        for piece in open {
            let rare = rarity(piece);
            if rare < least {
                least = rare;
                best.clear();
            }
            if rare == least {
                best.push(piece);
            }
        }
        match best.len() {
            0 => None,
            count => Some(best[self.chance.below(count as u64) as usize]),
        }
    }

    /// Neither here nor under way. A server also takes up what peers began and nobody brings.
    pub(super) fn is_open(&self, piece: PieceIndex, for_server: bool) -> bool {
        if self.done.contains(piece) || self.storing.contains_key(&piece) {
            return false;
        }
        let claimed = self
            .servers
            .values()
            .any(|server| server.claimed.contains(&piece));
        let may_repeat = !for_server && self.remaining() <= ENDGAME_PIECES;
        match self.arriving.get(&piece) {
            Some(arriving) => for_server && arriving.is_idle() && !claimed,
            None => !claimed || may_repeat,
        }
    }

    /// Pieces that are wanted and not here.
    pub(super) fn remaining(&self) -> u32 {
        let all = match self.want {
            Want::Nothing | Want::Layer => return 0,
            Want::First(count) => {
                let first = (0..count.min(self.id.pieces())).map(PieceIndex);
                return first.filter(|piece| !self.done.contains(*piece)).count() as u32;
            }
            Want::All => self.id.pieces(),
        };
        (all - self.done.count()).saturating_sub(self.storing.len() as u32)
    }
}

fn run_of(piece: PieceIndex, leaves: Option<(u8, u8)>) -> Option<Run> {
    let (first, count) = leaves?;
    Run::new(piece, first, count)
}

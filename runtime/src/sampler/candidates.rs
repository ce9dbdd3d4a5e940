//! The tokens that may still be chosen, and their order.
//!
//! Under top-k they are a bounded heap with the worst survivor on top. Without it they are the
//! whole vocabulary, in token-id order, whose softmax is vector code; only the likely ones are then
//! put into an order, and the others if a draw really reaches them.
//!
//! The order itself is a heap with the most probable token on top, from which tokens move to the
//! end of their part of the array, only as many as are asked for.

use alloc::vec::Vec;

use protocol::TrResult;

use crate::kernels::{divide, exponentials};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// A logit, later a probability; never NaN until the softmax has been checked.
    pub value: f32,
    pub id: u32,
}

impl Candidate {
    /// The order of steps 7 and 9: greater value, then lower id.
    #[inline(always)]
    fn before(&self, other: &Candidate) -> bool {
        self.value > other.value || (self.value == other.value && self.id < other.id)
    }
}

#[derive(Default)]
pub(super) struct Candidates {
    /// Survivors of top-k, later whatever has an order: likely ones, then the others.
    pub(super) all: Vec<Candidate>,
    /// Where the others begin; the length if they are not there.
    others: usize,
    /// `all[start..heap]` is a heap, with `start` 0 or `others`; what follows has been taken from
    /// it, the last first.
    heap: usize,
    /// Without top-k everybody's value and id, in token-id order.
    values: Vec<f32>,
    ids: Vec<u32>,
}

/// Probabilities from here on are ordered first; together the rest is seldom above a hundredth.
const LIKELY: f32 = 1.0 / 65_536.0;

impl Candidates {
    pub const BYTES_EACH: u64 =
        (size_of::<Candidate>() + size_of::<f32>() + size_of::<u32>()) as u64;

    pub fn new(rows: usize) -> Result<Candidates, TrResult> {
        let mut new = Candidates::default();
        let all = new.all.try_reserve_exact(rows);
        let values = new.values.try_reserve_exact(rows);
        let ids = new.ids.try_reserve_exact(rows);
        all.and(values)
            .and(ids)
            .map_err(|_| TrResult::OutOfMemory)?;
        Ok(new)
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        let floats = self.values.capacity() * size_of::<f32>();
        let ids = self.ids.capacity() * size_of::<u32>();
        (self.all.capacity() * size_of::<Candidate>() + floats + ids) as u64
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.values.is_empty()
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.values.clear();
        self.ids.clear();
        (self.others, self.heap) = (0, 0);
    }

    /// Takes a whole run of neighbouring ids that has no masked or counted one, without top-k.
    pub fn take(&mut self, logits: &[f32], first: u32, temperature: f32) {
        // Adding zero turns -0 into +0 and changes nothing else.
        let values = logits.iter().map(|logit| (logit + 0.0) / temperature);
        self.values.extend(values);
        self.ids.extend(first..first + logits.len() as u32);
    }

    /// Keeps the best `limit` of all that are offered (all if 0). Ids come in ascending order.
    #[inline]
    pub fn offer(&mut self, value: f32, id: u32, limit: usize) {
        let new = Candidate { value, id };
        // Never beyond the memory taken at the start: each id is offered once.
        if limit == 0 {
            self.values.push(value);
            self.ids.push(id);
        } else if self.all.len() < limit {
            self.all.push(new);
            if self.all.len() == limit {
                make_heap(&mut self.all, |a, b| b.before(a));
            }
        } else if new.before(&self.all[0]) {
            self.all[0] = new;
            sink(&mut self.all, 0, |a, b| b.before(a));
        }
    }

    /// The value that a later id must exceed to be kept, if `limit` are held.
    #[inline]
    pub fn worst(&self, limit: usize) -> Option<f32> {
        (limit != 0 && self.all.len() == limit).then(|| self.all[0].value)
    }

    /// Step 8. Logits become probabilities.
    /// `NumericalFailure` if a logit or the sum is not finite.
    pub fn softmax(&mut self) -> Result<(), TrResult> {
        self.all.sort_unstable_by_key(|c| c.id);
        // Survivors of top-k are few: they take the same way.
        for Candidate { value, id } in self.all.drain(..) {
            self.values.push(value);
            self.ids.push(id);
        }
        let z = exponentials(&mut self.values)?;
        divide(&mut self.values, z);
        Ok(())
    }

    /// Step 9, lazily: from here on [`Candidates::at`] gives the order.
    pub fn order(&mut self) {
        self.add(|value| value >= LIKELY);
        self.others = self.all.len();
    }

    /// Appends those whose value is wanted, as a heap.
    fn add(&mut self, wanted: impl Fn(f32) -> bool) {
        let start = self.all.len();
        for (value, id) in self.values.iter().zip(&self.ids) {
            if wanted(*value) {
                self.all.push(Candidate {
                    value: *value,
                    id: *id,
                });
            }
        }
        self.heap = self.all.len();
        make_heap(&mut self.all[start..], Candidate::before);
    }

    /// The candidate at `rank` in the order. Ranks are asked for in ascending order, or again.
    pub(super) fn at(&mut self, rank: usize) -> Option<Candidate> {
        if rank >= self.values.len() {
            return None;
        }
        if rank >= self.all.len() {
            // The likely ones were not enough: all of them are in order now, the others follow.
            self.rank_until(0, 0);
            self.add(|value| value < LIKELY);
        }
        let (start, place) = match rank < self.others {
            true => (0, self.others - 1 - rank),
            false => (self.others, self.all.len() - 1 - (rank - self.others)),
        };
        // The likely ones are in order once the others are there.
        if start == self.others || self.all.len() == self.others {
            self.rank_until(start, place);
        }
        Some(self.all[place])
    }

    /// Moves the best of the heap that begins at `start` behind it, until `place` holds one.
    fn rank_until(&mut self, start: usize, place: usize) {
        while self.heap > place {
            self.heap -= 1;
            self.all.swap(start, self.heap);
            sink(&mut self.all[start..self.heap], 0, Candidate::before);
        }
    }

    /// Step 10: length and mass of the shortest prefix that reaches `top_p`, cut before the first
    /// probability below `min_p` times the greatest; at least one token.
    pub fn prefix(&mut self, min_p: f32, top_p: f32) -> (usize, f64) {
        let mut mass = 0.0;
        let mut least = 0.0;
        let mut rank = 0;
        while let Some(candidate) = self.at(rank) {
            if rank == 0 {
                least = min_p * candidate.value;
            } else if candidate.value < least {
                break;
            }
            mass += f64::from(candidate.value);
            rank += 1;
            if top_p < 1.0 && mass >= f64::from(top_p) {
                break;
            }
        }
        (rank, mass)
    }

    /// Step 11: the first id at which the cumulative probability exceeds `target`; if rounding
    /// leaves none, the last of positive probability. Over at least one candidate.
    pub fn first_beyond(&mut self, target: f64) -> u32 {
        let mut mass = 0.0;
        let mut rank = 0;
        let mut chosen = 0;
        while let Some(candidate) = self.at(rank) {
            if candidate.value == 0.0 && rank > 0 {
                break;
            }
            chosen = candidate.id;
            mass += f64::from(candidate.value);
            if mass > target {
                break;
            }
            rank += 1;
        }
        chosen
    }
}

/// Orders `all` so that no child stands before its parent.
fn make_heap(all: &mut [Candidate], before: impl Fn(&Candidate, &Candidate) -> bool + Copy) {
    for start in (0..all.len() / 2).rev() {
        sink(all, start, before);
    }
}

fn sink(
    all: &mut [Candidate],
    start: usize,
    before: impl Fn(&Candidate, &Candidate) -> bool + Copy,
) {
    let mut parent = start;
    loop {
        let mut child = 2 * parent + 1;
        if child >= all.len() {
            return;
        }
        if child + 1 < all.len() && before(&all[child + 1], &all[child]) {
            child += 1;
        }
        if !before(&all[child], &all[parent]) {
            return;
        }
        all.swap(parent, child);
        parent = child;
    }
}

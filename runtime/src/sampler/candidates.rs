//! The tokens that may still be chosen, and their order.
//!
//! One array serves three times: as a bounded heap with the worst survivor of top-k on top, in
//! token-id order for the softmax, and as a heap with the most probable token on top, from which
//! tokens move to the end of the array in order, only as many as are asked for.

use alloc::vec::Vec;

use protocol::TrResult;

use crate::functions::exp_v1;

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
    pub(super) all: Vec<Candidate>,
    /// `all[..heap]` is a heap; what follows has been taken from it, the last first.
    heap: usize,
}

impl Candidates {
    pub const BYTES_EACH: u64 = size_of::<Candidate>() as u64;

    pub fn new(rows: usize) -> Result<Candidates, TrResult> {
        let mut all = Vec::new();
        all.try_reserve_exact(rows)
            .map_err(|_| TrResult::OutOfMemory)?;
        Ok(Candidates { all, heap: 0 })
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.heap = 0;
    }

    /// Keeps the best `limit` of all that are offered (all if 0). Ids come in ascending order.
    #[inline]
    pub fn offer(&mut self, value: f32, id: u32, limit: usize) {
        let new = Candidate { value, id };
        if limit == 0 || self.all.len() < limit {
            // Never beyond the memory taken at the start: each id is offered once.
            self.all.push(new);
            if self.all.len() == limit {
                make_heap(&mut self.all, |a, b| b.before(a));
            }
        } else if new.before(&self.all[0]) {
            self.all[0] = new;
            sink(&mut self.all, 0, |a, b| b.before(a));
        }
    }

    /// Step 8. Logits become probabilities; the array is in token-id order.
    /// `NumericalFailure` if a logit or the sum is not finite.
    pub fn softmax(&mut self) -> Result<(), TrResult> {
        if !self.all.is_sorted_by_key(|c| c.id) {
            self.all.sort_unstable_by_key(|c| c.id);
        }
        let mut most = f32::NEG_INFINITY;
        for candidate in &self.all {
            most = if candidate.value > most {
                candidate.value
            } else {
                most
            };
        }
        for candidate in &mut self.all {
            candidate.value = exp_v1(candidate.value - most);
        }
        let mut stripes = [0.0f32; 4];
        for four in self.all.chunks(4) {
            for (stripe, candidate) in stripes.iter_mut().zip(four) {
                *stripe += candidate.value;
            }
        }
        let z = (stripes[0] + stripes[1]) + (stripes[2] + stripes[3]);
        if !z.is_finite() || z <= 0.0 {
            return Err(TrResult::NumericalFailure);
        }
        for candidate in &mut self.all {
            candidate.value /= z;
        }
        Ok(())
    }

    /// Step 9, lazily: from here on [`Candidates::at`] gives the order.
    pub fn order(&mut self) {
        self.heap = self.all.len();
        make_heap(&mut self.all, Candidate::before);
    }

    /// The candidate at `rank` in the order.
    pub(super) fn at(&mut self, rank: usize) -> Option<Candidate> {
        let place = self.all.len().checked_sub(rank + 1)?;
        while self.heap > place {
            self.heap -= 1;
            self.all.swap(0, self.heap);
            sink(&mut self.all[..self.heap], 0, Candidate::before);
        }
        Some(self.all[place])
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
